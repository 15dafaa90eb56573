"""Diagrams: a graph as a picture, each dimension coloured and worded by its status.

`draw` builds a small view (boxes, arrows, a list of guards) and writes it in Graphviz's
language. The `graphviz-pure` wheel draws it, so that nothing has to be installed on the
system; without it, `dot` does; without both, the text form stands in.
"""

from __future__ import annotations

import contextlib
import html
import os
import shutil
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .ambient import v_ambient
from .ir import Graph, ancestors, call_text, node_names, short_repr
from .traces import Trace

#: Fill of each status; text is black. The words in the cells say the same.
PALETTE = {"dynamic": "#d6e8fa", "constrained": "#fdf3bf", "static": "#fbd9b5", "constant": "#e4e4e4",
           "plain": "#ffffff", "fail": "#f9c6c6", "pass": "#d9f0d3"}  # fmt: skip
_LEGEND = {
    "dynamic": "dynamic: sizes may differ (dashed border)",
    "constrained": "constrained: a guard bounds it",
    "static": "static: one size only (solid border)",
    "constant": "constant: the program holds it",
}
FOLD_ABOVE = 150  # nodes; a larger graph is drawn folded
ADVICE = "For pictures: pip install graphviz graphviz-pure (or install Graphviz, so that `dot` is found)."


@dataclass
class Box:
    """One node of the picture: a title, one (text, status) cell per dimension, and remarks."""

    key: Any
    title: str
    cells: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    status: str = "plain"
    first: bool = False


@dataclass
class View:
    """What a picture shows: boxes, arrows between their keys, guards as (text, verdict or "")."""

    boxes: list[Box]
    arrows: list[tuple[Any, Any]]
    guards: list[tuple[str, str]] = field(default_factory=list)
    note: str = ""


class Drawing:
    """A picture: `source` (Graphviz's language), `svg`, and `text`, the same in words. A notebook shows it."""

    def __init__(self, source: str, text: str):
        self.source, self.text = source, text

    @property
    def svg(self) -> str:
        """The picture as SVG text. RuntimeError where nothing on this machine can draw it."""
        return self._render("svg").decode()

    def _render(self, form: str) -> bytes:
        try:
            import graphviz
        except ImportError:
            raise RuntimeError(f"The graphviz package is missing. {ADVICE}") from None
        with _engine():
            try:
                return graphviz.Source(self.source).pipe(format=form, quiet=True)
            except graphviz.ExecutableNotFound:
                raise RuntimeError(f"Neither graphviz-pure nor dot is installed. {ADVICE}") from None

    def save(self, path: str | os.PathLike) -> Path:
        """Write the picture; the name's ending chooses the form: `.svg`, `.png` or `.dot`."""
        path = Path(path)
        if path.suffix not in (".svg", ".png", ".dot"):
            raise ValueError(f"save: path must end in .svg, .png or .dot, got {str(path)!r}")
        data = self.source.encode() if path.suffix == ".dot" else self._render(path.suffix[1:])
        path.write_bytes(data)
        return path

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        try:
            return {"image/svg+xml": self.svg, "text/plain": self.text}
        except RuntimeError as error:
            return {"text/plain": f"{self.text}\n{error}"}


@contextlib.contextmanager
def _engine() -> Iterator[None]:
    """The graphviz package calls the wheel's own program for as long as this lasts, wherever it was installed."""
    from graphviz.backend import dot_command

    name = "graphviz-pure" + (".exe" if os.name == "nt" else "")
    beside = Path(sysconfig.get_path("scripts"), name)
    found = str(beside) if beside.is_file() else shutil.which(name)
    before = dot_command.DOT_BINARY
    dot_command.DOT_BINARY = Path(found) if found else before
    try:
        yield
    finally:
        dot_command.DOT_BINARY = before


