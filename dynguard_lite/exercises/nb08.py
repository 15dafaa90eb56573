"""Checks of the exercises in notebook 08."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import dynguard_lite as dg

from . import exercise, expect


@exercise
def buckets(answer: Callable, unrolled: Callable) -> None:
    """`answer(steps)` pads so that few lengths are left; `unrolled` keeps its results for the real steps."""
    lengths: dict[int, int] = {}
    for n in range(1, 65):
        steps = torch.randn(n, 2, 3)
        padded, given = answer(steps), f"a sequence of length {n}"
        expect(isinstance(padded, torch.Tensor), given, "a tensor", type(padded).__name__, "Return the padded tensor.")
        expect(padded.shape[1:] == (2, 3), given, "a shape (length, 2, 3)", tuple(padded.shape),
               "F.pad counts dimensions from the last: the first needs the last pair of numbers.")  # fmt: skip
        expect(n <= padded.shape[0] <= 2 * n, given, f"a length from {n} to {2 * n}", padded.shape[0], "Pad a little less, or more.")
        expect(torch.equal(padded[:n], steps), given, "the steps themselves, then the padding", "others",
               "Pad at the end: what comes first changes the state of all that follows.")  # fmt: skip
        lengths[padded.shape[0]] = n
    expect(len(lengths) <= 7, "lengths 1 to 64", "at most 7 different lengths", f"{len(lengths)}: {sorted(lengths)[:9]}",
           "Each bucket may be twice as long as the one before it.")  # fmt: skip
    compiled = dg.compile(unrolled, recompile_limit=100)
    for n in (1, 2, 3, 5, 8, 9):
        steps = torch.randn(n, 2, 3)
        expect(torch.allclose(compiled(answer(steps))[:n], unrolled(steps)), f"a sequence of length {n}", "the program's result",
               "another", "Pad at the end, with zeros.")  # fmt: skip


@exercise
def lines_at_fault(answer: Callable, mystery: Callable) -> None:
    """`answer()` maps what changes to the line that makes the trace refuse."""
    got = answer()
    expect(isinstance(got, dict) and set(got) == {"rows", "columns"}, "your answer", "a dict with 'rows' and 'columns'", got,
           "Return {'rows': ..., 'columns': ...}.")  # fmt: skip
    t = dg.trace(mystery, torch.randn(6, 3), torch.randn(3))
    changed = {"rows": (torch.randn(9, 3), torch.randn(3)), "columns": (torch.randn(6, 9), torch.randn(9))}
    for what, inputs in changed.items():
        causes = [g.cause.text for g in t.failing(*inputs)]
        shapes = " and ".join(str(tuple(x.shape)) for x in inputs)
        expect(str(got[what]).strip() in causes, f"{what} that change, to {shapes}", "the line that the failing guard names",
               repr(got[what]), "Trace it at (6, 3) and (3,), and ask t.failing at these shapes.")  # fmt: skip


@exercise
def two_compilations(answer: Callable, weighted: Callable) -> None:
    """`answer(x)` is `weighted(x)`; TorchDynamo compiles it at most twice for batches 2 to 8."""
    for n in range(1, 9):
        x = torch.randn(n, 3)
        got, wanted = answer(x), weighted(x)
        same = isinstance(got, torch.Tensor) and got.shape == wanted.shape and torch.allclose(got, wanted, atol=1e-6)
        expect(same, f"a batch of {n}",
               wanted.tolist(),
               got.tolist() if isinstance(got, torch.Tensor) else got, "The first n // 2 rows weigh 1 / n, the rest 2 / n.")  # fmt: skip
    calls = [(torch.randn(n, 3),) for n in range(2, 9)]
    t = dg.dynamo.trace(answer, *calls[0], also=calls[1:])
    last = next((str(g.cause) for g in t.guards if g.kind == "size" and g.code.startswith("x.shape[0]")), "no line")
    expect(len(t.entries) <= 2, "batches 2 to 8", "at most 2 compilations", len(t.entries), f"The last one pins the batch in {last}.")
    expect(not t.breaks, "batches 2 to 8", "one graph", f"a graph break: {t.breaks}", "Leave .item() and the like out.")


@exercise
def all_dynamic(answer: Callable) -> None:
    """`answer(t)` says "all dynamic", or names each static dimension with the line of its guard."""

    def free(x):
        return x * x.shape[0] if x.shape[1] > 2 else x

    def loops(x):
        for i in range(x.shape[0]):
            x = x + i
        return x if int(x.shape[1]) else -x

    x = torch.randn(4, 3)
    looped = dg.trace(loops, x)
    loop, number = (g.cause.text for g in looped.guards)  # its two pins, in order
    whole = dg.trace(free, x, analysis="static")
    cases: list[tuple[str, Any, Any]] = [
        ("a trace with a bound alone", dg.trace(free, x), "all dynamic"),
        ("a trace of a loop", looped, [("x.shape[0]", loop), ("x.shape[1]", number)]),
        ("a trace that pins a whole shape", whole, [(f"x.shape[{d}]", next(iter(whole.guards)).cause.text) for d in range(2)]),
        ("a trace of rank 0", dg.trace(lambda s: s * 2, torch.tensor(1.0)), "all dynamic"),
        ("TorchDynamo's trace", dg.dynamo.trace(free, x, dynamic=True), "all dynamic"),
    ]
    for given, t, wanted in cases:
        got = answer(t)
        got = list(map(tuple, got)) if isinstance(got, list) else got
        expect(got == wanted, given, wanted, got, "A bound is no pin; a guard on a whole shape pins each of its dims.")
