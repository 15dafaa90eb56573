"""A small table that prints as text, and as HTML in a notebook."""

from __future__ import annotations

import html
from collections.abc import Sequence


class Table:
    """`rows` of text under `columns`; `empty` is what to print where there are none. Columns in `prose` aren't code."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]], empty: str, prose: Sequence[str] = ()):
        self.columns, self.rows, self.empty, self.prose = tuple(columns), [tuple(r) for r in rows], empty, prose

    def __str__(self) -> str:
        if not self.rows:
            return self.empty
        table = [self.columns, *self.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.columns))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        if not self.rows:
            return f"<p>{html.escape(self.empty)}</p>"

        def cell(column: str, text: str) -> str:
            text = html.escape(text)
            return f"<td>{text}</td>" if column in self.prose else f"<td><code>{text}</code></td>"

        rows = "".join(f"<tr>{''.join(map(cell, self.columns, row))}</tr>" for row in self.rows)
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