def draw(x: Any, *args: Any, direction: str = "TB", **kwargs: Any) -> Drawing:
    """A picture of a trace, a graph, or the graph that a node ends.

    x: a Trace, a Graph, a Node, a node of the reader's own (anything with `op`, `inputs` and
    `params`), or a traced value that has one (`.node`).
    args, kwargs: inputs, for a trace only: each guard is marked PASS or FAIL for them.
    direction: "TB" (top to bottom) or "LR".
    """
    if direction not in ("TB", "LR"):
        raise ValueError(f"draw: direction must be 'TB' or 'LR', got {direction!r}")
    if isinstance(x, Trace):
        view, text = _of_trace(x, args, kwargs)
    elif args or kwargs:
        raise TypeError(f"draw: inputs are for a Trace, which has guards to check; got a {type(x).__name__}")
    elif isinstance(x, Graph):
        view, text = _of_graph(x, {}), str(x)
    else:
        node = x if hasattr(x, "inputs") else getattr(x, "node", None)
        if not all(hasattr(node, name) for name in ("op", "inputs", "params")):
            raise TypeError("draw: x must be a Trace, a Graph, a node (with op, inputs and params) or a traced value, "
                            f"got {type(x).__name__}")  # fmt: skip
        graph = Graph()
        graph.nodes, graph.output = ancestors(node), node
        view, text = _of_graph(graph, {}), _own_text(graph)
    return Drawing(_dot(view, direction), text)


# -- what to show ------------------------------------------------------------------------------------


def _of_trace(trace: Trace, args: tuple, kwargs: dict) -> tuple[View, str]:
    checked = bool(args or kwargs)
    env = trace.guards.bind(*args, **kwargs) if checked else {}
    failing = trace.failing(*args, **kwargs) if checked else []
    failed = {name for g in failing for name in g.params}
    view = _of_graph(trace.graph, trace.status, failed)
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
    return view, str(trace) + ("\nfor these inputs\n" + "\n".join(lines or ["  accepted"]) if checked else "")


def _of_graph(graph: Graph, status: dict[str, tuple[str, ...]], failed: Any = ()) -> View:
    names = _names(graph)
    returned: set[Any] = set()
    _collect(graph.output, returned)
    static: dict[Any, bool] = {}  # does the whole value come from static parameters and constants only?
    boxes = []
    for node in graph.nodes:
        op, name = str(node.op), names[node]
        own = status.get(name) if op.endswith("_param") else None
        inputs = [static[i] for i in node.inputs]
        if op.endswith("_param"):
            static[node] = all(s == "static" for s in own) if own else op == "v_static_param"
        else:
            static[node] = all(inputs)
        kind = "constant" if op == "v_constant" else "static" if static[node] else "dynamic"
        box = Box(node, f"{name}: {op}" if name else op, status=kind, first=op.endswith("_param") or kind == "constant")
        shape = getattr(node, "shape", node.params.get("size"))
        if shape is not None:
            kinds = own or (kind,) * len(shape)
            # Of a result no rule says yet which of its sizes are free: only what was seen is certain.
            free = "any (seen {})" if op.endswith("_param") else "seen {}"
            box.cells = [(_words(n, k, free), k) for n, k in zip(shape, kinds, strict=False)] or [("rank 0", kind)]
        if getattr(node, "mutates", False) and node.op != v_ambient:
            box.remarks.append("in place")
        if getattr(node, "unbacked", False):
            box.remarks.append("size depends on data")
        if node in returned:
            box.remarks.append("returned")
        if name in failed and op.endswith("_param"):
            box.remarks.append("FAIL")
        boxes.append(box)
    view = View(boxes, [(i, node) for node in graph.nodes for i in _used(node)])
    return _folded(view, graph) if len(boxes) > FOLD_ABOVE else view


def _words(n: Any, status: str, free: str) -> str:
    return f"={n}" if status == "static" else free.format(n) if status == "dynamic" else str(n)


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


