"""Random programs on tensors and sizes: what a reader's function might do, in any order.

A program is a list of statements, each a tuple of a kind and small ints that choose its
operands. `Program.__call__` runs it on tensors, plain or traced: to the tracer it is a
function like any other. Every Python decision it takes on a size goes into `decisions`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis import strategies as st

BINARY = (torch.add, torch.mul, torch.sub, torch.maximum)
REDUCTIONS = (torch.sum, torch.amax, torch.mean)
COMPARE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def _dim(t: torch.Tensor, d: int) -> int:
    return d % max(t.dim(), 1)


@dataclass
class State:
    tensors: list[torch.Tensor]
    sizes: list[Any] = field(default_factory=lambda: [2])
    decisions: list[Any] = field(default_factory=list)

    def t(self, i: int) -> torch.Tensor:
        return self.tensors[i % len(self.tensors)]

    def n(self, i: int) -> Any:
        return self.sizes[i % len(self.sizes)]

    def decide(self, outcome: Any) -> Any:
        self.decisions.append(outcome)
        return outcome

    def put(self, t: torch.Tensor) -> None:
        if t.numel() <= 4096 and t.dim() <= 5:  # numel() is a look as well, and this a decision
            self.tensors.append(t)


def binary(s, i, j, k, d): s.tensors.append(BINARY[k % 4](s.t(i), s.t(j)))
def scale(s, i, j, k, d): s.tensors.append(s.t(i) * s.n(j))
def matmul(s, i, j, k, d): s.tensors.append(s.t(i) @ s.t(j))
def reduce(s, i, j, k, d): s.tensors.append(REDUCTIONS[k % 3](s.t(i), dim=_dim(s.t(i), d), keepdim=j % 2 == 0))
def total(s, i, j, k, d): s.tensors.append(s.t(i).sum())
def cat(s, i, j, k, d): s.tensors.append(torch.cat([s.t(i), s.t(j)], _dim(s.t(i), d)))
def stack(s, i, j, k, d): s.tensors.append(torch.stack([s.t(i), s.t(j)], _dim(s.t(i), d)))
def transpose(s, i, j, k, d): s.tensors.append(s.t(i).transpose(_dim(s.t(i), d), _dim(s.t(i), j)))
def unsqueeze(s, i, j, k, d): s.tensors.append(s.t(i).unsqueeze(_dim(s.t(i), d)))
def flatten(s, i, j, k, d): s.tensors.append(s.t(i).flatten(_dim(s.t(i), d)))
def rows(s, i, j, k, d): s.tensors.append(s.t(i).reshape(-1, k + 1))
def by_size(s, i, j, k, d): s.tensors.append(s.t(i).reshape(s.n(j), -1))
def last_of(s, i, j, k, d): s.tensors.append(s.t(i).reshape(-1, s.t(j).shape[-1]))
def cut(s, i, j, k, d): s.tensors.append(s.t(i)[k:])
def cut_end(s, i, j, k, d): s.tensors.append(s.t(i)[..., : -1 - k])
def cut_by(s, i, j, k, d): s.tensors.append(s.t(i)[s.n(j) :])
def every_other(s, i, j, k, d): s.tensors.append(s.t(i)[k : k + 4 : 2])
def pick(s, i, j, k, d): s.tensors.append(s.t(i)[..., k - 2])
def gather_rows(s, i, j, k, d): s.tensors.append(s.t(i)[torch.tensor([0, k % 2, 0])])
def expand(s, i, j, k, d): s.tensors.append(s.t(i).unsqueeze(0).expand(s.n(j), *[-1] * s.t(i).dim()))
def zeros(s, i, j, k, d): s.tensors.append(torch.zeros(s.n(j) % 5, k))
def arange(s, i, j, k, d): s.tensors.append(torch.arange(s.n(j) % 7).float())
def pad(s, i, j, k, d): s.tensors.append(torch.nn.functional.pad(s.t(i), (k, s.n(j) % 3)))
def repeat(s, i, j, k, d): s.tensors.append(s.t(i).repeat(s.n(j) % 3 + 1, *[1] * (s.t(i).dim() - 1)))
def in_place(s, i, j, k, d): s.t(i).add_(1)
def write_slice(s, i, j, k, d): s.t(i)[: s.n(j) % 3] = k
def softmax(s, i, j, k, d): s.tensors.append(torch.softmax(s.t(i), _dim(s.t(i), d)))
def linear(s, i, j, k, d): s.tensors.append(torch.nn.functional.linear(s.t(i), s.t(j)))
def conv(s, i, j, k, d): s.tensors.append(torch.nn.functional.conv1d(s.t(i), s.t(j), stride=k % 2 + 1, padding=d % 2))
def pool(s, i, j, k, d): s.tensors.append(torch.nn.functional.max_pool1d(s.t(i), k % 3 + 1))
def piece(s, i, j, k, d): s.tensors.append(s.t(i).split(k + 1, _dim(s.t(i), d))[-1])
def chunk(s, i, j, k, d): s.tensors.append(s.t(i).chunk(k + 1, _dim(s.t(i), d))[0])


@torch.library.custom_op("dynguard_lite_tests::opaque", mutates_args=())
def opaque_op(x: torch.Tensor) -> torch.Tensor:
    return x.flatten()[: x.shape[-1] + 1].clone()


@torch.library.custom_op("dynguard_lite_tests::opaque_pair", mutates_args=())
def opaque_pair_op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.clone(), x.flatten()[: x.shape[0]].clone()


def opaque(s, i, j, k, d): s.tensors.append(opaque_op(s.t(i)) if k % 2 else opaque_pair_op(s.t(i))[d % 2])  # no formulas
def select(s, i, j, k, d): s.tensors.append(s.t(i)[s.t(i) > k - 2])
def places(s, i, j, k, d): s.tensors.append((s.t(i) > k - 2).nonzero().float())


def squeeze(s, i, j, k, d):
    t = s.t(i).squeeze() if k % 2 else s.t(i).squeeze(_dim(s.t(i), d))
    if type(t) is torch.Tensor:  # not while it is traced: which sizes are 1 is the squeeze's own decision
        s.decide([n == 1 for n in s.t(i).shape])
    t.dim()
    s.tensors.append(t)


def read(s, i, j, k, d): s.sizes.append(s.t(i).shape[_dim(s.t(i), d)])
def numel(s, i, j, k, d): s.sizes.append(s.t(i).numel())
def add_size(s, i, j, k, d): s.sizes.append(s.n(i) + s.n(j) - k)
def times_size(s, i, j, k, d): s.sizes.append(s.n(i) * s.n(j) % 64)
def half(s, i, j, k, d): s.sizes.append(s.n(i) // (k + 1))
def rest(s, i, j, k, d): s.sizes.append(s.n(i) % (k + 1))
def over(s, i, j, k, d): s.sizes.append(s.n(i) // s.n(j))
def larger(s, i, j, k, d): s.sizes.append(torch.sym_max(s.n(i), s.n(j)))
def smaller(s, i, j, k, d): s.sizes.append(torch.sym_min(s.n(i), k))
def python_max(s, i, j, k, d): s.sizes.append(max(s.n(i), s.n(j)))


def branch(s, i, j, k, d):
    right = s.n(j) if d % 2 else k
    s.tensors.append(s.t(i) * 2 if s.decide(bool(COMPARE[k % 6](s.n(i), right))) else s.t(i) + 3)


def same_shape(s, i, j, k, d):
    s.tensors.append(s.t(i) - s.t(j) if s.decide(s.t(i).shape == s.t(j).shape) else s.t(i).neg())


def either(s, i, j, k, d):
    if s.decide(bool((s.n(i) > k) | (s.n(j) == d))):
        s.tensors.append(s.t(i).abs())


def truth(s, i, j, k, d): s.tensors.append(s.t(i) + (7 if s.decide(bool(s.n(j))) else 5))


def loop(s, i, j, k, d):
    for step in range(s.decide(int(s.n(j) % 4))):
        s.tensors.append(s.t(i) + step)


def as_key(s, i, j, k, d): s.sizes.append({s.decide(int(s.n(i))): 1}.get(s.n(i), 0))
def as_text(s, i, j, k, d): s.sizes.append(len(s.decide(f"{s.n(i)}")))
def as_float(s, i, j, k, d): s.tensors.append(s.t(i) * s.decide(s.n(j) / 2))


STATEMENTS = {f.__name__: f for f in (
    binary, scale, matmul, reduce, total, cat, stack, transpose, unsqueeze, flatten, rows, by_size, last_of, cut, cut_end,
    cut_by, every_other, pick, gather_rows, expand, zeros, arange, pad, repeat, in_place, write_slice, softmax, linear, conv,
    pool, piece, chunk, opaque, select, places, squeeze, read, numel, add_size, times_size, half, rest, over, larger, smaller, python_max, branch,
    same_shape, either, truth, loop, as_key, as_text, as_float)}  # fmt: skip
#: Twice as often: what makes programs interesting together.
NAMES = [*STATEMENTS, "read", "read", "branch", "binary", "binary", "add_size", "by_size", "matmul", "cat"]
#: Python's max compares by itself, and of an operator without a formula no size is known.
FORCED = {"python_max", "opaque"}


@dataclass
class Program:
    shapes: tuple[tuple[int, ...], ...]
    statements: list[tuple]

    def state(self, *tensors: torch.Tensor) -> State:
        s = State(list(tensors))
        for name, *operands in self.statements:
            STATEMENTS[name](s, *operands)
        return s

    def __call__(self, *tensors: torch.Tensor) -> Any:
        s = self.state(*tensors)
        return s.tensors[-3:], s.sizes[-3:], s.tensors[-1].shape[1:], s.tensors[len(s.tensors) // 2].shape

    def inputs(self, shapes: tuple | None = None) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(1)
        return [torch.randint(-4, 5, shape, generator=generator).float() for shape in shapes or self.shapes]


SIZES = st.sampled_from([0, 1, 1, 2, 2, 3, 3, 4, 5])
OPERANDS = st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(0, 4), st.integers(0, 3))


@st.composite
def programs(draw: Any) -> Program:
    """Programs that run on the shapes they come with; a statement that would raise there is left out."""
    pool_ = draw(st.lists(SIZES, min_size=1, max_size=3))  # few sizes, so that inputs go together
    ranks = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    shapes = tuple(tuple(draw(st.sampled_from(pool_)) for _ in range(r)) for r in ranks)
    program = Program(shapes, [])
    state = State(program.inputs())
    wanted = draw(st.lists(st.tuples(st.sampled_from(NAMES), OPERANDS), min_size=1, max_size=12))
    for name, operands in wanted:
        before = len(state.tensors), len(state.sizes), len(state.decisions)
        try:
            STATEMENTS[name](state, *operands)
            fits = all(t.numel() <= 4096 and t.dim() <= 5 for t in state.tensors[before[0] :])
            fits = fits and all(-100 < n < 1000 for n in state.sizes[before[1] :])
        except (RuntimeError, IndexError, ValueError, ZeroDivisionError, TypeError):
            fits = False
        if fits:
            program.statements.append((name, *operands))
        else:
            del state.tensors[before[0] :], state.sizes[before[1] :], state.decisions[before[2] :]
    return program


def other_shapes(program: Program, rng: Any, count: int) -> list[tuple]:
    """Shapes to try, with sizes 0 and 1 among them: equal sizes moved together, and single dimensions moved alone."""
    found = {program.shapes: None}
    sizes = sorted({n for shape in program.shapes for n in shape})
    for _ in range(count):
        if rng.random() < 0.6:
            moved = {n: rng.choice((0, 1, 2, 3, 4, 5, 6)) if rng.random() < 0.6 else n for n in sizes}
            found[tuple(tuple(moved[n] for n in shape) for shape in program.shapes)] = None
        else:
            shapes = [list(shape) for shape in program.shapes]
            dims = [(i, d) for i, shape in enumerate(shapes) for d in range(len(shape))]
            for i, d in rng.sample(dims, min(len(dims), rng.choice((1, 1, 2)))):
                shapes[i][d] = rng.choice((0, 1, 2, 3, 4, 5, 6))
            found[tuple(map(tuple, shapes))] = None
    return list(found)
