"""Diagrams: a graph as a picture, each dimension coloured and worded by its status."""

from __future__ import annotations

import re
from typing import Any

import torch

from .ambient import v_ambient
from .dynamo import DynamoTrace, graph_of
from .expressions import Bool, Expr, Shape, symbols, unbacked
from .ir import Graph, Op, ancestors, call_text, node_names, short_repr
from .picture import Box, Drawing, View, as_dot, tips
from .sizes import expr_of, items
from .traces import Trace
from .tree import leaves

_SIZE = Op("v_size")  # in TorchDynamo's graphs: a size as an input of its own
FOLD_ABOVE = 150  # nodes; a larger graph is drawn folded


def draw(x: Any, *args: Any, direction: str = "TB", **kwargs: Any) -> Drawing:
    """A picture of a trace, a graph, or the graph that a node ends.

    x: a Trace, one of TorchDynamo's (`dg.dynamo.trace`), a Graph, a Node, a node of the reader's own
    (anything with `op`, `inputs` and `params`), a traced value that has one (`.node`), a
    torch.fx.GraphModule or a torch.export.ExportedProgram (sizes from its metadata).
    args, kwargs: inputs, for a trace only: each guard is marked PASS or FAIL for them.
    direction: "TB" (top to bottom) or "LR".
    """
    if direction not in ("TB", "LR"):
        raise ValueError(f"draw: direction must be 'TB' or 'LR', got {direction!r}")
    if isinstance(x, Trace):
        view, text = _of_trace(x, args, kwargs)
    elif isinstance(x, DynamoTrace):
        view, text = _of_dynamo(x, args, kwargs)
    elif args or kwargs:
        raise TypeError(f"draw: inputs are for a Trace, which has guards to check; got a {type(x).__name__}")
    elif isinstance(x, Graph):
        view, text = _of_graph(x), str(x)
    elif isinstance(x, (torch.fx.GraphModule, torch.export.ExportedProgram)):
        graph = graph_of(x)
        view, text = _of_graph(graph, _FxCells({}, graph)), str(graph)
    else:
        node = x if hasattr(x, "inputs") else getattr(x, "node", None)
        if not all(hasattr(node, name) for name in ("op", "inputs", "params")):
            raise TypeError("draw: x must be a Trace, a Graph, a node (with op, inputs and params) or a traced value, "
                            f"got {type(x).__name__}")  # fmt: skip
        graph = Graph()
        graph.nodes, graph.output = ancestors(node), node
        view, text = _of_graph(graph), _own_text(graph)
    return Drawing(as_dot(view, direction), text, tips(view))


# -- what to show ------------------------------------------------------------------------------------


def _of_trace(trace: Trace, args: tuple, kwargs: dict) -> tuple[View, str]:
    checked = bool(args or kwargs)
    env = trace.guards.bind(*args, **kwargs) if checked else {}
    failing = trace.failing(*args, **kwargs) if checked else []
    cells = _Cells(trace, failing, {n: t.shape for n, t in _tensors(trace, args, kwargs).items()} if failing else {})
    view = _of_graph(trace.graph, cells)
    named = [f"{symbol} is {size}" for size, symbol in cells.names.items()]
    view.notes += [", ".join(named[i : i + 4]) for i in range(0, min(len(named), 16), 4)]
    view.notes += [f"... {len(named) - 16} more symbols"] if len(named) > 16 else []
    lines = []
    for guard in [*trace.guards, *(g for g in failing if g not in tuple(trace.guards))]:
        verdict = ("FAIL" if guard in failing else "PASS") if checked else ""
        said = f"{guard.code}   ({guard.cause})"
        view.guards.append((f"{verdict or 'guard'}  {said}", verdict))
        lines.append(f"  {verdict}  {said}")
        if verdict == "FAIL":
            difference = f"expected {guard.expected}, got {guard.got(env)}"
            view.guards.append((difference, verdict))
            lines.append(f"        {difference}")
    return view, f"{trace}{cells.text()}" + ("\nfor these inputs\n" + "\n".join(lines or ["  accepted"]) if checked else "")


