"""`python3 -m dynguard_lite regenerate`: run notebooks from their text and save what they show.

A notebook is a pair of files. The `.py` (jupytext's py:percent) is its source and is never written here;
the `.ipynb` is made from it alone, in a fresh kernel, so that two runs write the same bytes wherever the
cells' own outputs are the same.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections import Counter
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
CELL_TIMEOUT = 600  # seconds: a cell that runs longer hangs

# What a kernel reports about itself, without the versions that differ from machine to machine.
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}
# Refers by a random id to a model in a kernel that is gone; the text beside it stays.
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class NotebookError(Exception):
    """A notebook that could not be run, with what to do about it."""


def read_source(path: Path) -> NotebookNode:
    """The notebook that a py:percent file describes: no outputs, nothing but source and tags.

    A cell's id comes from its text, so it neither changes from run to run nor when a cell is inserted
    elsewhere; equal cells are told apart by counting.
    """
    make = {
        "code": nbformat.v4.new_code_cell,
        "markdown": nbformat.v4.new_markdown_cell,
        "raw": nbformat.v4.new_raw_cell,
    }
    seen: Counter[str] = Counter()
    cells = []
    for cell in jupytext.read(path, fmt="py:percent").cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] += 1
        tags = {"tags": cell.metadata.tags} if cell.metadata.get("tags") else {}
        cells.append(make[cell.cell_type](cell.source, id=f"{digest}-{seen[digest]}", metadata=tags))
    return nbformat.v4.new_notebook(cells=cells, metadata=METADATA)


def execute(notebook: NotebookNode, name: str, cwd: Path) -> None:
    """Run all cells in a fresh kernel, started in `cwd`; the outputs go into `notebook`."""
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=CELL_TIMEOUT,
        resources={"metadata": {"path": str(cwd)}},
        coalesce_streams=True,  # how many pieces a stream arrives in is chance
        record_timing=False,
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],  # ipykernel warns about each kernel it starts over TCP
    )
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                what = f"raised {error.ename}: {error.evalue}"
            except CellTimeoutError:
                what = f"ran for more than {CELL_TIMEOUT} seconds"
            except DeadKernelError:
                what = "ended the kernel"
            else:
                continue
            source = "\n".join(f"    {line}" for line in cell.source.splitlines())
            raise NotebookError(
                f"{name}.ipynb, cell {index + 1} of {len(notebook.cells)}, {what}\n\n{source}\n\n"
                f"{name}.ipynb is left as it was. Correct {name}.py and run the same command again."
            )


def strip(notebook: NotebookNode) -> None:
    """Take out of the outputs what means something to the kernel that made them only."""
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", ()):
            output.get("data", {}).pop(WIDGET_VIEW, None)


def regenerate(source: Path) -> bool:
    """Write the `.ipynb` of one `.py`; whether that changed it. On NotebookError nothing is written."""
    notebook = read_source(source)
    execute(notebook, source.stem, source.parent)
    strip(notebook)
    nbformat.validate(notebook)
    text = nbformat.writes(notebook) + "\n"
    target = source.with_suffix(".ipynb")
    changed = not target.is_file() or target.read_text(encoding="utf-8") != text
    if changed:
        target.write_text(text, encoding="utf-8", newline="\n")
    return changed


def choose(names: list[str], folder: Path) -> list[Path]:
    """The sources that the names begin: `03`, `03_guard_analysis`, `notebooks/03_guard_analysis.py`."""
    sources = sorted(folder.glob("*.py"))
    if not names:
        return sources
    wanted = [Path(name).name.removesuffix(".py").removesuffix(".ipynb") for name in names]
    for name in wanted:
        if not any(source.stem.startswith(name) for source in sources):
            known = ", ".join(source.stem for source in sources) or "none"
            raise NotebookError(f"No notebook's name begins with {name!r}. There are: {known}.")
    return [source for source in sources if source.stem.startswith(tuple(wanted))]


def main(argv: list[str] | None = None, folder: Path = NOTEBOOKS) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m dynguard_lite regenerate")
    parser.add_argument("names", nargs="*", help="notebooks, by name or its beginning; none named: all")
    os.environ["TQDM_DISABLE"] = "1"  # a bar that a slow machine shows is no output of the lesson's
    try:
        for source in choose(parser.parse_args(argv).names, folder):
            print(f"{source.stem} ...", end=" ", flush=True)
            start = time.perf_counter()
            changed = regenerate(source)
            print(f"{'written' if changed else 'unchanged'}, {time.perf_counter() - start:.0f} s", flush=True)
    except NotebookError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
