"""Linear algebra: factorisations and solvers, on the last two dimensions; Fourier transforms, on any."""

from __future__ import annotations

import math
from typing import Any

from ..sizes import sym_max, sym_min
from .pointwise import broadcast_shapes, tensors
from .reductions import reduced
from .registry import formula
from .views import diagonal

Shape = tuple


formula("linalg_cholesky_ex linalg_inv_ex")(lambda input, *args, **kwargs: (input, input[:-2]))


formula("linalg_det logdet det linalg_cond")(lambda input, *args, **kwargs: input[:-2])
formula("linalg_matrix_rank")(lambda input, *args, **kwargs: broadcast_shapes(input[:-2], *tensors(*args, *kwargs.values())))


formula("linalg_slogdet slogdet")(lambda input: (input[:-2], input[:-2]))
formula("linalg_eigvals linalg_eigvalsh")(lambda input, UPLO="L": input[:-1])
formula("linalg_eig linalg_eigh")(lambda input, UPLO="L": (input[:-1], input))
formula("linalg_pinv pinverse")(lambda input, *args, **kwargs: (*input[:-2], input[-1], input[-2]))
formula("linalg_svdvals")(lambda input, *, driver=None: (*input[:-2], sym_min(input[-2], input[-1])))


@formula("linalg_svd")
def svd(input: Shape, full_matrices: bool = True, *, driver: str | None = None) -> tuple[Shape, Shape, Shape]:
    *rest, m, n = input
    k = sym_min(m, n)
    return (*rest, m, m if full_matrices else k), (*rest, k), (*rest, n if full_matrices else k, n)


@formula("svd")
def svd_v(input: Shape, some: bool = True, compute_uv: bool = True) -> tuple[Shape, Shape, Shape]:
    *rest, m, n = input
    k = sym_min(m, n)
    some = some and compute_uv
    return (*rest, m, k if some else m), (*rest, k), (*rest, n, k if some else n)


@formula("linalg_qr")
def qr(A: Shape, mode: str = "reduced") -> tuple[Shape, Shape]:
    *rest, m, n = A
    k = sym_min(m, n) if mode != "complete" else m
    return (0,) if mode == "r" else (*rest, m, k), (*rest, k, n)


formula("qr")(lambda input, some=True: qr(input, "reduced" if some else "complete"))
formula("geqrf")(lambda input: (input, (*input[:-2], sym_min(input[-2], input[-1]))))


@formula("linalg_lu")
def lu(A: Shape, *, pivot: bool = True) -> tuple[Shape, Shape, Shape]:
    *rest, m, n = A
    k = sym_min(m, n)
    return (*rest, m, m) if pivot else (0,), (*rest, m, k), (*rest, k, n)


@formula("linalg_lu_factor", "linalg_ldl_factor")
def factor(A: Shape, *args: Any, **kwargs: Any) -> tuple[Shape, Shape]:
    return A, (*A[:-2], sym_min(A[-2], A[-1]))


@formula("linalg_lu_factor_ex", "linalg_ldl_factor_ex")
def factor_ex(A: Shape, *args: Any, **kwargs: Any) -> tuple[Shape, Shape, Shape]:
    return (*factor(A), A[:-2])


formula("lu")(lambda A, pivot=True, get_infos=False, out=None: factor_ex(A) if get_infos else factor(A))


@formula("lu_unpack")
def lu_unpack(LU_data: Shape, LU_pivots: Shape, unpack_data: bool = True, unpack_pivots: bool = True) -> tuple[Shape, Shape, Shape]:
    P, L, U = lu(LU_data)
    return P if unpack_pivots else (0,), L if unpack_data else (0,), U if unpack_data else (0,)


def _solution(A: Shape, B: Shape, left: bool = True) -> Shape:
    return (*broadcast_shapes(A[:-2], B[:-2]), *B[-2:])


@formula("linalg_solve", "linalg_solve_ex")
def solve(A: Shape, B: Shape, *, left: bool = True, check_errors: bool = False) -> Any:
    vectors = len(B) == 1 or (len(B) == len(A) - 1 and tuple(A[:-1]) == tuple(B))  # a batch of right-hand sides
    return (*broadcast_shapes(A[:-2], B[:-1]), B[-1]) if vectors else _solution(A, B)


