"""`bench`: it runs, the table and the JSON have every row. How long anything takes is asserted nowhere."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent / "benchmarks"
#: The rows that the README promises, and how many of each.
GROUPS = {"guard check": 10, "replay": 6, "cached call": 4, "tracing": 12, "analysis": 3, "tree walk": 3, "drawing": 10,
          "measure": 1, "import": 1, "series": 1}  # fmt: skip


def bench(*options, cwd):
    return subprocess.run([sys.executable, str(BENCH), *options], cwd=cwd, capture_output=True, text=True, timeout=600)


def test_a_quick_run_has_every_row(tmp_path):
    done = bench("--quick", "--json", "table.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    table = json.loads((tmp_path / "table.json").read_text(encoding="utf-8"))
    rows = table["rows"]
    assert {g: sum(r["group"] == g for r in rows) for g in GROUPS} == GROUPS and len(rows) == sum(GROUPS.values())
    assert len({(r["group"], r["what"], r["against"]) for r in rows}) == len(rows)
    for row in rows:
        if row["ratio"] is None:  # why it wasn't measured is said in its place
            assert row["met"].startswith(("skipped:", "it can't")), row
        else:
            assert row["ratio"] > 0 and row["ours"] and row["theirs"]
            assert row["met"] == ("shown" if row["goal"] is None else "yes" if round(row["ratio"], 3) <= row["goal"] else "NO")
    printed = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(printed) == len(rows) + 1 and len({line.count("|") for line in printed}) == 1
    for line, row in zip(printed[1:], rows, strict=True):
        assert row["what"] in line and row["against"] in line and row["met"] in line
    assert f"Measured on {table['where']}; `python3 -m dynguard_lite bench` --quick" in done.stdout
    assert f"{len(rows)}/{len(rows)} rows" in done.stderr  # progress


def test_only_chooses_rows(tmp_path):
    done = bench("--quick", "--only", "TREE walk", cwd=tmp_path)
    printed = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert done.returncode == 0 and len(printed) == 1 + GROUPS["tree walk"], done.stderr


@pytest.mark.parametrize(("options", "words"), [
    (["--json", "no/such/folder.json"], "--json: can't write"),
    (["--only", "nothing like it"], "--only: no row contains 'nothing like it'"),
])  # fmt: skip
def test_what_cannot_work_is_refused_before_the_run(options, words, tmp_path):
    done = bench("--quick", *options, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and done.stdout == ""
