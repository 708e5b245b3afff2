"""Ctrl-C and SIGTERM: what a command reports, and which folders it leaves."""

import signal
import sys
from pathlib import Path

import click
import pytest

from lamina.cli import main
from lamina.cli.options.cli_command import CliCommand
from lamina.cli.output import interruption
from lamina.cli.output.interruption import INTERRUPTED, TERMINATED, Terminated
from lamina.cli.output.out_folder import OutFolder
from lamina.model.errors import InputError


@pytest.mark.parametrize(
    ("stop", "kept", "code", "line"),
    [
        pytest.param(KeyboardInterrupt(), [], INTERRUPTED, "interrupted: no file was written", id="Ctrl-C"),
        pytest.param(KeyboardInterrupt(), ["a", "b/c"], INTERRUPTED, "interrupted: kept a, b/c", id="Ctrl-C, late"),
        pytest.param(Terminated(TERMINATED), [], TERMINATED, "terminated: no file was written", id="SIGTERM"),
        pytest.param(Terminated(TERMINATED), ["a"], TERMINATED, "terminated: kept a", id="SIGTERM, late"),
    ],
)
def test_an_interrupted_command_reports_what_it_kept(monkeypatch, capsys, stop, kept, code, line):
    @click.command(cls=CliCommand)
    def stopping() -> None:
        for name in kept:
            interruption.keep(Path(name))
        raise stop

    monkeypatch.setattr(main.LazyGroup, "get_command", lambda *_: stopping)
    monkeypatch.setattr(sys, "argv", ["lamina", "demo"])

    assert code == main.run()
    assert line == capsys.readouterr().err.strip()


def test_outside_of_a_command_keeping_is_not_noted():
    interruption.keep(Path("a"))

    assert click.get_current_context(silent=True) is None


@pytest.mark.parametrize(
    ("before", "raises"),
    [pytest.param(signal.SIG_DFL, True, id="usually"), pytest.param(signal.SIG_IGN, False, id="unless it is ignored")],
)
def test_sigterm_is_an_exception_once_listened_for(before, raises):
    handler = signal.signal(signal.SIGTERM, before)
    found = None
    try:
        interruption.listen()
        signal.raise_signal(signal.SIGTERM)
    except Terminated as stop:
        found = stop.code, signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, handler)

    # A second SIGTERM then ends the process at once.
    assert ((143, signal.SIG_DFL) if raises else None) == found


# ------------------------------------------------------------------------------------------------------------ the folder


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Terminated, ValueError], ids=lambda one: one.__name__)
@pytest.mark.parametrize(
    ("there", "filled", "left"),
    [
        pytest.param([], [], [], id="nothing was there"),
        pytest.param(["a"], [], ["a"], id="the parent was there"),
        pytest.param(["a", "a/b"], [], ["a", "a/b"], id="it was there, empty"),
        pytest.param([], ["a/b/kept"], ["a", "a/b", "a/b/kept"], id="something was written"),
    ],
)
def test_a_command_that_fails_removes_the_empty_folders_it_made(tmp_path, there, filled, left, stop):
    for name in there:
        (tmp_path / name).mkdir()

    def work():
        with OutFolder(tmp_path / "a" / "b"):
            for name in filled:
                (tmp_path / name).touch()
            raise stop

    with pytest.raises(stop):
        work()

    assert left == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))


def test_a_command_that_succeeds_keeps_its_folder(tmp_path):
    with OutFolder(tmp_path / "a" / "b"), OutFolder(None):
        pass

    assert (tmp_path / "a" / "b").is_dir()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError) as caught, OutFolder(tmp_path / "file" / "out"):
        pass

    assert (
        f"--out: {tmp_path}/file/out cannot be created: not a directory; choose a folder that you can write to"
        == str(caught.value)
    )
