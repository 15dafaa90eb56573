"""Products of matrices, convolutions, pooling, attention."""

from __future__ import annotations

import math
from typing import Any

from ..sizes import ceildiv, sym_min
from .pointwise import broadcast_shapes, tensors
from .registry import formula

Shape = tuple


@formula("matmul", "mm", "bmm", "mv", "linalg_matmul")
def matmul(input: Shape, other: Shape) -> Shape:
    """Rows of the one, columns of the other; what comes before broadcasts. A vector has no row, or no column."""
    a = input if len(input) > 1 else (1, *input)
    b = other if len(other) > 1 else (*other, 1)
    rows, columns = a[-2:-1] if len(input) > 1 else (), b[-1:] if len(other) > 1 else ()
    return (*broadcast_shapes(a[:-2], b[:-2]), *rows, *columns)


@formula("__rmatmul__")
def rmatmul(input: Shape, other: Shape) -> Shape:
    return matmul(other, input)


@formula("dot", "vdot")
def dot(input: Shape, other: Shape) -> Shape:
    return ()


@formula("inner")
def inner(input: Shape, other: Shape) -> Shape:
    return (*input[:-1], *other[:-1]) if input and other else (*input, *other)


@formula("outer", "ger")
def outer(input: Shape, other: Shape) -> Shape:
    return (input[0], other[0])


@formula("addmm", "addmv", "addr", "baddbmm", "addbmm")
def add_product(input: Shape, a: Shape, b: Shape, **scales: Any) -> Shape | None:
    if len(a) == len(b) == 1:  # addr
        return (a[0], b[0])
    return matmul(a, b) if len(a) == 2 else (a[0], a[1], b[2]) if len(input) == 3 or len(input) < 2 else (a[1], b[2])


@formula("linear")
def linear(input: Shape, weight: Shape, bias: Shape | None = None) -> Shape:
    return (*input[:-1], *weight[:-1])


@formula("bilinear")
def bilinear(input1: Shape, input2: Shape, weight: Shape, bias: Shape | None = None) -> Shape:
    return (*input1[:-1], weight[0])


@formula("embedding")
def embedding(input: Shape, weight: Shape, *args: Any, **kwargs: Any) -> Shape:
    return (*input, weight[1])


@formula("one_hot")
def one_hot(input: Shape, num_classes: int = -1) -> Shape | None:
    return (*input, num_classes) if num_classes != -1 else None


@formula("scaled_dot_product_attention")
def attention(query: Shape, key: Shape, value: Shape, *args: Any, **kwargs: Any) -> Shape:
    return (*broadcast_shapes(query[:-2], key[:-2], value[:-2]), query[-2], value[-1])


@formula("multi_head_attention_forward")
def multi_head_attention(query: Shape, *args: Any, **kwargs: Any) -> tuple[Shape, None]:
    return query, None


def _each(value: Any, n: int) -> tuple:
    """A number for each of n dimensions, or as many as given."""
    value = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    return value * n if len(value) == 1 else value


def window(n: int, kernel: int, stride: int = 1, padding: int = 0, dilation: int = 1, ceil_mode: bool = False) -> int:
    """How many windows of `kernel` elements fit into n, padded on both sides."""
    span = n + 2 * padding - dilation * (kernel - 1) - 1
    if not ceil_mode:
        return span // stride + 1
    count = ceildiv(span, stride) + 1
    return count - ((count - 1) * stride >= n + padding)  # a window may not begin in the padding behind


def _windows(sizes: Shape, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool = False) -> Shape:
    each = [_each(v, len(sizes)) for v in (kernel, stride, padding, dilation)]
    return tuple(window(n, *(v[i] for v in each), ceil_mode) for i, n in enumerate(sizes))


@formula("conv1d", "conv2d", "conv3d")
def conv(input: Shape, weight: Shape, bias: Shape | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
         groups: int = 1) -> Shape:  # fmt: skip
    d = len(weight) - 2
    if padding == "same":
        sizes: Shape = tuple(input[-d:])
    else:
        sizes = _windows(input[-d:], weight[2:], stride, 0 if padding == "valid" else padding, dilation)
    channels = weight[0] * sym_min(weight[1], 1)  # without input channels, PyTorch's result has none either
    return (*input[: len(input) - d - 1], channels, *sizes)


