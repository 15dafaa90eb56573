"""Products of matrices, convolutions, pooling, attention."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..sizes import ceildiv, scaled, sym_max, sym_min
from .pointwise import broadcast_shapes
from .reductions import reduced
from .registry import formula

Shape = tuple


@formula("matmul", "mm", "bmm", "mv", "linalg_matmul")
def matmul(input: Shape, other: Shape) -> Shape:
    """Rows of the one, columns of the other; what comes before broadcasts. A vector has no row, or no column."""
    a = input if len(input) > 1 else (1, *input)
    b = other if len(other) > 1 else (*other, 1)
    rows, columns = a[-2:-1] if len(input) > 1 else (), b[-1:] if len(other) > 1 else ()
    return (*broadcast_shapes(a[:-2], b[:-2]), *rows, *columns)


formula("__rmatmul__")(lambda input, other: matmul(other, input))
formula("dot vdot")(lambda input, other: ())
formula("inner")(lambda input, other: (*input[:-1], *other[:-1]) if input and other else (*input, *other))
formula("outer ger")(lambda input, other: (input[0], other[0]))
formula("addmm baddbmm _addmm_activation")(lambda input, a, b, **scales: matmul(a, b))
formula("addr")(lambda input, a, b, **scales: (a[0], b[0]))
formula("addmv")(lambda input, a, b, **scales: () if not input and a[0] * a[1] == 0 else (a[0],))  # PyTorch's own exception
formula("addbmm")(lambda input, batch1, batch2, **scales: (batch1[1], batch2[2]))
formula("_scaled_mm _scaled_mm_v2 _sparse_mm")(lambda input, other, *args, **kwargs: matmul(input, other))
formula("linear")(lambda input, weight, bias=None: (*input[:-1], *weight[:-1]))
formula("bilinear")(lambda input1, input2, weight, bias=None: (*input1[:-1], weight[0]))
formula("embedding")(lambda input, weight, *args, **kwargs: (*input, weight[1]))
formula("one_hot")(lambda input, num_classes=-1: (*input, num_classes) if num_classes != -1 else None)


@formula("scaled_dot_product_attention")
def attention(query: Shape, key: Shape, value: Shape, *args: Any, **kwargs: Any) -> Shape | None:
    if len(query) != len(value):
        return None  # PyTorch gives another rank where there are no keys
    return (*broadcast_shapes(query[:-2], key[:-2], value[:-2]), query[-2], value[-1])


@formula("multi_head_attention_forward")
def multi_head_attention(query: Shape, key: Shape, value: Shape, width: int, heads: int, *args: Any, need_weights: bool = True,
                         average_attn_weights: bool = True, **kwargs: Any) -> tuple[Shape, Shape | None]:  # fmt: skip
    bias_k, add_zero = args[2] if len(args) > 2 else None, args[4] if len(args) > 4 else False
    source = key[0] + (bias_k is not None) + bool(add_zero)
    each = () if average_attn_weights else (heads,)
    return query, (*query[1:-1], *each, query[0], source) if need_weights else None


formula("embedding_bag")(
    lambda input, weight, offsets=None, *args, include_last_offset=False, **kwargs: (
        input[0] if offsets is None else offsets[0] - include_last_offset,
        weight[1],
    )
)


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


def _windowed(input: Shape, d: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Shape:
    stride = kernel if stride is None or stride == [] or stride == () else stride
    return (*input[: len(input) - d], *_windows(input[-d:], kernel, stride, padding, dilation, ceil_mode))


def _pools(d: int) -> None:
    @formula(f"max_pool{d}d")
    def largest(input: Shape, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
                return_indices: bool = False) -> Any:  # fmt: skip
        shape = _windowed(input, d, kernel_size, stride, padding, dilation, ceil_mode)
        return (shape, shape) if return_indices else shape

    @formula(f"max_pool{d}d_with_indices")
    def largest_with_indices(*args: Any, **kwargs: Any) -> Any:
        return largest(*args, **{**kwargs, "return_indices": True})

    @formula(f"avg_pool{d}d")
    def average(input: Shape, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, *args: Any,
                **kwargs: Any) -> Shape:  # fmt: skip
        return _windowed(input, d, kernel_size, stride, padding, 1, ceil_mode)

    @formula(f"lp_pool{d}d")
    def power(input: Shape, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Shape:
        return _windowed(input, d, kernel_size, stride, 0, 1, ceil_mode)

    @formula(f"adaptive_avg_pool{d}d", f"adaptive_max_pool{d}d")
    def adaptive(input: Shape, output_size: Any, return_indices: bool = False) -> Any:
        sizes = (n if out is None else out for n, out in zip(input[-d:], _each(output_size, d), strict=True))
        shape = (*input[: len(input) - d], *sizes)
        return (shape, shape) if return_indices else shape

    @formula(f"adaptive_max_pool{d}d_with_indices")
    def adaptive_with_indices(input: Shape, output_size: Any, return_indices: bool = True) -> Any:
        return adaptive(input, output_size, True)

    @formula(f"fractional_max_pool{d}d")
    def fractional(input: Shape, kernel_size: Any, output_size: Any = None, output_ratio: Any = None, return_indices: bool = False,
                   **kwargs: Any) -> Any:  # fmt: skip
        if output_size is None:
            output_size = list(map(scaled, input[-d:], _each(output_ratio, d)))
        return adaptive(input, output_size, return_indices)

    @formula(f"fractional_max_pool{d}d_with_indices")
    def fractional_with_indices(*args: Any, **kwargs: Any) -> Any:
        return fractional(*args, **{**kwargs, "return_indices": True})

    @formula(f"max_unpool{d}d")
    def unpool(input: Shape, indices: Shape, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Shape:
        stride = kernel_size if stride is None or stride == [] or stride == () else stride
        k, s, p = (_each(v, d) for v in (kernel_size, stride, padding))
        sizes = [(n - 1) * s[i] - 2 * p[i] + k[i] for i, n in enumerate(input[-d:])] if output_size is None else output_size[-d:]
        return (*input[: len(input) - d], *sizes)


for _d in (1, 2, 3):
    _pools(_d)


formula("max_pool2d_with_indices_backward")(lambda grad, input, *args, **kwargs: input)
formula("grid_sample grid_sampler_2d grid_sampler_3d")(lambda input, grid, *args, **kwargs: (*input[:2], *grid[1:-1]))


@formula("pixel_shuffle")
def pixel_shuffle(input: Shape, upscale_factor: int) -> Shape:
    *rest, c, h, w = input
    return (*rest, c // upscale_factor**2, h * upscale_factor, w * upscale_factor)


@formula("pixel_unshuffle")
def pixel_unshuffle(input: Shape, downscale_factor: int) -> Shape:
    if math.prod(input) == 0:
        return input  # PyTorch's own exception
    *rest, c, h, w = input
    return (*rest, c * downscale_factor**2, h // downscale_factor, w // downscale_factor)


@formula(torch.nn.functional.unfold)
def blocks(input: Shape, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Shape:
    sizes = _windows(input[-2:], kernel_size, stride, padding, dilation)
    return (*input[:-3], input[-3] * math.prod(_each(kernel_size, 2)), math.prod(sizes))


formula(torch.nn.functional.fold)(
    lambda input, output_size, kernel_size, *args, **kwargs: (
        *input[:-2],
        input[-2] // math.prod(_each(kernel_size, 2)),
        *_each(output_size, 2),
    )
)


# -- norms, as PyTorch's own operators return them: with what the backward needs --------------------------


@formula("native_layer_norm")
def native_layer_norm(input: Shape, normalized_shape: Any, *args: Any, **kwargs: Any) -> tuple[Shape, Shape, Shape]:
    kept = (*input[: len(input) - len(normalized_shape)], *(1,) * len(normalized_shape))
    return input, kept, kept


formula("native_group_norm")(lambda input, weight, bias, N, C, HxW, group, eps: (input, (N, group), (N, group)))


@formula("native_batch_norm", "_native_batch_norm_legit")
def native_batch_norm(input: Shape, weight: Any, bias: Any, *rest: Any, **kwargs: Any) -> tuple[Shape, ...]:
    *_, training, _momentum, _eps = rest
    kept = (input[1],) if training else (0,)
    return input, kept, kept


formula("_batch_norm_with_update")(lambda input, *args, **kwargs: (input, (input[1],), (input[1],), (0,)))


@formula("interpolate", "upsample", "_upsample_bilinear2d_aa")
def interpolate(input: Shape, size: Any = None, scale_factor: Any = None, *args: Any, output_size: Any = None,
                scale_factors: Any = None, **kwargs: Any) -> Shape:  # fmt: skip
    size = output_size if size is None else size
    scale_factor = scale_factors if scale_factor is None else scale_factor
    each = _each(size if size is not None else scale_factor, len(input) - 2)
    return (*input[:2], *(each if size is not None else map(scaled, input[2:], each)))


@formula("cosine_similarity")
def cosine_similarity(input: Shape, other: Shape, dim: int = 1, eps: float = 0.0) -> Shape:
    shape = broadcast_shapes(input, other)
    return reduced(shape, dim)


formula("cdist")(lambda input, other, *args, **kwargs: (*broadcast_shapes(input[:-2], other[:-2]), input[-2], other[-2]))
formula("pairwise_distance")(lambda x1, x2, p=2.0, eps=1e-06, keepdim=False: reduced(broadcast_shapes(x1, x2), -1, keepdim))


@formula("diag")
def diag(input: Shape, diagonal: int = 0) -> Shape:
    if len(input) == 1:
        return (input[0] + abs(diagonal),) * 2
    return (sym_max(sym_min(input[0] + min(diagonal, 0), input[1] - max(diagonal, 0)), 0),)
