"""A picture of boxes and arrows: what it shows (`View`), and how Graphviz says and draws it.

The `graphviz-pure` wheel draws, so that nothing has to be installed on the system; without
it, `dot` does; without both, the text form stands in.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import shutil
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Fill of each status; text is black. Printed in greyscale they differ in lightness; the words in the cells say the same.
PALETTE = {"constrained": "#fdf1b0", "dynamic": "#c5e0f9", "static": "#fabd80", "constant": "#bababa", "data": "#b39de0",
           "plain": "#ffffff", "fail": "#f29b9b", "pass": "#d3efcb"}  # fmt: skip
_LEGEND = {
    "dynamic": "dynamic: sizes may differ (dashed border)",
    "constrained": "constrained: a guard bounds it",
    "static": "static: one size only (solid border)",
    "constant": "constant: the program holds it",
    "data": "depends on data: an unbacked size (u0)",
}
ADVICE = "For pictures: pip install graphviz graphviz-pure (or install Graphviz, so that `dot` is found)."


@dataclass
class Box:
    """One node of the picture: a title, one (text, status) cell per dimension, remarks, and what a tooltip says."""

    key: Any
    title: str
    cells: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    status: str = "plain"
    first: bool = False
    tip: str = ""


@dataclass
class View:
    """What a picture shows: boxes, arrows between their keys (`dotted`: a size flows, no tensor), guards
    as (text, verdict or "")."""

    boxes: list[Box]
    arrows: list[tuple[Any, Any]]
    dotted: list[tuple[Any, Any]] = field(default_factory=list)
    guards: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Drawing:
    """A picture: `source` (Graphviz's language), `svg`, and `text`, the same in words. A notebook shows it."""

    def __init__(self, source: str, text: str, tips: dict[str, str] | None = None):
        self.source, self.text = source, text
        self._tips = tips or {}  # of the source's nodes, by their names there

    @property
    def svg(self) -> str:
        """The picture as SVG text. RuntimeError where nothing on this machine can draw it."""
        return self._render("svg").decode()

    def inline(self, name: str) -> str:
        """The picture as an element of a web page: `name` and the text form for screen readers, and tooltips,
        which a picture that a page refers to doesn't have. RuntimeError as for `svg`."""
        picture = self.svg[self.svg.index("<svg") :]
        # Graphviz names each part in a title, which browsers show as its tooltip, and numbers them in ids,
        # which a page with two pictures would have twice.
        picture = re.sub(r"<title>(.*?)</title>\n?", lambda found: self._tip(html.unescape(found[1])), picture)
        picture = re.sub(r' id="[^"]*"', "", picture)
        start, end = picture.index("<svg") + 4, picture.index(">") + 1
        head = f' role="img" aria-label="{html.escape(name)}" style="max-width:100%;height:auto"{picture[start:end]}'
        return f"<svg{head}<title>{html.escape(name)}</title><desc>{html.escape(self.text)}</desc>{picture[end:]}"

    def _tip(self, part: str) -> str:
        return f"<title>{html.escape(self._tips[part])}</title>" if part in self._tips else ""

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


def as_dot(view: View, direction: str) -> str:
    """The view in Graphviz's language; `direction`: TB or LR."""
    ids = {box.key: f"n{i}" for i, box in enumerate(view.boxes)}
    lines = ["digraph {", f'  rankdir={direction}; bgcolor="#ffffff"; nodesep=0.3; ranksep=0.35',
             '  node [shape=plain fontname="Helvetica" fontsize=11 fontcolor="#000000"]',
             '  edge [arrowsize=0.7 color="#444444"]']  # fmt: skip
    lines += [f"  {ids[box.key]} [label={_table(box)}]" for box in view.boxes]
    first = [ids[box.key] for box in view.boxes if box.first and str(getattr(box.key, "op", "")) != "v_constant"]
    if first:
        lines.append(f"  {{rank=same; {'; '.join(first)}}}")
    lines += [f"  {ids[a]} -> {ids[b]}" for a, b in view.arrows]
    lines += [f"  {ids[a]} -> {ids[b]} [style=dotted]" for a, b in view.dotted]
    lines.append(f"  legend [label={_panel(view)}]")
    lines += [f"  {ids[last.key]} -> legend [style=invis]" for last in view.boxes[-1:]]
    return "\n".join([*lines, "}"])


def tips(view: View) -> dict[str, str]:
    """What the tooltips say, by the names that `as_dot` gives the boxes."""
    guards = "\n".join(text for text, _ in view.guards)
    return {f"n{i}": box.tip or box.title for i, box in enumerate(view.boxes)} | ({"legend": guards} if guards else {})


def _panel(view: View) -> str:
    """Under the graph: what the colours mean, as far as they occur, and the guards."""
    rows = [f"<tr>{_cell(note, 'plain', align='left')}</tr>" for note in view.notes]
    shown = {status for box in view.boxes for _, status in box.cells} | {box.status for box in view.boxes}
    if view.dotted:
        rows.append(f"<tr>{_cell('dotted arrow: a size, not a tensor', 'plain', align='left')}</tr>")
    rows += [f"<tr>{_cell(words, status, align='left')}</tr>" for status, words in _LEGEND.items() if status in shown]
    for text, verdict in view.guards[:20]:
        fill = {"FAIL": "fail", "PASS": "pass", "": "plain"}[verdict]
        rows.append(f"<tr>{_cell(text, fill, align='left')}</tr>")
    if len(view.guards) > 20:
        rows.append(f"<tr>{_cell(f'... {len(view.guards) - 20} more lines', 'plain')}</tr>")
    rows = rows or [f"<tr>{_cell('nothing was recorded', 'plain')}</tr>"]
    return f'<<table border="0" cellborder="1" cellspacing="0" cellpadding="3" color="#888888">{"".join(rows)}</table>>'
