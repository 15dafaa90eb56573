"""A learner's progress is kept, survives a restart, can be reset, and never stops anything."""

import subprocess
import sys

import pytest

import dynguard_lite as dg
from dynguard_lite.exercises import exercise, expect
from dynguard_lite.exercises.progress import exercises


@pytest.fixture(autouse=True)
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("DYNGUARD_PROGRESS", str(tmp_path / "progress.json"))
    return tmp_path / "progress.json"


def check_of(module, name):
    def check(answer):
        expect(answer == 1, "any input", 1, answer, "Think of one.")

    check.__module__, check.__name__ = f"dynguard_lite.exercises.{module}", name
    return exercise(check)


def rows():
    return {row[0]: row[2] for row in dg.progress().rows}


def test_every_exercise_of_the_course_is_listed_with_its_number_and_title():
    found = exercises()
    assert len(found) >= 16 and ("3.2", "A walk that survives large graphs", "nb03.linear_sources") in found
    assert [n for n, _, _ in found] == sorted(n for n, _, _ in found)
    assert [row[:2] for row in dg.progress().rows] == [(n, t) for n, t, _ in found]


def test_what_is_solved_is_kept_and_what_is_not_is_not(file, capsys):
    check_of("nb03", "linear_sources")(2)
    assert rows()["3.2"] == "" and not file.exists()
    check_of("nb03", "linear_sources")(1)
    assert capsys.readouterr().out.endswith("correct\n")
    day = rows()["3.2"]
    assert day.startswith("20") and sum(map(bool, rows().values())) == 1 and "(1 of" in str(dg.progress())
    again = "import dynguard_lite as dg; print(dict((r[0], r[2]) for r in dg.progress().rows)['3.2'])"
    assert subprocess.run([sys.executable, "-c", again], capture_output=True, text=True, check=True).stdout.strip() == day


def test_reset_forgets(file):
    check_of("nb03", "linear_sources")(1)
    assert not any(row[2] for row in dg.progress(reset=True).rows) and not file.exists()


@pytest.mark.parametrize(
    "broken", ["{", "[1, 2]", '{"nb03.linear_sources": 3}', "\udcff".encode("utf-8", "surrogateescape").decode("latin-1")]
)
def test_a_broken_file_is_set_aside_with_a_message(file, capsys, broken):
    file.write_text(broken, encoding="utf-8")
    assert not any(row[2] for row in dg.progress().rows)
    assert "set aside as progress.broken.json" in capsys.readouterr().out
    assert file.with_suffix(".broken.json").read_text(encoding="utf-8") == broken
    check_of("nb03", "linear_sources")(1)
    assert rows()["3.2"]


def test_a_place_that_cant_be_written_is_no_error(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DYNGUARD_PROGRESS", str(tmp_path / "no" / "such" / "folder.json"))
    check_of("nb03", "linear_sources")(1)
    assert capsys.readouterr().out == "correct\n"
