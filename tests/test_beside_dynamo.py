"""The lessons' programs, ours and TorchDynamo's guards side by side: the casebook's and the ladder's.

On each program's grid both are sound, and our `symbolic` accepts all the path-valid shapes that TorchDynamo
accepts. The programs are collected from the notebooks' own cells, where a recorder stands in for what measures.
"""

import contextlib
import io
from pathlib import Path

import jupytext
import pytest

import dynguard_lite as dg

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
DYNAMO = ("dynamo True", "dynamo False", "dynamo automatic")
#: Where TorchDynamo accepts shapes of another path than the traced one, and why.
BEYOND = {
    "pad_to_16": "2.13 takes Python's max for an expression, so its one entry serves both sides",
}
#: Where TorchDynamo accepts path-valid shapes that ours refuses, and why.
FEWER = {
    "python_max": "Python's max compares sizes, and ours keeps to the side it took; 2.13 takes it for an expression",
}


def programs(name, monkeypatch):
    """(program, inputs, options) for each call of dg.measure that the notebook's cells make."""
    found = []

    def recorded(fn, *args, sizes=range(6), **options):
        found.append((fn, args, sizes))
        return measured(fn, *args, sizes=sizes, **options)

    measured = dg.measure
    names = {"__name__": "__main__", "display": lambda *_: None}
    with monkeypatch.context() as patched, contextlib.redirect_stdout(io.StringIO()):
        patched.setattr(dg, "measure", recorded)
        for cell in jupytext.read(NOTEBOOKS / f"{name}.py").cells:
            if cell.cell_type == "code" and not {"exercise", "check", "nbval-ignore-output"} & set(cell.metadata.get("tags", [])):
                exec(compile(cell.source, f"<{name}>", "exec"), names)
    return found


@pytest.mark.parametrize("name", ["04_precision_limits", "06_symbolic_guards", "07_beside_torchdynamo", "08_casebook"])
def test_ours_accept_what_torchdynamo_accepts_and_both_are_sound(name, monkeypatch):
    found = programs(name, monkeypatch)
    assert len(found) >= 2
    for fn, args, sizes in found:
        title = getattr(fn, "__name__", type(fn).__name__)
        r = dg.measure(fn, *args, sizes=sizes, analyses=("static", "whole_tensor", "per_dimension", "symbolic"), dynamo=True)
        rows = {row: r[row] for row in ("static", "whole_tensor", "per_dimension", "symbolic", *DYNAMO) if row in r.rows}
        assert {"dynamo True", "dynamo False"} <= set(rows)
        for row, measured in rows.items():
            assert measured.sound, (title, row, sorted(measured.unsound)[:3])
            lacking = (measured.accepted & measured.path_valid) - rows["symbolic"].accepted
            assert not lacking or title in FEWER, (title, row, sorted(lacking)[:3])
        symbolic = rows["dynamo True"]
        beyond, fewer = symbolic.accepted - symbolic.path_valid, symbolic.accepted & symbolic.path_valid - rows["symbolic"].accepted
        assert bool(beyond) == (title in BEYOND), (title, sorted(beyond)[:3])
        assert bool(fewer) == (title in FEWER), (title, sorted(fewer)[:3])
