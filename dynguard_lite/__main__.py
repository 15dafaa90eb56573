"""The launcher: `python3 -m dynguard_lite lab`, `test`, `regenerate` and more.

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
REQUIREMENTS = ROOT / "requirements.txt"
NOTEBOOKS = ROOT / "notebooks"
START = "00_start_here.ipynb"
VENV = ROOT / ".venv"
WINDOWS = os.name == "nt"
VENV_PYTHON = VENV / ("Scripts/python.exe" if WINDOWS else "bin/python")
STAMP = VENV / "installed.txt"  # for which folder, and from which requirements, the launcher filled .venv


# ---- talking to the person and to other programs ----------------------------------------------


def say(text: str) -> None:
    print(text, flush=True)  # flush: the programs started below write to the same terminal


def stop(advice: str) -> None:
    """End with one paragraph of advice on stderr and exit code 1."""
    raise SystemExit("\n" + textwrap.fill(advice, 96, break_long_words=False, break_on_hyphens=False))


def run(command: list[str], cwd: Path = ROOT) -> int:
    """Run a command on this terminal; its exit code.

    Ctrl-C reaches the command as well. `subprocess.call` would kill it a quarter of a second later; here
    the first Ctrl-C leaves it the time to tidy up, and a second one ends it.
    """
    child = subprocess.Popen(command, cwd=cwd)
    interrupted = False
    while True:
        try:
            code = child.wait(timeout=0.2)  # on Windows, Ctrl-C doesn't interrupt a wait without an end
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt:
            if interrupted:
                child.terminate()
            interrupted = True
        else:
            if interrupted:
                raise KeyboardInterrupt
            return code


def hand_over(python: str, *arguments: str, cwd: Path = ROOT) -> int:
    """Become `python arguments`: Ctrl-C, a CI system's timeout and the exit code are then its own."""
    # Jupyter looks for kernels here first. A kernel `python3` that another course once installed in the
    # home folder could otherwise run the notebooks, with that course's Python.
    kernels = str(Path(python).parent.parent / "share" / "jupyter")
    os.environ["JUPYTER_PATH"] = os.pathsep.join(filter(None, [kernels, os.environ.get("JUPYTER_PATH")]))
    if WINDOWS:  # exec on Windows starts a second process and gives the prompt back at once
        return run([python, *arguments], cwd)
    sys.stdout.flush()
    os.chdir(cwd)
    os.execv(python, [python, *arguments])


# ---- the environment --------------------------------------------------------------------------

# Run by the Python in question.
CHECK = """
import importlib.metadata, importlib.util, os, sys
from packaging.requirements import Requirement

root = sys.argv[1]
for line in open(os.path.join(root, "requirements.txt"), encoding="utf-8"):
    line = line.partition("#")[0].strip()
    if line and not line.startswith("-"):
        needed = Requirement(line)
        version = importlib.metadata.version(needed.name)
        if not needed.specifier.contains(version, prereleases=True):
            sys.exit(f"{needed} is needed, {needed.name} {version} is there")
found = importlib.util.find_spec("dynguard_lite")
if not (found and found.origin and os.path.samefile(os.path.dirname(found.origin), root + "/dynguard_lite")):
    sys.exit(f"dynguard_lite of {root} is not installed, so notebooks cannot import it")
"""


def lacks(python: str) -> str:
    """What this Python lacks of the course: one line, empty when it has everything.

    Asked from the notebooks' folder, where kernels start: in the folder above, anything finds
    `dynguard_lite`, installed or not.
    """
    try:
        check = subprocess.run(
            [python, "-c", CHECK, str(ROOT)], cwd=NOTEBOOKS, stderr=subprocess.PIPE, errors="replace"
        )
    except OSError as error:  # no such file, or a link to a Python that has been uninstalled
        return str(error)
    return (check.stderr.strip().splitlines() or ["unknown"])[-1] if check.returncode else ""


