"""The launcher, without installing anything: other programs are replaced by a record of their commands.

The rules that a real Python has to answer (what does it lack, has it pip) are asked of this one.
"""

import ast
import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import dynguard_lite.__main__ as launcher

REPOSITORY = Path(__file__).resolve().parent.parent


class Course:
    """A folder like the repository's, and what the launcher did with it."""

    def __init__(self, root, monkeypatch):
        self.root, self.monkeypatch = root, monkeypatch
        self.commands = []  # run to their end
        self.handed_over = None  # what the launcher became
        self.failing = ()  # words: a command that has one of them ends with code 1
        self.lack = {}  # python: what it lacks; the others lack nothing
        self.pip = False  # whether the .venv can install

        self.notebooks, self.venv = root / "notebooks", root / ".venv"
        self.python, self.stamp = self.venv / "bin" / "python", self.venv / "installed.txt"
        self.notebooks.mkdir(parents=True)
        (self.notebooks / "00_start_here.ipynb").write_text("{}")
        (root / "requirements.txt").write_text("pytest>=9\n")
        for name, value in {
            "ROOT": root,
            "REQUIREMENTS": root / "requirements.txt",
            "NOTEBOOKS": self.notebooks,
            "VENV": self.venv,
            "VENV_PYTHON": self.python,
            "STAMP": self.stamp,
            "run": self.run,
            "hand_over": self.hand_over,
            "lacks": lambda python: self.lack.get(python, ""),
            "can_install": lambda python: self.pip,
        }.items():
            monkeypatch.setattr(launcher, name, value)
        monkeypatch.setattr(sys, "prefix", sys.base_prefix)  # no active environment
        monkeypatch.setattr(subprocess, "call", self.call)
        self.lack[str(self.python)] = "torch"

    def run(self, command, cwd=None):
        self.commands.append(command)
        if any(word in command for word in self.failing):
            return 1
        if "venv" in command:
            self.venv.mkdir(exist_ok=True)
            self.stamp.unlink(missing_ok=True)
            self.pip = True
        if "pip" in command:
            self.lack.pop(str(self.python), None)
        return 0

    def call(self, command, **_):
        self.commands.append(command)
        return int(any(word in command for word in self.failing))

    def hand_over(self, python, *arguments, cwd=None):
        self.handed_over = (python, arguments, cwd)
        return 0

    def did(self):
        """The commands run since the last call, by their main words."""
        main_words = {"venv", "--clear", "pip", "nbformat.sign"}
        done = [" ".join(word for word in command if word in main_words) for command in self.commands]
        self.commands.clear()
        return done

    def installed(self):
        launcher.environment()
        self.commands.clear()
        return self


@pytest.fixture
def course(tmp_path, monkeypatch):
    return Course(tmp_path / "a course", monkeypatch)


def advice(function, *arguments):
    """What the launcher says when it stops, on one line."""
    with pytest.raises(SystemExit) as stopped:
        function(*arguments)
    text = stopped.value.code  # a text goes to stderr, and the exit code is 1
    assert isinstance(text, str)
    return " ".join(text.split())


# ---- .venv --------------------------------------------------------------------------------------


def test_the_first_run_makes_the_environment_and_installs(course, capsys):
    assert launcher.environment() == str(course.python)
    assert course.did() == ["venv --clear", "pip"]
    assert "minutes" in capsys.readouterr().out


def test_the_second_run_does_nothing(course, capsys):
    course.installed()
    capsys.readouterr()
    assert launcher.environment() == str(course.python)
    assert course.did() == []
    assert capsys.readouterr().out == ""


def test_changed_requirements_are_installed_into_the_same_environment(course):
    course.installed()
    (course.root / "requirements.txt").write_text("pytest>=9\nnbval\n")
    launcher.environment()
    assert course.did() == ["pip"]


def test_an_install_that_failed_is_made_good_by_the_next_run(course):
    course.failing = ["pip"]
    text = advice(launcher.environment)
    assert "no network" in text
    assert "HTTPS_PROXY" in text
    assert "run the same command again" in text
    course.lack.clear()  # enough of it was installed to look complete
    course.failing = ()
    course.did()
    launcher.environment()
    assert course.did() == ["pip"]
    launcher.environment()
    assert course.did() == []


