"""Exercises, run on the notebooks' own cells, so that stub, check and solution can't drift apart.

In a notebook, an exercise is four cells: the task (markdown), a code cell tagged `exercise`
that holds the stub, a code cell tagged `check` that calls `nbNN.<name>(answer)`, and a markdown
cell whose last `<details>` holds the solution as a Python block. `wrong_answers_NN.py` beside
this file holds, per exercise, answers a learner may well give and what the message must name.
"""

import contextlib
import importlib
import io
import itertools
import linecache
import re
import sys
import types
from pathlib import Path

import jupytext
import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
CHECK_CALL = re.compile(r"^(nb\d\d)\.(\w+)\((.*)\)$", re.M)


def run(source, names):
    """As a kernel does: under a name by which guards find the text of a line."""
    name = f"<cell {next(_cells)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), names)


_cells = itertools.count()


class Exercise:
    def __init__(self, before, stub, check, solution):
        self.before, self.stub, self.check, self.solution = before, stub, check, solution
        call = CHECK_CALL.search(check)
        self.number, self.name = call[1].removeprefix("nb"), call[2]

    def __repr__(self):
        return f"{self.number}-{self.name}"

    def verdict(self, answer):
        """What the check prints for this answer, in a copy of the notebook's names."""
        names = dict(self.names)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run(answer, names)
            run(self.check, names)
        return printed.getvalue()


def exercises_of(path):
    cells = jupytext.read(path).cells
    found, before = [], []
    for i, cell in enumerate(cells):
        tags = cell.metadata.get("tags", [])
        if "exercise" in tags:
            assert "check" in cells[i + 1].metadata.get("tags", []), f"{path.name}: cell {i + 1} should be the check"
            blocks = re.findall(r"```python\n(.*?)```", cells[i + 2].source.rpartition("<details>")[2], re.S)
            assert blocks, f"{path.name}: no solution in the last <details> after the check in cell {i + 1}"
            found.append(Exercise(list(before), cell.source, cells[i + 1].source, "\n".join(blocks)))
        elif cell.cell_type == "code" and not {"check", "nbval-ignore-output"} & set(tags):  # plots, timings
            before.append(cell.source)
    return found


ALL = [e for path in sorted(NOTEBOOKS.glob("0[1-9]_*.ipynb")) for e in exercises_of(path)]
_running = {}


@pytest.fixture(scope="module", params=ALL, ids=repr)  # of the module: pytest then takes exercise by exercise, in order
def exercise(request):
    """An exercise, with `names`: what the notebook's cells before it define. Each cell runs once; what it shows goes nowhere."""
    e = request.param
    names, done = _running.get(e.number, ({}, 0))
    if not done or done > len(e.before):
        lesson = sys.modules[f"lesson_{e.number}"] = types.ModuleType(f"lesson_{e.number}")  # TorchDynamo looks globals up there
        names, done = lesson.__dict__ | {"display": lambda *_: None}, 0
        lesson.__dict__.update(names)
        names = lesson.__dict__
    with contextlib.redirect_stdout(io.StringIO()):
        for source in e.before[done:]:
            run(source, names)
    _running[e.number] = names, len(e.before)
    e.names = names
    return e


def wrong_answers(exercise):
    return importlib.import_module(f"wrong_answers_{exercise.number}").WRONG[exercise.name]


def test_every_notebook_has_three_to_five():
    counts = {}
    for e in ALL:
        counts[e.number] = counts.get(e.number, 0) + 1
    notebooks = {path.name[:2] for path in NOTEBOOKS.glob("0[1-9]_*.ipynb")}
    assert set(counts) == notebooks
    assert all(3 <= n <= 5 for n in counts.values()), counts


def test_the_stub_is_not_attempted(exercise):
    assert exercise.verdict(exercise.stub).startswith("not attempted yet")


def test_the_solution_is_correct(exercise):
    assert exercise.verdict(exercise.solution).startswith("correct")


def test_plausible_wrong_answers_are_refused_by_name(exercise):
    answers = wrong_answers(exercise)
    assert len(answers) >= 3
    for answer, fault in answers:
        verdict = exercise.verdict(answer)
        assert verdict.startswith("not yet"), (answer, verdict)
        assert fault in verdict, (answer, fault, verdict)
