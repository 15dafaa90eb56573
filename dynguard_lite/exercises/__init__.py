"""Exercises that check themselves: one module of checks per notebook (`nb01`, `nb02`, ...).

A check is an executable statement of the task. It takes the reader's answer, tries it on
known and on random cases against the package or eager PyTorch, and says in one or two
lines what it found: not attempted, not yet (the input, what was expected, what came, a
next thought) or correct.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from IPython.display import display

from .progress import solved


class Wrong(Exception):
    """An answer that a check refuses. `pictures`, caption -> drawing, are shown under the message."""

    def __init__(self, message: str, pictures: Mapping[str, Any] | None = None):
        super().__init__(message)
        self.pictures = pictures or {}


def expect(condition: bool, given: str, expected: Any, got: Any, thought: str) -> None:
    """Refuse the answer unless `condition`: for the input `given`, what was expected, what came, a next thought."""
    if not condition:
        raise Wrong(f"for {given}: expected {expected}, got {got}.\n{thought}")


def exercise(check: Callable[..., None]) -> Callable[..., None]:
    """Make `check(answer)` print its verdict, so that a notebook runs on whatever the answer does.

    What else the notebook hands over (its own classes, a program, a trace) follows the answer.
    """

    @functools.wraps(check)
    def run(answer: Any, *given: Any) -> None:
        try:
            check(answer, *given)
        except NotImplementedError:
            print("not attempted yet: write your answer in the cell above, then run both cells")
        except Wrong as fault:
            print(f"not yet: {fault}")
            for caption, picture in fault.pictures.items():
                print(f"{caption}:")
                display(picture)
        except Exception as error:  # the answer's own: a reader's mistake is no reason to stop the notebook
            print(f"not yet: your answer raised {type(error).__name__}: {error}")
        else:
            print("correct")
            solved(f"{run.__module__.rpartition('.')[2]}.{run.__name__}")

    return run
