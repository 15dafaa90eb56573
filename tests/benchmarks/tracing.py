"""What a trace costs once: tracing itself, the analysis of sizes, the walk of a graph."""

from __future__ import annotations

import gc
import itertools
import statistics
import time
import tracemalloc

import torch
from measuring import Case, Result, Skipped, interleaved, span
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

import dynguard_lite as dg

# -- tracing ---------------------------------------------------------------------------------------------


def mlp(ops: int = 1000) -> tuple[nn.Module, torch.Tensor]:
    layers = [layer for _ in range(ops // 2) for layer in (nn.Linear(8, 8), nn.ReLU())]
    return nn.Sequential(*layers), torch.randn(4, 8)


def encoder(layers: int = 6) -> tuple[nn.Module, torch.Tensor]:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)  # in training mode: in eval it's one fused operation
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), torch.randn(2, 5, 32)


def cnn() -> tuple[nn.Module, torch.Tensor]:
    block = [nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    head = [nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)]
    return nn.Sequential(*block, *head).eval(), torch.randn(2, 3, 16, 16)


def by_compile(module, x):
    torch._dynamo.reset()
    return torch.compile(module, backend="eager", dynamic=True)(x)


def by_make_fx(module, x):
    return make_fx(module, tracing_mode="symbolic", _allow_non_fake_inputs=True)(x)  # the weights are real


def by_export(module, x):
    return torch.export.export(module, (x,))


MODELS = {"MLP of 1,000 ops": mlp, "6-layer TransformerEncoder": encoder, "CNN of 10 layers": cnn}
TRACERS = {
    "torch.fx.symbolic_trace": lambda module, x: torch.fx.symbolic_trace(module),
    "torch.compile(backend='eager', dynamic=True)": by_compile,
    "make_fx(tracing_mode='symbolic')": by_make_fx,
    "torch.export": by_export,
}


def tracing(model: str, tracer: str, quick: bool) -> Result:
    module, x = MODELS[model]()
    if quick and model != "CNN of 10 layers":
        module, x = mlp(50) if model.startswith("MLP") else encoder(1)
    theirs = TRACERS[tracer]
    runs = tracer == "torch.fx.symbolic_trace"  # FX doesn't run the operations, so running them is taken off ours
    try:
        return interleaved(lambda: dg.trace(module, x), lambda: theirs(module, x), quick, 2.0, (lambda: module(x)) if runs else None)
    except RuntimeError as error:
        raise Skipped(f"it can't ({type(error).__name__})") from None


def tracings() -> list[Case]:
    goals = {("MLP of 1,000 ops", "torch.fx.symbolic_trace"): 1.0}
    return [Case("tracing", model, tracer, 1 / 50 if "compile" in tracer else goals.get((model, tracer)),
                 lambda quick, a=(model, tracer): tracing(*a, quick)) for model in MODELS for tracer in TRACERS]  # fmt: skip


# -- the analysis ----------------------------------------------------------------------------------------


def reads(n: int):
    def program(x):
        total = 0
        for _ in range(n):
            x = x + 1
            total = x.shape[0]
        return x * total

    return program


def linear(analysis: str, quick: bool) -> Result:
    """Ten times the operations: how much longer? The worst step from 100 on; and the memory that an operation keeps."""
    x = torch.zeros(3)
    sizes = (10, 100) if quick else (100, 1_000, 10_000, 100_000)[: 4 if analysis == "symbolic" else 3]
    times = {}
    for n in sizes:
        program, took = reads(n), []
        for _ in range(3 if quick else max(1, min(21, 30_000 // n))):
            gc.collect()
            start = time.perf_counter()
            dg.trace(program, x, analysis=analysis)
            took.append(time.perf_counter() - start)
        times[n] = statistics.median(took)
    gc.collect()
    tracemalloc.start()
    kept = dg.trace(reads(sizes[1]), x, analysis=analysis)
    memory = tracemalloc.get_traced_memory()[0] / len(kept.graph)
    tracemalloc.stop()
    worst = max(times[b] / times[a] for a, b in itertools.pairwise(sizes))
    each = {n: span(took / n) for n, took in times.items()}
    return Result(worst, f"{each[sizes[-1]]} and {memory / 1024:.2g} KiB an op", f"{each[sizes[0]]} an op")


def analyses() -> list[Case]:
    most = {"whole_tensor": "10,000", "per_dimension": "10,000", "symbolic": "100,000"}
    return [Case("analysis", f"`{a}`, a size read after each op, 100 -> {n} ops", "a tenth of the ops", 11.0,
                 lambda quick, a=a: linear(a, quick)) for a, n in most.items()]  # fmt: skip


# -- the walk --------------------------------------------------------------------------------------------


def tree_walk(node) -> set:
    """The original's: every path is walked, so a shared node as often as it is used."""
    if node.op.name == "v_dynamic_param":
        return {node}
    return set().union(*(tree_walk(i) for i in node.inputs))


def sharings(n: int, quick: bool) -> Result:
    x = dg.Variable.param(torch.ones(1), "x").node
    node = x
    for _ in range(n):
        node = dg.Node(dg.Op("v_add"), (node, node))
    assert dg.input_sources(node) == [x] and tree_walk(node) == {x}
    return interleaved(lambda: dg.input_sources(node), lambda: tree_walk(node), quick)


def walks() -> list[Case]:
    return [Case("tree walk", f"`input_sources`, x = x + x, {n} times", f"the original's: 2^{n} visits", None,
                 lambda quick, n=n: sharings(n, quick)) for n in (5, 10, 15)]  # fmt: skip


def cases() -> list[Case]:
    return [*tracings(), *analyses(), *walks()]
