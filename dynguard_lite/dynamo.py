"""The real TorchDynamo, seen through this package's types: graphs, guards, statuses.

All contact with private parts of PyTorch is here; each use was tried on torch 2.9.1, 2.13.0 and 2.14.1:

- `torch._dynamo.optimize`: torch.compile without its checks of the backend's name
- `torch._dynamo.eval_frame._debug_get_cache_entry_list`: the cache entries of a code object
- `CacheEntry.guard_manager`: `check`, `check_verbose`, and its tree (`root`)
- `torch.fx.experimental.symbolic_shapes.ConstraintViolationError`: a dimension marked dynamic turned out static
- `torch._dynamo.utils.counters`: restored, since every compilation counts in it
- `GraphModule.compile_subgraph_reason`: why a graph ends where it does
- node metadata of captured graphs: `example_value` (or `val`), `stack_trace`, `grapharg`
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import linecache
import logging
import os
import re
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .errors import TraceError
from .guards import Guard
from .ir import Graph, Node, Op, v_constant, v_dynamic_param, v_static_param
from .source import Cause, definition
from .table import Table
from .traces import signature_of, title
from .tree import map_tree

_numbers = itertools.count()


class MovedError(RuntimeError):
    """This version of PyTorch keeps something elsewhere than the versions that were tried."""


def _private(path: str) -> Any:
    """A private name of PyTorch's; MovedError where this version doesn't have it."""
    module, _, name = path.rpartition(".")
    try:
        return functools.reduce(getattr, name.split("."), __import__(module, fromlist=["_"]))
    except (ImportError, AttributeError):
        raise MovedError(f"dg.dynamo needs {path}, which torch {torch.__version__} doesn't have (tried: 2.9.1, 2.13.0, 2.14.1)") from None


@contextlib.contextmanager
def _unnoticed() -> Iterator[None]:
    """Nothing that a compilation counts, warns or logs is left behind."""
    counters = _private("torch._dynamo.utils.counters")
    before = {name: counter.copy() for name, counter in counters.items()}
    disabled = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        for name in list(counters):
            counters[name].clear()
            counters[name].update(before.get(name, {}))


def trace(fn: Callable, /, *args: Any, dynamic: bool | None = None, also: tuple = (), **kwargs: Any) -> DynamoTrace:
    """Compile `fn(*args, **kwargs)` with TorchDynamo, capturing the graphs; no code is generated.

    dynamic: as `torch.compile` takes it: True makes sizes symbolic, False none, None those that
    were seen to change. `also`: further tuples of arguments to call it with, in order, so that
    `None` sees a change. `mark_dynamic`, `mark_static` and `mark_unbacked` on arguments count.

    Works on a copy of fn's code, so that nothing compiled before is touched or reused.
    Raises TraceError where TorchDynamo can't compile the program, MovedError on a version of
    PyTorch that moved what is needed.
    """
    if not callable(fn):
        raise TypeError(f"dynamo.trace: fn must be callable, got {type(fn).__name__}")
    if dynamic not in (None, True, False):
        raise ValueError(f"dynamo.trace: dynamic must be None, True or False, got {dynamic!r}")
    copy, code = _copied(fn)
    captured: list[torch.fx.GraphModule] = []
    graphs: list[Graph] = []
    breaks: list[str] = []
    symbols: dict[str, str] = {}  # TorchDynamo's name of a symbol -> ours, s0, s1, ... by first sight

    def backend(module: torch.fx.GraphModule, inputs: list) -> Callable:
        captured.append(module)
        graphs.append(graph_of(module, symbols))  # now: where its inputs come from is forgotten afterwards
        reason = getattr(module, "compile_subgraph_reason", None)
        if getattr(reason, "graph_break", False):
            breaks.append(str(reason.reason).strip().splitlines()[0])

        def run(*values: Any) -> Any:
            with contextlib.redirect_stderr(None):  # FX prints the graph's source where an operation raises
                return module.forward(*values)

        return run

    run = _private("torch._dynamo.optimize")(backend, dynamic=dynamic)(copy)
    with _unnoticed():
        for given, named in [(args, kwargs), *((a, {}) for a in also)]:
            try:
                output = run(*given, **named)
            except _private("torch._dynamo.exc.TorchDynamoException") as error:
                first = str(error).strip().splitlines()[0]
                raise TraceError(f"TorchDynamo can't compile the program: {first}", "see TORCH_LOGS=graph_breaks",
                                 definition(fn)) from None  # fmt: skip
            except _private("torch.fx.experimental.symbolic_shapes.ConstraintViolationError") as error:
                said = _source(" ".join(re.findall(r"^  - (.*)", str(error), re.M)) or str(error).splitlines()[0])
                instead = "don't mark that dimension, or mark with it all that must vary with it"
                raise TraceError(f"ConstraintViolationError: {said}", instead,
                                 _cause(str(error)) or definition(fn)) from None  # fmt: skip
    entries = _private("torch._dynamo.eval_frame._debug_get_cache_entry_list")(code)
    return DynamoTrace(fn, run, code, entries, captured, graphs, signature_of(fn, args, kwargs), output, dynamic, breaks)


def _copied(fn: Callable) -> tuple[Callable, types.CodeType]:
    """The program with a code object of its own: TorchDynamo keeps what it compiles, and what sizes it saw, by code."""
    target, function = fn.forward if isinstance(fn, torch.nn.Module) else fn, _function(fn)
    if not isinstance(function, types.FunctionType) or function.__code__.co_filename.startswith(_TORCH):
        function = target = _calling(fn)  # TorchDynamo compiles nothing that begins in PyTorch's own files

    code = function.__code__.replace(co_name=f"{function.__code__.co_name}__{next(_numbers)}")
    copy = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    owner = getattr(target, "__self__", None)
    return (copy if owner is None else types.MethodType(copy, owner)), code


def _function(fn: Callable) -> Any:
    """What runs when fn is called: a method's or a module's function."""
    target = fn.forward if isinstance(fn, torch.nn.Module) else fn
    return getattr(target, "__func__", target)


def _calling(fn: Callable) -> types.FunctionType:
    """A function with fn's own arguments that calls it."""
    signature = inspect.signature(fn.forward if isinstance(fn, torch.nn.Module) else fn)
    plain = [p.replace(annotation=p.empty, default=p.empty if p.default is p.empty else None) for p in signature.parameters.values()]
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    passed = ", ".join(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else stars.get(p.kind, "") + p.name for p in plain)
    source = f"def program{inspect.Signature(plain)}:\n    return _program({passed})"
    scope = {"_program": fn}
    exec(compile(source, __file__, "exec"), scope)
    made = scope["program"]
    optional = [p for p in signature.parameters.values() if p.default is not p.empty]
    made.__defaults__ = tuple(p.default for p in optional if p.kind is not p.KEYWORD_ONLY) or None
    made.__kwdefaults__ = {p.name: p.default for p in optional if p.kind is p.KEYWORD_ONLY}
    return made