formula("linalg_solve_ex")(lambda A, B, **kwargs: (solve(A, B), A[:-2]))
formula("linalg_solve_triangular")(lambda A, B, **kwargs: _solution(A, B))
formula("triangular_solve")(lambda input, A, *args, **kwargs: (_solution(A, input), (*broadcast_shapes(A[:-2], input[:-2]), *A[-2:])))
formula("cholesky_solve lu_solve")(lambda input, factor, *args, **kwargs: _solution(factor, input))
formula("linalg_lu_solve linalg_ldl_solve")(lambda factor, pivots, B, **kwargs: _solution(factor, B))
formula("ormqr")(lambda input, tau, other, *args, **kwargs: other)
formula("linalg_matrix_norm")(lambda input, ord="fro", dim=(-2, -1), keepdim=False: reduced(input, dim, keepdim))
formula("linalg_vecdot")(lambda x, y, *, dim=-1: reduced(broadcast_shapes(x, y), dim))
formula("linalg_multi_dot chain_matmul")(lambda tensors: (*tensors[0][:-1], *tensors[-1][1:]))
formula("linalg_vander vander")(lambda x, N=None, **kwargs: (*(x or (1,)), (x or (1,))[-1] if N is None else N))
formula("linalg_tensorinv")(lambda input, ind=2: (*input[ind:], *input[:ind]))


@formula("linalg_tensorsolve")
def tensorsolve(A: Shape, B: Shape, dims: Any = None) -> Shape:
    moved = [d % len(A) for d in dims or ()]
    order = [d for d in range(len(A)) if d not in moved] + moved
    return tuple(A[d] for d in order[len(B) :])


formula("linalg_diagonal")(lambda input, *, offset=0, dim1=-2, dim2=-1: diagonal(input, offset, dim1, dim2))
formula("trace")(lambda input: ())


@formula("kron")
def kron(input: Shape, other: Shape) -> Shape:
    rank = max(len(input), len(other))
    a, b = ((1,) * (rank - len(s)) + tuple(s) for s in (input, other))
    return tuple(m * n for m, n in zip(a, b, strict=True))


@formula("tensordot")
def tensordot(a: Shape, b: Shape, dims: Any = 2) -> Shape | None:
    if isinstance(dims, int):
        first, second = range(len(a) - dims, len(a)), range(dims)
    elif all(isinstance(d, (tuple, list)) for d in dims):
        first, second = dims
    else:
        return None
    gone = {d % len(a) for d in first}, {d % len(b) for d in second}
    return tuple(n for shape, out in zip((a, b), gone, strict=True) for d, n in enumerate(shape) if d not in out)


@formula("einsum")
def einsum(equation: str, *operands: Any) -> Shape:
    """Each letter is a dimension; those after the arrow are the result's, or those that occur once, in order."""
    shapes = (
        operands[0] if len(operands) == 1 and isinstance(operands[0], (tuple, list)) and isinstance(operands[0][0], tuple) else operands
    )
    given, _, wanted = equation.replace(" ", "").partition("->")
    sizes: dict[str, list[Any]] = {}
    ellipses: list[Shape] = []
    for letters, shape in zip(given.split(","), shapes, strict=True):
        before, dots, after = letters.partition("...")
        extra = len(shape) - len(before) - len(after)
        named = [*zip(before, shape, strict=False), *zip(after[::-1], shape[::-1], strict=False)]
        for letter, n in named:
            sizes.setdefault(letter, []).append(n)
        if dots:
            ellipses.append(tuple(shape[len(before) : len(before) + extra]))
    if "->" not in equation:
        wanted = ("..." if ellipses else "") + "".join(sorted(c for c in sizes if given.count(c) == 1))
    before, dots, after = wanted.partition("...")
    each = {letter: broadcast_shapes(*((n,) for n in found)) for letter, found in sizes.items()}
    return tuple(n for part in (before, None, after) for n in (broadcast_shapes(*ellipses) if part is None and dots else
                 [m for c in part or "" for m in each[c]]))  # fmt: skip


# -- Fourier transforms --------------------------------------------------------------------------------


def _resized(input: Shape, n: Any, dim: int) -> list:
    sizes = list(input)
    if n is not None:
        sizes[dim] = n
    return sizes


formula("fft_fft fft_ifft")(lambda input, n=None, dim=-1, norm=None: tuple(_resized(input, n, dim)))


@formula("fft_rfft", "fft_ihfft")
def rfft(input: Shape, n: Any = None, dim: int = -1, norm: Any = None) -> Shape:
    sizes = _resized(input, n, dim)
    sizes[dim] = sizes[dim] // 2 + 1
    return tuple(sizes)


formula("fft_irfft fft_hfft")(
    lambda input, n=None, dim=-1, norm=None: tuple(_resized(input, 2 * (input[dim] - 1) if n is None else n, dim))
)


def _fft_n(input: Shape, s: Any, dim: Any) -> tuple[list, list]:
    """The sizes with `s` put in, and the dimensions that are transformed."""
    if dim is None:
        dims = list(range(len(input))) if s is None else list(range(len(input) - len(s), len(input)))
    else:
        dims = [dim] if isinstance(dim, int) else list(dim)
    sizes = list(input)
    for d, n in zip(dims, s if s is not None else [-1] * len(dims), strict=True):
        sizes[d] = sizes[d] if type(n) is int and n == -1 else n
    return sizes, dims


