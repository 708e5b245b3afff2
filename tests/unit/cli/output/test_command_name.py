"""The name under which commands are printed: the one that works when pasted into the same shell."""

import os
import sys
from pathlib import Path

import click
import pytest

from lamina.cli.demo import tour
from lamina.cli.output import command_name


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A folder in which `.venv/bin/lamina` is, and nothing on the PATH."""
    program = tmp_path / ".venv" / "bin" / "lamina"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    return program


def called(monkeypatch, *words: str) -> str:
    monkeypatch.setattr(sys, "argv", [words[0], "demo"])
    monkeypatch.setattr(sys, "orig_argv", [*words, "demo"])
    return command_name.command_name()


def test_a_program_that_is_not_on_the_path_is_called_as_it_was(installed, monkeypatch):
    assert called(monkeypatch, ".venv/bin/lamina") == ".venv/bin/lamina"


def test_a_program_on_the_path_is_called_by_its_name(installed, monkeypatch):
    monkeypatch.setenv("PATH", str(installed.parent))

    assert called(monkeypatch, str(installed)) == "lamina"


def test_another_program_of_that_name_on_the_path_is_not_taken_for_it(installed, monkeypatch, tmp_path):
    other = tmp_path / "elsewhere" / "lamina"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n", encoding="utf-8")
    other.chmod(0o755)

    assert called(monkeypatch, ".venv/bin/lamina") == ".venv/bin/lamina"


def test_a_path_with_a_space_is_quoted(installed, monkeypatch):
    assert called(monkeypatch, "a folder/bin/lamina") == "'a folder/bin/lamina'"


@pytest.mark.parametrize("module", command_name.MODULES)
def test_a_module_is_called_as_a_module(monkeypatch, module):
    monkeypatch.setattr(sys, "argv", ["src/lamina/cli/main.py", "demo"])
    monkeypatch.setattr(sys, "orig_argv", [".venv/bin/python", "-m", module, "demo"])

    assert command_name.command_name() == f".venv/bin/python -m {module}"


def test_other_programs_that_use_the_command_line_call_it_by_its_name(monkeypatch):
    assert called(monkeypatch, "pytest") == "lamina"


@pytest.mark.parametrize(
    ("epilog", "shown"),
    [
        pytest.param("  lamina demo", "  x/lamina demo", id="a command"),
        pytest.param("  cd a && lamina demo", "  cd a && x/lamina demo", id="after another"),
        pytest.param("  sudo lamina doctor", "  sudo x/lamina doctor", id="as root"),
        pytest.param("Lamina and lamina words", "Lamina and lamina words", id="prose"),
    ],
)
def test_examples_of_help_texts_are_called_the_same_way(monkeypatch, epilog, shown):
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr(sys, "argv", ["x/lamina"])
    inner = click.Command("inner", epilog=epilog)

    command_name.name_examples(click.Group("outer", commands=[inner]))

    assert inner.epilog == shown


def test_next_steps_begin_where_the_tour_was_started(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    beside = tour.next_steps(".venv/bin/lamina", tmp_path / "examples")
    elsewhere = tour.next_steps("lamina", Path("/a b/examples"))

    assert beside[0].startswith(".venv/bin/lamina simulate examples/founding/scenario.yaml ")
    assert elsewhere[0].startswith("lamina simulate '/a b/examples/founding/scenario.yaml' ")
