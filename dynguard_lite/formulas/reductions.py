"""Operators that take dimensions together."""

from __future__ import annotations

from typing import Any

from .registry import formula

Shape = tuple


def reduced(input: Shape, dim: Any = None, keepdim: bool = False) -> Shape:
    """`input` without the dimensions `dim` (None or empty: all), or with size 1 in their place."""
    dims = range(len(input)) if dim is None or dim == () or dim == [] else dim if isinstance(dim, (tuple, list)) else (dim,)
    gone = {d % len(input) for d in dims} if len(input) else set()
    return tuple(1 if d in gone else n for d, n in enumerate(input) if keepdim or d not in gone)


@formula("sum", "nansum", "mean", "nanmean", "amax", "amin", "argmax", "argmin", "logsumexp", "count_nonzero", "all", "any",
         "prod")  # fmt: skip
def reduction(input: Shape, dim: Any = None, keepdim: bool = False) -> Shape:
    return reduced(input, dim, keepdim)


@formula("std", "var")
def deviation(input: Shape, dim: Any = None, unbiased: Any = True, keepdim: bool = False, correction: Any = 1) -> Shape:
    return reduced(input, None if isinstance(dim, bool) else dim, keepdim)  # x.std(False) is about the bias


@formula("std_mean", "var_mean")
def deviation_and_mean(input: Shape, dim: Any = None, *args: Any, **kwargs: Any) -> tuple[Shape, Shape]:
    shape = deviation(input, dim, *args, **{k: v for k, v in kwargs.items() if k != "dtype"})
    return shape, shape


@formula("norm")
def norm(input: Shape, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Shape:
    return reduced(input, dim, keepdim)


@formula("linalg_norm", "linalg_vector_norm")
def vector_norm(input: Shape, ord: Any = None, dim: Any = None, keepdim: bool = False) -> Shape:
    return reduced(input, dim, keepdim)


@formula("aminmax")
def aminmax(input: Shape, dim: Any = None, keepdim: bool = False) -> tuple[Shape, Shape]:
    return reduced(input, dim, keepdim), reduced(input, dim, keepdim)


@formula("max", "min", "median", "nanmedian")
def extremum(input: Shape, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """Of all elements; along a dimension, with the indices; or of two tensors."""
    from .pointwise import broadcast_shapes, tensors

    if tensors(dim, other):
        return broadcast_shapes(input, *tensors(dim, other))
    shape = reduced(input, dim, keepdim)
    return shape if dim is None else (shape, shape)


@formula("mode")
def mode(input: Shape, dim: int = -1, keepdim: bool = False) -> tuple[Shape, Shape]:
    return reduced(input, dim, keepdim), reduced(input, dim, keepdim)


@formula("kthvalue")
def kthvalue(input: Shape, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Shape, Shape]:
    return reduced(input, dim, keepdim), reduced(input, dim, keepdim)


@formula("sort", "msort", "cummax", "cummin")
def sort(input: Shape, *args: Any, **kwargs: Any) -> tuple[Shape, Shape]:
    return input, input


@formula("topk")
def topk(input: Shape, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Shape, Shape]:
    dim = dim % len(input) if input else 0
    shape = (*input[:dim], k, *input[dim + 1 :]) if input else ()
    return shape, shape
