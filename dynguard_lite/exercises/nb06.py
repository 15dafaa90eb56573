"""Checks for the exercises of lesson 6, symbolic guards."""

from __future__ import annotations

import functools
import itertools
import operator
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch

import dynguard_lite as dg

from . import Wrong, exercise, expect

Bound = tuple[str, int]


@exercise
def predicted_guards(answer: Callable[[], dict[Callable, list[str]]]) -> None:
    """`answer()` gives, for the programs f, g, h and k, the guards of a trace at (6, 3): {f: ["x.shape[0] > 3"], ...}."""
    predicted = answer()
    expect(isinstance(predicted, dict) and all(map(callable, predicted)), "the form of the answer",
           "a dict whose keys are the functions themselves", repr(predicted), "Write {f: [...], ...}, no quotes.")  # fmt: skip
    missing = {"f", "g", "h", "k"} - {program.__name__ for program in predicted}
    expect(not missing, "the four programs", "a list for each", f"nothing for {', '.join(sorted(missing))}",
           "No guards at all is [].")  # fmt: skip
    for program, codes in predicted.items():
        name = program.__name__
        expect(isinstance(codes, list) and all(type(c) is str for c in codes), name, "a list of strings", repr(codes),
               'Write ["x.shape[0] > 3"].')  # fmt: skip
        trace = dg.trace(program, torch.randn(6, 3), analysis="symbolic")
        for shape in itertools.product(range(12), repeat=2):
            mine, theirs = _holds(name, codes, shape), trace.accepts(torch.randn(shape))
            given = f"{name} and an x of shape {shape}"
            if mine and not theirs:
                raise Wrong(f"for {given}: expected a refusal, got none of your guards to fail.\nWhich question has "
                            "another answer there than at (6, 3), or which line needs the very number?")  # fmt: skip
            expect(mine or not theirs, given, "that the guards hold, as at (6, 3)", f"a refusal by {_failing(name, codes, shape)}",
                   "Does the program take another path there, or need another number?")  # fmt: skip
        expect(len(codes) <= len(trace.guards), name, f"a list of length {len(trace.guards)}", f"one of {len(codes)}",
               "They accept the right shapes. One of them follows from the others.")  # fmt: skip


def _holds(name: str, codes: list[str], shape: tuple[int, ...]) -> bool:
    return _failing(name, codes, shape) is None


def _failing(name: str, codes: list[str], shape: tuple[int, ...]) -> str | None:
    for code in codes:
        try:
            if not eval(code, {"x": SimpleNamespace(shape=shape, dim=lambda: len(shape))}):
                return code
        except Exception as error:
            raise Wrong(f"for {name}: expected conditions on x.shape in Python, got {code!r}, which raises "
                        f"{type(error).__name__}: {error}.\nOnly x is known to a guard.") from None  # fmt: skip
    return None


_OPS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}  # fmt: skip


@exercise
def shortest_bounds(answer: Callable[[list[Bound]], list[Bound]]) -> None:
    """`answer(bounds)`: a shortest list of (op, number) that allows the same sizes, ints from 0 up."""
    cases: list[list[Bound]] = [
        [],
        [(">", 3), (">=", 2), ("<=", 8)],
        [("==", 5), (">", 3)],
        [(">=", 4), ("<", 5)],
        [(">=", 0), (">", -2)],
        [(">", 3), ("!=", 4), ("!=", 5)],
        [("<=", 8), ("!=", 8), ("!=", 3)],
        [("!=", 0), ("!=", 1)],
        [("!=", 9), ("<", 7)],
        [("<", 1)],
    ]
    cases += [_random_bounds(random.Random(seed)) for seed in range(300)]
    for bounds in cases:
        before = list(bounds)
        got, given = answer(bounds), f"{before}"
        expect(bounds == before, given, "the list that was passed, unchanged", f"{bounds}", "Build a new list.")
        form = isinstance(got, list) and all(isinstance(b, tuple) and len(b) == 2 and b[0] in _OPS and type(b[1]) is int for b in got)
        expect(form, given, "a list of (op, int)", repr(got), "No bound where there is none: infinity is not an int.")
        for n in range(30):
            wanted, mine = _allows(before, n), _allows(got, n)
            expect(wanted == mine, given, f"size {n} to be {'allowed' if wanted else 'refused'}", f"{got}, which says otherwise",
                   "Is a bound lost, or a number off by one?")  # fmt: skip
        shortest = _least(before)
        expect(len(got) <= shortest, given, f"{shortest} bound{'s' * (shortest != 1)}", f"{got}",
               "It allows the right sizes, and one of them can go. Sizes are never negative; a value cut out "
               "at an end moves the end.")  # fmt: skip


def _allows(bounds: list[Bound], n: int) -> bool:
    return all(_OPS[op](n, bound) for op, bound in bounds)


def _random_bounds(rng: random.Random) -> list[Bound]:
    """Bounds that one random size meets."""
    n, bounds = rng.randrange(9), []
    for _ in range(rng.randrange(1, 7)):
        bound = (rng.choice(["!=", "!=", "<", "<=", ">", ">=", "=="]), rng.randrange(-1, 11))
        if _allows([bound], n):
            bounds.append(bound)
    return bounds


def _least(bounds: list[Bound]) -> int:
    """How many bounds it takes, from the allowed sizes alone: no number of the cases exceeds 10."""
    allowed = [n for n in range(30) if _allows(bounds, n)]
    if len(allowed) == 1:
        return 1
    lo, hi = allowed[0], allowed[-1]
    return (lo > 0) + (hi < 29) + (hi - lo + 1 - len(allowed))