def _tensors(trace: Trace, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The inputs by parameter name, as far as they are tensors where the trace has them."""
    try:
        return {n: t for n, t in trace.guards.leaves(*args, **kwargs).items() if hasattr(t, "shape")}
    except (LookupError, AttributeError, TypeError):
        return {}


class _Cells:
    """What a trace knows of each dimension: (text, status).

    Where the analysis remembers sizes, a dimension of a parameter is a symbol (`s0`) and one
    of a result an expression over them; both take the words of the guard that bounds them.
    """

    def __init__(self, trace: Trace, failing: list, got: dict[str, Any]):
        self.shapes, self.status, self.got = trace.shapes, trace.status, got
        self.failed = {name for g in failing for name in g.params}
        self.failed_dims = {pair for g in failing for pair in g.dims or () if g.kind in ("size", "expression")}
        self.whole = {name for g in failing if g.kind == "shape" for name in g.params}
        self.bounds = {g.subject: g for g in trace.guards if g.kind in ("size", "expression")}
        self.names: dict[str, str] = {}
        self._trace = trace
        if self.shapes is not None:
            sizes = (f"{n.name}.shape[{d}]" for n in trace.graph.parameters for d in range(len(n.params["size"])))
            self.names = {size: f"s{i}" for i, size in enumerate(sizes)}

    def short(self, text: str) -> str:
        """`text` with symbols in place of the sizes of parameters."""
        for size, symbol in self.names.items():
            if size in text:
                text = re.sub(rf"(?<![\w.\]]){re.escape(size)}", symbol, text)
        return text

    def of(self, node: Any) -> list[tuple[str, str]]:
        if node.is_parameter:
            return [self._parameter(node.name, d, n) for d, n in enumerate(node.params["size"])]
        if self.shapes is None or node.op == v_ambient or node.op.name == "v_constant":
            kind = "constant" if node.op.name == "v_constant" else "plain"
            return [(f"={n}" if kind == "constant" else f"seen {n}", kind) for n in node.shape]
        return [self._result(expr_of(n)) for n in items(self.shapes.of(node))]

    def _parameter(self, name: str, d: int, n: int) -> tuple[str, str]:
        status, now = self.status[name][d], self.got.get(name, ())
        size = f"{name}.shape[{d}]"
        text = f"={n}" if status == "static" else self.names.get(size, f"any (seen {n})")
        if status == "constrained" and size in self.bounds:
            text = self.short(self.bounds[size].code)
        differs = name in self.whole and (len(now) != len(self.status[name]) or now[d] != n)
        if differs or (name, d) in self.failed_dims:
            return f"{text} FAIL" + (f", got {now[d]}" if d < len(now) else ""), "fail"
        return text, status

    def _result(self, expr: Expr) -> tuple[str, str]:
        if unbacked(expr):
            return self.short(str(expr)), "data"
        pairs = symbols(expr)
        statuses = {self.status[name][d] for name, d in pairs}
        guard = self.bounds.get(str(expr))
        if statuses <= {"static"} or (guard is not None and " == " in guard.code):
            return f"={expr.hint}", "static"
        if not expr.known:
            return f"seen {expr.hint}", "plain"
        text = self.short(guard.code if guard is not None else str(expr))
        return text, "constrained" if "constrained" in statuses else "dynamic"

    def text(self) -> str:
        """The cells of all results, as lines of the listing."""
        if self.shapes is None:
            return ""
        shown = [n for n in self._trace.graph if n.shape is not None and n.op != v_ambient][:FOLD_ABOVE]
        lines = [f"  {n.name}: {', '.join(text for text, _ in self.of(n)) or 'rank 0'}" for n in shown]
        legend = [f"  {symbol} is {size}" for size, symbol in self.names.items()]
        return "\n".join(["", "sizes", *legend, *lines])


class _FxCells:
    """The same, from the sizes that an FX graph's metadata has: numbers are static, symbols as free as `status` says."""

    shapes = failed = ()
    short = staticmethod(str)

    def __init__(self, status: dict[str, tuple[str, ...]], graph: Graph):
        self.status = {n.name: status.get(n.name) or self._own(n) for n in graph.parameters}
        dims = [(f"{p.name}.shape[{d}]", n, self.status[p.name][d]) for p in graph.parameters for d, n in enumerate(p.params["dims"])]
        self.bounded = {n for _, n, status in dims if status == "constrained"}
        self.names = {n: size for size, n, _ in reversed(dims)}

    @staticmethod
    def _own(node: Any) -> tuple[str, ...]:
        return tuple("static" if n.isdigit() else "dynamic" for n in node.params["dims"])

    def of(self, node: Any) -> list[tuple[str, str]]:
        kinds = self.status.get(node.name) if node.is_parameter else None
        return [(f"={n}" if n.isdigit() else n, kinds[d] if kinds else self._kind(node, n)) for d, n in enumerate(node.params["dims"])]

    def _kind(self, node: Any, size: str) -> str:
        if size.isdigit():
            return "constant" if node.op.name == "v_constant" else "static"
        used = set(re.findall(r"\b[suz]\d+\b", size))
        return "data" if any(n[0] == "u" for n in used) else "constrained" if used & self.bounded else "dynamic"

    def legend(self) -> list[str]:
        named = [f"{symbol} is {size}" for symbol, size in sorted(self.names.items()) if symbol[0] in "suz"]
        return [", ".join(named[i : i + 4]) for i in range(0, min(len(named), 16), 4)]


def _of_dynamo(trace: DynamoTrace, args: tuple, kwargs: dict) -> tuple[View, str]:
    """TorchDynamo's graphs one under the other, and its guards on sizes."""
    view = View([], [])
    reasons = [*trace.breaks, ""] if len(trace.graphs) > 1 and len(trace.entries) == 1 else [""]
    graphs = trace.graphs if len(trace.entries) == 1 else [trace.graph]
    for i, graph in enumerate(graphs):
        cells = _FxCells(trace.status if graph is trace.graph else {}, graph)
        part = _of_graph(graph, cells)
        view.boxes += part.boxes
        view.arrows += part.arrows
        view.notes += cells.legend() if i == 0 else []
        if i < len(graphs) - 1:
            reason = reasons[i] if i < len(reasons) else ""
            mark = Box(f"break {i}", "graph break", [], [reason or "see TORCH_LOGS=graph_breaks"])
            view.boxes.append(mark)
            view.arrows += [(part.boxes[-1].key, mark.key)] if part.boxes else []
        if i > 0 and part.boxes:
            view.arrows.append((f"break {i - 1}", part.boxes[0].key))
    refused = trace.why(*args, **kwargs) if args or kwargs else ""
    listed = [g for g in trace.guards if g.kind in ("size", "expression")]
    for guard in listed:
        verdict = "" if not (args or kwargs) else "FAIL" if guard.code in refused else "PASS"
        view.guards.append((f"{verdict or 'guard'}  {guard.code}   ({guard.cause})", verdict))
    if refused:
        view.guards.append((f"FAIL  TorchDynamo says: {refused}", "FAIL"))
    others = len(trace.guards) - len(listed)
    view.guards.append((f"and {others} guards on other things than sizes", ""))
    return view, str(trace) + (f"\nfor these inputs\n  {'FAIL  ' + refused if refused else 'accepted'}" if args or kwargs else "")


def _of_graph(graph: Graph, cells: _Cells | _FxCells | None = None) -> View:
    names = _names(graph)
    returned = {leaf for leaf in leaves(graph.output) if hasattr(leaf, "inputs")}
    static: dict[Any, bool] = {}  # does the whole value come from static parameters and constants only?
    boxes, dotted = [], []
    for node in graph.nodes:
        op, name = str(node.op), names[node]
        parameter = op.endswith("_param")
        shape = getattr(node, "shape", node.params.get("size"))
        if parameter:
            static[node] = all(s == "static" for s in cells.status[name]) if cells else op == "v_static_param"
        else:
            static[node] = all(static[i] for i in node.inputs)
        kind = "plain" if node.op in (v_ambient, _SIZE) else "constant" if op == "v_constant" else "static" if static[node] else "dynamic"
        box = Box(node, f"{name}: {op}" if name else op, status=kind, first=parameter or kind == "constant")
        if shape is not None:
            if cells is not None:
                box.cells = cells.of(node)
            else:
                free = "any (seen {})" if parameter else "seen {}"
                box.cells = [(f"={n}" if static[node] else free.format(n), kind) for n in shape]
            if box.cells and cells is not None and cells.shapes is not None:
                box.status = "constant" if kind == "constant" else "dynamic" if any(k != "static" for _, k in box.cells) else "static"
            box.cells = box.cells or [("rank 0", kind)]
        box.remarks = _remarks(node, returned, cells)
        if cells is not None and parameter and name in cells.failed:
            box.remarks.append("FAIL")
        box.tip = _tip(node, names, cells)
        boxes.append(box)
        dotted += [(source, node) for source in _sizes_used(node, graph)]
    arrows = [(i, node) for node in graph.nodes for i in _used(node)]
    dotted += [(a, b) for a, b in arrows if a.op == _SIZE]
    view = View(boxes, [(a, b) for a, b in arrows if a.op != _SIZE], dotted)
    return _folded(view, graph) if len(boxes) > FOLD_ABOVE else view


def _tip(node: Any, names: dict, cells: _Cells | _FxCells | None) -> str:
    """In a tooltip: the call, its sizes as expressions, and the reader's line."""
    said = [f"{names[node]} = {call_text(node, names)}" if hasattr(node, "args") else f"{names[node]}: {node.op}"]
    if isinstance(cells, _Cells) and cells.shapes is not None and node.shape and node.op.name not in ("v_ambient", "v_constant"):
        said.append(f"sizes: {', '.join(str(expr_of(n)) for n in items(cells.shapes.of(node)))}")
    cause = getattr(node, "cause", None)
    return "\n".join([*said, *([str(cause)] if cause else [])])


def _remarks(node: Any, returned: set, cells: _Cells | None) -> list[str]:
    used = [str(part) for part in leaves((getattr(node, "args", ()), getattr(node, "kwargs", {}))) if isinstance(part, (Expr, Bool, Shape))]
    said = [f"given {cells.short(', '.join(used))}"] if used and cells else []
    if node.op == v_ambient:
        said.append(f"from here: {node.args[0]!r}".replace("<", "").replace(">", ""))
    elif getattr(node, "mutates", False):
        said.append("in place")
    if getattr(node, "unbacked", False):
        said.append("size depends on data")
    return [*said, "returned"] if node in returned else said


def _sizes_used(node: Any, graph: Graph) -> list[Any]:
    """The parameters whose sizes, as expressions, are among the node's arguments."""
    parts = [p for p in leaves((getattr(node, "args", ()), getattr(node, "kwargs", {}))) if isinstance(p, (Expr, Bool, Shape))]
    exprs = [e for p in parts for e in (p if isinstance(p, Shape) else (p,)) if not isinstance(e, int)]
    named = {name for name, _ in symbols(*exprs)}
    return [p for p in graph.parameters if p.name in named] if named else []


def _used(node: Any) -> list[Any]:
    """The inputs, one as often as the call has it."""
    found: list[Any] = []
    todo = [getattr(node, "args", node.inputs), getattr(node, "kwargs", {})]
    while todo:
        value = todo.pop(0)
        if isinstance(value, dict):
            todo.extend(value.values())
        elif type(value) in (tuple, list):
            todo.extend(value)
        elif hasattr(value, "inputs") and value in node.inputs:
            found.append(value)
    return found + [i for i in node.inputs if i not in found]


def _names(graph: Graph) -> dict[Any, str]:
    if all(hasattr(n, "name") for n in graph.nodes):
        return node_names(graph)
    return {n: n.params.get("name", f"v{i}") for i, n in enumerate(graph.nodes)}


def _own_text(graph: Graph) -> str:
    """The listing of free nodes, the reader's own too."""
    names = _names(graph)
    lines = []
    for node in graph.nodes[:FOLD_ABOVE]:
        params = [f"{k}={list(v) if k == 'size' else short_repr(v)}" for k, v in node.params.items()]
        own = hasattr(node, "args")
        inputs = ", ".join([*(names[i] for i in node.inputs), *params])
        lines.append(f"{names[node]} = {call_text(node, names) if own else f'{node.op}({inputs})'}")
    more = len(graph.nodes) - len(lines)
    return "\n".join([*lines, *([f"... {more:,} more nodes ..."] if more else []), f"return {names[graph.output]}"])


def _folded(view: View, graph: Graph) -> View:
    """A large graph with one box per module, or per run of nodes where no module says what belongs together."""
    scopes = len({getattr(n, "scope", "") for n in graph.nodes} - {""}) > 1
    run = max(10, len(view.boxes) // 40)
    where: dict[Any, Any] = {}
    groups: dict[Any, list[Box]] = {}
    depth = 2
    for i, box in enumerate(view.boxes):
        scope = ".".join(getattr(box.key, "scope", "").split(".")[:depth])
        parameter = str(box.key.op).endswith("_param")
        key = box.key if parameter else ("fold", scope) if scopes else ("fold", i // run)
        where[box.key] = key
        groups.setdefault(key, []).append(box)
    boxes = []
    for key, members in groups.items():
        if len(members) == 1:
            boxes.append(members[0])
            where[members[0].key] = members[0].key
            continue
        kinds = {b.status for b in members if b.status != "constant"}
        title = (key[1] or "the program itself") if scopes else f"{members[0].title} ... {members[-1].title}"
        remarks = ["returned"] if any("returned" in b.remarks for b in members) else []
        status = "dynamic" if "dynamic" in kinds else "static"
        boxes.append(Box(key, title, [(f"{len(members)} nodes", "plain")], remarks, status))
    arrows = dict.fromkeys((where[a], where[b]) for a, b in view.arrows)
    notes = [f"{len(view.boxes):,} nodes, folded {'by module' if scopes else 'in program order'}"]
    return View(boxes, [(a, b) for a, b in arrows if a != b], [], view.guards, notes)


