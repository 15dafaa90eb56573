"""Checks for the exercises of lesson 5, shape formulas."""

from __future__ import annotations

import contextlib
import random
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import dynguard_lite as dg
from dynguard_lite.formulas import registry

from . import Wrong, exercise, expect


@contextlib.contextmanager
def _registered(target: Any, rule: Callable) -> Iterator[None]:
    """The reader's formula in place of ours, for as long as this lasts."""
    before = dict(registry._by_name), dict(registry._by_function)
    try:
        dg.formula(target)(rule)
        yield
    finally:
        registry._by_name, registry._by_function = before


def _shape(answer: Callable, given: str, *shapes: Any, **options: Any) -> tuple:
    got = answer(*shapes, **options)
    expect(isinstance(got, (tuple, list)), given, "a tuple of sizes", repr(got), "A shape is a tuple, also with one size in it.")
    return tuple(got)


def _guards(program: Callable, *args: torch.Tensor) -> list[str]:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the shape formula")
        return [g.code for g in dg.trace(program, *args, analysis="symbolic").guards if "shape" in g.code]


@exercise
def matmul_formula(answer: Callable) -> None:
    """`answer(A, B)` is the shape of torch.matmul, of any ranks from 1 up."""
    rng = random.Random(0)
    cases = [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,))]
    cases += [((7, 3, 4), (4, 5)), ((5, 1, 3, 4), (6, 4, 2)), ((4,), (6, 4, 2))]
    for _ in range(30):
        k, batch = rng.randrange(4), [rng.randrange(1, 4) for _ in range(rng.randrange(3))]
        left = [n if rng.random() < 0.6 else 1 for n in batch][rng.randrange(len(batch) + 1) :]
        cases.append(((*left, rng.randrange(4), k), (*batch, k, rng.randrange(4))))
    for a, b in cases:
        given = f"shapes {a} and {b}"
        wanted = tuple(torch.matmul(torch.zeros(a), torch.zeros(b)).shape)
        got = _shape(answer, given, a, b)
        expect(got == wanted, given, wanted, got, "Vectors, batches: hint 1 and hint 2 say which sizes are left.")

    def program(A, B):
        C = torch.matmul(A, B)
        return C + 1 if C.shape[-1] < 9 else C

    with _registered("matmul", answer):
        got = _guards(program, torch.zeros(5, 3, 4), torch.zeros(4, 6))
    expect(got == ["B.shape[1] < 9"], "a trace that asks whether there are less than 9 columns", ["B.shape[1] < 9"], got,
           "A formula must not decide anything about sizes: no `if` on a size, no int().")  # fmt: skip


@exercise
def cat_and_conv(answer: Callable[[], dict[str, Callable]]) -> None:
    """`answer()`: formulas of cat and conv1d."""
    formulas = answer()
    missing = {"cat", "conv1d"} - set(formulas if isinstance(formulas, dict) else ())
    expect(not missing, "the form of the answer", "a dictionary of two functions", f"none for {', '.join(sorted(missing))}", "Return both.")
    rng = random.Random(0)
    for _ in range(30):
        rank = rng.randrange(1, 4)
        dim, rest = rng.randrange(rank), [rng.randrange(1, 4) for _ in range(rank)]
        shapes = [tuple(rng.randrange(5) if d == dim else n for d, n in enumerate(rest)) for _ in range(rng.randrange(1, 4))]
        given = f"cat of {shapes} at {dim}"
        wanted = tuple(torch.cat([torch.zeros(s) for s in shapes], dim).shape)
        expect(_shape(formulas["cat"], given, shapes, dim) == wanted, given, wanted, formulas["cat"](shapes, dim), "Only `dim` adds up.")
    for _ in range(40):
        x, w = (rng.randrange(1, 4), 2, rng.randrange(3, 12)), (rng.randrange(1, 4), 2, rng.randrange(1, 4))
        stride, padding = rng.randrange(1, 4), rng.randrange(3)
        given = f"conv1d of {x} with weight {w}, stride {stride}, padding {padding}"
        wanted = tuple(torch.nn.functional.conv1d(torch.zeros(x), torch.zeros(w), stride=stride, padding=padding).shape)
        got = _shape(formulas["conv1d"], given, x, w, stride=stride, padding=padding)
        expect(got == wanted, given, wanted, got, "Draw five boxes and slide a window of three over them, two at a time.")

    def program(a, b):
        c = torch.cat([a, b])
        return c + 1 if c.shape[0] > 4 else c

    with _registered("cat", formulas["cat"]):
        got = _guards(program, torch.zeros(3), torch.zeros(4))
    expect(got == ["a.shape[0] + b.shape[0] > 4"], "a trace that joins two vectors", ["a.shape[0] + b.shape[0] > 4"], got,
           "The sizes must stay symbols: no int(), no range over them.")  # fmt: skip


@exercise
def own_operator(answer: Callable, pairs: Any) -> None:
    """`answer(x, times)` is the shape of the notebook's own operator `pairs`."""
    for n, times in ((3, 1), (3, 2), (1, 4), (0, 2), (5, 3)):
        given = f"a vector of {n}, times = {times}"
        wanted = tuple(pairs(torch.zeros(n), times).shape)
        got = _shape(answer, given, (n,), times)
        expect(got == wanted, given, wanted, got, "Which of the two sizes does repeat change?")

    def program(x):
        y = pairs(x, 2)
        return y + 1 if y.shape[0] > 4 else y

    try:
        with _registered(pairs, answer):
            got = _guards(program, torch.zeros(3))
    except UserWarning as warning:
        raise Wrong(f"for a trace of size 3: {warning}.\nIn a trace, x holds symbols.") from None
    wanted = ["x.shape[0] > 2"]
    expect(got == wanted, "a trace that asks whether the rows are more than 4", wanted, got, "The formula decided something.")


@exercise
def pins(answer: Callable[[str, dict], list[str]]) -> None:
    """`answer(expression, sizes)`: the guards that per_dimension makes of a read."""
    sizes = {"A": (3, 4), "B": (4, 5), "long_name": (7,), "x": (10, 11)}
    texts = ["A.shape[0]", "A.shape[0] + 2*B.shape[1]", "A.shape[0]*A.shape[0]", "broadcast(A.shape[1], B.shape[0])", "7",
             "max(long_name.shape[0] - 2, 0) // x.shape[1] + x.shape[0]"]  # fmt: skip
    for text in texts:
        wanted = sorted({f"{n}.shape[{d}] == {sizes[n][int(d)]}" for n, d in re.findall(r"(\w+)\.shape\[(\d+)\]", text)})
        got = answer(text, dict(sizes))
        expect(isinstance(got, list), text, "a list", f"a {type(got).__name__}", "sorted(...) makes a list.")
        expect(got == wanted, text, wanted, got, "Each dimension that occurs, once, with the size seen.")
