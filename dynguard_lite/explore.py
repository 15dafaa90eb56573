"""Sliders: move a dimension's size and see which guards pass, and what the cache does: `explore`."""

from __future__ import annotations

import html
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch

from .analyses import ANALYSES
from .compiled import Compiled, compile
from .draw import draw
from .errors import TraceError
from .picture import PALETTE
from .precision import _Program, same
from .traces import Trace, title
from .tree import leaves

try:
    import ipywidgets as widgets
except ImportError:
    widgets = None

LARGEST = 12  # where a slider ends, unless the program was given a larger size


def explore(fn: Callable, /, *args: Any, analysis: str = "symbolic", **kwargs: Any) -> Explorer:
    """A slider for each dimension of each tensor argument; the picture follows, guards marked PASS or FAIL.

    fn, args, kwargs: as for `dg.trace`; nothing given here is changed, since each call runs on tensors of
    its own. analysis: the one to begin with; choosing another begins with an empty cache.
    Every move is a call of `dg.compile(fn)`, whose answer is compared with the program's own: *replayed*,
    *recompiled* (no entry of the cache accepts, so it gets one more), *wrong answer*, or the error that
    the program raises at these sizes.
    ImportError without ipywidgets; ValueError where there is no dimension to move; what tracing raises.
    """
    if widgets is None:
        raise ImportError("explore: sliders need ipywidgets, which is not installed. pip install 'ipywidgets>=8.1,<9'; "
                          "without it, dg.draw(trace, *inputs) shows the same picture for one choice of sizes")  # fmt: skip
    if not callable(fn):
        raise TypeError(f"explore: fn must be callable, got {type(fn).__name__}")
    if analysis not in ANALYSES:
        raise ValueError(f"explore: analysis must be one of {', '.join(ANALYSES)}; got {analysis!r}")
    return Explorer(fn, args, kwargs, analysis)


class Explorer(widgets.VBox if widgets else object):
    """The widget: `sliders` by dimension (`a.shape[0]`), `choice` (the analysis), `again` (empties the cache) and
    `picture`. In words: `outcome`; `compiled` is the cache as it stands."""

    def __init__(self, fn: Callable, args: tuple, kwargs: dict, analysis: str):
        self._program = program = _Program(fn, args, kwargs)
        if not program.names:
            raise ValueError(f"explore: none of the arguments of {title(fn)} is a tensor, so there is no size to move")
        if not any(program.shapes):
            raise ValueError(f"explore: every tensor given to {title(fn)} has rank 0: no dimension, so no size to move")
        wide = {"style": {"description_width": "initial"}, "layout": {"width": "min(30em, 100%)"}}
        self.sliders = {
            f"{name}.shape[{d}]": widgets.IntSlider(n, 0, max(LARGEST, n), description=f"{name}.shape[{d}]", **wide)
            for name, shape in zip(program.names, program.shapes, strict=True) for d, n in enumerate(shape)
        }  # fmt: skip
        self.choice = widgets.Dropdown(options=ANALYSES, value=analysis, description="analysis", **wide)
        self.again = widgets.Button(description="empty the cache", tooltip="forget all traces and begin again at these sizes")
        self.picture = widgets.HTML()
        self._begin()
        if not self.compiled.traces:
            raise self._got
        for slider in self.sliders.values():
            slider.observe(self._move, "value")
        self.choice.observe(self._begin, "value")
        self.again.on_click(self._begin)
        super().__init__([*self.sliders.values(), widgets.HBox([self.choice, self.again]), self.picture])

    def _begin(self, _: Any = None) -> None:
        """An empty cache, and the first call."""
        self.compiled: Compiled = compile(self._program.fn, analysis=self.choice.value)
        self._entry: int | None = None  # the entry used last
        self._move()

    def _move(self, _: Any = None) -> None:
        """One call with the sizes that the sliders show."""
        point = self._program.at({name: slider.value for name, slider in self.sliders.items()})
        before = self.compiled.stats.traces, self.compiled.stats.hits
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # at the limit: the words below say it
            with torch.random.fork_rng(devices=[]):
                expected = self._program.run(point, self._program.fn)
                self._got = self._program.run(point, self.compiled)
        args, kwargs = self._program.arguments(point)
        stats, traces = self.compiled.stats, self.compiled.traces
        traced, hit = stats.traces > before[0], stats.hits > before[1]
        taker = next((i for i, t in enumerate(traces) if t.accepts(*args, **kwargs)), None) if hit else None
        self.outcome, verdict = _in_words(expected, self._got, taker, traced, len(traces))
        shown = taker if taker is not None else self._entry  # no entry accepts: the one used last shows why not
        if traced:
            shown = 0 if shown is None else shown
            self._entry = len(traces) - 1
        elif hit:
            self._entry = taker
        self.picture.value = self._page(verdict, shown, args, kwargs)

    @property
    def counts(self) -> str:
        """How often the program was traced and replayed since the cache was empty."""
        stats, limit = self.compiled.stats, self.compiled.recompile_limit
        return (f"recompiles so far: {max(stats.traces - 1, 0)}; the cache holds {stats.traces} of at most {limit} traces; "
                f"replays: {stats.hits}" + (f"; run eagerly: {stats.eager}" if stats.eager else ""))  # fmt: skip

    def _page(self, verdict: str, shown: int | None, args: tuple, kwargs: dict) -> str:
        fill = PALETTE[verdict]
        head = (f'<p role="status"><span style="background:{fill};color:#000;padding:2px 6px">{html.escape(self.outcome)}</span>'
                f"<br>{self.counts}</p>")  # fmt: skip
        if shown is None:
            return head
        sizes = ", ".join(f"{name} = {slider.value}" for name, slider in self.sliders.items())
        name = f"Entry {shown} of {title(self._program.fn)}, analysis {self.choice.value}, at {sizes}"
        picture = draw(self.compiled.traces[shown], *args, **kwargs)
        try:
            image = picture.inline(name)
        except RuntimeError as error:  # nothing on this machine can draw
            image = f"<pre>{html.escape(str(picture))}<br>{html.escape(str(error))}</pre>"
        rows = [row for i, entry in enumerate(self.compiled.traces) for row in _rows(i, entry, args, kwargs)]
        columns = "".join(f'<th scope="col">{c}</th>' for c in ("entry", "", "guard", "expected, got", "caused by"))
        return f"{head}<p>{html.escape(name)}:</p>{image}<table><thead><tr>{columns}</tr></thead>{''.join(rows)}</table>"

    def __repr__(self) -> str:
        ends = ", ".join(f"{name} = {s.value} ({s.min} to {s.max})" for name, s in self.sliders.items())
        return f"sliders for {title(self._program.fn)}: {ends}\nanalysis: {self.choice.value}\n{self.outcome}\n{self.counts}"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        return {**super()._repr_mimebundle_(**kwargs), "text/plain": repr(self)}


