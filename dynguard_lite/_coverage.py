"""How many of PyTorch's functions have a shape formula: `python3 -m dynguard_lite coverage`.

PyTorch's list of operators with sample inputs (`op_db`, in `torch.testing._internal`, tried
on torch 2.13) says which functions there are: every torch function that a few samples of
each entry call. Beside it, PyTorch's own shape functions in Python (the schemas of
`torch.jit._shape_functions`).
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from tqdm.auto import tqdm

from . import formulas
from .looks import function_name, look_kind
from .table import Table

#: Why some functions can have no formula.
BY_NATURE = {
    "allclose": "returns a bool, no tensor",
    "equal": "returns a bool, no tensor",
    "item": "returns a number, no tensor",
    "__index__": "returns an int, no tensor",
    "to_sparse": "a sparse result: its sizes are the input's, its data has others",
    "linalg_lstsq": "whether there are residuals depends on the rank, that is on data",
}


class _Calls(TorchFunctionMode):
    """The torch functions that a program calls, with their arguments; not what they call themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[Callable, tuple, dict]] = []

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        self.seen.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def exercised(samples: int = 4, progress: bool = True) -> dict[str, set[Callable]]:
    """The torch functions that op_db calls on the CPU, by name, looks at metadata left out; a few samples an entry."""
    from torch.testing._internal.common_methods_invocations import op_db

    found: dict[str, set[Callable]] = defaultdict(set)
    for op in tqdm(op_db, desc="calling each entry of op_db", unit=" entries", delay=2, leave=False, disable=not progress):
        dtypes = sorted(op.supported_dtypes("cpu"), key=lambda d: (d != torch.float32, str(d)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # op_db's deprecated spellings
            try:
                chosen = [s for s, _ in zip(op.sample_inputs("cpu", dtypes[0]), range(samples), strict=False)] if dtypes else []
            except AssertionError:  # an entry for GPUs
                continue
            for sample in chosen:
                with _Calls() as calls:
                    try:
                        op.op(sample.input, *sample.args, **sample.kwargs)
                    except Exception:  # another device, a library that isn't there
                        continue
                for func, args, _ in calls.seen:
                    if look_kind(func, args) is None:
                        found[function_name(func)].add(func)
    return found


def family(functions: set[Callable], name: str) -> str | None:
    """The module of formulas that covers a function; None where no formula does."""
    rules = [rule for f in functions if (rule := formulas.find(f, name)) is not None]
    return getattr(rules[0], "func", rules[0]).__module__.rpartition(".")[2] if rules else None


def jit_names() -> set[str]:
    """The names that PyTorch's own Python shape functions cover."""
    from torch.jit._shape_functions import shape_compute_graph_mapping  # (torch 2.9 - 2.13)

    return {schema.split("(")[0].split(".")[0].removeprefix("aten::") for schema in shape_compute_graph_mapping}


def report(samples: int = 4, progress: bool = True) -> Table:
    """Per family: functions with a formula, and how many of those PyTorch's own Python shape functions cover."""
    names = exercised(samples, progress)
    jit = jit_names()
    families = {name: family(functions, name) for name, functions in names.items()}
    counts = Counter(f for f in families.values() if f)
    theirs = Counter(families[n] for n in names if families[n] and formulas.registry.plain_name(n) in jit)
    rows = [(f, str(n), str(theirs[f])) for f, n in sorted(counts.items())]
    without = sorted(n for n, f in families.items() if f is None)
    rows += [("conservative by nature", str(sum(n in BY_NATURE for n in without)), "-"),
             ("no formula", str(sum(n not in BY_NATURE for n in without)), "-"),
             ("all", str(len(names)), str(sum(theirs.values())))]  # fmt: skip
    return Table(("family", "functions", "in torch.jit"), rows, "op_db calls no function", prose=("family",))


def main() -> int:
    try:
        table = report()
    except ImportError as error:
        print(f"coverage needs PyTorch's list of operators: {error}. pip install -r requirements.txt", file=sys.stderr)
        return 1
    with_formula = sum(int(n) for f, n, _ in table.rows if f not in ("conservative by nature", "no formula", "all"))
    print(f"{table}\n\n{with_formula} of the {table.rows[-1][1]} torch functions that op_db calls on the CPU have a shape formula;"
          "\nnext to it, how many of those PyTorch's own shape functions in Python (torch.jit._shape_functions) cover.\n"
          f"Conservative by nature: {', '.join(BY_NATURE)}.")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