def test_an_install_that_was_interrupted_is_made_good_by_the_next_run(course):
    course.installed()
    (course.root / "requirements.txt").write_text("pytest>=9\nnbval\n")

    def interrupt(*_):
        raise KeyboardInterrupt

    with course.monkeypatch.context() as patch:
        patch.setattr(launcher, "run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            launcher.environment()
    (course.root / "requirements.txt").write_text("pytest>=9\n")  # back to what the old stamp said
    launcher.environment()
    assert course.did() == ["pip"]


def test_a_package_that_was_removed_is_installed_again(course):
    course.installed().lack[str(course.python)] = "nbval"
    launcher.environment()
    assert course.did() == ["pip"]


def test_a_moved_folder_gets_a_new_environment(course):
    course.installed()
    course.stamp.write_text(course.stamp.read_text().replace("a course", "where it was"))
    launcher.environment()
    assert course.did() == ["venv --clear", "pip"]
    assert str(course.root) in course.stamp.read_text()


def test_an_environment_whose_python_is_gone_is_made_anew(course):
    course.installed().lack[str(course.python)] = "No such file"
    course.pip = False
    launcher.environment()
    assert course.did() == ["venv --clear", "pip"]


def test_an_environment_that_somebody_else_made_is_used_when_complete(course):
    course.venv.mkdir()
    course.lack.clear()
    assert launcher.environment() == str(course.python)
    assert course.did() == []


def test_an_environment_that_somebody_else_made_is_completed_not_cleared(course):
    course.venv.mkdir()
    course.pip = True
    launcher.environment()
    assert course.did() == ["pip"]


def test_pip_that_installs_elsewhere_is_noticed(course):
    course.monkeypatch.setattr(launcher, "lacks", lambda python: "nbval")
    assert "not complete: nbval" in advice(launcher.environment)
    assert "unfinished" in course.stamp.read_text()


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_advice_where_venv_is_missing(course, module):
    find = importlib.util.find_spec
    without = lambda name: None if name == module else find(name)  # noqa: E731
    course.monkeypatch.setattr(importlib.util, "find_spec", without)
    text = advice(launcher.environment)
    assert "sudo apt install python3-venv" in text
    assert "python.org" in text
    assert course.did() == []


def test_advice_when_venv_fails(course):
    course.failing = ["venv"]
    text = advice(launcher.environment)
    assert "writable" in text
    assert "disk" in text
    assert course.did() == ["venv --clear"]


# ---- an active environment ----------------------------------------------------------------------


def activate(course, folder):
    course.monkeypatch.setattr(sys, "prefix", str(folder))


def test_a_complete_active_environment_is_used(course, tmp_path):
    activate(course, tmp_path / "mine")
    assert launcher.environment() == sys.executable
    assert course.did() == []


def test_an_incomplete_active_environment_is_not_and_the_reason_is_said(course, tmp_path, capsys):
    activate(course, tmp_path / "mine")
    course.lack[sys.executable] = "nbval is not there"
    assert launcher.environment() == str(course.python)
    assert "not the active one (nbval is not there)" in capsys.readouterr().out


def test_a_python_outside_any_environment_is_never_used(course):
    assert launcher.environment() == str(course.python)


def test_an_active_venv_of_the_course_obeys_its_stamp(course):
    course.installed()
    activate(course, course.venv)
    (course.root / "requirements.txt").write_text("pytest>=9\nnbval\n")
    assert launcher.environment() == str(course.python)
    assert course.did() == ["pip"]


# ---- what a Python lacks, asked of this Python --------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A course whose only requirement is pytest, in a folder that this Python doesn't find by itself."""
    root = tmp_path / "a course"
    (root / "notebooks").mkdir(parents=True)
    (root / "dynguard_lite").mkdir()
    (root / "dynguard_lite" / "__init__.py").write_text("raise SystemExit('looked for, not imported')")
    (root / "requirements.txt").write_text("# comment\n-e .\npytest>=9  # why\n")
    monkeypatch.setattr(launcher, "ROOT", root)
    monkeypatch.setattr(launcher, "NOTEBOOKS", root / "notebooks")
    monkeypatch.chdir(root)
    return root


def test_nothing_lacks(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(folder))
    assert launcher.lacks(sys.executable) == ""


def test_the_package_must_be_found_from_where_kernels_start(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([".", str(folder / "dynguard_lite")]))
    assert "notebooks cannot import it" in launcher.lacks(sys.executable)


def test_the_package_must_be_this_folders(folder, monkeypatch, tmp_path):
    other = tmp_path / "other" / "dynguard_lite"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(other.parent), str(folder)]))
    assert "a course is not installed" in launcher.lacks(sys.executable)