def _in_words(expected: Any, got: Any, taker: int | None, traced: bool, entries: int) -> tuple[str, str]:
    """What a call came to, and the colour of that; `taker` is the entry that replayed, if one did."""
    if isinstance(expected, Exception):
        raised = f"eager itself raises {_error(expected)}"
        if taker is not None and not isinstance(got, Exception):
            return f"wrong answer: {raised}; the replay of entry {taker} answers", "fail"
        also = "tracing" if taker is None else f"the replay of entry {taker}"
        return f"no answer: {raised}; so does {also}", "plain"
    if isinstance(got, TraceError):
        return f"not traced: {got}", "fail"
    if taker is not None:
        if same(expected, got):
            return f"replayed: entry {taker} accepts, and answers as eager does", "pass"
        return f"wrong answer: entry {taker} accepts, but {_difference(expected, got)}", "fail"
    if isinstance(got, Exception):  # a program that doesn't do the same twice
        return f"no answer: eager returns, but the next run raises {_error(got)}", "fail"
    if not traced:
        return f"run eagerly: none of {entries} entries accepts, and the cache takes no more (recompile_limit)", "constrained"
    if entries == 1:
        return "traced: the cache was empty; entry 0 is new", "constrained"
    refused = "entry 0 refuses" if entries == 2 else f"entries 0 to {entries - 2} refuse"
    return f"recompiled: {refused}; entry {entries - 1} is new", "constrained"


def _error(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


def _difference(expected: Any, got: Any) -> str:
    """The first leaf, of results and of arguments changed in place, where a replay and eager differ."""
    if isinstance(got, Exception):
        return f"its replay raises {_error(got)}, where eager answers"
    pairs = zip(leaves(expected), leaves(got), strict=False)
    a, b = next(((a, b) for a, b in pairs if not same(a, b)), (expected[0], got[0]))
    return f"its replay gives {_value(b)}, eager {_value(a)}"


def _value(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return str(value)
    numbers = [f"{n:.3g}" if isinstance(n, float) else str(n) for n in value.detach().flatten()[:3].tolist()]
    more = ", ..." if value.numel() > 3 else ""
    return f"[{', '.join(numbers)}{more}] of shape {list(value.shape)}"


def _rows(number: int, entry: Trace, args: tuple, kwargs: dict) -> Iterable[str]:
    """The entry's guards as rows of a table."""
    failing, env = entry.failing(*args, **kwargs), entry.guards.bind(*args, **kwargs)
    if not entry.guards:
        yield f'<tr><td>{number}</td>{_verdict("PASS")}<td colspan="3">no guards: any input is accepted</td></tr>'
    for guard in entry.guards:
        failed = guard in failing
        said = (guard.code, f"{guard.expected}, {guard.got(env)}" if failed else "", str(guard.cause))
        cells = "".join(f'<td style="text-align:left">{html.escape(text)}</td>' for text in said)
        yield f"<tr><td>{number}</td>{_verdict('FAIL' if failed else 'PASS')}{cells}</tr>"


def _verdict(word: str) -> str:
    return f'<td style="background:{PALETTE[word.lower()]};color:#000"><b>{word}</b></td>'
