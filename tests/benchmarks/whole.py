"""What a reader waits for: importing the package, running the whole series."""

from __future__ import annotations

import contextlib
import io
import statistics
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from measuring import Case, Result, Skipped, span

from dynguard_lite import _regenerate

CLOCK = "import sys, time; s = time.perf_counter(); import dynguard_lite; print(time.perf_counter() - s, 'torch' in sys.modules)"
GOAL = 0.020  # seconds


def importing(quick: bool) -> Result:
    """In fresh interpreters; the ratio is to the goal of 20 ms."""
    took = []
    for _ in range(3 if quick else 15):
        printed = subprocess.run([sys.executable, "-c", CLOCK], capture_output=True, text=True, check=True).stdout.split()
        if printed[1] != "False":
            raise AssertionError("importing dynguard_lite imports torch")
        took.append(float(printed[0]))
    middle = statistics.median(took)
    return Result(middle / GOAL, span(middle), span(GOAL))


def execute(notebook: nbformat.NotebookNode, name: str, folder: Path) -> float:
    start = time.perf_counter()
    with contextlib.redirect_stderr(io.StringIO()):
        _regenerate.execute(notebook, name, folder)
    return time.perf_counter() - start


def series(quick: bool) -> Result:
    """Each notebook in a fresh kernel, in turn with a kernel that only imports torch."""
    sources = _regenerate.choose([], _regenerate.NOTEBOOKS)
    ours = floor = 0.0
    for path in sources:
        empty = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("import torch")])
        floor += execute(empty, "floor", path.parent)
        try:
            ours += execute(_regenerate.read_source(path), path.stem, path.parent)
        except _regenerate.NotebookError as error:
            raise Skipped(f"{path.stem} doesn't run: {str(error).splitlines()[0]}") from None
    return Result(ours / floor, span(ours), span(floor))


def cases() -> list[Case]:
    return [
        Case("import", "`import dynguard_lite`, without torch", "20 ms", 1.0, importing),
        Case("series", "all notebooks executed", "kernel starts and torch imports", 2.0, series, slow=True),
    ]
