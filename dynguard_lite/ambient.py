"""Ambient state: what changes results without being an argument.

Grad mode, inference mode, autocast and the default dtype. A program may *set* them in
the middle (`with torch.no_grad():`): the tracer notices by comparing snapshots before
each operation, records the change as a node, and replay makes the same change. A program
may *look* at them, or set them and set them back: then the trace stands for the state it
was recorded under only, and a guard says so.
"""

from __future__ import annotations

import contextlib
from typing import NamedTuple

import torch

from .ir import Op

v_ambient = Op("v_ambient")


class Ambient(NamedTuple):
    """One reading of the ambient state. Field names are what the guards call them."""

    grad: bool
    inference: bool
    autocast: tuple
    default_dtype: torch.dtype

    def __repr__(self) -> str:
        on = ["grad" if self.grad else "no grad", *(["inference"] if self.inference else [])]
        on += [f"autocast {device} {dtype}" for device, enabled, dtype in self.autocast if enabled]
        return f"<{', '.join([*on, str(self.default_dtype)])}>"


_DEVICES = ("cpu", "cuda")


def guarded(part: str, state: Ambient) -> list[tuple[str, object]]:
    """`(Python source, value)` of the guards that pin one part of the state."""
    if part == "grad":
        return [("torch.is_grad_enabled()", state.grad)]
    if part == "inference":
        return [("torch.is_inference_mode_enabled()", state.inference)]
    if part == "default_dtype":
        return [("torch.get_default_dtype()", state.default_dtype)]
    guards: list[tuple[str, object]] = []
    for device, enabled, dtype in state.autocast:
        if device == "cpu" or enabled:
            guards.append((f"torch.is_autocast_enabled({device!r})", enabled))
        if enabled:
            guards.append((f"torch.get_autocast_dtype({device!r})", dtype))
    return guards


# Bound here, since the tracer watches the names in `torch` for a program that looks.
_grad, _inference, _default_dtype = torch.is_grad_enabled, torch.is_inference_mode_enabled, torch.get_default_dtype
_autocast, _autocast_dtype = torch.is_autocast_enabled, torch.get_autocast_dtype


def read() -> Ambient:
    """The state now."""
    autocast = tuple((d, _autocast(d), _autocast_dtype(d)) for d in _DEVICES)
    return Ambient(_grad(), _inference(), autocast, _default_dtype())


class Replay:
    """Makes recorded changes of the ambient state; leaves the state as it was."""

    def __init__(self) -> None:
        self._stack: contextlib.ExitStack | None = None

    def __enter__(self) -> Replay:
        return self

    def enter(self, state: Ambient) -> None:
        self.__exit__()
        stack = self._stack = contextlib.ExitStack()
        if state.inference != _inference():
            stack.enter_context(torch.inference_mode(state.inference))
        for device, enabled, dtype in state.autocast:
            if enabled != _autocast(device) or (enabled and dtype != _autocast_dtype(device)):
                stack.enter_context(torch.autocast(device, dtype=dtype, enabled=enabled))
        stack.enter_context(torch.set_grad_enabled(state.grad))
        stack.callback(torch.set_default_dtype, _default_dtype())
        torch.set_default_dtype(state.default_dtype)

    def __exit__(self, *exc: object) -> None:
        if self._stack is not None:
            self._stack.close()
            self._stack = None
