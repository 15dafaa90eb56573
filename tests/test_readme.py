"""The README: its program runs, its pictures are what the program draws, its table and badges fit the notebooks."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("0?_*.ipynb"))
sys.path.insert(0, str(ROOT / "docs"))

import program  # noqa: E402  (docs/program.py, which draws the README's pictures)


def blocks():
    return re.findall(r"```python\n(.*?)```", README, re.S)


def test_the_pictures_are_what_the_program_draws():
    drawn = program.pictures()
    assert set(drawn) == {path.name for path in (ROOT / "docs").glob("*.svg")}
    for name, picture in drawn.items():
        saved = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert picture.svg.replace("\r\n", "\n") == saved, f"{name} is another: python docs/program.py"
        assert f'src="docs/{name}"' in README


def test_the_python_runs_and_prints(capsys):
    names = {}
    assert blocks()[0].strip() in (ROOT / "docs" / "program.py").read_text(encoding="utf-8")
    for source in blocks():
        exec(compile(source, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "x.shape[0] > 3" in printed and "per_dimension" in printed


def test_the_table_lists_every_lesson_with_its_minutes():
    rows = dict(re.findall(r"^\| \[.*?\]\(notebooks/(\w+)\.ipynb\).*? \| (\d+) \|", README, re.M))
    assert list(rows) == LESSONS
    for name, minutes in rows.items():
        assert f"*About {minutes} minutes.*" in (ROOT / "notebooks" / f"{name}.py").read_text(encoding="utf-8")


def test_badges_lead_to_notebooks_of_this_repository():
    home = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
    repository = home.removeprefix("https://github.com/")
    for kind, prefix in (("binder", f"https://mybinder.org/v2/gh/{repository}/main?urlpath=lab/tree/"),
                         ("colab", f"https://colab.research.google.com/github/{repository}/blob/main/")):  # fmt: skip
        found = [link for link in re.findall(r"\]\((https://[^)]*)\)", README) if kind in link and not link.endswith(".svg")]
        assert len(found) >= 1 and all(link.startswith(prefix) for link in found)
        assert all((ROOT / link.removeprefix(prefix)).is_file() for link in found)
    assert all(f"blob/main/notebooks/{name}.ipynb" in README for name in LESSONS)


@pytest.mark.parametrize("link", re.findall(r"\]\((?!https?://)([^)#]+)\)", README))
def test_links_lead_to_files(link):
    assert (ROOT / link).exists()