def can_install(python: str) -> bool:
    """Whether this Python starts, is new enough and has pip."""
    code = "import sys, importlib.util as u; sys.exit(sys.version_info < (3, 11) or not u.find_spec('pip'))"
    try:
        return subprocess.call([python, "-c", code], stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def make_venv() -> None:
    if not (importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")):
        stop(
            "This Python cannot make virtual environments: its venv and ensurepip modules are missing. On "
            "Debian and Ubuntu: sudo apt install python3-venv (or, for a second Python, its own package, "
            "such as python3.12-venv). Elsewhere, a Python from python.org has both. Then run the same "
            "command again."
        )
    say("Making .venv, an environment of the course's own: nothing else on this machine changes.")
    if run([sys.executable, "-m", "venv", "--clear", str(VENV)]):
        stop(
            f"Could not make {VENV}; the lines above say why. Is the folder writable, is the disk full? "
            "Put that right, delete the folder .venv, and run the same command again."
        )


def environment() -> str:
    """The Python to run everything with: the active environment's when it is complete, else `.venv`'s."""
    if sys.prefix != sys.base_prefix and Path(sys.prefix).resolve() != VENV.resolve():
        lack = lacks(sys.executable)
        if not lack:
            return sys.executable
        say(f"Using the course's own environment, .venv, not the active one ({lack}).")

    python = str(VENV_PYTHON)
    # The folder is in the stamp because environments can't be moved: their paths are written into them.
    wanted = f"{ROOT}\n{hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()}\n"
    # Without a stamp, somebody else made .venv: what counts is what is in it.
    stamp = STAMP.read_text(encoding="utf-8") if STAMP.is_file() else None
    if stamp in (None, wanted) and not lacks(python):
        return python

    moved = stamp is not None and not stamp.startswith(f"{ROOT}\n")
    if moved or not can_install(python):
        make_venv()
    STAMP.write_text(f"{ROOT}\nunfinished\n", encoding="utf-8")
    say(
        "Installing PyTorch, JupyterLab and the rest of requirements.txt into .venv: once, and again only "
        "when\nthat file changes. Two to ten minutes on most connections. pip reports from here:"
    )
    if run([python, "-m", "pip", "install", "--disable-pip-version-check", "-r", str(REQUIREMENTS)]):
        stop(
            "pip could not install everything; its last lines above say why. The usual causes: no network (a "
            "proxy is set with the environment variable HTTPS_PROXY), a full disk, or a Python or a machine "
            "for which the PyTorch in requirements.txt is not made (a very new Python, an Intel Mac). Then "
            "run the same command again: it goes on with what it has downloaded."
        )
    lack = lacks(python)
    if lack:
        stop(
            f"pip ended well, but .venv is not complete: {lack}. Is pip told to install elsewhere (see: pip "
            "config list)? If not, delete the folder .venv and run the same command again."
        )
    STAMP.write_text(wanted, encoding="utf-8")
    say("Installed.")
    return python


# ---- the commands: the docstring is the help text ---------------------------------------------


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
    trust = [python, "-m", "nbformat.sign", *map(str, sorted(NOTEBOOKS.glob("*.ipynb")))]
    if subprocess.call(trust, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        say("The notebooks could not be marked as trusted: pictures show when you run their cells.")
    options = [
        # The whole folder, so that links from notebooks to the package's files open.
        f"--ServerApp.root_dir={ROOT}",
        # As the address that JupyterLab prints, not as its file argument: so --no-browser leads there
        # too, and a notebook named in `extra` still comes first.
        f"--LabApp.default_url=/lab/tree/{NOTEBOOKS.name}/{START}",
    ]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        options.append("--allow-root")  # Jupyter refuses root unless told; in a container it's the only user
    say("Starting JupyterLab. To stop it: Ctrl-C here, twice.")
    return hand_over(python, "-m", "jupyterlab", *options, *extra, cwd=NOTEBOOKS)


def test(extra: list[str]) -> int:
    """run all tests: unit tests, and every notebook's outputs compared with a fresh run

    Makes .venv first when needed. Everything after `test` goes to pytest:
    test -k launcher   test tests/test_ir.py   test notebooks/01_ir.ipynb
    """
    compare = ["--nbval", "--nbval-current-env"]
    # loadscope: one notebook is one kernel, so its cells stay together. logical: xdist's `auto` counts
    # physical cores, which makes one worker of two cloud CPUs. More than four only cost memory here.
    workers = ["-n", "logical", "--maxprocesses", "4", "--dist", "loadscope"]
    return hand_over(environment(), "-m", "pytest", *compare, *workers, *extra)


def regenerate(extra: list[str]) -> int:
    """run notebooks from their .py text and save their outputs

    All of them, or those named:  regenerate 03_guard_analysis 04
    The .py file of a notebook is its source; its .ipynb is written anew, outputs included.
    """
    return hand_over(environment(), "-m", "dynguard_lite._regenerate", *extra)


def coverage(extra: list[str]) -> int:
    """count the torch functions that have a shape formula

    Against PyTorch's own list of operators, family by family. Takes no arguments, and some ten seconds.
    """
    return hand_over(environment(), "-m", "dynguard_lite._coverage", *extra)


def html(extra: list[str]) -> int:
    """write the course as web pages that work offline

    From the outputs that are saved in the notebooks, into the folder site, or another:
    html --to FOLDER
    """
    return hand_over(environment(), "-m", "dynguard_lite._html", *extra, cwd=Path.cwd())  # FOLDER is seen from here


def bench(extra: list[str]) -> int:
    """measure guards, replay, tracing and drawing beside PyTorch's own

    Prints one table (Markdown), in under four minutes:  bench --json FILE   bench --only replay   bench --quick
    Rows that need other drawing packages are skipped without them; tests/benchmarks/requirements.txt lists those.
    """
    return hand_over(environment(), str(ROOT / "tests" / "benchmarks"), *extra, cwd=Path.cwd())


COMMANDS = {command.__name__: command for command in (lab, test, regenerate, coverage, html, bench)}


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
    if not (REQUIREMENTS.is_file() and NOTEBOOKS.is_dir()):
        stop(
            f"There is no requirements.txt, or no folder notebooks, in {ROOT}. The course is more than the "
            "package that pip installs: get its whole folder (git clone, or the repository's zip file) and "
            "run this command inside it."
        )
    try:
        return COMMANDS[chosen](argv[1:])
    except KeyboardInterrupt:
        say("\nStopped.")
        return 130  # what shells report for Ctrl-C


if __name__ == "__main__":
    sys.exit(main())
