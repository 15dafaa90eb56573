"""Where in the reader's program something happened: file, line and source text."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
from dataclasses import dataclass
from types import CodeType, FrameType

import torch

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep


@dataclass(frozen=True)
class Cause:
    """A line of the reader's program.

    `file` is the full file name (for a notebook cell, the kernel's name for it),
    `line` counts from 1, `text` is the source line without its indentation.
    `str()` prints the base name only, so that no listing depends on where the
    program lies on this machine.
    """

    file: str
    line: int

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    @property
    def place(self) -> str:
        if "ipykernel" in self.file or self.file.startswith("<ipython-input"):
            return f"cell line {self.line}"
        return f"{os.path.basename(self.file)}:{self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.text else self.place


def here(stop: CodeType | None = None) -> Cause | None:
    """The line of the reader's program that is running now.

    That is the innermost frame which belongs neither to this package nor to
    PyTorch. Frames at and beyond the one that runs `stop` (the tracer) are not
    part of the program; a program made of PyTorch's own modules only has no line
    of the reader's, so PyTorch's line is named. None where no program is running.
    """
    frame = sys._getframe(1)
    fallback = None
    while frame is not None and frame.f_code is not stop:
        file = frame.f_code.co_filename
        if not file.startswith(_HERE):
            if not file.startswith(_TORCH):
                return Cause(file, frame.f_lineno)
            if fallback is None and file.startswith(_TORCH + "nn"):
                fallback = Cause(file, frame.f_lineno)
        frame = frame.f_back
    return fallback


def in_torch(frame: FrameType) -> bool:
    """Does this frame run a file of PyTorch's?"""
    return frame.f_code.co_filename.startswith(_TORCH)


def definition(fn: object) -> Cause:
    """The line where `fn` (a function, a module or any callable) begins."""
    target = fn.forward if isinstance(fn, torch.nn.Module) else fn
    code = getattr(inspect.unwrap(getattr(target, "__func__", target)), "__code__", None)
    return Cause(code.co_filename, code.co_firstlineno) if code else Cause("<built-in>", 0)


def without_addresses(text: str) -> str:
    """The text of a value without memory addresses, which differ from run to run."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
