"""A graph as Python source: what a replay runs, and what `t.code` shows.

One line a node, in program order; a value is dropped after its last use. The interpreter
says the same more slowly and stays the reference: a test holds the two against each other.
"""

from __future__ import annotations

import linecache
import operator
from collections.abc import Callable
from typing import Any

import torch

from . import ambient
from .expressions import LONGEST, Atom, Bool, Evaluation, Expr, Shape, atoms, broadcast
from .interpreter import PARTS
from .ir import Graph, Node, v_constant
from .tree import map_tree

#: Special methods that a line can spell as an operator, and the operators.
INFIX = {"__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__matmul__": "@", "__floordiv__": "//", "__mod__": "%",
         "__pow__": "**", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">=", "__eq__": "==", "__ne__": "!=",
         "__and__": "&", "__or__": "|", "__xor__": "^"}  # fmt: skip
REFLECTED = {"__radd__": "+", "__rsub__": "-", "__rmul__": "*", "__rtruediv__": "/", "__rmatmul__": "@", "__rpow__": "**"}
LARGEST = 20_000  # nodes; compiling the source of a longer graph costs more than interpreting it


class Source:
    """The source of one graph's replay (`text`) and the function that it defines (`run`)."""

    def __init__(self, graph: Graph, title: str):
        self.graph = graph
        self.scope: dict[str, Any] = {"torch": torch, "broadcast": broadcast, "_fill": _fill, "_Evaluation": Evaluation}
        self._names = {node: f"v{i}" for i, node in enumerate(graph.nodes)}
        self._held: dict[Any, str] = {}
        self.text = self._write()
        file = f"<replay of {title}>"
        exec(compile(self.text, file, "exec"), self.scope)
        linecache.cache[file] = (len(self.text), None, self.text.splitlines(keepends=True), file)  # for tracebacks
        self.run: Callable[..., Any] = self.scope["replay"]

    def _write(self) -> str:
        parameters = self.graph.parameters
        body: list[str] = []
        exprs = [p for node in self.graph for p in _parts(node)] + _parts_of(self.graph.output)
        self._large = any(e.weight > LONGEST for e in exprs)
        used = {a.args for a in atoms(*exprs) if a.op == "size"}
        where = {p.name: self._names[p] for p in parameters}
        self._sizes = {pair: f"s{i}" for i, pair in enumerate(sorted(used, key=lambda p: (list(where).index(p[0]), p[1])))}
        body += [f"{symbol} = {where[name]}.shape[{dim}]  # {name}.shape[{dim}]" for (name, dim), symbol in self._sizes.items()]
        if self._large:
            body.append(f"_shapes = {{{', '.join(f'{p.name!r}: {self._names[p]}.shape' for p in parameters)}}}")
            body.append("_evaluate = _Evaluation(_shapes.__getitem__)")
        last = {i: node for node in self.graph for i in node.inputs}
        returned: set[Node] = set()
        map_tree(returned.add, self.graph.output, Node)
        for node in self.graph:
            if not node.is_parameter and node.op != v_constant:
                body.append(self._line(node))
            if node.data_sized and node.shape is not None:
                body.append(f"u{self._names[node]} = {self._names[node]}.shape")
                body += [f"_shapes[{node.name!r}] = u{self._names[node]}"] if self._large else []
            gone = [self._names[i] for i in dict.fromkeys((*node.inputs, node)) if i.op != v_constant and i not in returned
                    and (last.get(i) is node or (i is node and i not in last and not i.is_parameter))]  # fmt: skip
            if gone and not node.is_parameter:
                body[-1] += f"; del {', '.join(gone)}"
        body.append(f"return {self._value(self.graph.output)}")
        if any(node.op == ambient.v_ambient for node in self.graph):
            self.scope["_Replay"] = ambient.Replay
            body = ["with _Replay() as _state:", *("    " + line for line in body)]
        return f"def replay({', '.join(self._names[p] for p in parameters)}):\n" + "\n".join("    " + line for line in body) + "\n"

    def _line(self, node: Node) -> str:
        if node.op == ambient.v_ambient:
            return f"{self._names[node]} = _state.enter({self._hold(node.args[0])})"
        return f"{self._names[node]} = {self._call(node)}"

    def _call(self, node: Node) -> str:
        args = [self._value(a) for a in node.args]
        function = node.op.fn
        name = getattr(function, "__name__", "")
        if function is operator.getitem and len(args) == 2:
            return f"{args[0]}[{args[1]}]"
        if isinstance(function, type(torch.Tensor.add)) or name in INFIX or name in REFLECTED:
            ours = getattr(torch.Tensor, name, None) is function and len(args) == 2 and not node.kwargs
            if ours and name in INFIX and isinstance(node.args[0], Node):
                return f"{args[0]} {INFIX[name]} {args[1]}"
            if ours and name in REFLECTED and isinstance(node.args[0], Node) and not isinstance(node.args[1], Node):
                return f"{args[1]} {REFLECTED[name]} {args[0]}"
        args += [f"{key}={self._value(value)}" for key, value in node.kwargs.items()]
        return f"{self._hold(function, node.op.name)}({', '.join(args)})"

    def _hold(self, value: Any, name: str = "") -> str:
        """A name for an object that the source can't spell."""
        key = id(value)
        if key not in self._held:
            word = "".join(c if c.isalnum() else "_" for c in name.removeprefix("v_")).strip("_") or "object"
            self._held[key] = name = f"_{word}_{len(self._held)}"
            self.scope[name] = value
        return self._held[key]

    def _value(self, value: Any) -> str:
        if isinstance(value, Node):
            return self._hold(value.params["value"], value.name) if value.op == v_constant else self._names[value]
        if isinstance(value, (Expr, Bool)):
            return f"_evaluate({self._hold(value)})" if value.weight > LONGEST else self._expression(value)
        if isinstance(value, Shape):
            return f"torch.Size(({''.join(self._value(n) + ', ' for n in value)}))"
        if value is None or value is Ellipsis or type(value) in (bool, int, str):
            return repr(value) if type(value) is not int or value >= 0 else f"({value})"
        if type(value) is float and value == value and abs(value) != float("inf"):
            return repr(value) if value >= 0 else f"({value!r})"
        if type(value) is slice:
            return f"slice({self._value(value.start)}, {self._value(value.stop)}, {self._value(value.step)})"
        if type(value) is list:
            return f"[{', '.join(map(self._value, value))}]"
        if type(value) is tuple:
            return f"({''.join(self._value(v) + ', ' for v in value)})"
        if type(value) is dict:
            return "{" + ", ".join(f"{self._value(k)}: {self._value(v)}" for k, v in value.items()) + "}"
        found: list[Any] = []
        template = map_tree(lambda part: found.append(part) or _Slot(len(found) - 1), value, PARTS)
        if not found:
            return self._hold(value)
        self._kept = [*getattr(self, "_kept", []), template]  # alive, so that its identity stays its own
        return f"_fill({self._hold(template)}, [{', '.join(map(self._value, found))}])"

    def _expression(self, value: Expr | Bool) -> str:
        if isinstance(value, Bool):
            if value.op in ("and", "or"):
                return "(" + f" {value.op} ".join(map(self._expression, value.args)) + ")"
            return f"({self._expression(value.args[0])} {value.op} {self._expression(value.args[1])})"
        terms = ["*".join([*map(self._atom, m), *([str(c)] if c != 1 or not m else [])]) for m, c in value.terms.items()] or ["0"]
        return f"({' + '.join(terms)})" if len(terms) > 1 or "*" in terms[0] else terms[0]

    def _atom(self, atom: Atom) -> str:
        if atom.op == "size":
            return self._sizes[atom.args]
        if atom.op == "unbacked":
            node = next(n for n in self.graph if n.name == atom.args[0])
            return f"u{self._names[node]}[{atom.args[1]}]"
        args = list(map(self._expression, atom.args))
        if atom.op in ("//", "%"):
            return f"({args[0]} {atom.op} {args[1]})"
        return f"int({args[0]} * ({args[1]} / {args[2]}))" if atom.op == "scaled" else f"{atom.op}({', '.join(args)})"


def _parts(node: Node) -> list[Expr | Bool]:
    return _parts_of((node.args, node.kwargs))


def _parts_of(value: Any) -> list[Expr | Bool]:
    found: list[Any] = []
    map_tree(found.append, value, (Expr, Bool, Shape))
    return [p for f in found for p in (f if isinstance(f, Shape) else (f,)) if isinstance(p, (Expr, Bool))]


class _Slot:
    """A place in a container where a computed value goes."""

    def __init__(self, index: int):
        self.index = index


def _fill(template: Any, values: list) -> Any:
    return map_tree(lambda slot: values[slot.index], template, _Slot)
