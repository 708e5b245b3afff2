"""The scripts behind the Makefile: the lists of benchmarks and stories, and the set-up's complaints."""

import json
import sys
from pathlib import Path

import pytest

import runnables
import set_up

ROOT = Path(__file__).resolve().parents[2]

GOOD = 'NAME = "{name}"\nSUMMARY = "how fast"\n\ndef main():\n    print("a table")\n    return {{"seconds": 1}}\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with two benchmarks; what running them does to the interpreter is undone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    for name in ("queue-order", "scoring"):
        (tmp_path / f"{name.replace('-', '_')}.py").write_text(GOOD.format(name=name), encoding="utf-8")
    return tmp_path


def test_without_a_name_the_benchmarks_are_listed(folder, capsys):
    code = runnables.command("benchmark", "benchmarks", folder, [])

    assert code == 0
    assert capsys.readouterr().out == "  queue-order  how fast\n  scoring      how fast\n"


def test_listing_imports_nothing(folder, capsys):
    (folder / "broken.py").write_text(GOOD.format(name="broken") + "import no_such_module\n", encoding="utf-8")

    assert runnables.command("benchmark", "benchmarks", folder, []) == 0
    assert "broken" in capsys.readouterr().out


def test_an_empty_list_says_so(tmp_path, capsys):
    assert runnables.command("story", "end-to-end stories", tmp_path / "absent", []) == 0
    assert capsys.readouterr().out == "There are no end-to-end stories yet.\n"


def test_a_run_ends_with_one_line_of_json_that_names_the_benchmark(folder, capsys):
    code = runnables.command("benchmark", "benchmarks", folder, ["scoring"])
    table, last = capsys.readouterr().out.splitlines()

    assert code == 0
    assert table == "a table"
    assert json.loads(last) == {"benchmark": "scoring", "seconds": 1}


def test_an_unknown_name_is_bad_usage_and_told_the_nearest(folder, capsys):
    code = runnables.command("benchmark", "benchmarks", folder, ["scorng"])

    assert code == 2
    assert capsys.readouterr().err == "lamina: there is no benchmark 'scorng'; the nearest is 'scoring'\n"


def test_a_story_whose_programs_are_missing_names_them(folder, capsys):
    story = 'NEEDS = ("no-such-program",)\n' + GOOD.format(name="restart")
    (folder / "restart.py").write_text(story, encoding="utf-8")

    assert runnables.command("story", "stories", folder, ["restart"]) == 1
    assert capsys.readouterr().err == "lamina: restart needs no-such-program on the PATH\n"


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        pytest.param('SUMMARY = "x"\ndef main(): ...\n', "NAME", id="name"),
        pytest.param('NAME = "x"\ndef main(): ...\n', "SUMMARY", id="summary"),
        pytest.param('NAME = "x"\nSUMMARY = "x"\n', "main", id="main"),
    ],
)
def test_a_module_that_cannot_be_run_is_named(tmp_path, capsys, text, lacking):
    (tmp_path / "half.py").write_text(text, encoding="utf-8")

    assert runnables.command("benchmark", "benchmarks", tmp_path, []) == 1
    assert f"half.py has no {lacking}:" in capsys.readouterr().err


def test_an_old_python_is_told_which_newer_one_is_there(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(set_up, "runs", lambda name: name == "python3.12")

    assert set_up.complaint() == "Python 3.11 or newer is needed and this is 3.9: PYTHON=python3.12 would do"


def test_a_python_without_venv_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ensurepip", None)

    assert "apt-get install python3-venv" in (set_up.complaint() or "")


def test_the_set_up_is_redone_when_a_pin_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("x", encoding="utf-8")
    (tmp_path / "constraints.txt").write_text("numpy==2.0", encoding="utf-8")
    before = set_up.fingerprint()
    (tmp_path / "constraints.txt").write_text("numpy==2.1", encoding="utf-8")

    assert set_up.fingerprint() != before


def test_every_pin_is_a_name_and_a_version_only():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]

    assert pins
    assert [pin for pin in pins if "==" not in pin or "://" in pin or "@" in pin] == []
