"""Drawing, from the program to the SVG, and the measure of soundness and precision on a grid."""

from __future__ import annotations

import importlib
import importlib.util
import itertools

import torch
from measuring import Case, Result, Skipped, interleaved
from torch.fx.passes.graph_drawer import FxGraphDrawer
from torch.fx.passes.shape_prop import ShapeProp

import dynguard_lite as dg
from dynguard_lite.picture import _engine
from dynguard_lite.precision import _Program, path_of, same

# -- drawing ---------------------------------------------------------------------------------------------


def layers(n: int) -> torch.nn.Module:
    """`n` layers that are one operation each: a node for every drawer (torchview shows modules)."""
    kinds = torch.nn.ReLU, torch.nn.Tanh, torch.nn.Sigmoid, torch.nn.GELU
    return torch.nn.Sequential(*(kinds[i % 4]() for i in range(n)))


def by_torchview(module, x):
    from torchview import draw_graph

    return draw_graph(module, input_data=x).visual_graph.pipe(format="svg", quiet=True)


def by_torchviz(module, x):
    from torchviz import make_dot

    return make_dot(module(x)).pipe(format="svg", quiet=True)


def by_fx(module, x):
    traced = torch.fx.symbolic_trace(module)
    ShapeProp(traced).propagate(x)
    return FxGraphDrawer(traced, "chain").get_dot_graph().create_svg()


#: Each with the package that it needs, and whether its picture shows shapes.
DRAWERS = {"torchview": (by_torchview, "torchview", True), "FxGraphDrawer": (by_fx, "pydot", True),
           "torchviz (no shapes)": (by_torchviz, "torchviz", False)}  # fmt: skip


def drawing(ops: int, drawer: str, folded: bool, quick: bool) -> Result:
    theirs, package, _ = DRAWERS[drawer]
    if importlib.util.find_spec(package) is None:
        raise Skipped(f"skipped: no {package} (pip install -r tests/benchmarks/requirements.txt)")
    module, x = layers(ops), torch.randn(4, 4, requires_grad=True)
    draw = importlib.import_module("dynguard_lite.draw")
    before = draw.FOLD_ABOVE
    draw.FOLD_ABOVE = before if folded else ops * 2
    try:
        with _engine():  # the same Graphviz for all
            theirs(module, x)
            return interleaved(lambda: dg.draw(dg.trace(module, x)).svg, lambda: theirs(module, x), quick)
    except RecursionError:
        raise Skipped("it can't (RecursionError)") from None
    finally:
        draw.FOLD_ABOVE = before


def drawings() -> list[Case]:
    made = []
    for ops in (10, 100, 1000):
        for drawer, (_, _, shapes) in DRAWERS.items():
            folded = ", ours folded" if ops == 1000 else ""
            made.append(Case("drawing", f"{ops:,} nodes{folded}, to SVG", drawer, 1.0 if shapes else None,
                             lambda quick, a=(ops, drawer, True): drawing(*a, quick), slow=ops == 1000))  # fmt: skip
    made.append(Case("drawing", "1,000 nodes, not folded", "torchview", None,
                     lambda quick: drawing(1000, "torchview", False, quick), slow=True))  # fmt: skip
    return made


# -- measure ---------------------------------------------------------------------------------------------


def scaled_product(a, b):
    c = a @ b
    for _ in range(10):
        c = torch.relu(c * 2 - 1)
    return c / c.shape[0] if c.shape[1] > 2 else c


def naive(fn, here, sizes) -> dict[str, tuple[int, int]]:
    """What `measure` counts, accepted and path-valid for each analysis, but traced anew at each point, and replayed for each analysis."""
    program = _Program(fn, here, {})
    traces = {a: dg.trace(fn, *here, analysis=a) for a in dg.ANALYSES}
    path = path_of(traces["symbolic"].graph)
    axes = program.axes(sizes)
    accepted, valid = dict.fromkeys(traces, 0), 0
    for choice in itertools.product(*axes.values()):
        point = program.at(dict(zip(axes, choice, strict=True)))
        expected = program.run(point, fn)
        if isinstance(expected, Exception):
            continue
        valid += path_of(program.fresh(point).graph) == path
        for a, t in traces.items():
            if t.accepts(*program.arguments(point)[0]):
                accepted[a] += 1
                same(program.run(point, t.replay), expected)
    return {a: (n, valid) for a, n in accepted.items()}


def measuring(quick: bool) -> Result:
    here, sizes = (torch.randn(4, 3), torch.randn(3, 4)), range(3 if quick else 6)
    r = dg.measure(scaled_product, *here, sizes=sizes)
    assert {a: (len(r[a].accepted), len(r[a].path_valid)) for a in dg.ANALYSES} == naive(scaled_product, here, sizes)
    return interleaved(lambda: dg.measure(scaled_product, *here, sizes=sizes), lambda: naive(scaled_product, here, sizes), quick, 5.0)


def measures() -> list[Case]:
    return [Case("measure", "a 6^4 grid, five analyses", "tracing anew at each point", 0.2, measuring)]


def cases() -> list[Case]:
    return [*drawings(), *measures()]
