"""The launcher: `python3 -m dynguard_lite lab`, `test`, `regenerate`.

It has to run before anything is installed, so it uses the standard library only, and syntax that a
Python too old for the course can still parse: such a Python must get far enough to say so.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
START = "00_start_here.ipynb"
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = VENV / "installed-from.sha256"  # what the last install that ran to its end was made from
NEEDED = ("torch", "jupyterlab", "jupytext", "nbval", "graphviz")


# ---- talking to the person and to other programs ----------------------------------------------


def say(text: str) -> None:
    print(text, flush=True)  # flush: the programs started below write to the same terminal


def stop(advice: str) -> None:
    """End with one paragraph of advice on stderr and exit code 1."""
    raise SystemExit("\n" + textwrap.fill(advice, 96, break_long_words=False, break_on_hyphens=False))


def run(command: list, cwd: Path = ROOT) -> int:
    """Run a command on this terminal; its exit code.

    Ctrl-C reaches the command as well. `subprocess.call` would kill it a quarter of a second later;
    this waits until the command has tidied up by itself.
    """
    child = subprocess.Popen([str(part) for part in command], cwd=str(cwd))
    interrupted = False
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt:
            interrupted = True
        else:
            if interrupted:
                raise KeyboardInterrupt
            return code


def hand_over(command: list, cwd: Path = ROOT) -> int:
    """Become the command: Ctrl-C, a CI system's timeout and the exit code are then its own."""
    if os.name == "nt":  # exec on Windows starts a second process and gives the prompt back at once
        return run(command, cwd)
    sys.stdout.flush()
    os.chdir(str(cwd))
    os.execv(str(command[0]), [str(part) for part in command])


# ---- the environment --------------------------------------------------------------------------


def has(python: str | Path, *modules: str) -> bool:
    """Whether this Python starts and finds the modules (it looks for them, without importing)."""
    code = "import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, sys.argv[1:])))"
    try:
        return subprocess.call([str(python), "-c", code, *modules], stderr=subprocess.DEVNULL) == 0
    except OSError:  # no such file, or a link to a Python that has been uninstalled
        return False


def fingerprint() -> str:
    """Changes when what has to be installed changes."""
    files = [ROOT / "requirements.txt", ROOT / "pyproject.toml"]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def make_venv() -> None:
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        stop(
            "This Python cannot make virtual environments: its venv and ensurepip modules are missing. On "
            "Debian and Ubuntu: sudo apt install python3-venv (or, for a second Python, its own package, "
            "such as python3.12-venv). Elsewhere, a Python from python.org has both. Then run the same "
            "command again."
        )
    say("Making .venv, an environment of the course's own: nothing else on this machine changes.")
    # One that was left half made is completed; one whose Python no longer starts is made anew.
    anew = [] if has(VENV_PYTHON) else ["--clear"]
    if run([sys.executable, "-m", "venv", *anew, VENV]):
        stop(
            f"Could not make {VENV}; the lines above say why. Is the folder writable, is the disk full? "
            "Put that right, delete the folder .venv, and run the same command again."
        )


def environment() -> str:
    """The Python to run everything with: the active environment when it is complete, else `.venv`."""
    if not ((ROOT / "requirements.txt").is_file() and (ROOT / "pyproject.toml").is_file()):
        stop(
            f"There is no requirements.txt and pyproject.toml in {ROOT}. The course is more than the package "
            "that pip installs: get its whole folder (git clone, or the repository's zip file) and run this "
            "command inside it."
        )
    active = sys.prefix != sys.base_prefix and Path(sys.prefix).resolve() != VENV.resolve()
    if active and has(sys.executable, *NEEDED):
        return sys.executable
    wanted = fingerprint()
    if STAMP.is_file() and STAMP.read_text() == wanted and has(VENV_PYTHON, *NEEDED):
        return str(VENV_PYTHON)

    if not has(VENV_PYTHON, "pip"):
        make_venv()
    # From here until the end of the install, .venv agrees with no requirements.txt, old or new.
    if STAMP.is_file():
        STAMP.unlink()
    say(
        "Installing PyTorch, JupyterLab and the rest of requirements.txt into .venv: once, and again only "
        "when\nthat file changes. Two to ten minutes on most connections. pip reports from here:"
    )
    if run([VENV_PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "-r", "requirements.txt"]):
        stop(
            "pip could not install everything; its last lines above say why. The usual causes: no network (a "
            "proxy is set with the environment variable HTTPS_PROXY), a full disk, or a Python newer than "
            "the PyTorch in requirements.txt supports. Then run the same command again: it goes on with "
            "what it has downloaded."
        )
    STAMP.write_text(wanted)
    say("Installed.")
    return str(VENV_PYTHON)


