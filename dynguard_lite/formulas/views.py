"""Operators that rearrange: views, indexing, joining and splitting; and those that make a tensor of a given shape."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import torch

from ..sizes import UNBACKED, Mask, ceildiv, sym_max, sym_min, when
from .pointwise import broadcast_shapes
from .registry import formula

Shape = tuple


def _given(size: tuple) -> tuple:
    """`f(2, 3)` and `f((2, 3))` are the same."""
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def _put(shape: Shape, dim: int, *sizes: Any) -> Shape:
    """`shape` with `sizes` in place of dimension `dim`."""
    dim = dim % len(shape) if shape else 0
    return (*shape[:dim], *sizes, *shape[dim + 1 :])


# -- views -------------------------------------------------------------------------------------------


def _inferred(total: Any, size: tuple) -> Shape:
    """`size`, with what `total` leaves in place of a -1."""
    if not any(type(n) is int and n == -1 for n in size):
        return tuple(size)
    return tuple(total // math.prod(n for n in size if not (type(n) is int and n == -1)) if type(n) is int and n == -1 else n for n in size)


@formula("view", "reshape")
def view(input: Shape, *size: Any, shape: Any = None) -> Shape | None:
    size = _given(size) if size else tuple(shape)
    return None if size and isinstance(size[0], torch.dtype) else _inferred(math.prod(input), size)


formula("view_as reshape_as expand_as resize_as")(lambda input, other: other)


@formula("flatten")
def flatten(input: Shape, start_dim: int = 0, end_dim: int = -1) -> Shape:
    if not input:
        return (1,)
    a, b = start_dim % len(input), end_dim % len(input)
    return (*input[:a], math.prod(input[a : b + 1]), *input[b + 1 :])


formula("ravel")(lambda input: (math.prod(input),))
formula("unflatten")(lambda input, dim, sizes: _put(input, dim, *_inferred(input[dim], tuple(sizes))))
formula("permute")(lambda input, *dims, **named: tuple(input[d] for d in (_given(dims) if dims else named["dims"])))


@formula("transpose", "swapaxes", "swapdims")
def transpose(input: Shape, dim0: int = 0, dim1: int = 1, axis0: int | None = None, axis1: int | None = None) -> Shape:
    dim0, dim1 = (dim0 if axis0 is None else axis0), (dim1 if axis1 is None else axis1)
    sizes = list(input)
    if sizes:
        sizes[dim0], sizes[dim1] = sizes[dim1], sizes[dim0]
    return tuple(sizes)


formula("t T H")(lambda input: tuple(input)[::-1])
formula("mT mH adjoint")(lambda input: (*input[:-2], input[-1], input[-2]))


@formula("movedim", "moveaxis")
def movedim(input: Shape, source: Any, destination: Any) -> Shape:
    rank = len(input)
    source, destination = ([d % rank for d in (v if isinstance(v, (tuple, list)) else (v,))] for v in (source, destination))
    sizes: list[Any] = [None] * rank
    for s, d in zip(source, destination, strict=True):
        sizes[d] = input[s]
    rest = iter([n for d, n in enumerate(input) if d not in source])
    return tuple(next(rest) if n is None else n for n in sizes)


@formula("squeeze")
def squeeze(input: Shape, *dim: Any) -> Shape:
    """The rank follows from which sizes are 1: a decision."""
    chosen = _given(dim) if dim else range(len(input))
    gone = {d % len(input) for d in chosen if input and input[d] == 1}
    return tuple(n for d, n in enumerate(input) if d not in gone)


@formula("unsqueeze")
def unsqueeze(input: Shape, dim: int) -> Shape:
    dim = dim % (len(input) + 1)
    return (*input[:dim], 1, *input[dim:])


@formula("expand", "broadcast_to")
def expand(input: Shape, *size: Any, **named: Any) -> Shape:
    size = _given(size) if size else tuple(named.get("size") or named["shape"])
    padded = (None,) * (len(size) - len(input)) + tuple(input)
    return tuple(n if type(s) is int and s == -1 else s for s, n in zip(size, padded, strict=True))


@formula("repeat", "tile")
def repeat(input: Shape, *sizes: Any, **named: Any) -> Shape:
    sizes = _given(sizes) if sizes else tuple(named.get("dims") or named["repeats"])
    rank = max(len(sizes), len(input))
    sizes, input = (1,) * (rank - len(sizes)) + tuple(sizes), (1,) * (rank - len(input)) + tuple(input)
    return tuple(n * k for n, k in zip(input, sizes, strict=True))


formula("narrow")(lambda input, dim, start, length: _put(input, dim, length))
formula("select")(lambda input, dim, index: _put(input, dim))


@formula("diagonal")
def diagonal(input: Shape, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Shape:
    a, b = dim1 % len(input), dim2 % len(input)
    rest = (n for d, n in enumerate(input) if d not in (a, b))
    return (*rest, sym_max(sym_min(input[a] + min(offset, 0), input[b] - max(offset, 0)), 0))


formula("unfold")(
    lambda input, dimension, size, step: (*_put(input, dimension, (input[dimension] - size) // step + 1), size) if input else (size,)
)


@formula("pad", "constant_pad_nd")
def pad(input: Shape, pad: Any, *args: Any, **kwargs: Any) -> Shape:
    sizes = list(input)
    for i in range(len(pad) // 2):
        sizes[-1 - i] = sizes[-1 - i] + pad[2 * i] + pad[2 * i + 1]
    return tuple(sizes)


formula("rot90")(lambda input, k=1, dims=(0, 1): transpose(input, *dims) if k % 2 else input)


# -- indexing ------------------------------------------------------------------------------------------


def sliced(n: Any, index: slice) -> Any:
    """How many elements `index` takes out of n."""
    step = 1 if index.step is None else index.step
    start = 0 if index.start is None else index.start
    if index.stop is None:  # of the last k, or of all but the first k, as many as there are
        from_end = start < 0
        left = sym_max(n - start - when(from_end, n), 0)
        return ceildiv(left if from_end is False else sym_min(n, left), step)
    stop = _clamped(n, index.stop)
    return ceildiv(stop if type(start) is int and start == 0 else sym_max(stop - _clamped(n, start), 0), step)


def _clamped(n: Any, bound: Any) -> Any:
    """A bound of a slice as a place from 0 to n; negative, it counts from the end."""
    return sym_min(sym_max(bound + when(bound < 0, n), 0), n)


@formula("getitem")
def getitem(input: Shape, index: Any) -> Shape | None:
    """Python's and NumPy's rules. How many elements a mask selects depends on data."""
    index = index if isinstance(index, tuple) and not isinstance(index, torch.Size) else (index,)
    bounds = [bound for i in index if isinstance(i, slice) for bound in (i.start, i.stop, i.step)]
    if any(isinstance(i, bool) for i in index) or any(isinstance(bound, torch.Size) for bound in bounds):
        return None
    basic = [i is None or i is Ellipsis or isinstance(i, slice) for i in index]
    taken = sum(len(i) if isinstance(i, Mask) else i is not None and i is not Ellipsis for i in index)
    shape: list[Any] = []
    dims, advanced, places = iter(input), [], []
    for i, plain in zip(index, basic, strict=True):
        if i is Ellipsis:
            shape += [next(dims) for _ in range(len(input) - taken)]
        elif plain:
            shape.append(1 if i is None else sliced(next(dims), i))
        else:  # an int, or a tensor of places: such dimensions go, and those of the tensors come instead
            places.append(len(shape))
            for _ in i if isinstance(i, Mask) else (i,):
                next(dims)
            if isinstance(i, (torch.Size, list)):
                advanced.append((UNBACKED,) if isinstance(i, Mask) else i if isinstance(i, torch.Size) else torch.tensor(i).shape)
    shape += dims
    if not advanced:
        return tuple(shape)
    joined = (UNBACKED,) if (UNBACKED,) in advanced else broadcast_shapes(*advanced)
    first, last = basic.index(False), len(basic) - 1 - basic[::-1].index(False)
    at = 0 if any(basic[first:last]) else places[0]  # apart, PyTorch puts them first
    return (*shape[:at], *joined, *shape[at:])


formula("masked_select")(lambda input, mask: (UNBACKED,))
formula("nonzero argwhere")(lambda input, as_tuple=False: [(UNBACKED,)] * max(len(input), 1) if as_tuple else (UNBACKED, len(input)))
formula("bincount")(lambda input, weights=None, minlength=0: (UNBACKED,))


@formula("unique")
def unique(input: Shape, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """How many differ depends on data; the inverse has a place for each of the input."""
    values = (UNBACKED,) if dim is None else _put(input, dim, UNBACKED)
    inverse = tuple(input) if dim is None else (input[dim],)
    several = (values, *([inverse] if return_inverse else []), *([(UNBACKED,)] if return_counts else []))
    return several if len(several) > 1 else values


formula("unique_consecutive")(lambda input, *args, **kwargs: unique(input, True, *args, **kwargs))
formula("index_select")(lambda input, dim, index: _put(input, dim, index[0] if index else 1) if input else ())
formula("gather")(lambda input, dim, index, **kwargs: index)
formula("take")(lambda input, index: index)


@formula("repeat_interleave")
def repeat_interleave(input: Shape, repeats: Any = None, dim: int | None = None, output_size: Any = None) -> Shape | None:
    if repeats is None:
        return None  # indices: as many as the repeats add up to
    input = input if dim is not None else (math.prod(input),)
    if isinstance(repeats, int):
        count = input[dim or 0] * repeats
    else:
        count = UNBACKED if output_size is None else output_size * sym_min(math.prod(repeats), 1)
    return _put(input, dim or 0, count)


# -- joining and splitting -----------------------------------------------------------------------------


@formula("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> Shape:
    shapes = [s for s in tensors if not (len(s) == 1 and type(s[0]) is int and s[0] == 0)]  # legacy: an empty vector fits anywhere
    if not shapes:
        return (0,)
    if len({len(s) for s in shapes}) > 1:
        shapes = [s for s in shapes if not (len(s) == 1 and s[0] == 0)]
    return _put(shapes[0], dim, sum(s[dim] for s in shapes))


formula("stack")(
    lambda tensors, dim=0: (
        *unsqueeze(tensors[0], dim)[: dim % (len(tensors[0]) + 1)],
        len(tensors),
        *tensors[0][dim % (len(tensors[0]) + 1) :],
    )
)


def _at_least(shape: Shape, rank: int) -> Shape:
    if rank == 3 and 0 < len(shape) < 3:
        return (1, *shape, 1) if len(shape) == 1 else (*shape, 1)
    return (1,) * (rank - len(shape)) + tuple(shape)


@formula("hstack")
def hstack(tensors: Any) -> Shape:
    shapes = [_at_least(s, 1) for s in tensors]
    return cat(shapes, 0 if len(shapes[0]) == 1 else 1)


formula("vstack row_stack")(lambda tensors: cat([_at_least(s, 2) for s in tensors], 0))


def pieces(name: str, input: Shape, *args: Any, **kwargs: Any) -> Any:
    """How many results `split`, `chunk`, `unbind` ... has: what a program sees besides the results."""
    dim = kwargs.get("dim", kwargs.get("axis"))
    if name in ("unbind", "__iter__"):
        return input[(args[0] if args else 0) if dim is None else dim]
    how = args[0] if args else next(v for k, v in kwargs.items() if k not in ("dim", "axis"))
    dim = (args[1] if len(args) > 1 else 0) if dim is None else dim
    if isinstance(how, torch.Size) and name == "tensor_split":
        return how[0] + 1  # a tensor of places
    if not isinstance(how, int):
        return None  # as many as the list says
    if name in ("chunk", "unsafe_chunk"):
        return len(_chunks(input[dim], how)) if type(input[dim]) is int else _chunk_count(input[dim], how)
    return sym_max(ceildiv(input[dim], how), 1) if name in ("split", "unsafe_split") else None


def _chunk_count(n: Any, chunks: int) -> Any:
    step = sym_max(ceildiv(n, chunks), 1)
    count = ceildiv(n, step)
    return count + chunks * (n == 0)


def _chunks(n: int, chunks: int) -> range:
    return range(int(_chunk_count(n, chunks)))


@formula("split", "unsafe_split", "split_with_sizes")
def split(tensor: Shape, split_size: Any = None, dim: int = 0, split_size_or_sections: Any = None, split_sizes: Any = None) -> list[Shape]:
    how = next(v for v in (split_size, split_size_or_sections, split_sizes) if v is not None)
    if not isinstance(how, int):
        return [_put(tensor, dim, n) for n in how]
    n = tensor[dim]
    count = int(pieces("split", tensor, how, dim))
    return [_put(tensor, dim, how)] * (count - 1) + [_put(tensor, dim, n - how * (count - 1))]


@formula("chunk", "unsafe_chunk")
def chunk(input: Shape, chunks: int, dim: int = 0) -> list[Shape]:
    n = input[dim]
    count = int(_chunk_count(n, chunks))
    step = ceildiv(n, chunks)
    if type(n) is int and n == 0:
        return [input] * chunks
    return [_put(input, dim, step)] * (count - 1) + [_put(input, dim, n - step * (count - 1))]


@formula("tensor_split")
def tensor_split(
    input: Shape, indices_or_sections: Any = None, dim: int = 0, indices: Any = None, sections: Any = None
) -> list[Shape] | None:
    how = next(v for v in (indices_or_sections, indices, sections) if v is not None)
    if isinstance(how, torch.Size):
        return None
    n = input[dim]
    if isinstance(how, int):
        return [_put(input, dim, n // how + (n % how > i)) for i in range(how)]
    bounds = [None, *how, None]
    return [_put(input, dim, sliced(n, slice(a, b))) for a, b in itertools.pairwise(bounds)]


formula("unbind")(lambda input, dim=0: [_put(input, dim)] * int(input[dim]))


for _name, _dim in {"hsplit": lambda shape: 0 if len(shape) == 1 else 1, "vsplit": lambda shape: 0, "dsplit": lambda shape: 2}.items():
    formula(_name)(lambda input, *how, pick=_dim, **named: tensor_split(input, *how, *named.values(), dim=pick(input)))
formula("dstack")(lambda tensors: cat([_at_least(s, 3) for s in tensors], 2))
formula("column_stack")(lambda tensors: cat([s if len(s) > 1 else (*s, 1) if s else (1, 1) for s in tensors], 1))


def atleast(rank: int, *tensors: Any) -> Any:
    several = len(tensors) > 1 or (tensors and tensors[0] and isinstance(tensors[0][0], tuple))
    made = tuple(_at_least(s, rank) for s in (tensors if len(tensors) > 1 or not several else tensors[0]))
    return made if several else made[0]


for _rank in (1, 2, 3):
    formula(f"atleast_{_rank}d")(functools.partial(atleast, _rank))


@formula("block_diag")
def block_diag(*tensors: Any) -> Shape:
    shapes = [_at_least(s, 2) for s in (tensors[0] if len(tensors) == 1 and tensors[0] and isinstance(tensors[0][0], tuple) else tensors)]
    return sum(s[0] for s in shapes), sum(s[1] for s in shapes)


@formula("diag_embed")
def diag_embed(input: Shape, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Shape:
    rank, n = len(input) + 1, input[-1] + abs(offset)
    rest = iter(input[:-1])
    return tuple(n if d in (dim1 % rank, dim2 % rank) else next(rest) for d in range(rank))


formula("diagflat")(lambda input, offset=0: (math.prod(input) + abs(offset),) * 2)
formula("slice")(lambda input, dim=0, start=None, end=None, step=1: _put(input, dim, sliced(input[dim], slice(start, end, step))))
formula("_unsafe_masked_index")(lambda input, mask, indices, fill: getitem(input, tuple(slice(None) if i is None else i for i in indices)))


@formula("sum_to_size", "resize", "empty_permuted", "empty_strided", "as_strided")
def sized(*args: Any, size: Any = None, **named: Any) -> Shape:
    """The size is an argument: the first that isn't a tensor."""
    rest = args[1:] if args and isinstance(args[0], torch.Size) and (len(args) > 1 or size is not None) else args
    return tuple(size) if size is not None else _given(tuple(rest)) if isinstance(rest[0], int) else tuple(rest[0])


