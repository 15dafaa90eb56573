"""Checks for the exercises of lesson 4, the limits of precision."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from . import exercise, expect


def _result(fn: Callable, *args: Any) -> torch.Tensor | None:
    try:
        return fn(*args)
    except RuntimeError:
        return None


@exercise
def wrong_size(answer: Callable[[], int], program: Callable, trace: Any) -> None:
    """`answer()`: a size where the blind trace of `halves` runs and answers otherwise than the program."""
    n = answer()
    expect(type(n) is int and n >= 0, "the form of the answer", "a size, such as 6", repr(n), "One int.")
    x = torch.arange(n, dtype=torch.float32) ** 2 + 1
    mine, theirs = _result(trace.replay, x), _result(program, x)
    expect(mine is not None, f"size {n}", "an answer of the trace", "an error", "It fails, and a failure is no wrong answer. When "
           "do the sizes of x[::2] and x[1::2] go together?")  # fmt: skip
    expect(theirs is None or mine.shape != theirs.shape or not torch.allclose(mine, theirs, equal_nan=True), f"size {n}",
           "two different answers", "the same answer twice", "Does the program take the other path there?")  # fmt: skip


@exercise
def refused(answer: Callable[[], tuple[int, int]], program: Callable, trace: Any) -> None:
    """`answer()`: sizes of a and b that the trace of `total` refuses though the program takes the same path."""
    sizes = answer()
    form = isinstance(sizes, (tuple, list)) and len(sizes) == 2 and all(type(n) is int and n >= 0 for n in sizes)
    expect(form, "the form of the answer", "two sizes, such as (4, 3)", repr(sizes), "Return the size of a, the size of b.")
    a, b = (torch.randn(n) for n in sizes)
    given = f"sizes {sizes[0]} and {sizes[1]}"
    expect(not trace.accepts(a, b), given, "a refusal", "the trace accepts them", "Which shapes do its guards name?")
    expect(torch.equal(trace.replay(a, b), program(a, b)) and sum(sizes) > 5, given, "the path that was recorded",
           "the other path", "How many elements are there in all?")  # fmt: skip


@exercise
def measures(answer: Callable[[set, set, set], tuple[bool, float]]) -> None:
    """`answer(accepted, valid, right)` is (sound, precision)."""
    cases = {
        "guards that accept just what is valid": ({1, 2}, {1, 2}, {1, 2, 3}),
        "guards that refuse one of two valid shapes": ({1}, {1, 2}, {1, 2}),
        "guards that accept a shape where the replay is wrong": ({1, 9}, {1}, {1}),
        "guards that accept a shape that is right by luck": ({1, 5}, {1, 2}, {1, 2, 5}),
        "guards that accept nothing": (set(), {1, 2}, {1, 2}),
        "no valid shape at all": (set(), set(), {1}),
    }
    for seed in range(50):
        rng = random.Random(seed)
        valid = {n for n in range(12) if rng.random() < 0.4}
        right = valid | {n for n in range(12) if rng.random() < 0.3}
        cases[f"random sets (seed {seed})"] = ({n for n in range(12) if rng.random() < 0.4}, valid, right)
    for given, (accepted, valid, right) in cases.items():
        got = answer(set(accepted), set(valid), set(right))
        wanted = all(n in right for n in accepted), (sum(n in accepted for n in valid) / len(valid) if valid else 1.0)
        given = f"{given}: accepted {sorted(accepted)}, valid {sorted(valid)}, right {sorted(right)}"
        expect(isinstance(got, tuple) and len(got) == 2, given, "a pair (sound, precision)", repr(got), "Return both.")
        expect(bool(got[0]) == wanted[0], given, f"sound {wanted[0]}", f"{got[0]}", "Sound: whatever is accepted is right.")
        expect(abs(got[1] - wanted[1]) < 1e-9, given, f"precision {wanted[1]:.3f}", repr(got[1]),
               "Precision: of the valid shapes, the share that is accepted.")  # fmt: skip


@exercise
def origins(answer: Callable[[], dict[str, Callable]]) -> None:
    """`answer()`: formulas of linear, transpose and outer, on tuples of numbers or of names."""
    formulas = answer()
    missing = {"linear", "transpose", "outer"} - set(formulas if isinstance(formulas, dict) else ())
    expect(not missing, "the form of the answer", "a dictionary of three functions", f"none for {', '.join(sorted(missing))}",
           'Return {"linear": ..., "transpose": ..., "outer": ...}.')  # fmt: skip
    named = {
        "linear": ((("batch", "in"), ("out", "in_w")), ("batch", "out")),
        "transpose": ((("rows", "columns"),), ("columns", "rows")),
        "outer": ((("n",), ("m",)), ("n", "m")),
    }
    for name, (shapes, wanted) in named.items():
        got = formulas[name](*shapes)
        expect(tuple(got) == wanted, f"{name} of {' and '.join(map(str, shapes))}", wanted, repr(got),
               "Take the sizes out of the arguments: which one of which argument?")  # fmt: skip
    run = {"linear": torch.nn.functional.linear, "transpose": torch.t, "outer": torch.outer}
    for n, m, k in ((2, 3, 4), (1, 1, 1), (5, 1, 2)):
        for name, shapes in (("linear", ((n, m), (k, m))), ("transpose", ((n, m),)), ("outer", ((n,), (m,)))):
            wanted = tuple(run[name](*(torch.randn(s) for s in shapes)).shape)
            got = formulas[name](*shapes)
            expect(tuple(got) == wanted, f"{name} of {' and '.join(map(str, shapes))}", wanted, repr(got), "PyTorch says so.")
