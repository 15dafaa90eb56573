"""How sound and how precise the guards of each analysis are, measured on a grid of shapes: `measure`.

*Sound*: wherever the guards accept and the program runs, a replay gives what the program gives.
*Precise*: of the path-valid shapes, the share that the guards accept. A shape is path-valid
where the program runs and a fresh trace records the same path: the same operations, wiring
and constants, sizes aside.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from tqdm.auto import tqdm

from .analyses import ANALYSES
from .errors import TraceError
from .expressions import Bool, Expr
from .interpreter import PARTS
from .ir import Graph, Node, v_constant
from .table import Table
from .traces import Trace, signature_of, title, trace
from .tree import leaves, map_paths, map_tree

Point = tuple[tuple[int, ...], ...]  # a shape for each tensor argument, in order
_MOST = 200_000
_KNOWN = 16  # traces of other paths that are kept while measuring


@dataclass(frozen=True)
class Measured:
    """One analysis on the grid; every set holds shapes of the tensor arguments, `((3, 4), (4, 5))`.

    `accepted`: the guards accept and the program runs. `unsound`: accepted, and the replay
    answers otherwise than the program. `path_valid` is the same for all analyses.
    """

    guards: tuple[str, ...]
    accepted: frozenset[Point]
    path_valid: frozenset[Point]
    unsound: frozenset[Point]

    @property
    def precision(self) -> float:
        """The share of the path-valid shapes that is accepted, from 0 to 1; nan where no shape of the grid is valid."""
        return len(self.accepted & self.path_valid) / len(self.path_valid) if self.path_valid else math.nan

    @property
    def sound(self) -> bool:
        return not self.unsound


def measure(fn: Callable, /, *args: Any, sizes: Iterable[int] | Mapping[str, Iterable[int]] = range(0, 6),
            analyses: Sequence[str] = ANALYSES, dynamo: bool = False, **kwargs: Any) -> Measurement:  # fmt: skip
    """Trace `fn` on the arguments under each analysis, then try each trace on a whole grid of shapes.

    sizes: what each dimension of each tensor argument takes, 0 and 1 included; or, by
    dimension, `{"a.shape[0]": range(6)}`: then all others keep the size they have.
    dynamo: measure TorchDynamo too, in rows named `dynamo True`, `dynamo False` (sizes symbolic, or not)
    and `dynamo automatic` (a second call has shown that the grid's dimensions change).
    Tensors of the grid hold random numbers; integer ones repeat the values given, which
    may be indices. The program runs on clones.
    Raises ValueError for a grid of more than 200,000 shapes or without any, TraceError for
    a program that can't be traced.
    """
    unknown = [a for a in analyses if a not in ANALYSES]
    if unknown:
        raise ValueError(f"measure: analyses must be among {', '.join(ANALYSES)}; got {unknown[0]!r}")
    program = _Program(fn, args, kwargs)
    axes = program.axes(sizes)
    total = math.prod(len(axis) for axis in axes.values())
    if not 0 < total <= _MOST:
        raise ValueError(f"measure: sizes make a grid of {total:,} shapes, and it takes 1 to {_MOST:,}; "
                         "give sizes for a few dimensions, {'a.shape[0]': range(6)}")  # fmt: skip
    with torch.random.fork_rng(devices=[]):  # every run below seeds
        here = program.shapes
        traces = {a: program.trace(here, a) for a in analyses}
        if dynamo:
            traces |= program.dynamo_traces(axes)
        known = [(program.trace(here, "symbolic"), True)]  # traces, and whether their path is the one traced
        twins = _twins([*traces.values(), known[0][0]])
        runs, valid = set(), set()
        accepted: dict[str, set[Point]] = {a: set() for a in traces}
        unsound: dict[str, set[Point]] = {a: set() for a in traces}
        grid = (program.at(dict(zip(axes, choice, strict=True))) for choice in itertools.product(*axes.values()))
        quiet = bool(os.environ.get("TQDM_DISABLE"))  # tqdm reads it itself, but not where it draws in a notebook
        for point in tqdm(grid, total=total, desc=f"measuring {title(fn)}", unit=" shapes", delay=2, leave=False, disable=quiet):
            expected = program.run(point, fn)
            if isinstance(expected, Exception):
                continue
            runs.add(point)
            given, named = program.arguments(point)

            @functools.cache
            def agrees(t: Any, point: Point = point, expected: Any = expected) -> bool:
                return same(expected, program.run(point, t.replay))

            for a, t in traces.items():
                if t.accepts(*given, **named):
                    accepted[a].add(point)
                    if not agrees(twins[t]):
                        unsound[a].add(point)
            # The guards of a symbolic trace are the questions that its path asked. Where they have the same answers and the
            # replay gives what the program gives, the path is the same, and tracing anew would only say so again.
            same_path = next((p for t, p in known if t.accepts(*given, **named) and agrees(twins.get(t, t))), None)
            if same_path is None and (fresh := program.fresh(point)) is not None:
                same_path = path_of(fresh.graph) == path_of(known[0][0].graph)
                known[1:] = [*known[1:], (fresh, same_path)][-_KNOWN:]
            if same_path:
                valid.add(point)
    rows = {}
    for a, t in traces.items():  # of TorchDynamo's guards, those on sizes
        guards = tuple(g.code for g in t.guards if a in analyses or g.kind in ("size", "expression"))
        rows[a] = Measured(guards, frozenset(accepted[a]), frozenset(valid), frozenset(unsound[a]))
    return Measurement(program, axes, frozenset(runs), rows)


class _Program:
    """A program and its arguments, to be run at other shapes of its tensors."""

    def __init__(self, fn: Callable, args: tuple, kwargs: dict):
        self.fn, self.args, self.kwargs = fn, args, kwargs
        bound = signature_of(fn, args, kwargs).bind(*args, **kwargs)
        self.names: list[str] = []
        self.tensors: list[torch.Tensor] = []

        def leaf(name: str, value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                self.names.append(name)
                self.tensors.append(value)
            return value

        for name, value in bound.arguments.items():
            map_paths(leaf, lambda path, value: None, value, name)
        self._at: Point | None = None  # the shapes that arguments were last asked for, and tensors of them
        self._there: list[torch.Tensor] = []
        on_cpu = all(t.device.type == "cpu" for t in self.tensors)
        self.seed = torch.default_generator.manual_seed if on_cpu else torch.manual_seed  # the latter takes half a millisecond
        self.shapes: Point = tuple(tuple(t.shape) for t in self.tensors)

    def axes(self, sizes: Any) -> dict[str, list[int]]:
        """The sizes that each dimension takes, by its name: `{"a.shape[0]": [0, 1, ...], ...}`."""
        dims = [f"{name}.shape[{d}]" for name, shape in zip(self.names, self.shapes, strict=True) for d in range(len(shape))]
        if not isinstance(sizes, Mapping):
            values = list(sizes)
            return dict.fromkeys(dims, values)
        for name in sizes:
            if name not in dims:
                raise ValueError(f"measure: sizes names {name!r}; the dimensions are {', '.join(dims) or 'none'}")
        return {name: list(values) for name, values in sizes.items()}

    def at(self, chosen: dict[str, int]) -> Point:
        """The shapes traced at, but with these sizes of these dimensions."""
        return tuple(tuple(chosen.get(f"{name}.shape[{d}]", n) for d, n in enumerate(shape))
                     for name, shape in zip(self.names, self.shapes, strict=True))  # fmt: skip

    def arguments(self, point: Point) -> tuple[tuple, dict]:
        """The arguments with tensors of these shapes: always the same ones for the same shapes."""
        if point != self._at:
            generator = torch.Generator().manual_seed(0)
            self._at, self._there = point, [_filled(t, shape, generator) for t, shape in zip(self.tensors, point, strict=True)]
        filled = iter([made.clone().requires_grad_(t.requires_grad) for made, t in zip(self._there, self.tensors, strict=True)])
        return map_tree(lambda t: next(filled), (self.args, self.kwargs), torch.Tensor)

    def run(self, point: Point, fn: Callable) -> Any:
        """What `fn` returns there and what it leaves in its arguments; or the exception that it raises. Seeds: the caller forks."""
        args, kwargs = self.arguments(point)
        self.seed(0)
        try:
            return fn(*args, **kwargs), args, kwargs
        except Exception as error:
            return error

    def trace(self, point: Point, analysis: str) -> Trace:
        args, kwargs = self.arguments(point)
        self.seed(0)
        return trace(self.fn, *args, analysis=analysis, **kwargs)

    def dynamo_traces(self, axes: dict[str, list[int]]) -> dict[str, Any]:
        """TorchDynamo's traces: dynamic, static, and automatic dynamic, after a second call at which the grid's dimensions are larger."""
        from . import dynamo

        args, kwargs = self.arguments(self.shapes)
        made = {f"dynamo {d}": dynamo.trace(self.fn, *args, dynamic=d, **kwargs) for d in (True, False)}
        larger = tuple(tuple(n + (f"{name}.shape[{d}]" in axes) for d, n in enumerate(shape))
                       for name, shape in zip(self.names, self.shapes, strict=True))  # fmt: skip
        also = self.arguments(larger)[0]
        if not kwargs and not isinstance(self.run(larger, self.fn), Exception):
            made["dynamo automatic"] = dynamo.trace(self.fn, *args, also=(also,))
        return made

    def fresh(self, point: Point) -> Trace | None:
        """A trace made there; None where the program can't be traced (it looks at data)."""
        try:
            made = self.trace(point, "symbolic")
        except TraceError:
            return None
        made.output = None  # nobody asks for it, and it may be large
        return made


def _filled(like: torch.Tensor, shape: tuple[int, ...], generator: torch.Generator) -> torch.Tensor:
    count = math.prod(shape)
    if like.is_floating_point() or like.is_complex():
        made = torch.randn(shape, generator=generator, dtype=torch.float64)
    elif like.numel() == 0 or like.dtype == torch.bool:
        made = torch.randint(0, 2, shape, generator=generator)
    else:
        made = like.detach().flatten().repeat(count // like.numel() + 1)[:count].reshape(shape)
    return made.to(like.device, like.dtype)


def path_of(graph: Graph, sizes: bool = False) -> list:
    """What a graph does, sizes aside: equal for two traces that took the same path through the program.

    `sizes`: the expressions that sizes are computed by count too.
    """

    def part(value: Any) -> Any:
        if isinstance(value, Node):
            return f"node {value.index}"
        if sizes:
            return str(value)
        return _SIZE if isinstance(value, (Expr, Bool)) else (_SIZE,) * len(value)

    steps: list = []
    for node in graph:
        if node.is_parameter:
            steps.append(node.name)
        elif node.op == v_constant:
            steps.append(id(node.params["value"]))
        else:
            steps.append((node.op.name, map_tree(part, (node.args, node.kwargs), PARTS)))
    return [*steps, map_tree(part, graph.output, PARTS)]


_SIZE = "a size"


def _twins(traces: list) -> dict[Any, Any]:
    """For each of our traces the first one with the same graph, which answers for it; TorchDynamo's stand for themselves."""
    first: list[tuple[list, Trace]] = []
    twins = {}
    for t in traces:
        steps = path_of(t.graph, sizes=True) if isinstance(t, Trace) else None
        twins[t] = next((other for known, other in first if known == steps), t)
        if twins[t] is t and steps is not None:
            first.append((steps, t))
    return twins


def same(a: Any, b: Any) -> bool:
    """Are two results the same: structure, numbers and tensors (nan equals nan)? Floats may differ by what
    matrix products do between two runs, since they round by memory alignment."""
    if isinstance(a, Exception) or isinstance(b, Exception):
        return False
    x, y = leaves(a), leaves(b)
    return len(x) == len(y) and all(map(_same_leaf, x, y))


def _same_leaf(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor):
        return type(a) is type(b) and (a == b or a != a)
    if not isinstance(b, torch.Tensor) or (a.shape, a.dtype, a.layout) != (b.shape, b.dtype, b.layout):
        return False
    if a.layout != torch.strided:
        a, b = a.to_dense(), b.to_dense()
    if a.is_floating_point() or a.is_complex():
        return torch.allclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
    return torch.equal(a, b)


# -- the result ------------------------------------------------------------------------------------------

#: What a shape of the grid comes to under an analysis: words, colour (blue, orange and vermilion of Okabe and Ito's
#: set, which colour-blind readers tell apart, and light greys), and a letter in the square.
OUTCOMES = (
    ("accepted, right", "#56B4E9", ""),
    ("refused, though path-valid", "#E69F00", "r"),
    ("accepted, WRONG", "#D55E00", "X"),
    ("refused, another path", "#D9D9D9", ""),
    ("the program fails here", "#FFFFFF", ""),
)


class Measurement:
    """One program on one grid: `r["symbolic"]` is the row of an analysis, `r.table()` all of them, `r.plot()` a picture."""

    def __init__(self, program: _Program, axes: dict[str, list[int]], runs: frozenset[Point], rows: dict[str, Measured]):
        self.program, self.axes, self.runs, self.rows = program, axes, runs, rows
        self.total = math.prod(len(axis) for axis in axes.values())

    def __getitem__(self, analysis: str) -> Measured:
        if analysis not in self.rows:
            raise KeyError(f"{analysis!r} was not measured; there are {', '.join(self.rows)}")
        return self.rows[analysis]

    def __iter__(self) -> Any:
        return iter(self.rows)

    def table(self) -> Table:
        """One row an analysis: how many of the grid's shapes it accepts, how many of those wrongly, its precision."""
        columns = ("analysis", "accepted", "wrong", "path-valid", "precision", "guards")
        rows = [(a, str(len(m.accepted)), str(len(m.unsound)), str(len(m.path_valid)), f"{m.precision:.0%}" if m.path_valid else "-",
                 " and ".join(m.guards) or "none") for a, m in self.rows.items()]  # fmt: skip
        return Table(columns, rows, "no analysis was measured")

    def __repr__(self) -> str:
        where = ", ".join(str(list(s)) for s in self.program.shapes)
        return f"{title(self.program.fn)} traced at {where}: of {self.total:,} shapes, it runs on {len(self.runs):,}\n{self.table()}"

    def _repr_html_(self) -> str:
        head = repr(self).splitlines()[0]
        return f"<p>{head}</p>{self.table()._repr_html_()}"

    def outcome(self, analysis: str, point: Point) -> int:
        """Which of `OUTCOMES` a shape comes to."""
        row = self[analysis]
        if point not in self.runs:
            return 4
        if point in row.unsound:
            return 2
        return 0 if point in row.accepted else 1 if point in row.path_valid else 3

    def plot(self, x: str | None = None, y: str | None = None) -> Any:
        """A matplotlib figure: one grid for each analysis over two dimensions; all others keep the size traced at.

        x, y: names of dimensions, `"b.shape[1]"`; unless given, the last and the first of the grid.
        """
        import matplotlib.pyplot as plt  # takes half a second, and only a picture needs it
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        dims = list(self.axes)
        if not dims:
            raise ValueError("plot: the program has no dimension to draw")
        y = y or next(d for d in dims if d != x or len(dims) == 1)
        x = x or next(d for d in reversed(dims) if d != y or len(dims) == 1)
        for given, role in ((x, "x"), (y, "y")):
            if given not in self.axes:
                raise ValueError(f"plot: {role} must be one of {', '.join(dims)}; got {given!r}")
        figure, panels = plt.subplots(1, len(self.rows), figsize=(2.6 * len(self.rows), 3.2), squeeze=False, layout="constrained")
        colours = ListedColormap([colour for _, colour, _ in OUTCOMES])
        columns, lines = self.axes[x], self.axes[y] if y != x else [0]
        for panel, analysis in zip(panels[0], self.rows, strict=True):
            cells = [[self.outcome(analysis, self.program.at({y: b, x: a})) for a in columns] for b in lines]
            panel.imshow(cells, cmap=colours, vmin=0, vmax=len(OUTCOMES) - 1, origin="lower")
            for i, j in itertools.product(range(len(lines)), range(len(columns))):
                panel.text(j, i, OUTCOMES[cells[i][j]][2], ha="center", va="center")
            panel.set_xticks(range(len(columns)), columns)
            panel.set_yticks(range(len(lines)), lines if y != x else [""])
            panel.set_xticks([k - 0.5 for k in range(len(columns) + 1)], minor=True)
            panel.set_yticks([k - 0.5 for k in range(len(lines) + 1)], minor=True)
            panel.grid(which="minor", color="#808080", linewidth=0.5)
            panel.tick_params(which="both", length=0)
            panel.set_title(analysis, fontsize=10)
            panel.set_xlabel(x)
        panels[0][0].set_ylabel(y if y != x else "")
        patches = [Patch(facecolor=colour, edgecolor="#808080", label=f"{words} ({mark})" if mark else words)
                   for words, colour, mark in OUTCOMES]  # fmt: skip
        figure.legend(handles=patches, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
        plt.close(figure)  # a notebook shows what a cell returns, once
        return figure