_TORCH = os.path.dirname(torch.__file__) + os.sep


class DynamoTrace:
    """What TorchDynamo made of a program: `graph` and `guards` (of its last cache entry), all `graphs` and the reasons
    of the `breaks` between them, in its own words, `status`, `accepts`. `fx` are the captured GraphModules."""

    def __init__(self, fn: Callable, run: Callable, code: types.CodeType, entries: list, captured: list, graphs: list[Graph],
                 signature: inspect.Signature, output: Any, dynamic: bool | None, breaks: list[str]):  # fmt: skip
        if not entries:
            raise TraceError("TorchDynamo compiled nothing: the program has no tensor operations it could capture",
                             "trace a program that computes with tensors", definition(fn))  # fmt: skip
        self.fn, self.run, self.code, self.entries, self.fx = fn, run, code, entries, captured
        self.signature, self.output, self.dynamic, self.breaks = signature, output, dynamic, breaks
        self.entry = entries[0] if len(entries) == 1 else min(entries, key=lambda e: -_order(e))
        self.graphs = graphs
        self.graph = (self.graphs or [Graph()])[-1 if len(entries) > 1 else 0]
        self.guards = _guards(self.entry.guard_manager, code)

    @property
    def status(self) -> dict[str, tuple[str, ...]]:
        """Per parameter and dimension: `static`, `constrained` or `dynamic`."""
        bounded = {pair for g in self.guards if g.kind == "expression" for pair in g.dims or ()}
        status = {}
        for node in self.graph.parameters:
            dims = enumerate(node.params["dims"])
            status[node.name] = tuple("static" if n.isdigit() else "constrained" if (node.name, d) in bounded else "dynamic"
                                      for d, n in dims)  # fmt: skip
        return status

    def _locals(self, args: tuple, kwargs: dict) -> dict[str, Any]:
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        own = {"self": self.fn} if "self" in self.code.co_varnames else {}
        cells = zip(self.code.co_freevars, _function(self.fn).__closure__ or (), strict=True) if self.code.co_freevars else ()
        return {**own, **{name: cell.cell_contents for name, cell in cells}, **bound.arguments}

    def accepts(self, *args: Any, **kwargs: Any) -> bool:
        """Does TorchDynamo's own guard manager, of any cache entry, accept these arguments?

        After a graph break, these are the guards of the part before the first break.
        """
        given = self._locals(args, kwargs)
        return any(entry.guard_manager.check(given) for entry in self.entries)

    def why(self, *args: Any, **kwargs: Any) -> str:
        """TorchDynamo's own words for the guard that refuses these arguments; empty where it accepts."""
        found = self.entry.guard_manager.check_verbose(self._locals(args, kwargs))
        parts = getattr(found, "verbose_code_parts", [])
        return "" if found.result else "; ".join(_source(part.split("  #")[0]) for part in parts)

    def replay(self, *args: Any, **kwargs: Any) -> Any:
        """Run what was compiled. RuntimeError where its guards refuse, instead of a recompile."""
        with torch.compiler.set_stance("fail_on_recompile"), contextlib.redirect_stderr(None):
            return self.run(*args, **kwargs)

    __call__ = replay

    def explain(self, everything: bool = False) -> Table:
        """The guards with TorchDynamo's user line; on sizes, unless `everything`."""
        shown = [g for g in self.guards if everything or g.kind in ("size", "expression")]
        return Table(("guard", "caused by", "why"), [(g.code, str(g.cause), g.why) for g in shown],
                     f"no guards on sizes ({len(self.guards)} on other things)", prose=("why",))  # fmt: skip

    def __repr__(self) -> str:
        return f"<TorchDynamo's trace of {title(self.fn)}: {len(self.graphs)} graphs, {len(self.guards)} guards, dynamic={self.dynamic}>"

    def __str__(self) -> str:
        status = [f"  {name}: {', '.join(dims) or 'rank 0'}" for name, dims in self.status.items()]
        guards = [f"  {g.code}    # {g.cause}" for g in self.guards if g.kind in ("size", "expression")] or ["  none on sizes"]
        graphs = [line for graph in self.graphs for line in ("graph", *("  " + text for text in str(graph).splitlines()))]
        return "\n".join([f"TorchDynamo's trace of {title(self.fn)}, dynamic={self.dynamic}", *status, *graphs, "guards on sizes", *guards])


