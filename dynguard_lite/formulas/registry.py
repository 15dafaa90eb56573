"""Which shape formula belongs to which torch function.

A formula is an ordinary Python function with the torch function's own arguments, in which
each tensor is replaced by its shape (a `torch.Size`). It returns the result's shape, or a
tuple or list of shapes where there are several results. It is written once and runs on
ints, where it computes, and on SymInts, where it builds expressions. A decision it takes on a
size (`if n == 1`) becomes a guard of the trace that needs the shape.

It may take for granted that PyTorch accepts the arguments: where it doesn't, replay raises
what eager raises. `None` in place of a shape says "not known": the size of every input
then flows into every size of that result.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

Formula = Callable[..., Any]

_by_name: dict[str, Formula] = {}
_by_function: dict[Any, Formula] = {}

_ALIASES = {"self": "input", "axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}
#: Keywords that never change a shape.
_IGNORED = {"dtype", "device", "layout", "requires_grad", "pin_memory", "memory_format", "out", "generator", "non_blocking"}


def formula(*targets: Callable | str) -> Callable[[Formula], Formula]:
    """Decorator: this is the shape formula of the torch functions `targets`.

    A target is a function as a program calls it (`torch.cummax`, your own
    `torch.library.custom_op`), or plain names, each of which covers all spellings:
    `"add mul"` is torch.add, Tensor.add, Tensor.add_, the operator, and the same of mul. A
    function's own formula comes before one by name, and a later one replaces an earlier one.
    """

    def register(fn: Formula) -> Formula:
        for target in targets:
            if isinstance(target, str):
                _by_name.update(dict.fromkeys(target.split(), fn))
            elif callable(target):
                _by_function[_packet(target)] = fn
            else:
                raise TypeError(f"formula: a target must be a function or a name, got {type(target).__name__}")
        return fn

    if not targets:
        raise TypeError("formula: name the torch functions that it is for: @formula(torch.cummax)")
    return register


def _packet(function: Any) -> Any:
    """Custom operators have one object for the call and others for their overloads: the name stands for all."""
    if type(function).__name__ not in ("CustomOpDef", "OpOverload", "OpOverloadPacket"):
        return function
    return re.sub(r"<\w+\((?:op=')?([\w.:]+).*", r"\1", repr(function)).replace("::", ".")


def _from_torch(function: Any) -> bool:
    """Is it PyTorch's own? Another library's `relu`, or a reader's, need not be what the name says."""
    packet = _packet(function)
    if packet is not function:
        return packet.startswith("aten.")
    if isinstance(getattr(function, "__self__", None), type):  # a torch.autograd.Function's apply
        return False
    return (getattr(function, "__module__", None) or "torch").split(".")[0] == "torch"


def plain_name(name: str) -> str:
    """`add` for `__radd__`, `__iadd__` and `add_`; `view` for `view_copy`, `i0` for `special_i0`."""
    if name.startswith("__") and name.endswith("__"):
        name = name.strip("_")
        return name[1:] if name[:1] in "ri" and name[1:] in _by_name else name
    name = name[:-1] if name.endswith("_") and not name.startswith("_") else name
    return name.removesuffix("_copy").removeprefix("special_")


def find(function: Callable, name: str) -> Formula | None:
    """The formula of a torch function, called `name`; None if there is none."""
    found = _by_function.get(_packet(function))
    if found is None and _from_torch(function):
        found = _by_name.get(name) or _by_name.get(plain_name(name)) or _by_name.get(name[:8] + "*")  # special_*
    return found


def apply(rule: Formula, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Call a formula as the torch function was called; keywords go by the names that PyTorch has for them."""
    takes = inspect.signature(rule).parameters
    kwargs = {k if k in takes else _ALIASES.get(k, k): v for k, v in kwargs.items()}
    if not any(p.kind is p.VAR_KEYWORD for p in takes.values()):
        kwargs = {k: v for k, v in kwargs.items() if k in takes or k not in _IGNORED}
    if kwargs.get("input") is not None and "input" in kwargs and not args and next(iter(takes), "") != "input":
        args = (kwargs.pop("input"),)
    return rule(*args, **kwargs)
