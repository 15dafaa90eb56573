"""Checks for the exercises of lesson 7, beside TorchDynamo."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch

import dynguard_lite as dg

from . import Wrong, exercise, expect


@exercise
def accepted_pairs(answer: Callable[[], set[tuple[int, int]]], product: Callable) -> None:
    """`answer()` gives the pairs of sizes from 0 to 5 that TorchDynamo's trace of `product` at 4 and 4 accepts."""
    pairs = answer()
    expect(isinstance(pairs, (set, frozenset, list, tuple)) and all(isinstance(p, tuple) and len(p) == 2 for p in pairs),
           "the form of the answer", "a set of pairs", repr(pairs), "Write {(4, 4), ...}.")  # fmt: skip
    trace = dg.dynamo.trace(product, torch.randn(4), torch.randn(4), dynamic=True)
    for n, m in itertools.product(range(6), repeat=2):
        taken = trace.accepts(torch.randn(n), torch.randn(m))
        if taken:
            expect((n, m) in pairs, f"sizes {n} and {m}", "the pair among yours, since all guards hold", "no such pair",
                   "Read both guards again.")  # fmt: skip
        elif (n, m) in pairs:
            words = trace.why(torch.randn(n), torch.randn(m))
            raise Wrong(f"for sizes {n} and {m}: expected a refusal by `{words}`, got the pair among yours.\n"
                        "Which of the two guards fails there?")  # fmt: skip
    extra = sorted(set(pairs) - set(itertools.product(range(6), repeat=2)))
    expect(not extra, "sizes from 0 to 5", "pairs of these", str(extra[:3]), "Larger sizes were not asked for.")


@exercise
def stops_recompiling(answer: Callable[[torch.Tensor], torch.Tensor], centred: Callable) -> None:
    """`answer(x)` returns what `centred(x)` returns, and TorchDynamo keeps two entries at most for five numbers of rows."""
    for n in (1, 2, 4, 7):
        x = torch.randn(n, 3)
        expected, got = centred(x), answer(x.clone())
        expect(isinstance(got, torch.Tensor) and got.shape == expected.shape, f"{n} rows", f"a tensor of shape {list(expected.shape)}",
               f"one of shape {list(got.shape)}" if isinstance(got, torch.Tensor) else repr(got), "Return a row for each row.")  # fmt: skip
        expect(torch.allclose(got, expected, atol=1e-5), f"{n} rows", f"a first row of {_row(expected)}", _row(got),
               "Subtract the mean of all rows, column by column.")  # fmt: skip
    calls = [(torch.randn(n, 3),) for n in (4, 5, 6, 7, 8)]
    trace = dg.dynamo.trace(answer, *calls[0], also=tuple(calls[1:]))
    expect(not trace.breaks, "TorchDynamo", "one graph", f"a break: {trace.breaks[:1]}",
           "Stay with tensors and sizes: no .item(), no printing.")  # fmt: skip
    expect(len(trace.entries) <= 2, "4, 5, 6, 7, 8 rows", "two entries at most", f"{len(trace.entries)} entries",
           "The last entry's guards: " + " and ".join(g.code for g in trace.guards if g.kind in ("size", "expression"))
           + ". Which line pins the rows?")  # fmt: skip


def _row(x: torch.Tensor) -> str:
    return str([round(n, 3) for n in x[0].tolist()])


@exercise
def marked_inputs(answer: Callable[[], tuple[torch.Tensor, torch.Tensor]], product: Callable) -> None:
    """`answer()` gives two tensors of shape (4, 16), marked so that the first entry takes every batch from 2 and 16 columns only."""
    given = answer()
    several = isinstance(given, (tuple, list)) and all(isinstance(x, torch.Tensor) for x in given)
    expect(several and [tuple(x.shape) for x in given] == [(4, 16)] * 2, "the form of the answer", "two tensors of shape (4, 16)",
           str([list(x.shape) for x in given]) if several else type(given).__name__, "Make both, mark them, return them.")  # fmt: skip
    try:
        trace = dg.dynamo.trace(product, *given)
    except dg.TraceError as error:
        raise Wrong(f"for your tensors: expected an entry, got {error}.\nWhat is the size that the marked one must agree with?") from None
    for n in (2, 3, 9):
        refusal = trace.why(torch.randn(n, 16), torch.randn(n, 16))
        expect(not refusal, f"two batches of {n}", "acceptance", f"a refusal: {refusal}", "Is the batch of each tensor marked?")
    for m in (3, 17):
        expect(not trace.accepts(torch.randn(4, m), torch.randn(4, m)), f"{m} columns", "a refusal", "acceptance",
               "Only what is marked should vary.")  # fmt: skip
