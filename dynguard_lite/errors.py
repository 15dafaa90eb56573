"""What this package raises. Each message says what to do instead."""

from __future__ import annotations

from .source import Cause


class TraceError(RuntimeError):
    """A program that a trace with guards can't stand for.

    `cause` is the line of the reader's program, or None where there is no one line.
    """

    def __init__(self, problem: str, advice: str, cause: Cause | None = None):
        self.cause = cause
        where = f"\n  at {cause}" if cause else ""
        super().__init__(f"{problem}{where}\n  instead: {advice}")


class DataDependentError(TraceError):
    """The program turned a tensor's data into a Python value, which no guard on metadata covers."""


class UnbackedSizeError(TraceError):
    """The program looked at a size that depends on a tensor's data (PyTorch's unbacked size)."""


class OutputError(TraceError):
    """The program returned something that a replay can't compute."""


class GuardFailure(AssertionError):
    """A trace was called with inputs that its guards refuse. `failing` lists those guards.

    An `AssertionError`, since the model this package grew from asserts its guards.
    """

    def __init__(self, message: str, failing: tuple = ()):
        super().__init__(message)
        self.failing = list(failing)
