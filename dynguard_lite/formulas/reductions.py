"""Operators that take dimensions together."""

from __future__ import annotations

from typing import Any

from .pointwise import broadcast_shapes, tensors
from .registry import formula

Shape = tuple


def reduced(input: Shape, dim: Any = None, keepdim: bool = False) -> Shape:
    """`input` without the dimensions `dim` (None or empty: all), or with size 1 in their place."""
    dims = range(len(input)) if dim is None or dim == () or dim == [] else dim if isinstance(dim, (tuple, list)) else (dim,)
    gone = {d % len(input) for d in dims} if len(input) else set()
    return tuple(1 if d in gone else n for d, n in enumerate(input) if keepdim or d not in gone)


formula("sum nansum mean nanmean amax amin argmax argmin logsumexp count_nonzero all any prod")(
    lambda input, dim=None, keepdim=False: reduced(input, dim, keepdim)
)


@formula("std", "var")
def deviation(input: Shape, dim: Any = None, unbiased: Any = True, keepdim: bool = False, correction: Any = 1) -> Shape:
    return reduced(input, None if isinstance(dim, bool) else dim, keepdim)  # x.std(False) is about the bias


@formula("std_mean", "var_mean")
def deviation_and_mean(input: Shape, dim: Any = None, *args: Any, **kwargs: Any) -> tuple[Shape, Shape]:
    shape = deviation(input, dim, *args, **{k: v for k, v in kwargs.items() if k != "dtype"})
    return shape, shape


formula("norm")(lambda input, p=2, dim=None, keepdim=False: reduced(input, dim, keepdim))
formula("linalg_norm linalg_vector_norm")(lambda input, ord=None, dim=None, keepdim=False: reduced(input, dim, keepdim))
formula("aminmax")(lambda input, dim=None, keepdim=False: (reduced(input, dim, keepdim), reduced(input, dim, keepdim)))


@formula("max", "min", "median", "nanmedian")
def extremum(input: Shape, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
    """Of all elements; along a dimension, with the indices; or of two tensors."""
    if tensors(dim, other):
        return broadcast_shapes(input, *tensors(dim, other))
    shape = reduced(input, dim, keepdim)
    return shape if dim is None else (shape, shape)


formula("mode")(lambda input, dim=-1, keepdim=False: (reduced(input, dim, keepdim), reduced(input, dim, keepdim)))
formula("kthvalue")(lambda input, k, dim=-1, keepdim=False: (reduced(input, dim, keepdim), reduced(input, dim, keepdim)))
formula("sort cummax cummin frexp")(lambda input, *args, **kwargs: (input, input))


@formula("topk")
def topk(input: Shape, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Shape, Shape]:
    dim = dim % len(input) if input else 0
    shape = (*input[:dim], k, *input[dim + 1 :]) if input else ()
    return shape, shape


formula("quantile nanquantile")(
    lambda input, q, dim=None, keepdim=False, **kwargs: (*(q if isinstance(q, tuple) else ()), *reduced(input, dim, keepdim))
)
formula("hash_tensor")(lambda input, dim=(), *, keepdim=False, mode=0: reduced(input, dim, keepdim))
formula("dist")(lambda input, other, p=2: ())
formula("histc")(lambda input, bins=100, *args, **kwargs: (bins,))


@formula("histogram")
def histogram(input: Shape, bins: Any = 100, **kwargs: Any) -> tuple[Shape, Shape]:
    edges = bins[0] if isinstance(bins, tuple) else bins + 1
    return (edges - 1,), (edges,)


@formula("histogramdd")
def histogramdd(input: Shape, bins: Any, **kwargs: Any) -> tuple[Shape, list[Shape]]:
    each = [bins] * input[-1] if isinstance(bins, int) else bins
    edges = [b[0] if isinstance(b, tuple) else b + 1 for b in each]
    return tuple(e - 1 for e in edges), [(e,) for e in edges]


@formula("segment_reduce")
def segment_reduce(data: Shape, reduce: str, *, lengths: Shape | None = None, indices: Any = None, offsets: Shape | None = None,
                   axis: int = 0, **kwargs: Any) -> Shape:  # fmt: skip
    groups = lengths if lengths is not None else (*offsets[:-1], offsets[-1] - 1)
    return (*groups, *data[axis + 1 :])


formula("multinomial")(lambda input, num_samples, *args, **kwargs: (*input[:-1], num_samples))
formula("searchsorted")(lambda sorted_sequence, input, **kwargs: input if isinstance(input, tuple) else ())