def test_a_missing_requirement_is_named(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(folder))
    (folder / "requirements.txt").write_text("pytest\nno-such-distribution>=2\n")
    assert "no-such-distribution" in launcher.lacks(sys.executable)


def test_another_version_is_named(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(folder))
    (folder / "requirements.txt").write_text("pytest<2\n")
    assert launcher.lacks(sys.executable).startswith("pytest<2 is needed, pytest 9")


def test_a_build_of_the_right_version_is_right(folder, monkeypatch):
    metadata = folder / "torchlike-2.13.0+cpu.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: torchlike\nVersion: 2.13.0+cpu\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    (folder / "requirements.txt").write_text("torchlike==2.13.0\n")
    assert launcher.lacks(sys.executable) == ""


def test_a_python_that_does_not_start(folder):
    nowhere = str(folder / "python")
    assert launcher.lacks(nowhere)
    assert not launcher.can_install(nowhere)


def test_a_python_without_pip_cannot_install(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare" / ("Scripts/python.exe" if launcher.WINDOWS else "bin/python")
    assert not launcher.can_install(str(python))
    (purelib,) = (tmp_path / "bare").rglob("site-packages")
    (purelib / "pip.py").touch()
    assert launcher.can_install(str(python))


# ---- the commands -------------------------------------------------------------------------------


def test_lab_trusts_the_notebooks_and_opens_the_first(course):
    (course.notebooks / "01_ir.ipynb").write_text("{}")
    assert launcher.main(["lab"]) == 0
    assert course.did() == ["venv --clear", "pip", "nbformat.sign"]
    python, arguments, cwd = course.handed_over
    assert (python, cwd) == (str(course.python), course.notebooks)
    assert arguments[:2] == ("-m", "jupyterlab")
    assert "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb" in arguments
    assert f"--ServerApp.root_dir={course.root}" in arguments


def test_lab_trusts_every_notebook(course):
    (course.notebooks / "01_ir.ipynb").write_text("{}")
    launcher.main(["lab"])
    trusted = course.commands[-1]
    assert trusted[:3] == [str(course.python), "-m", "nbformat.sign"]
    assert trusted[3:] == [str(course.notebooks / n) for n in ("00_start_here.ipynb", "01_ir.ipynb")]


def test_lab_goes_on_when_notebooks_cannot_be_trusted(course, capsys):
    course.failing = ["nbformat.sign"]
    assert launcher.main(["lab"]) == 0
    assert course.handed_over
    assert "could not be marked as trusted" in capsys.readouterr().out


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False), (None, False)])
def test_lab_allows_root_only_when_root(course, user, allowed):
    if user is None:  # Windows
        course.monkeypatch.delattr(os, "geteuid", raising=False)
    else:
        course.monkeypatch.setattr(os, "geteuid", lambda: user, raising=False)
    launcher.main(["lab"])
    assert ("--allow-root" in course.handed_over[1]) == allowed


def test_advice_where_the_first_notebook_is_missing(course):
    (course.notebooks / "00_start_here.ipynb").unlink()
    assert "git checkout -- notebooks" in advice(launcher.main, ["lab"])
    assert course.did() == []  # said before anything is installed


@pytest.mark.parametrize("missing", ["requirements.txt", "notebooks"])
@pytest.mark.parametrize("command", ["lab", "test"])
def test_advice_where_only_the_package_is(course, missing, command):
    (course.root / missing).rename(course.root / "elsewhere")
    assert "git clone" in advice(launcher.main, [command])
    assert course.did() == []


