"""The rungs of the ladder: what a program's look at a size commits a trace to.

One tracer, one graph, one kind of guard; only these few lines differ between the lessons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .expressions import Bool, Expr, negate, number, relation, symbols
from .ir import Node, input_sources

if TYPE_CHECKING:
    from .tracer import Tracer


class Blind:
    """A look commits us to nothing, as with `torch.jit.trace`. Unsound: lesson 04 shows it fail."""

    guards_looks = False
    remembers = False  # do sizes carry the expression that they come from?
    symbolic = False  # ... and may the program compute with it?

    def begin(self, tracer: Tracer, parameter: Node) -> None:
        """A parameter enters the trace."""

    def size_read(self, tracer: Tracer, node: Node) -> None:
        """The program looks at the size of `node`."""


class WholeTensor(Blind):
    """The original rule: every parameter that the tensor came from turns static, as a whole."""

    guards_looks = True

    def size_read(self, tracer: Tracer, node: Node) -> None:
        for parameter in input_sources(node, tracer.seen["size"]):
            tracer.make_static(parameter, node)


class Static(WholeTensor):
    """Every parameter's whole shape is guarded from the start, whether the program looks or not."""

    def begin(self, tracer: Tracer, parameter: Node) -> None:
        tracer.make_static(parameter, parameter)


class PerDimension(WholeTensor):
    """A size that is read turns static the dimensions of parameters that flow into it, by shape formula."""

    remembers = True

    def integer(self, tracer: Tracer, expr: Expr) -> None:
        """The program uses a size as a plain int."""
        tracer.pin(symbols(expr), f"the program read a size that is {expr}")

    def decide(self, tracer: Tracer, condition: Bool) -> None:
        """A shape formula (or, in `Symbolic`, the program) branches on a condition on sizes."""
        tracer.pin(symbols(condition), f"whether {condition} was asked")


class Symbolic(PerDimension):
    """A size stays an expression: only a comparison, or a conversion to int, guards its own outcome."""

    symbolic = True

    def integer(self, tracer: Tracer, expr: Expr) -> None:
        tracer.fact(relation("==", expr, number(expr.hint)), f"the program used {expr} as a plain int")

    def decide(self, tracer: Tracer, condition: Bool) -> None:
        tracer.fact(condition if condition.hint else negate(condition), f"the program asked whether {condition}")


_ALL = Blind(), Static(), WholeTensor(), PerDimension(), Symbolic()
RUNGS = dict(zip(("blind", "static", "whole_tensor", "per_dimension", "symbolic"), _ALL, strict=True))

#: The names that `analysis=` takes, from the rung that guards least.
ANALYSES = tuple(RUNGS)
