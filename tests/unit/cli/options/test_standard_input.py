"""``-`` as a file: standard input is read once, called `stdin` in messages, and its copy is removed."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from lamina.cli.main import lamina
from lamina.cli.options import standard_input
from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.standard_input import InputFile, ProfileName
from lamina.model.errors import InputError

SEEN: list[Path] = []
"""The copies of the last command."""


@click.command(cls=CliCommand)
@click.argument("file", type=InputFile())
@click.option("--profile", type=ProfileName())
@click.option("--fail", is_flag=True)
@click.pass_context
def sample(ctx, file, profile, fail):
    """Print a file twice, as readers do that open it again."""
    SEEN[:] = [file]
    if fail:
        raise InputError.one(str(file), "is wrong; try another", line=3)
    click.echo(file.read_text() + file.read_text(), nl=False)
    click.echo(f"{standard_input.label(ctx, str(file))} {standard_input.is_copy(ctx, file)} {profile}")


def run(*words: str, text: str = "one\n") -> Result:
    return CliRunner().invoke(sample, words, input=text, catch_exceptions=False)


def test_standard_input_can_be_read_more_than_once_and_its_copy_is_removed():
    assert "one\none\nstdin True None\n" == run("-").output
    assert not SEEN[0].exists()
    assert not SEEN[0].parent.exists()


def test_a_file_is_a_file(tmp_path):
    (tmp_path / "a").write_text("two\n")

    assert f"two\ntwo\n{tmp_path}/a False x\n" == run(str(tmp_path / "a"), "--profile", "x").output


def test_a_profile_is_read_from_standard_input_as_well(tmp_path):
    (tmp_path / "a").write_text("")

    assert run(str(tmp_path / "a"), "--profile", "-").output.endswith("/stdin\n")


def test_a_mistake_names_stdin_and_not_the_copy():
    with pytest.raises(InputError) as caught:
        run("-", "--fail")

    assert "stdin:3: is wrong; try another" == str(caught.value)
    assert not SEEN[0].exists()


def test_standard_input_is_read_once():
    with pytest.raises(InputError) as caught:
        run("-", "--profile", "-")

    assert "-: standard input can be read once; use a file for the other one" == str(caught.value)


def test_what_is_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(standard_input, "LARGEST", 3)
    with pytest.raises(InputError, match="stdin: longer than 3 bytes; is this the right file"):
        run("-")


@pytest.mark.parametrize(
    ("words", "source"),
    [
        pytest.param(["simulate", "s.yaml", "--out", "-"], "--out", id="a folder"),
        pytest.param(["compare", "s.yaml", "--profiles", "x", "--out", "-"], "--out", id="a folder of a comparison"),
        pytest.param(["catalog", "generate", "-", "--images", "1"], "FILE", id="a catalog"),
        pytest.param(["catalog", "add", "-", "x.tar"], "FILE", id="a catalog that is extended"),
        pytest.param(["new-agent", "quiet-nodes", "--out", "-"], "--out", id="a place"),
    ],
)
def test_what_is_written_has_a_name(tmp_path, monkeypatch, words, source):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        CliRunner().invoke(lamina, words, catch_exceptions=False)

    assert f"{source}: '-' is standard input, which cannot be written; write a name" == str(caught.value)
    assert [] == list(tmp_path.iterdir())