def _collect(output: Any, into: set[Any]) -> None:
    if hasattr(output, "inputs"):
        into.add(output)
    elif isinstance(output, (tuple, list, dict)):
        for part in output.values() if isinstance(output, dict) else output:
            _collect(part, into)


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
    note = f"{len(view.boxes):,} nodes, folded {'by module' if scopes else 'in program order'}"
    return View(boxes, [(a, b) for a, b in arrows if a != b], view.guards, note)


# -- as Graphviz says it -------------------------------------------------------------------------------


def _label(text: str, limit: int = 90) -> str:
    """Escaped for an HTML label; ASCII only, since other signs are measured wrongly."""
    text = text if len(text) <= limit else text[: limit - 3] + "..."
    return html.escape(text.encode("ascii", "backslashreplace").decode())


def _cell(text: str, status: str, span: int = 1, align: str = "center") -> str:
    return f'<td bgcolor="{PALETTE[status]}" colspan="{span}" align="{align}">{_label(text)}</td>'


def _table(box: Box) -> str:
    span = max(len(box.cells), 1)
    title = f"<b>{_label(box.title, 60)}</b>"
    top = "fail" if "FAIL" in box.remarks else "plain"
    rows = [f'<tr><td bgcolor="{PALETTE[top]}" colspan="{span}">{title}</td></tr>']
    if box.cells:
        rows.append(f"<tr>{''.join(_cell(text, status) for text, status in box.cells)}</tr>")
    if box.remarks:
        rows.append(f"<tr>{_cell(', '.join(box.remarks), 'fail' if 'FAIL' in box.remarks else 'plain', span)}</tr>")
    style = ' style="dashed"' if box.status == "dynamic" else ""
    return f'<<table border="2"{style} cellborder="1" cellspacing="0" cellpadding="4">{"".join(rows)}</table>>'


def _dot(view: View, direction: str) -> str:
    ids = {box.key: f"n{i}" for i, box in enumerate(view.boxes)}
    lines = ["digraph {", f'  rankdir={direction}; bgcolor="#ffffff"; nodesep=0.3; ranksep=0.35',
             '  node [shape=plain fontname="Helvetica" fontsize=11 fontcolor="#000000"]',
             '  edge [arrowsize=0.7 color="#444444"]']  # fmt: skip
    lines += [f"  {ids[box.key]} [label={_table(box)}]" for box in view.boxes]
    first = [ids[box.key] for box in view.boxes if box.first and str(getattr(box.key, "op", "")) != "v_constant"]
    if first:
        lines.append(f"  {{rank=same; {'; '.join(first)}}}")
    lines += [f"  {ids[a]} -> {ids[b]}" for a, b in view.arrows]
    lines.append(f"  legend [label={_panel(view)}]")
    lines += [f"  {ids[last.key]} -> legend [style=invis]" for last in view.boxes[-1:]]
    return "\n".join([*lines, "}"])


def _panel(view: View) -> str:
    """Under the graph: what the colours mean, as far as they occur, and the guards."""
    rows = [f"<tr>{_cell(view.note, 'plain', align='left')}</tr>"] if view.note else []
    shown = {status for box in view.boxes for _, status in box.cells} | {box.status for box in view.boxes}
    rows += [f"<tr>{_cell(words, status, align='left')}</tr>" for status, words in _LEGEND.items() if status in shown]
    for text, verdict in view.guards[:20]:
        fill = {"FAIL": "fail", "PASS": "pass", "": "plain"}[verdict]
        rows.append(f"<tr>{_cell(text, fill, align='left')}</tr>")
    if len(view.guards) > 20:
        rows.append(f"<tr>{_cell(f'... {len(view.guards) - 20} more lines', 'plain')}</tr>")
    rows = rows or [f"<tr>{_cell('nothing was recorded', 'plain')}</tr>"]
    return f'<<table border="0" cellborder="1" cellspacing="0" cellpadding="3" color="#888888">{"".join(rows)}</table>>'
