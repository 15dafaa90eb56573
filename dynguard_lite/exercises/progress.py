"""A learner's progress: which exercises have been solved, kept in a small file beside the course."""

from __future__ import annotations

import datetime
import json
import os
import re
from pathlib import Path

from ..table import Table

_COURSE = Path(__file__).resolve().parent.parent.parent


def _file() -> Path:
    """The file, which git ignores; the environment variable DYNGUARD_PROGRESS names another."""
    return Path(os.environ.get("DYNGUARD_PROGRESS") or _COURSE / ".progress.json")


def _read() -> dict[str, str]:
    """Exercise -> the day it was solved. A file that can't be read is set aside, with a message."""
    file = _file()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict) and all(isinstance(day, str) for day in found.values()):
            return found
        problem = "it is no list of solved exercises"
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        problem = str(error)
    aside = file.with_suffix(".broken.json")
    try:
        file.replace(aside)
        print(f"{file.name} could not be read ({problem}): it is set aside as {aside.name}, and progress begins anew")
    except OSError:
        print(f"{file.name} could not be read ({problem}): progress isn't kept")
    return {}


def _write(done: dict[str, str]) -> None:
    file = _file()
    try:  # written beside it and moved, so that a crash leaves the old one or the new one
        beside = file.with_suffix(f".{os.getpid()}.tmp")
        beside.write_text(json.dumps(done, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        beside.replace(file)
    except OSError:
        pass  # a read-only folder is no reason to fail an exercise


def solved(check: str) -> None:
    """Keep that the exercise with this check (`nb03.linear_sources`) is solved, with today's date."""
    done = _read()
    if check not in done:
        _write({**done, check: datetime.date.today().isoformat()})


def exercises() -> list[tuple[str, str, str]]:
    """(number, title, check) of every exercise, from the text of the lessons."""
    found = []
    for lesson in sorted((_COURSE / "notebooks").glob("0*.py")):
        text = lesson.read_text(encoding="utf-8")
        titles = re.findall(r"^# ### Exercise (\d+\.\d+) · (.+)$", text, re.MULTILINE)
        checks = re.findall(r'tags=\["check"\]\n(nb\d\d\.\w+)\(', text)
        found += [(number, title, check) for (number, title), check in zip(titles, checks, strict=False)]
    return found


def progress(reset: bool = False) -> Table:
    """A table of the course's exercises and which of them are solved. `reset=True` forgets all."""
    if reset:
        _file().unlink(missing_ok=True)
    done = _read()
    known = exercises() or [("", "", check) for check in done]
    rows = [(number, title, done.get(check, "")) for number, title, check in known]
    count = sum(bool(day) for *_, day in rows)
    return Table(("exercise", f"title ({count} of {len(rows)} solved)", "solved on"), rows, "no exercise is solved yet",
                 prose=(f"title ({count} of {len(rows)} solved)", "solved on"))  # fmt: skip
