"""`trace`: run a program once and get its graph and guards. `Trace`: the two together."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from . import ambient
from .analyses import ANALYSES
from .codegen import LARGEST, Source
from .errors import OutputError, TraceError
from .guards import Guard, Guards, equal, structure
from .interpreter import run_graph
from .ir import Graph, v_static_param
from .shapes import Shapes
from .source import definition
from .table import Table
from .tracer import SIZES, Tracer, Variable, hint
from .tree import map_paths, map_tree
from .watch import watching


def trace(fn: Callable, /, *args: Any, analysis: str = "symbolic", **kwargs: Any) -> Trace:
    """Run `fn(*args, **kwargs)` once, recording every torch call and what it commits us to.

    fn: a function, an `nn.Module` or any callable. Its tensor arguments, nested ones too
    (lists, tuples, dicts, dataclasses, registered pytree classes), become the parameters,
    named as Python reaches them: `x`, `xs[1]`, `batch['ids']`. All other arguments are
    constants, guarded by equality. Tensors that fn holds itself (weights, closures) are
    constants of the graph.
    analysis: which rung of the ladder decides the guards, one of `ANALYSES`.

    The program runs as it would without tracing: in-place operations change the arguments.
    Raises TraceError where no guards could make a replay right, with the line and what
    to do instead; errors of the program itself pass through.
    """
    if not callable(fn):
        raise TypeError(f"trace: fn must be callable, got {type(fn).__name__}")
    if analysis not in ANALYSES:
        raise ValueError(f"trace: analysis must be one of {', '.join(ANALYSES)}; got {analysis!r}")
    signature = signature_of(fn, args, kwargs)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    graph, start = Graph(), definition(fn)
    tracer = Tracer(analysis, graph, _names(fn), start, trace.__code__)

    def leaf(path: str, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return tracer.parameter(path, value)
        tracer.guard(equal(path, value, "constant", start, "an argument that is not a tensor"))
        return value

    def container(path: str, value: Any) -> None:
        variadic = path in signature.parameters and signature.parameters[path].kind is inspect.Parameter.VAR_POSITIONAL
        tracer.guard(structure(path, value, start, variadic))

    for name, value in bound.arguments.items():
        bound.arguments[name] = map_paths(leaf, container, value, name)
    with watching(tracer):
        result = fn(*bound.args, **bound.kwargs)
    return _finish(fn, signature, tracer, analysis, result)


def _finish(fn: Callable, signature: inspect.Signature, tracer: Tracer, analysis: str, result: Any) -> Trace:
    """Check what the program returned and left behind, and close the trace."""
    if tracer.swallowed is not None:
        error, cause = tracer.swallowed
        raise TraceError(f"the program caught an error that an operation raised ({type(error).__name__}: {error})",
                         "test the condition that makes the operation fail; a trace follows one path and can't "
                         "catch what another shape would raise", cause)  # fmt: skip
    if ambient.read() != tracer.entry_state:
        raise TraceError("the program leaves the ambient state changed (grad mode, autocast or default dtype)",
                         "set it in a `with` block, or outside the traced program", tracer.start)  # fmt: skip

    def check(path: str, value: Any) -> Any:
        if not isinstance(value, (torch.Tensor, bool, int, float, complex, torch.Size, type(None))):
            raise OutputError(f"the program returns a {type(value).__name__} ({path})",
                              "return tensors, numbers, sizes and structures of them (tuples, lists, dicts, "
                              "dataclasses)", tracer.start)  # fmt: skip
        return value

    map_paths(check, lambda path, value: None, result, "result")
    (tracer.graph.output,) = tracer.parts(result)
    if tracer.called:
        modules = list(tracer.called)
        flags = [m.training for m in modules]
        uniform = len(set(flags)) == 1
        subject = "{m.training for m in _modules}" if uniform else "[m.training for m in _modules]"
        expected = repr(set(flags) if uniform else flags)
        tracer.guard(Guard(f"{subject} == {expected}", "ambient", subject, expected, tracer.start,
                           "the modules it runs were in this mode", saved={"_modules": modules}))  # fmt: skip
    tracer.closed = True
    guards = [*tracer.guards.values(), *tracer.facts.guards()]
    whole = {g.params for g in guards if g.kind == "shape"}
    guards = [g for g in guards if not (g.kind == "rank" and g.params in whole)]  # the shape's length is the rank
    tensors = {n.name: tracer.start for n in tracer.tensors}
    output = map_tree(lambda v: v.tensor if type(v) is Variable else hint(v), result, (torch.Tensor, *SIZES))
    made = Trace(fn, analysis, tracer.graph, Guards(guards, signature, tensors, tracer.hidden.values()), output, tracer.shapes)
    for node in tracer.tensors:
        if "dynamic" not in (dims := made.status[node.name]) and "constrained" not in dims and dims:
            node.op = v_static_param
    return made


class Trace:
    """A recorded run of a program: `graph`, the `guards` under which it may be used again, and
    `output`, what the program returned while tracing (plain tensors and numbers).

    Calling it checks the guards, then replays.
    """

    def __init__(self, fn: Callable, analysis: str, graph: Graph, guards: Guards, output: Any, shapes: Shapes | None = None):
        self.fn, self.analysis, self.graph, self.guards, self.output = fn, analysis, graph, guards, output
        self.shapes = shapes  # the sizes of every value, as expressions, where the analysis remembers them

    def accepts(self, *args: Any, **kwargs: Any) -> bool:
        """Do the guards hold for these arguments? TypeError if the program doesn't take such arguments at all."""
        return self.guards.accept(*args, **kwargs)

    def failing(self, *args: Any, **kwargs: Any) -> list[Guard]:
        """The guards that refuse these arguments; empty where `accepts` is true."""
        return self.guards.failing(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Check the guards, then replay. GuardFailure names each guard that refuses, expected and got."""
        self.guards.require(*args, **kwargs)
        return self.replay(*args, **kwargs)

    def replay(self, *args: Any, **kwargs: Any) -> Any:
        """Run the recorded operations on these arguments, in program order, without a check."""
        if len(self.graph) > LARGEST:
            return run_graph(self.graph, self.guards.leaves(*args, **kwargs))
        return self._source.run(*self.guards.tensors(*args, **kwargs))

    @property
    def code(self) -> str:
        """The Python source that a replay runs: a line for each node, values dropped after their last use."""
        return self._source.text

    @functools.cached_property
    def _source(self) -> Source:
        return Source(self.graph, title(self.fn))

    @property
    def status(self) -> dict[str, tuple[str, ...]]:
        """Per parameter and dimension: `static`, `constrained` or `dynamic`."""
        status = {n.name: ["dynamic"] * len(n.params["size"]) for n in self.graph.parameters}
        for guard in self.guards:
            if guard.kind in _STATUS:
                for name in guard.params:
                    whole = [(name, d) for d in range(len(status[name]))] if guard.dims is None else guard.dims
                    for d in (d for n, d in whole if n == name):
                        if status[name][d] != "static":
                            status[name][d] = _STATUS[guard.kind]
        return {name: tuple(dims) for name, dims in status.items()}

    def explain(self) -> Table:
        """A table: each guard, the line that caused it, and why. Prints as text; a notebook shows HTML."""
        return Table(("guard", "caused by", "why"), [(g.code, str(g.cause), g.why) for g in self.guards],
                     "no guards: the program never looked at anything that could differ", prose=("why",))  # fmt: skip

    def __repr__(self) -> str:
        return f"<Trace of {title(self.fn)}: {len(self.graph)} nodes, {len(self.guards)} guards, {self.analysis}>"

    def __str__(self) -> str:
        status = [f"  {name}: {', '.join(dims) or 'rank 0'}" for name, dims in self.status.items()]
        guards = [f"  {g.code}    # {g.cause}" for g in self.guards] or ["  none: any input is accepted"]
        return "\n".join([f"trace of {title(self.fn)}, analysis {self.analysis}", *status, "graph",
                          *("  " + line for line in str(self.graph).splitlines()), "guards", *guards])  # fmt: skip


#: What a guard of each kind makes of the dimensions that it names.
_STATUS = {"shape": "static", "size": "static", "expression": "constrained"}


def title(fn: Callable) -> str:
    """What to call a program in print."""
    return getattr(fn, "__name__", type(fn).__name__)


def signature_of(fn: Callable, args: tuple, kwargs: dict) -> inspect.Signature:
    """The program's signature; for a built-in function that has none, one that fits the call."""
    try:
        return inspect.signature(fn.forward if isinstance(fn, torch.nn.Module) else fn)
    except (ValueError, TypeError):
        by_position = [inspect.Parameter(f"arg{i}", inspect.Parameter.POSITIONAL_ONLY) for i in range(len(args))]
        by_name = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in kwargs]
        return inspect.Signature(by_position + by_name)


def _names(fn: Callable) -> dict[int, str]:
    """What the program calls the tensors and modules that it holds: weights, closures, globals; by identity."""
    names: dict[int, str] = {}

    def add(prefix: str, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            names.setdefault(id(value), prefix)
        elif isinstance(value, torch.nn.Module):
            join = f"{prefix}." if prefix else ""
            for name, part in [*value.named_parameters(), *value.named_buffers(), *value.named_modules()]:
                names.setdefault(id(part), (join + name).removesuffix("."))
        elif isinstance(value, (list, tuple, dict)):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, part in items:
                if isinstance(part, (torch.Tensor, torch.nn.Module)):
                    add(f"{prefix}[{key!r}]", part)

    add("", fn)
    function = getattr(fn, "__func__", fn)
    add("self", getattr(fn, "__self__", None))
    try:
        held = inspect.getclosurevars(inspect.unwrap(function))
    except TypeError:
        return names
    for name, value in {**held.globals, **held.nonlocals}.items():
        add(name, value)
    return names
