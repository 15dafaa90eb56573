"""The rungs of the ladder: what a program's look at a size commits a trace to.

One tracer, one graph, one kind of guard; only these few lines differ between the lessons.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ir import Node, input_sources

if TYPE_CHECKING:
    from .tracer import Tracer


class Blind:
    """A look commits us to nothing, as with `torch.jit.trace`. Unsound: lesson 04 shows it fail."""

    guards_looks = False

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


RUNGS = {"blind": Blind(), "static": Static(), "whole_tensor": WholeTensor()}

#: The names that `analysis=` takes, from the rung that guards least.
ANALYSES = tuple(RUNGS)