def _order(entry: Any) -> int:
    return int(re.findall(r"\d+", str(entry.compile_id))[-1]) if getattr(entry, "compile_id", None) is not None else 0


# -- graphs ----------------------------------------------------------------------------------------------


def graph_of(module: torch.fx.GraphModule | torch.export.ExportedProgram, symbols: dict[str, str] | None = None) -> Graph:
    """A captured FX graph, or an exported program, as a Graph: sizes in `params["dims"]` of each node, as text."""
    symbols = {} if symbols is None else symbols
    graph, nodes = Graph(), {}
    exported = _export_names(module)
    for fx in module.graph.nodes:
        value = fx.meta.get("example_value", fx.meta.get("val"))
        dims = [_symbol(n, symbols) for n in value.shape] if isinstance(value, torch.Tensor) else None
        if fx.op == "output":
            graph.output = map_tree(nodes.__getitem__, fx.args[0], torch.fx.Node)
            continue
        if not isinstance(value, torch.Tensor) and fx.op == "placeholder" and not fx.users:
            continue  # a size that only shapes speak of
        if fx.op == "placeholder" and not isinstance(value, torch.Tensor):
            node = Node(Op("v_size"), kwargs={})
            node.name = _symbol(value, symbols)
        elif fx.op in ("placeholder", "get_attr"):
            name, weight = (exported[fx.name], True) if fx.name in exported else _origin(fx)
            op = v_constant if weight else v_static_param if dims and all(d.isdigit() for d in dims) else v_dynamic_param
            node = Node(op, params={"name": name, "size": tuple(dims or ()), "value": None}, kwargs={})
        else:
            args, kwargs = map_tree(nodes.__getitem__, (fx.args, dict(fx.kwargs)), torch.fx.Node)
            node = Node(Op(f"v_{_target(fx)}"), [nodes[i] for i in fx.all_input_nodes], args=args, kwargs=kwargs)
        node.params["dims"] = dims
        node.shape = tuple(dims) if dims is not None else None
        node.cause = _cause(fx.meta.get("stack_trace"))
        nodes[fx] = graph.append(node)
    return graph


def _export_names(module: Any) -> dict[str, str]:
    """In an exported program, the inputs that are weights and buffers, by the name they have in the module."""
    signature = getattr(module, "graph_signature", None)
    if signature is None:
        return {}
    return {**signature.inputs_to_parameters, **signature.inputs_to_buffers}


def _symbol(size: Any, symbols: dict[str, str]) -> str:
    """A size as text, with `s0`, `s1`, ... (`u0` for unbacked ones) in place of the names that count on in the process."""

    def ours(match: re.Match) -> str:
        kind = match[0][0]
        return symbols.setdefault(match[0], f"{kind}{sum(name[0] == kind for name in symbols)}")

    return re.sub(r"\b[suz]\d+\b", ours, str(size))


