"""The sizes of every value of a trace, as expressions over the parameters' sizes.

Computed by the shape formulas when a program looks, once for each node: a program that
never looks at a size pays nothing, and gets no guard.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import torch

from . import formulas
from .errors import TraceError
from .expressions import Bool, Expr, Shape, number
from .formulas.pointwise import pointwise
from .ir import Node, v_constant
from .looks import function_name
from .sizes import UNBACKED, Mask, Size, Sizes, SymBool, SymInt, expr_of, items
from .tree import leaves, map_tree

Known = Any  # the shape of a tensor, or a list, tuple or dict of these; None where no formula tells


class Shapes:
    """`of(node)` is the shape of a node's value: a torch.Size, or a `Size` with SymInts in it."""

    def __init__(self, sizes: Sizes):
        self.sizes = sizes
        self.computing: Node | None = None  # whose formula is running
        self._known: dict[Node, Known] = {}

    def of(self, node: Node) -> Known:
        """What is known of the value's shape. A formula may decide on sizes, which adds guards to the trace."""
        todo = [node]  # a loop, not recursion: a deep graph has deep dependencies
        while todo:
            missing = [i for i in todo[-1].inputs if i not in self._known] if todo[-1] not in self._known else []
            if missing:
                todo += reversed(missing)
            else:
                done = todo.pop()
                if done not in self._known:
                    self._known[done] = self._compute(done)
        return self._known[node]

    def _compute(self, node: Node) -> Known:
        if node.is_parameter:
            space, name = self.sizes.space, node.name
            return Size(self.sizes.wrap(space.size(name, d, n)) for d, n in enumerate(node.params["size"]))
        if node.op == v_constant:
            return node.shape
        if node.op.fn is operator.getitem:  # a part of a structure
            parent, key = node.args
            found = self._part(self._known[parent], key)
        else:
            found = self._by_formula(node)
        if node.shape is None:
            return found
        if node.data_sized:
            if found is None or UNBACKED not in found:
                found = (UNBACKED,) * len(node.shape)
            u = self.sizes.space.unbacked
            found = tuple(self.sizes.wrap(u(node.name, d, node.shape[d])) if n is UNBACKED else n for d, n in enumerate(found))
        if found is not None:
            found = Size(found)
            hints = [e and e.hint for e in map(expr_of, items(found))]
            if hints == list(node.shape):
                return found
            _disagrees(node, f"it says {found}, PyTorch {tuple(node.shape)}")
        return self.unknown(node)

    @staticmethod
    def _part(structure: Known, key: Any) -> Known:
        try:
            return None if structure is None else structure[key]
        except (LookupError, TypeError):
            return None

    def _by_formula(self, node: Node) -> Known:
        function = getattr(node.op.fn, "args", (node.op.fn,))[0]  # a setter is wrapped
        name = function_name(function)
        rule = formulas.find(function, name)
        if rule is None:
            return None
        args, kwargs = self.arguments(node.args, node.kwargs)
        if rule is pointwise and node.mutates and kwargs.get("out") is None:
            return args[0]  # in place: the first argument keeps its shape
        self.computing = node
        try:
            with self.sizes.in_formula():
                return formulas.apply(rule, args, kwargs)
        except TraceError:
            raise
        except Exception as error:  # a formula's mistake must not stop the program
            _disagrees(node, f"it raised {type(error).__name__}: {error}")
            return None
        finally:
            self.computing = None

    def arguments(self, args: Any, kwargs: Any) -> Any:
        """Arguments of a node as a formula takes them: shapes in place of tensors, SymInts in place of expressions."""
        return map_tree(self._argument, (args, kwargs), (Node, Expr, Bool, Shape))

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Node):
            mask = value.dtype in (torch.bool, torch.uint8) and self._known[value] is not None
            return Mask(self._known[value]) if mask else self._known[value]
        if isinstance(value, Shape):
            return Size(map(self._argument, value))
        return self.sizes.wrap(value) if isinstance(value, Expr) else SymBool(value, self.sizes)

    def unknown(self, node: Node) -> Size:
        """Every size of every input flows into every size of the result."""
        shape = node.shape
        while self._known.get(node.inputs[0] if node.inputs else None, ()) is None:
            node = node.inputs[0]  # a part of a structure: what the whole came from
        given = leaves([self._known[i] for i in node.inputs]) + leaves(self.arguments(node.args, node.kwargs))
        sources = [n.expr for n in given if type(n) is SymInt]
        if node.rank_varies:  # and into its rank, which nothing computed from it could tell any more
            for source in sources:
                self.sizes.integer(self.sizes.wrap(source))
        make = self.sizes.space.unknown if sources else lambda sources, hint: number(hint)
        return Size(self.sizes.wrap(make(sources, n)) for n in shape)


def _disagrees(node: Node, how: str) -> None:
    warnings.warn(f"the shape formula of {node.op} is wrong, so every size of its inputs counts: {how}", stacklevel=2)