@formula("fft_fftn", "fft_ifftn")
def fftn(input: Shape, s: Any = None, dim: Any = None, norm: Any = None) -> Shape:
    return tuple(_fft_n(input, s, dim)[0])


formula("fft_fft2 fft_ifft2")(lambda input, s=None, dim=(-2, -1), norm=None: fftn(input, s, dim))


@formula("fft_rfftn", "fft_ihfftn")
def rfftn(input: Shape, s: Any = None, dim: Any = None, norm: Any = None) -> Shape:
    sizes, dims = _fft_n(input, s, dim)
    sizes[dims[-1]] = sizes[dims[-1]] // 2 + 1
    return tuple(sizes)


formula("fft_rfft2 fft_ihfft2")(lambda input, s=None, dim=(-2, -1), norm=None: rfftn(input, s, dim))


@formula("fft_irfftn", "fft_hfftn")
def irfftn(input: Shape, s: Any = None, dim: Any = None, norm: Any = None) -> Shape:
    sizes, dims = _fft_n(input, s, dim)
    if s is None or (type(s[-1]) is int and s[-1] == -1):
        sizes[dims[-1]] = 2 * (input[dims[-1]] - 1)
    return tuple(sizes)


formula("fft_irfft2 fft_hfft2")(lambda input, s=None, dim=(-2, -1), norm=None: irfftn(input, s, dim))


@formula("stft")
def stft(input: Shape, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: bool = True,
         pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None, return_complex: bool = True,
         align_to_window: bool | None = None) -> Shape:  # fmt: skip
    hop = n_fft // 4 if hop_length is None else hop_length
    frames = (input[-1] - n_fft + (n_fft // 2 * 2 if center else 0)) // hop + 1
    return (*input[:-1], n_fft if onesided is False else n_fft // 2 + 1, frames, *(() if return_complex else (2,)))


@formula("istft")
def istft(input: Shape, n_fft: Any, hop_length: Any = None, win_length: Any = None, window: Any = None, center: bool = True,
          normalized: bool = False, onesided: bool | None = None, length: Any = None, return_complex: bool = False) -> Shape:  # fmt: skip
    hop = n_fft // 4 if hop_length is None else hop_length
    whole = n_fft + hop * (input[-1] - 1)
    return (*input[:-2], length if length is not None else whole - n_fft // 2 * 2 if center else whole)


# -- made of pairs and differences -----------------------------------------------------------------------


formula("cov corrcoef")(lambda input, *args, **kwargs: () if len(input) < 2 or input[0] == 1 else (input[0], input[0]))
formula("pdist")(lambda input, p=2.0: (input[0] * (input[0] - 1) // 2,))


@formula("cartesian_prod")
def cartesian_prod(*tensors: Any) -> Shape:
    shapes = tensors[0] if len(tensors) == 1 and isinstance(tensors[0][0], tuple) else tensors
    return tuple(shapes[0]) if len(shapes) == 1 else (math.prod(s[0] for s in shapes), len(shapes))


@formula("combinations")
def combinations(input: Shape, r: int = 2, with_replacement: bool = False) -> Shape:
    if r == 0:
        return (0,)
    n = input[0]
    ways = math.prod(n + i if with_replacement else sym_max(n - i, 0) for i in range(r)) // math.factorial(r)
    return (ways, r)


@formula("diff")
def diff(input: Shape, n: int = 1, dim: int = -1, prepend: Shape | None = None, append: Shape | None = None) -> Shape:
    if n == 0:
        return input  # even with something to prepend
    sizes = list(input)
    sizes[dim] = sym_max(sum(s[dim] for s in (input, prepend, append) if s is not None) - n, 0)
    return tuple(sizes)


@formula("trapezoid", "trapz")
def trapezoid(y: Shape, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Shape:
    wide = broadcast_shapes(reduced(y, dim), reduced(x, dim)) if isinstance(x, tuple) and len(x) > 1 else reduced(y, dim)
    return wide


@formula("cumulative_trapezoid")
def cumulative_trapezoid(y: Shape, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Shape:
    steps = [diff(s, 1, dim if len(s) > 1 else -1) for s in (y, x) if isinstance(s, tuple)]
    return broadcast_shapes(*steps) if len(steps[-1]) > 1 else steps[0]


@formula("gradient")
def gradient(input: Shape, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> list[Shape] | None:
    if isinstance(spacing, (tuple, list)) and any(isinstance(s, tuple) for s in spacing):
        return None  # coordinates
    return [input] * (len(input) if dim is None else 1 if isinstance(dim, int) else len(dim))