formula("nonzero_static")(lambda input, *, size, fill_value=-1: (size, len(input)))
formula("unravel_index")(lambda indices, shape: (indices,) * (1 if isinstance(shape, int) else len(shape)))


@formula("tril_indices")
def triangle(row: Any, col: Any, offset: int = 0, **named: Any) -> Shape:
    """The lower triangle, counted row by row, which takes a number for the rows."""
    return (2, sum(sym_min(max(i + offset + 1, 0), col) for i in range(int(row))))


formula("triu_indices")(lambda row, col, offset=0, **named: (2, row * col - triangle(row, col, offset - 1)[1]))


# -- factories -------------------------------------------------------------------------------------------


formula("zeros ones empty rand randn")(lambda *size, **named: _given(size) if size else tuple(named["size"]))
formula("full")(lambda size, fill_value=None, **named: tuple(size))
formula("new_zeros new_ones new_empty new_empty_strided")(
    lambda input, *size, **named: tuple(named["size"]) if not size else tuple(size[0]) if isinstance(size[0], (tuple, list)) else size
)
formula("new_full")(lambda input, size, fill_value=None, **named: tuple(size))
formula("randint")(
    lambda *bounds_and_size, size=None, **named: tuple(
        size if size is not None else next(v for v in bounds_and_size if isinstance(v, (tuple, list)))
    )
)


@formula("arange")
def arange(start: Any = 0, end: Any = None, step: Any = 1, **named: Any) -> Shape | None:
    if end is None:
        start, end = 0, start
    if not all(isinstance(v, int) for v in (start, end, step)):
        return None
    return (sym_max(ceildiv(end - start, step), 0),)


formula("eye")(lambda n, m=None, **named: (n, n if m is None else m))
formula("linspace logspace")(lambda start, end, steps, *args, **named: (steps,))
formula("randperm hann_window hamming_window blackman_window bartlett_window kaiser_window")(
    lambda n=None, *args, window_length=None, **named: (n if n is not None else window_length,)
)


@formula("tensor", "as_tensor", "scalar_tensor")
def tensor(data: Any, **named: Any) -> Shape | None:
    shape = []
    while isinstance(data, (list, tuple)) and not isinstance(data, torch.Size):
        shape.append(len(data))
        if not data:
            return tuple(shape)
        data = data[0]
    return (*shape, *data) if isinstance(data, torch.Size) else tuple(shape) if isinstance(data, (int, float, complex)) else None