def _target(fx: torch.fx.Node) -> str:
    name = fx.target if isinstance(fx.target, str) else getattr(fx.target, "__name__", str(fx.target))
    return name.split(".")[0].strip("_") if not name.startswith("__") else name.strip("_")


def _origin(fx: torch.fx.Node) -> tuple[str, bool]:
    """What the program calls an input of the graph, and whether it is a weight or buffer of a module's."""
    if fx.op == "get_attr":
        return str(fx.target), True
    source = getattr(fx.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", fx.name)
    name = name() if callable(name) else str(name)
    path = re.findall(r"_(?:modules|parameters|buffers)\['(.+?)'\]", name)
    return (".".join(path), True) if "_parameters[" in name or "_buffers[" in name else (_source(name), False)


def _source(text: str) -> str:
    """`a.shape[0]` for TorchDynamo's `L['a'].size()[0]`."""
    text = re.sub(r"\b[LG]\['(\w+)'\]", r"\1", text)
    return re.sub(r"\.size\(\)", ".shape", text)


def _cause(stack: str | None) -> Cause | None:
    found = re.findall(r'File "(.+?)", line (\d+)', stack or "")
    return Cause(found[-1][0], int(found[-1][1])) if found else None


# -- guards ----------------------------------------------------------------------------------------------


def _leaves(manager: Any) -> Iterator[tuple[str, str]]:
    """(kind, text) of every guard in the tree, root first; those on several values at once come last."""
    for leaf in manager.get_leaf_guards():
        for part in leaf.verbose_code_parts():
            yield type(leaf).__name__, part
    for child in manager.get_child_managers():
        yield from _leaves(child)
    for leaf in getattr(manager, "get_epilogue_lambda_guards", list)():
        for part in leaf.verbose_code_parts():
            yield "SHAPE_ENV" if re.search(r"\.(size|stride|storage_offset)\(\)", part) else type(leaf).__name__, part


def _guards(wrapper: Any, code: types.CodeType) -> list[Guard]:
    guards: dict[str, Guard] = {}
    for kind, part in _leaves(wrapper.root):
        text, _, remark = part.partition("  #")
        text = _source(text.strip())
        cause = _line(remark, code)
        why = remark.split("  #")[0].strip() if kind == "SHAPE_ENV" else kind.lower().replace("_", " ")
        why = re.sub(r"^\(unknown var .*", "two sizes were equal while tracing", why)
        why = re.sub(r"^\(unknown source .*stride.*", "the layout in memory, as seen while tracing", why)
        for guard in _split(kind, text, cause, why):
            guards.setdefault(guard.code, guard)
    return list(guards.values())


def _split(kind: str, text: str, cause: Cause, why: str) -> list[Guard]:
    """Guards on sizes as such; what else a guard checks, in one line without addresses and machine settings."""
    if kind == "SHAPE_ENV":
        dims = tuple((name, int(d)) for name, d in re.findall(r"([\w\[\]'.]+)\.shape\[(\d+)\]", text))
        pinned = re.fullmatch(r"[\w\[\]'.]+\.shape\[\d+\] == \d+", text)
        return [Guard(text, "size" if pinned else "expression", text, text, cause, why, tuple(n for n, _ in dims), dims)]
    if kind == "TENSOR_MATCH":
        name = re.match(r"check_tensor\((.+?), ", text)
        sizes = re.search(r"size=\[(.*?)\]", text)
        found = []
        for d, n in enumerate(filter(None, sizes[1].split(", ")) if name and sizes else ()):
            if n.isdigit():
                found.append(Guard(f"{name[1]}.shape[{d}] == {n}", "size", f"{name[1]}.shape[{d}]", n, cause, "in the tensor's own check",
                                   (name[1],), ((name[1], d),)))  # fmt: skip
        rest = re.sub(r"DispatchKeySet\(.*?\)", "...", text)
        return [*found, Guard(rest, "tensor", text, text, cause, why, (name[1],) if name else ())]
    text = re.sub(r"\(?\b\d{9,}\b\)?", "...", text)
    text = "check_global_state()" if "check_global_state" in text else text
    return [Guard(text, kind.lower(), text, text, cause, why)]


def _line(remark: str, code: types.CodeType) -> Cause:
    """The reader's line, out of TorchDynamo's remark `# <line>  # <file>:<number> in <function>`."""
    found = re.search(r"(\S+?\.py):(\d+) in", remark)
    if not found:
        return Cause(code.co_filename, code.co_firstlineno)
    same = os.path.basename(found[1]) == os.path.basename(code.co_filename)
    file = code.co_filename if same else next((f for f in linecache.cache if f.endswith(found[1])), found[1])
    return Cause(file, int(found[2]))
