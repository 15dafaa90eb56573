"""What a trace records: operations, the nodes that apply them, and the graph they form.

A node is an operation applied to other nodes. The graph keeps its nodes in program
order, which is also a topological order: a node comes after everything it uses.
Walks are loops over that order, never recursive calls, so that a deep graph can't hit
the recursion limit and a shared node is visited once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .source import Cause, without_addresses


@dataclass(frozen=True)
class Op:
    """An operation: a frozen name, which is also what it prints as.

    `fn` is the Python function that computes it; ops are compared by name alone.
    """

    name: str
    fn: Callable | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        return self.name


v_dynamic_param = Op("v_dynamic_param")  # a parameter of the trace, of any size
v_static_param = Op("v_static_param")  # a parameter that must have the size seen while tracing
v_constant = Op("v_constant")  # a tensor that the program holds itself: a weight, a closure
PARAMETER_OPS = (v_dynamic_param, v_static_param)


class Node:
    """One operation applied to `inputs` (other nodes), with `params` (static metadata).

    Compared by identity: two nodes that compute the same are still two nodes.
    `args` and `kwargs` are the call as the program made it, with nodes in place of
    traced values; unless given, they follow from `inputs` and `params`.

    Set by the tracer: `name` and `index` in its graph, `shape` and `dtype` of the value
    seen while tracing (the hint; None for a value that is no tensor), `cause` (the
    reader's line), `scope` (path of the `nn.Module`), `mutates` (it changes an input
    in place), `unbacked` (its sizes depend on data; `data_sized`: by this very operation) and `rank_varies` (its rank may follow
    from sizes, as a squeeze's does).
    """

    __slots__ = ("args", "cause", "data_sized", "dtype", "index", "inputs", "kwargs", "mutates", "name", "op", "params",
                 "rank_varies", "scope", "shape", "unbacked")  # fmt: skip

    def __init__(self, op: Op, inputs: Iterable[Node] = (), params: dict[str, Any] | None = None, *,
                 args: tuple | None = None, kwargs: dict | None = None):  # fmt: skip
        self.op = op
        self.inputs = tuple(inputs)
        self.params = {} if params is None else params
        self.args = self.inputs if args is None else args
        self.kwargs = self.params if kwargs is None else kwargs
        self.name = self.params.get("name", "")
        self.index = -1
        self.shape = self.params.get("size")
        self.dtype = None
        self.cause: Cause | None = None
        self.scope = ""
        self.mutates = self.unbacked = self.data_sized = self.rank_varies = False

    @property
    def is_parameter(self) -> bool:
        return self.op in PARAMETER_OPS

    def text(self, limit: int = 2000, short: bool = False) -> str:
        """The node as one nested expression of at most about `limit` characters.

        `short=True` is the spelling of the system this package grew from, which prints
        a static parameter without its name and size.
        """
        return _nested(self, limit, short)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Node {self.name or '?'} = {self.op}>"


def ancestors(*roots: Node) -> list[Node]:
    """All nodes that `roots` are computed from, and `roots`, each once, inputs first."""
    order: list[Node] = []
    seen: set[Node] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((i, False) for i in reversed(node.inputs) if i not in seen)
    return order


def input_sources(node: Node, seen: set[Node] | None = None) -> list[Node]:
    """The parameters that `node` is computed from, each once, depth first from left to right.

    `seen`: nodes not to visit; those visited are added. An analysis that passes the same
    set to every walk visits each node once in all, however many sizes a program reads.
    """
    seen = set() if seen is None else seen
    sources: list[Node] = []
    stack = [node]
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node.is_parameter:
                sources.append(node)
            stack.extend(i for i in reversed(node.inputs) if i not in seen)
    return sources


class Graph:
    """Nodes in program order, and `output`: what the program returned, nodes in place of tensors."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.output: Any = None

    @classmethod
    def of(cls, *roots: Node) -> Graph:
        """The graph of free nodes: those that `roots` are computed from."""
        graph = cls()
        graph.nodes = ancestors(*roots)
        graph.output = roots[0] if len(roots) == 1 else roots
        return graph

    def append(self, node: Node) -> Node:
        node.index = len(self.nodes)
        node.name = node.name or f"v{node.index}"
        self.nodes.append(node)
        return node

    @property
    def parameters(self) -> list[Node]:
        return [n for n in self.nodes if n.is_parameter]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def text(self, limit: int = 200) -> str:
        """One line a node; of a longer graph, the first and the last `limit / 2` nodes."""
        names = node_names(self)
        nodes, skipped = self.nodes, 0
        if len(nodes) > limit:
            skipped = len(nodes) - limit // 2 * 2
        lines = []
        for i, node in enumerate(nodes):
            if skipped and i == limit // 2:
                lines.append(f"... {skipped:,} more nodes ...")
            if not skipped or not limit // 2 <= i < len(nodes) - limit // 2:
                lines.append(f"{names[node]} = {call_text(node, names)}")
        return "\n".join([*lines, f"return {''.join(tokens(self.output, names.__getitem__))}"])

    def __str__(self) -> str:
        return self.text()


def node_names(graph: Graph) -> dict[Node, str]:
    """A name for each node: the tracer's, or one that counts up for free nodes."""
    return {n: n.name or f"v{i}" for i, n in enumerate(graph.nodes)}


def call_text(node: Node, names: dict[Node, str]) -> str:
    """The node's own call, its inputs by name: `v_sum(a, dim=1)`."""
    if node.is_parameter or node.op == v_constant:
        return _leaf(node, short=False)
    return "".join(_call(node, lambda i: names.get(i, "?")))


def _leaf(node: Node, short: bool) -> str:
    name, size = node.params.get("name", node.name), node.params.get("size")
    if node.op == v_static_param:
        return "v_static_param()" if short else f"v_static_param(name={name}, size={list(size or ())})"
    return f"{node.op}(name={name})"


def _call(node: Node, show: Callable[[Node], Any]) -> Iterator[Any]:
    yield f"{node.op}("
    for i, arg in enumerate(node.args):
        yield ", " if i else ""
        yield from tokens(arg, show)
    for i, (key, value) in enumerate(node.kwargs.items()):
        yield f"{', ' if i or node.args else ''}{key}="
        yield from tokens(value, show)
    yield ")"


def tokens(value: Any, show: Callable[[Node], Any]) -> Iterator[Any]:
    """`value` as Python would write it, in pieces, with `show(node)` for each node in it."""
    if isinstance(value, Node):
        yield show(value)
    elif type(value) in (tuple, list):
        yield "(" if type(value) is tuple else "["
        for i, item in enumerate(value):
            yield ", " if i else ""
            yield from tokens(item, show)
        yield (",)" if len(value) == 1 else ")") if type(value) is tuple else "]"
    elif isinstance(value, dict):
        yield "{"
        for i, (key, item) in enumerate(value.items()):
            yield f"{', ' if i else ''}{key!r}: "
            yield from tokens(item, show)
        yield "}"
    elif isinstance(value, slice):
        for i, part in enumerate((value.start, value.stop, value.step)):
            if i < 2 or part is not None:
                yield ":" if i else ""
                yield from () if part is None else tokens(part, show)
    else:
        yield short_repr(value)


def short_repr(value: Any, limit: int = 60) -> str:
    """`repr`, without the memory addresses that differ from run to run, and cut at `limit`."""
    if isinstance(value, type) or callable(value):
        return getattr(value, "__name__", type(value).__name__)
    text = without_addresses(repr(value))
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _nested(root: Node, limit: int, short: bool) -> str:
    """Depth first with a stack of token iterators; stops at `limit` characters, so that the
    text of a graph that shares nodes (60 x `x = x + x` is 2**60 leaves) stays short."""
    out, length, stack = [], 0, [iter([root])]
    while stack:
        token = next(stack[-1], None)
        if token is None:
            stack.pop()
        elif not isinstance(token, Node):
            out.append(token)
            length += len(token)
        elif token.is_parameter or token.op == v_constant:
            stack.append(iter([_leaf(token, short)]))
        else:
            stack.append(_call(token, lambda n: n))
        if length > limit:
            return "".join(out) + "..."
    return "".join(out)