@formula("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(input: Shape, weight: Shape, bias: Shape | None = None, stride: Any = 1, padding: Any = 0,
                   output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Shape:  # fmt: skip
    d = len(weight) - 2
    s, p, o, di = (_each(v, d) for v in (stride, padding, output_padding, dilation))
    sizes = ((n - 1) * s[i] - 2 * p[i] + di[i] * (weight[2 + i] - 1) + o[i] + 1 for i, n in enumerate(input[-d:]))
    return (*input[: len(input) - d - 1], weight[1] * groups, *sizes)


def _pooling(d: int, names: str) -> None:
    @formula(*names.split())
    def pool(input: Shape, kernel_size: Any, stride: Any = None, padding: Any = 0, *rest: Any, **options: Any) -> Any:
        average = options.pop("average", False)
        dilation = options.get("dilation", rest[0] if rest and not average else 1)
        ceil_mode = options.get("ceil_mode", rest[0] if rest and average else rest[1] if len(rest) > 1 else False)
        stride = kernel_size if stride is None or stride == [] or stride == () else stride
        shape = (*input[: len(input) - d], *_windows(input[-d:], kernel_size, stride, padding, 1 if average else dilation, ceil_mode))
        indices = options.get("return_indices", rest[2] if len(rest) > 2 and not average else False)
        return (shape, shape) if indices else shape

    @formula(*(name.replace("max", "avg") for name in names.split()[:1]))
    def average(*args: Any, **kwargs: Any) -> Any:
        return pool(*args, average=True, **kwargs)


for _d in (1, 2, 3):
    _pooling(_d, f"max_pool{_d}d")


def _adaptive(d: int) -> None:
    @formula(f"adaptive_avg_pool{d}d", f"adaptive_max_pool{d}d")
    def pool(input: Shape, output_size: Any, return_indices: bool = False) -> Any:
        sizes = (n if out is None else out for n, out in zip(input[-d:], _each(output_size, d), strict=True))
        shape = (*input[: len(input) - d], *sizes)
        return (shape, shape) if return_indices else shape


for _d in (1, 2, 3):
    _adaptive(_d)


@formula("interpolate", "upsample")
def interpolate(input: Shape, size: Any = None, scale_factor: Any = None, *args: Any, **kwargs: Any) -> Shape:
    d = len(input) - 2
    if size is not None:
        return (*input[:2], *_each(size, d))
    return (*input[:2], *(math.floor(n * f) for n, f in zip(input[2:], _each(_whole(scale_factor), d), strict=True)))


def _whole(factor: Any) -> Any:
    """2 for 2.0: a size times a whole number stays an expression."""
    if isinstance(factor, (tuple, list)):
        return tuple(map(_whole, factor))
    return int(factor) if isinstance(factor, float) and factor.is_integer() else factor


@formula("cosine_similarity")
def cosine_similarity(input: Shape, other: Shape, dim: int = 1, eps: float = 0.0) -> Shape:
    shape = broadcast_shapes(input, other)
    dim = dim % len(shape)
    return (*shape[:dim], *shape[dim + 1 :])


@formula("cdist")
def cdist(input: Shape, other: Shape, *args: Any, **kwargs: Any) -> Shape:
    return (*broadcast_shapes(input[:-2], other[:-2]), input[-2], other[-2])


@formula(*"""mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div
soft_margin_loss""".split())
def pointwise_loss(input: Shape, target: Shape, weight: Any = None, *args: Any, reduction: str = "mean", **kwargs: Any) -> Shape:
    return broadcast_shapes(*tensors(input, target, weight)) if reduction == "none" else ()


@formula("cross_entropy", "nll_loss")
def class_loss(input: Shape, target: Shape, *args: Any, reduction: str = "mean", **kwargs: Any) -> Shape:
    return (*input[:-1][:1], *input[2:]) if reduction == "none" else ()


@formula("diag")
def diag(input: Shape, diagonal: int = 0) -> Shape:
    if len(input) == 1:
        return (input[0] + abs(diagonal),) * 2
    return (sym_min(input[0] + min(diagonal, 0), input[1] - max(diagonal, 0)),)