def test_test_compares_notebooks_and_keeps_each_in_one_process(course):
    launcher.main(["test"])
    python, arguments, _ = course.handed_over
    assert python == str(course.python)
    assert arguments[:2] == ("-m", "pytest")
    assert {"--nbval", "--nbval-current-env"} <= set(arguments)
    assert arguments[arguments.index("--dist") + 1] == "loadscope"
    # No file is named: so that one in the extra arguments means that file only.
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["pytest"]["ini_options"]["testpaths"] == ["tests", "notebooks"]


@pytest.mark.parametrize("command", ["lab", "test", "regenerate", "coverage", "html", "bench"])
@pytest.mark.parametrize(
    "extra", [["-k", "two words", "--port=9"], ["-x", "--help"], ["03"], ["lab"], ["--", "-h"]], ids=str
)
def test_extra_arguments_are_passed_on_unread(course, command, extra):
    assert launcher.main([command, *extra]) == 0
    assert course.handed_over[1][-len(extra) :] == tuple(extra)


def test_the_exit_code_is_the_commands(course):
    course.monkeypatch.setattr(launcher, "hand_over", lambda *_, **__: 5)
    assert launcher.main(["test"]) == 5


def test_ctrl_c(course, capsys):
    def interrupt(extra):
        """stop at once"""
        raise KeyboardInterrupt

    course.monkeypatch.setitem(launcher.COMMANDS, "lab", interrupt)
    assert launcher.main(["lab"]) == 130
    assert capsys.readouterr().out == "\nStopped.\n"


# ---- the command line ---------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [[], ["-h"], ["--help"]], ids=str)
def test_help(argv, capsys):
    with pytest.raises(SystemExit) as stopped:
        launcher.main(argv)
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for command in launcher.COMMANDS:
        assert re.search(rf"^ +{command}\s+\w", text, re.M)