def _joined(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = a + b
    return c * 2 if c.shape[0] > 3 else c


@exercise
def broadcast_pairs(answer: Callable[[], set[tuple[int, int]]]) -> None:
    """`answer()`: the pairs of sizes from 0 to 5 that a trace of `joined` at (4, 4) accepts, where joined runs."""
    pairs = answer()
    form = isinstance(pairs, (set, frozenset, list)) and all(
        isinstance(p, tuple) and len(p) == 2 and all(type(n) is int for n in p) for p in pairs)  # fmt: skip
    expect(form, "the form of the answer", "a set of pairs of ints", repr(pairs), "Write {(4, 4), ...}.")
    trace = dg.trace(_joined, torch.randn(4), torch.randn(4), analysis="symbolic")
    for pair in sorted(pairs):
        given, inputs = f"sizes {pair}", [torch.randn(max(n, 0)) for n in pair]
        expect(all(0 <= n <= 5 for n in pair), given, "sizes from 0 to 5", f"{pair}", "Others aren't asked for.")
        try:
            _joined(*inputs)
        except RuntimeError:
            raise Wrong(f"for {given}: expected that joined runs, got an error.\nSizes broadcast where they are equal, "
                        "or one of them is 1.") from None  # fmt: skip
        expect(trace.accepts(*inputs), given, "an accepted pair", "a refusal", "Which size has a + b there?")
    for pair in itertools.product(range(6), repeat=2):
        runs = pair[0] == pair[1] or 1 in pair
        if runs and trace.accepts(*(torch.randn(n) for n in pair)) and pair not in pairs:
            raise Wrong(f"for your {len(set(pairs))} pairs: expected all that are accepted, got some missing, with a size "
                        f"of a + b of {max(pair)}.\nIn how many ways can two sizes broadcast to that?")  # fmt: skip


def _of(check: Callable) -> Callable:
    """The program that the exercise is about comes as a further argument."""

    @functools.wraps(check)
    def run(answer: Any, *given: Any) -> None:
        exercise(lambda a: check(a, *given))(answer)

    return run


@_of
def three_entries(answer: Callable[[], list[int]], program: Callable) -> None:
    """`answer()`: six different n after which the compiled `h`, called at (2, n), holds three cache entries."""
    stream = answer()
    form = isinstance(stream, (list, tuple)) and all(type(n) is int and 0 <= n <= 1_000 for n in stream)
    expect(form, "the form of the answer", "a list of sizes", repr(stream), "Sizes are ints from 0 up.")
    expect(len(stream) == 6, f"{list(stream)}", "six sizes", f"{len(stream)}", "Neither more nor fewer.")
    expect(len(set(stream)) == 6, f"{list(stream)}", "six different sizes", f"only {len(set(stream))} different",
           "No size twice: each hit has to be earned by a guard.")  # fmt: skip
    compiled = dg.compile(program, analysis="symbolic")
    for n in stream:
        compiled(torch.randn(2, n))
    count = len(compiled.traces)
    expect(count == 3, f"{list(stream)}", "3 entries", f"{count}", "Too many calls share one: which sizes need an entry of their own?"
           if count < 3 else "Too few calls share an entry: which sizes can?")  # fmt: skip


def _padded(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(max(x.shape[0], y.shape[0]), x.shape[1])
    out[: x.shape[0]] += x
    out[: y.shape[0]] += y
    return out / (x.shape[0] + y.shape[0])


def _short(t: torch.Tensor) -> str:
    return f"{[round(v, 2) for v in t.flatten().tolist()[:4]]}... of shape {tuple(t.shape)}"


@exercise
def stops_specialising(answer: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    """`answer(x, y)` computes what `padded` does, and its trace accepts every shape on which that runs."""
    rows, columns = (5, 2, 4, 3, 1, 0), (3, 4, 1, 0)  # plain shapes first: a refusal names the first that it finds
    shapes = [((n, k), (m, k)) for k in columns for n in rows for m in rows if n + m]

    def inputs(pair: tuple) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(0)
        return [torch.randn(shape, generator=generator) for shape in pair]

    for pair in [((4, 3), (2, 3)), *shapes]:
        got, wanted = answer(*inputs(pair)), _padded(*inputs(pair))
        given = f"x and y of shapes {pair[0]} and {pair[1]}"
        expect(isinstance(got, torch.Tensor), given, "a tensor", f"a {type(got).__name__}", "Return what padded returns.")
        expect(got.shape == wanted.shape and torch.allclose(got, wanted), given, f"what padded returns, {_short(wanted)}",
               _short(got), "The answer itself differs; the guards come after that.")  # fmt: skip
    trace = dg.trace(answer, *inputs(((4, 3), (2, 3))), analysis="symbolic")
    for pair in shapes:
        given = f"x and y of shapes {pair[0]} and {pair[1]}"
        refused = trace.failing(*inputs(pair))
        if refused:
            raise Wrong(f"for {given}: expected that your trace accepts, got a refusal by {refused[0].code}, because of "
                        f"the line\n    {refused[0].cause.text or refused[0].cause}\nThere, {refused[0].why}.")  # fmt: skip
        expect(torch.allclose(trace.replay(*inputs(pair)), _padded(*inputs(pair))), given, "what padded returns",
               "something else at replay", "Does a number of the trace stay where it should follow a size?")  # fmt: skip
