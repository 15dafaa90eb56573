"""Shape formulas: the sizes of an operator's result, from the sizes of its inputs.

One module per family; `registry` tells what a formula is and how to add one.
"""

from . import algebra, linear, losses, pointwise, reductions, views  # noqa: F401 - they register their formulas
from .registry import apply, find, formula

__all__ = ["apply", "find", "formula"]