@pytest.mark.parametrize("command", launcher.COMMANDS)
def test_help_of_a_command(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        launcher.main([command, "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    assert f"python3 -m dynguard_lite {command} [ARGUMENT ...]" in text
    assert len(text.splitlines()) > 5


def test_an_unknown_command(capsys):
    with pytest.raises(SystemExit) as stopped:
        launcher.main(["notebook"])
    assert stopped.value.code == 2
    assert "choose from" in capsys.readouterr().err


def test_advice_for_an_old_python(course):
    with course.monkeypatch.context() as patch:
        patch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
        patch.setattr(sys, "version", "3.10.13 (main)")
        text = advice(launcher.main, ["lab"])
    assert "needs Python 3.11 or newer, and this is Python 3.10.13" in text
    assert course.did() == []


# ---- other programs -----------------------------------------------------------------------------


class Child:
    """A program that does, each time it is waited for, the next of what it was told."""

    def __init__(self, *events):
        self.events, self.ended = list(events), False

    def __call__(self, command, cwd):
        return self

    def wait(self, timeout):
        event = self.events.pop(0)
        if isinstance(event, int):
            return event
        raise event

    def terminate(self):
        self.ended = True


RUNNING = subprocess.TimeoutExpired("program", 0)


def test_run_returns_the_exit_code(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", Child(RUNNING, RUNNING, 3))
    assert launcher.run(["program"]) == 3


def test_the_first_ctrl_c_leaves_a_program_time_and_the_second_ends_it(monkeypatch):
    patient = Child(RUNNING, KeyboardInterrupt(), RUNNING, RUNNING, 0)
    monkeypatch.setattr(subprocess, "Popen", patient)
    with pytest.raises(KeyboardInterrupt):
        launcher.run(["program"])
    assert not patient.ended
    stuck = Child(RUNNING, KeyboardInterrupt(), RUNNING, KeyboardInterrupt(), -15)
    monkeypatch.setattr(subprocess, "Popen", stuck)
    with pytest.raises(KeyboardInterrupt):
        launcher.run(["program"])
    assert stuck.ended


def test_run_runs(tmp_path):
    code = "import os, sys; sys.exit(len(os.path.basename(os.getcwd())))"
    (tmp_path / "two words").mkdir()
    assert launcher.run([sys.executable, "-c", code], tmp_path / "two words") == 9


@pytest.mark.parametrize("windows", [True, False])
def test_hand_over_looks_for_kernels_in_its_environment_first(monkeypatch, tmp_path, windows):
    calls = []
    monkeypatch.setattr(launcher, "WINDOWS", windows)
    monkeypatch.setattr(launcher, "run", lambda command, cwd: calls.append((command, cwd)) or 7)
    monkeypatch.setattr(os, "chdir", lambda cwd: calls.append(cwd))
    monkeypatch.setattr(os, "execv", lambda python, command: calls.append((python, command)))
    monkeypatch.setenv("JUPYTER_PATH", "mine")
    python = str(tmp_path / "env" / "bin" / "python")
    code = launcher.hand_over(python, "-m", "a b", cwd=tmp_path)
    if windows:
        assert code == 7
        assert calls == [([python, "-m", "a b"], tmp_path)]
    else:
        assert calls == [tmp_path, (python, [python, "-m", "a b"])]
    kernels = str(tmp_path / "env" / "share" / "jupyter")
    assert os.environ["JUPYTER_PATH"] == kernels + os.pathsep + "mine"


# ---- before anything is installed ---------------------------------------------------------------


def bare_python(*arguments):
    """Run this Python without site-packages, in the repository."""
    return subprocess.run(
        [sys.executable, "-S", *arguments], cwd=REPOSITORY, capture_output=True, text=True, encoding="utf-8"
    )


def test_the_launcher_needs_the_standard_library_only():
    without = bare_python("-c", "import torch")
    assert "No module named 'torch'" in without.stderr
    result = bare_python("-m", "dynguard_lite", "--help")
    assert result.returncode == 0, result.stderr
    assert "regenerate" in result.stdout


def test_importing_the_package_costs_nothing():
    code = "import sys, dynguard_lite; print(*{name.partition('.')[0] for name in sys.modules})"
    result = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    loaded = set(result.stdout.split())
    assert "dynguard_lite" in loaded
    assert not loaded & {"torch", "numpy", "graphviz", "matplotlib", "IPython", "ipywidgets"}


@pytest.mark.parametrize("name", ["__init__.py", "__main__.py"])
def test_an_old_python_can_parse_what_advises_it(name):
    source = (REPOSITORY / "dynguard_lite" / name).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 8))


# ---- what is installed is what is used ----------------------------------------------------------


def requirements():
    lines = (line.partition("#")[0].strip() for line in launcher.REQUIREMENTS.read_text("utf-8").splitlines())
    return {Requirement(line).name for line in lines if line and not line.startswith("-")}


def imports(file, everywhere):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def test_everything_imported_is_required():
    # A test may skip itself where something optional is missing: of tests, the first lines count.
    used = [*REPOSITORY.glob("dynguard_lite/**/*.py"), *REPOSITORY.glob("notebooks/*.py")]
    tests = [*REPOSITORY.glob("tests/*.py"), *REPOSITORY.glob("docs/*.py")]
    modules = {module for file in used for module in imports(file, everywhere=True)}
    modules |= {module for file in tests for module in imports(file, everywhere=False)}
    modules -= {*sys.stdlib_module_names, "dynguard_lite", *(file.stem for file in tests)}
    providers = importlib.metadata.packages_distributions()
    assert modules, "nothing is looked at"
    for module in modules:
        names = {re.sub(r"[-_.]+", "-", name).lower() for name in providers.get(module, ())}
        assert names & requirements(), f"{module} is imported, and not in requirements.txt"


def test_the_packages_own_dependencies_are_among_the_requirements():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {Requirement(line).name for line in project["dependencies"]} <= set(requirements())
    assert project["requires-python"] == ">=3.11"  # as the launcher says


def test_every_folder_of_the_package_is_installed_with_it():
    # setuptools leaves out, without a word, a folder that lacks __init__.py
    folders = {file.parent for file in (REPOSITORY / "dynguard_lite").glob("**/*.py")}
    assert len(folders) > 1
    assert not [folder.name for folder in folders if not (folder / "__init__.py").is_file()]


def test_ci_runs_the_command_of_the_readme_on_three_systems():
    assert "exec python3 -m dynguard_lite test" in (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    workflow = (REPOSITORY / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"^ +- run: (.*)$", workflow, re.M) == ["python -m dynguard_lite test"]
    assert "os: [ubuntu-latest, macos-latest, windows-latest]" in workflow
    assert 'python: ["3.11", "3.12", "3.13"]' in workflow
