"""What a benchmark is (`Case`), how two sides are timed beside each other, and the table."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field


class Skipped(Exception):
    """A case that can't be measured here, with the reason."""


@dataclass(frozen=True)
class Result:
    """`ratio` is what the goal is about; `ours` and `theirs` are what was measured, as text."""

    ratio: float
    ours: str
    theirs: str


@dataclass(frozen=True)
class Case:
    """One row: `what` against `against`; `run(quick)` measures it. `goal`: the largest ratio, None where none is set."""

    group: str
    what: str
    against: str
    goal: float | None
    run: Callable[[bool], Result] = field(compare=False)
    slow: bool = False  # left out of a quick run

    def __str__(self) -> str:
        return f"{self.group}: {self.what}, against {self.against}"


def interleaved(ours: Callable, theirs: Callable, quick: bool, seconds: float = 1.0, minus: Callable | None = None) -> Result:
    """Time two sides (and `minus`, whose time is taken off ours) in turns.

    A round runs each side for some milliseconds; the next one begins with another side. The ratio is the
    median of the rounds' ratios, so that a machine that slows down for a while slows both sides down.
    """
    sides = [side for side in (ours, theirs, minus) if side is not None]
    calls = [_calls_for(side, 0.0005 if quick else 0.003) for side in sides]
    rounds: list[list[float]] = []
    end = time.perf_counter() + (0.0 if quick else seconds)
    gc.collect()
    gc.disable()
    try:
        while len(rounds) < 3 or (time.perf_counter() < end and len(rounds) < 101):
            took = [0.0] * len(sides)
            for i in range(len(sides)):
                side = (i + len(rounds)) % len(sides)
                took[side] = _time(sides[side], calls[side])
            rounds.append(took)
            gc.collect()
    finally:
        gc.enable()
    off = [took[2] if minus else 0.0 for took in rounds]
    a, b = [took[0] - o for took, o in zip(rounds, off, strict=True)], [took[1] for took in rounds]
    ratio = statistics.median(x / y for x, y in zip(a, b, strict=True))
    return Result(ratio, span(statistics.median(a)), span(statistics.median(b)))


def _time(side: Callable, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        side()
    return (time.perf_counter() - start) / calls


def _calls_for(side: Callable, seconds: float) -> int:
    """How many calls take about so long, once the first one has warmed up."""
    if _time(side, 1) > 0.3:
        return 1
    calls = 1
    while (took := _time(side, calls) * calls) < seconds and calls < 1_000_000:
        calls = max(calls * 2, int(calls * seconds / max(took, 1e-7)))
    return calls


def span(seconds: float) -> str:
    """A time with three digits: `1.23 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(seconds) >= size or unit == "us":
            return f"{seconds / size:.3g} {unit}"
    raise AssertionError


@dataclass
class Measured:
    """A case and what came of it: a result, or why there is none."""

    case: Case
    result: Result | None
    reason: str = ""
    seconds: float = 0.0

    @property
    def met(self) -> str:
        if self.result is None:
            return self.reason
        return "shown" if self.case.goal is None else "yes" if round(self.result.ratio, 3) <= self.case.goal else "NO"

    def as_json(self) -> dict:
        case, result = self.case, self.result
        return {"group": case.group, "what": case.what, "against": case.against, "goal": case.goal, "met": self.met,
                "ratio": result and result.ratio, "ours": result and result.ours, "theirs": result and result.theirs,
                "seconds": round(self.seconds, 1)}  # fmt: skip

    def as_row(self) -> tuple[str, ...]:
        case, result = self.case, self.result
        cells = (result.ours, result.theirs, f"{result.ratio:.3g}") if result else ("-", "-", "-")
        return (case.group, case.what, case.against, *cells, "" if case.goal is None else f"<= {case.goal:.3g}", self.met)


def markdown(measured: list[Measured]) -> str:
    """The one table: Markdown that reads well as plain text too; a group is named in its first row."""
    rows: list[tuple[str, ...]] = []
    group = None
    for m in measured:
        row = m.as_row()
        rows.append(row if row[0] != group else ("", *row[1:]))
        group = row[0]
    head = ("", "what", "against", "ours", "theirs", "ratio", "goal", "met")
    widths = [max(len(r[i]) for r in (head, *rows)) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in (head, *rows)]
    lines.insert(1, "|" + "|".join("-" * (w + 2) for w in widths) + "|")
    return "\n".join(lines)
