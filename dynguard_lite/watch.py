"""What a tracer sees besides torch calls, for as long as it runs.

A few functions that change or read the ambient state don't pass through
`__torch_function__`, nor does a `torch.autograd.Function`. While a program is traced,
their names in `torch` stand for wrappers that tell the tracer of the tracing thread, and
hooks tell it which `nn.Module` is running. All of it is undone when tracing ends.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.overrides import handle_torch_function

from .errors import TraceError
from .formulas.pointwise import broadcast_shapes
from .sizes import Size, SymInt, items
from .source import in_torch

if TYPE_CHECKING:
    from .tracer import Tracer

_thread = threading.local()
_one_at_a_time = threading.RLock()  # the wrappers are the process's, so traces take turns

_LOOKS = {
    "is_grad_enabled": "grad",
    "is_inference_mode_enabled": "inference",
    "is_autocast_enabled": "autocast",
    "is_autocast_cpu_enabled": "autocast",
    "get_autocast_dtype": "autocast",
    "get_autocast_cpu_dtype": "autocast",
    "get_default_dtype": "default_dtype",
}
_EFFECTS = ("manual_seed", "get_rng_state", "set_rng_state")  # recorded in program order: fork_rng uses them
_REFUSED = ("seed", "initial_seed")


def current() -> Tracer | None:
    """The tracer whose program this thread is running; None inside an operation of that program."""
    return getattr(_thread, "tracer", None)


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """PyTorch's own code runs: what it looks at is no look of the program's."""
    tracer, _thread.tracer = current(), None
    try:
        yield
    finally:
        _thread.tracer = tracer


def _watched(fn: Callable, tell: Callable[[Tracer], Any]) -> Callable:
    @functools.wraps(fn)
    def watched(*args: Any, **kwargs: Any) -> Any:
        if (tracer := current()) is not None:
            tell(tracer)
        return fn(*args, **kwargs)

    return watched


def _dispatched(fn: Callable) -> Callable:
    """`fn` through `__torch_function__`, as if PyTorch had made it overridable."""

    @functools.wraps(fn)
    def dispatched(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs) if current() is None else handle_torch_function(fn, (), *args, **kwargs)

    return dispatched


def _broadcast_shapes(original: Callable) -> Callable:
    """`torch.broadcast_shapes` as an operation on sizes, where PyTorch's own compares them one by one."""

    @functools.wraps(original)
    def joined(*shapes: Any) -> Any:
        shapes = [(s,) if isinstance(s, int) else s for s in shapes]
        if current() is None or not any(type(n) is SymInt for s in shapes for n in items(s)):
            return original(*shapes)
        return Size(broadcast_shapes(*shapes))

    return joined


def _refuse(name: str, tracer: Tracer) -> None:
    raise TraceError(f"torch.{name} turns the random number generator's state into a Python value",
                     "use torch.manual_seed, which is recorded, or seed outside the traced program",
                     tracer.here())  # fmt: skip


def _function_apply(original: Callable) -> Callable:
    """`torch.autograd.Function.apply`, recorded as one operation, so that its backward is kept."""

    def apply(cls: type, *args: Any, **kwargs: Any) -> Any:
        return _dispatched(original.__get__(None, cls))(*args, **kwargs)

    return apply


def _assigned(original: Callable) -> Callable:
    """`nn.Module.__setattr__`: what a running module remembers for its next call, no replay would remember."""

    def assign(module: torch.nn.Module, name: str, value: Any) -> None:
        now = current()
        if now is not None and module in now.called and not in_torch(sys._getframe(1)) and not _is(getattr(module, name, module), value):
            raise TraceError(f"{type(module).__name__}.{name} is assigned while the module runs, and a replay would not assign it",
                             "take the value as an argument and return the new one, or keep it in a buffer and change "
                             "that in place (add_, copy_)", now.here())  # fmt: skip
        original(module, name, value)

    return assign


def _is(old: Any, new: Any) -> bool:
    """Are they one object, or equal values of plain Python?"""
    return old is new or (type(old) is type(new) and isinstance(new, (int, float, str, bool)) and old == new)


@contextlib.contextmanager
def watching(tracer: Tracer) -> Iterator[None]:
    """Tell `tracer` what this thread's program does besides torch calls."""
    if current() is not None:
        raise TraceError("a traced program starts another trace", "trace one of them alone", tracer.here())

    def enter(module: torch.nn.Module, args: Any) -> None:
        if (now := current()) is not None:
            now.enter_module(module)

    def leave(module: torch.nn.Module, args: Any, output: Any) -> None:
        if (now := current()) is not None:
            now.leave_module(module)

    with contextlib.ExitStack() as stack:
        stack.enter_context(_one_at_a_time)
        for name, part in _LOOKS.items():
            tell = functools.partial(lambda part, t: t.look_ambient(part, f"the program looks at it: {part}"), part)
            stack.enter_context(mock.patch.object(torch, name, _watched(getattr(torch, name), tell)))
        for name in _EFFECTS:
            stack.enter_context(mock.patch.object(torch, name, _dispatched(getattr(torch, name))))
        for name in _REFUSED:
            tell = functools.partial(_refuse, name)
            stack.enter_context(mock.patch.object(torch, name, _watched(getattr(torch, name), tell)))
        stack.enter_context(mock.patch.object(torch, "broadcast_shapes", _broadcast_shapes(torch.broadcast_shapes)))
        original = torch.autograd.Function.__dict__["apply"]
        stack.enter_context(mock.patch.object(torch.autograd.Function, "apply", classmethod(_function_apply(original))))
        stack.enter_context(mock.patch.object(torch.nn.Module, "__setattr__", _assigned(torch.nn.Module.__setattr__)))
        stack.callback(register_module_forward_pre_hook(enter).remove)
        stack.callback(register_module_forward_hook(leave, always_call=True).remove)
        _thread.tracer = tracer
        stack.callback(setattr, _thread, "tracer", None)
        stack.callback(setattr, tracer, "finished", True)
        stack.enter_context(tracer)
        yield
