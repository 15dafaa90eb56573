"""Operators that work on each element: shapes broadcast, or stay as they are."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..sizes import broadcast
from .registry import formula

Shape = tuple


def broadcast_shapes(*shapes: Shape) -> Shape:
    """Shapes lined up at their last dimension; each dimension's sizes broadcast."""
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(broadcast(*sizes) for sizes in zip(*padded, strict=True))


def tensors(*values: Any) -> list[Shape]:
    return [v for v in values if isinstance(v, torch.Size)]


_BROADCASTING = """
add sub rsub mul multiply subtract div divide true_divide truediv rdiv rtruediv floor_divide floordiv rfloordiv mod
rmod remainder fmod pow rpow float_power square sqrt rsqrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos
atan arcsin arccos arctan sinh cosh tanh asinh acosh atanh arcsinh arccosh arctanh atan2 arctan2 sinc erf erfc erfinv
abs absolute neg negative pos positive sign sgn signbit ceil floor round trunc fix frac reciprocal sigmoid logit
lgamma digamma polygamma mvlgamma i0 xlogy hypot copysign nextafter ldexp heaviside gcd lcm
maximum minimum fmax fmin clamp clip clamp_min clamp_max where lerp addcmul addcdiv
eq ne lt le gt ge less less_equal greater greater_equal not_equal isclose isnan isinf isposinf isneginf isfinite isreal
logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift
bitwise_right_shift and or xor rand ror rxor invert lshift rshift rlshift rrshift logaddexp logaddexp2 nan_to_num
deg2rad rad2deg angle conj conj_physical resolve_conj resolve_neg complex polar masked_fill real_if_close
native_dropout_backward igamma igammac _threshold log_sigmoid cross linalg_cross cdouble cfloat chalf
relu relu6 leaky_relu rrelu elu selu celu gelu silu mish hardtanh hardswish hardsigmoid hardshrink softshrink
tanhshrink softplus softsign logsigmoid threshold dropout alpha_dropout feature_dropout feature_alpha_dropout
dropout1d dropout2d dropout3d
masked_scatter clone contiguous detach to type type_as cpu float double half bfloat16 int long short bool char byte requires_grad
special_* data alias zero fill copy random normal_ uniform grad exponential bernoulli geometric cauchy log_normal real imag
"""


# The shapes of all tensors among the arguments, broadcast.
@formula(_BROADCASTING)
def pointwise(*args: Any, **kwargs: Any) -> Shape:
    return broadcast_shapes(*tensors(*args, *(v for k, v in kwargs.items() if k != "out")))


_SAME = """
softmax log_softmax softmin gumbel_softmax layer_norm rms_norm group_norm instance_norm batch_norm local_response_norm
normalize cumsum cumprod logcumsumexp flip fliplr flipud roll renorm tril triu fft_fftshift fft_ifftshift msort prelu
zeros_like ones_like empty_like full_like rand_like randn_like randint_like
scatter scatter_add scatter_reduce index_add index_copy index_fill index_put index_reduce setitem __setitem__
_safe_softmax _softmax_backward_data softmax_backward_data as_strided_scatter diagonal_scatter select_scatter slice_scatter
channel_shuffle cholesky_inverse linalg_householder_product linalg_matrix_power bucketize isin sparse_sampled_addmm
_unsafe_masked_index_put_accumulate fill_diagonal argsort matrix_exp linalg_inv inverse cholesky linalg_cholesky put
"""


# The first argument's shape.
formula(_SAME)(lambda input, *args, **kwargs: input)


@formula("glu")
def glu(input: Shape, dim: int = -1) -> Shape:
    dim = dim % len(input)
    return (*input[:dim], input[dim] // 2, *input[dim + 1 :])


formula("view_as_real")(lambda input: (*input, 2))
formula("view_as_complex")(lambda input: tuple(input[:-1]))


@formula("broadcast_tensors")
def broadcast_tensors(*tensors: Any) -> list[Shape]:
    shapes = (
        tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) and not isinstance(tensors[0], torch.Size) else tensors
    )
    return [broadcast_shapes(*shapes)] * len(shapes)


@formula("meshgrid")
def meshgrid(*tensors: Any, indexing: str = "ij") -> list[Shape]:
    shapes = tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], torch.Size) else tensors
    sizes = [s[0] if s else 1 for s in shapes]
    if indexing == "xy" and len(sizes) > 1:
        sizes[:2] = sizes[1::-1]
    return [tuple(sizes)] * len(shapes)


formula("normal")(lambda mean, std=1.0, size=None, **kwargs: tuple(size) if size is not None else broadcast_shapes(*tensors(mean, std)))
formula("masked_scatter")(lambda input, mask, source: broadcast_shapes(input, mask))


@formula("take_along_dim")
def take_along_dim(input: Shape, indices: Shape, dim: int | None = None) -> Shape:
    if dim is None:
        return (math.prod(indices),)
    dim = dim % len(input)
    sizes = zip(input, indices, strict=True)
    return tuple(m if d == dim else broadcast(n, m) for d, (n, m) in enumerate(sizes))
