"""Guards and traces as a cache, the way torch.compile keeps them: `compile`."""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .analyses import ANALYSES
from .table import Table
from .traces import Trace, title, trace
from .watch import current


def compile(fn: Callable, analysis: str = "symbolic", recompile_limit: int = 8) -> Compiled:
    """`fn` with a cache of traces: the first whose guards accept the arguments runs.

    Where none does, the program is traced again. With `recompile_limit` traces in the
    cache (TorchDynamo's default is 8 too), further shapes run the program itself, and one
    warning says why. TypeError or ValueError for an argument of another kind.
    Models torch.compile's cache of `CacheEntry`s per function.
    """
    if not callable(fn):
        raise TypeError(f"compile: fn must be callable, got {type(fn).__name__}")
    if analysis not in ANALYSES:
        raise ValueError(f"compile: analysis must be one of {', '.join(ANALYSES)}; got {analysis!r}")
    if not isinstance(recompile_limit, int) or recompile_limit < 1:
        raise ValueError(f"compile: recompile_limit must be an int of at least 1, got {recompile_limit!r}")
    return Compiled(fn, analysis, recompile_limit)


@dataclass
class Stats:
    """What a compiled function's calls came to: `hits` replayed a trace, `traces` made one, `eager` ran the program."""

    hits: int = 0
    traces: int = 0
    eager: int = 0


class Compiled:
    """A function with its cache: `traces` are the entries, in the order they are tried; `stats` counts."""

    def __init__(self, fn: Callable, analysis: str, recompile_limit: int):
        functools.update_wrapper(self, fn, updated=())
        self.fn, self.analysis, self.recompile_limit = fn, analysis, recompile_limit
        self.traces: tuple[Trace, ...] = ()
        self.stats = Stats()
        self._misses: dict[str, list[tuple[str, ...]]] = {}  # outcome of a call that no entry took -> who refused it
        self._lock = threading.RLock()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:  # called by a program that is being traced: a part of it
            return self.fn(*args, **kwargs)
        tried = self.traces
        for entry in tried:
            if entry.accepts(*args, **kwargs):
                return self._hit(entry, args, kwargs)
        with self._lock:
            for entry in self.traces[len(tried) :]:  # another thread's, since
                if entry.accepts(*args, **kwargs):
                    return self._hit(entry, args, kwargs)
            if len(self.traces) < self.recompile_limit:
                refused = self._refusals(args, kwargs)
                made = trace(self.fn, *args, analysis=self.analysis, **kwargs)  # may raise: nothing has changed yet
                self._misses[f"traced, entry {len(self.traces)}"] = refused
                self.traces += (made,)
                self.stats.traces += 1
                result, made.output = made.output, None  # the caller's alone: a cache keeps no results alive
                return result
            self._give_up(args, kwargs)
        return self.fn(*args, **kwargs)

    def _hit(self, entry: Trace, args: tuple, kwargs: dict) -> Any:
        with self._lock:
            self.stats.hits += 1
        return entry.replay(*args, **kwargs)

    def _refusals(self, args: tuple, kwargs: dict) -> list[tuple[str, ...]]:
        rows = []
        for i, entry in enumerate(self.traces):
            env = entry.guards.bind(*args, **kwargs)
            rows += [(str(i), g.code, g.expected, g.got(env), str(g.cause)) for g in entry.failing(*args, **kwargs)]
        return rows

    def _give_up(self, args: tuple, kwargs: dict) -> None:
        self._misses["ran eagerly, the latest"] = refused = self._refusals(args, kwargs)
        self.stats.eager += 1
        if self.stats.eager == 1:
            last = next(row for row in refused if row[0] == refused[-1][0])
            warnings.warn(
                f"{title(self.fn)} has {self.recompile_limit} traces (recompile_limit) and none accepts this call, so "
                f"it runs eagerly from here on where none does; entry {last[0]} refused: {last[1]}, got {last[3]} "
                f"({last[4]}). f.why() lists all", stacklevel=3)  # fmt: skip

    def why(self) -> Table:
        """For each call that no entry took: which guard of which entry refused, expected and got."""
        rows = [(call, *row) for call, refused in self._misses.items() for row in refused]
        columns = ("call", "entry", "guard", "expected", "got", "caused by")
        return Table(columns, rows, "no call was refused by an entry of the cache")

    def __repr__(self) -> str:
        return f"<compiled {title(self.fn)}: {len(self.traces)} traces, {self.analysis}, {self.stats}>"