# ---- the commands: the docstring is the help text ---------------------------------------------


def notebooks() -> list[Path]:
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def lab(extra: list[str]) -> int:
    """open the course in JupyterLab

    Opens notebooks/00_start_here.ipynb; the first run makes .venv and installs into it. Everything
    after `lab` goes to JupyterLab:  lab --no-browser --port 9999   lab 03_guard_analysis.ipynb
    """
    if not (NOTEBOOKS / START).is_file():
        stop(
            f"The course's first notebook, {NOTEBOOKS / START}, is missing. In a git clone, `git checkout -- "
            "notebooks` brings it back; otherwise get the whole folder anew."
        )
    python = environment()
    # `jupyter trust`, without needing it on PATH: JupyterLab shows the saved SVG pictures of trusted
    # notebooks only. Not being able to (a read-only home) is no reason to stop.
    trust = [python, "-m", "nbformat.sign", *map(str, notebooks())]
    if subprocess.run(trust, cwd=str(ROOT), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        say("The notebooks could not be marked as trusted: pictures show when you run their cells.")
    # As the address that JupyterLab prints, not as its file argument: so --no-browser leads there too,
    # and a notebook named in `extra` still comes first.
    start = f"--LabApp.default_url=/lab/tree/{START}"
    # Jupyter refuses to run as root unless told: for root in a container that is the only way.
    root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    say("Starting JupyterLab. To stop it: Ctrl-C here.")
    return hand_over([python, "-m", "jupyterlab", *root, start, *extra], NOTEBOOKS)


def test(extra: list[str]) -> int:
    """run all tests: unit tests, and every notebook's outputs compared with a fresh run

    Makes .venv first when needed. Everything after `test` goes to pytest:  test -k launcher
    """
    python = environment()
    # loadscope: one notebook is one kernel, so its cells stay together. logical: xdist's `auto` counts
    # physical cores, which makes one worker of two cloud CPUs. More than four only cost memory here.
    workers = ["-n", "logical", "--maxprocesses", "4", "--dist", "loadscope"]
    compare = ["--nbval", "--nbval-current-env", *(f"notebooks/{path.name}" for path in notebooks())]
    return hand_over([python, "-m", "pytest", "tests", *compare, *workers, *extra])


def regenerate(extra: list[str]) -> int:
    """run notebooks from their .py text and save their outputs

    All of them, or those named:  regenerate 03_guard_analysis 04
    The .py file of a notebook is its source; its .ipynb is written anew, outputs included.
    """
    return hand_over([environment(), "-m", "dynguard_lite._regenerate", *extra])


COMMANDS = {command.__name__: command for command in (lab, test, regenerate)}


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="python3 -m dynguard_lite",
        description="A course on TorchDynamo's guards and dynamic shapes.",
        epilog="`python3 -m dynguard_lite COMMAND --help` says more about one command.",
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        summary, _, details = inspect.getdoc(command).partition("\n\n")
        commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.\n\n{details}",
            usage=f"{parser.prog} {name} [ARGUMENT ...]",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
    # Only the first word is the launcher's own. What follows belongs to JupyterLab or pytest, options
    # included, so argparse never sees it, unless it is a plain call for help.
    asks_for_help = argv[1:] in (["-h"], ["--help"])
    chosen = parser.parse_args(argv if asks_for_help else argv[:1] or ["--help"]).command
    if sys.version_info < (3, 11):  # noqa: UP036 - unlike the rest of the package, this file meets older ones
        stop(
            f"The course needs Python 3.11 or newer, and this is Python {sys.version.split()[0]}. If a newer "
            "one is installed, call it by its name (python3.11 -m dynguard_lite ...; on Windows "
            "py -3.11 -m dynguard_lite ...); otherwise python.org has it."
        )
    try:
        return COMMANDS[chosen](argv[1:])
    except KeyboardInterrupt:
        say("\nStopped.")
        return 130  # what shells report for Ctrl-C


if __name__ == "__main__":
    sys.exit(main())
