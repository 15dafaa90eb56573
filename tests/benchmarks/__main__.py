"""`python3 -m dynguard_lite bench`: measure, beside PyTorch's own, and print one table."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import time
import traceback
import warnings
from pathlib import Path

import torch
from measuring import Case, Measured, Skipped, markdown

MODULES = ("calls", "tracing", "pictures", "whole")

NOTES = """\
A ratio is ours divided by theirs: the median over rounds in which both sides run in turn, on one thread. \
TorchDynamo's guard manager also checks each tensor's type, dtype, device, requires_grad, strides and dispatch keys and the \
global state (grad mode, autocast, modes ...), and takes its arguments ready in a dict; ours checks that each is a tensor, \
of the rank that the conditions take for granted, and what the program looked at, and binds the arguments as Python does. \
TorchDynamo moves an entry that is hit to the front; ours stay in the order they were made. \
FX runs no operation, so running the program is taken off our time beside it; it records a module of PyTorch's as one node."""


def all_cases() -> list[Case]:
    return [case for name in MODULES for case in __import__(name).cases()]


def measure(case: Case, quick: bool) -> Measured:
    if quick and case.slow:
        return Measured(case, None, "skipped: quick")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Measured(case, case.run(quick))
    except Skipped as reason:
        return Measured(case, None, str(reason))
    except Exception as error:  # one row that fails doesn't lose the others
        traceback.print_exc()
        return Measured(case, None, f"FAILED: {type(error).__name__}")


def where() -> str:
    cores = os.cpu_count()
    return (f"{datetime.date.today().isoformat()}, Python {platform.python_version()}, torch {torch.__version__}, "
            f"{platform.system()} {platform.machine()}, {cores} CPU cores")  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m dynguard_lite bench")
    parser.add_argument("--quick", action="store_true", help="a few repeats of small settings: does everything run?")
    parser.add_argument("--only", metavar="TEXT", default="", help="the rows whose text contains this")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the table there too")
    options = parser.parse_args(argv)
    if options.json:
        try:
            with options.json.open("a"):  # now, not after minutes of measuring
                pass
        except OSError as error:
            parser.error(f"--json: can't write {options.json}: {error.strerror}")
    cases = [case for case in all_cases() if options.only.lower() in str(case).lower()]
    if not cases:
        parser.error(f"--only: no row contains {options.only!r}")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    start = time.perf_counter()
    measured = []
    for i, case in enumerate(cases, 1):
        print(f"{i}/{len(cases)} rows, {time.perf_counter() - start:.0f} s: {case}", file=sys.stderr, flush=True)
        began = time.perf_counter()
        measured.append(measure(case, options.quick))
        measured[-1].seconds = time.perf_counter() - began
    print(f"{markdown(measured)}\n\nMeasured on {where()}; `python3 -m dynguard_lite bench`{' --quick' if options.quick else ''}, "
          f"{time.perf_counter() - start:.0f} s.\n\n{NOTES}")  # fmt: skip
    if options.json:
        table = {"where": where(), "quick": options.quick, "rows": [m.as_json() for m in measured]}
        options.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    return int(any(m.reason.startswith("FAILED") for m in measured))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        sys.exit(130)
