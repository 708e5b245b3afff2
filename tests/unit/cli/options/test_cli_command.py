"""Habits from kubectl that every command has: how options are spelled, what an empty value means, old names."""

import ast
import sys

import click
import pytest
from click.testing import CliRunner

from lamina.cli.main import COMMANDS, RENAMED, lamina, run
from lamina.cli.options.cli_command import EMPTY, CliCommand
from lamina.cli.options.shared_options import output_option, verbosity_option
from lamina.model.errors import InputError


@click.command(cls=CliCommand)
@click.argument("names", nargs=-1)
@click.option("-n", "--namespace", multiple=True)
@click.option("--out", type=click.Path())
@click.option("-q", "quiet", is_flag=True)
@output_option("table", "json")
@verbosity_option()
def sample(names, namespace, out, quiet, output, verbosity):
    """Print what was understood."""
    click.echo(repr((names, namespace, out, quiet, output, verbosity)))


def understood(*words: str) -> object:
    result = CliRunner().invoke(sample, words, catch_exceptions=False)
    assert 0 == result.exit_code, result.output
    return ast.literal_eval(result.output)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["-o", "json"], ((), (), None, False, "json", 0), id="as click has it"),
        pytest.param(["-o=json"], ((), (), None, False, "json", 0), id="-o=json"),
        pytest.param(["-ojson"], ((), (), None, False, "json", 0), id="-ojson"),
        pytest.param(["--output", "json"], ((), (), None, False, "json", 0), id="--output json"),
        pytest.param(["--output=json"], ((), (), None, False, "json", 0), id="--output=json"),
        pytest.param(["-v=2"], ((), (), None, False, "table", 2), id="-v=2"),
        pytest.param(["--v=2"], ((), (), None, False, "table", 2), id="--v=2, as kube-scheduler has it"),
        pytest.param(["-v", "15"], ((), (), None, False, "table", 10), id="more than the most is the most"),
        pytest.param(["-n=a", "-n=b=c"], ((), ("a", "b=c"), None, False, "table", 0), id="only the first = splits"),
        pytest.param(
            ["--", "-o=json"], (("-o=json",), (), None, False, "table", 0), id="after --, nothing is an option"
        ),
    ],
)
def test_short_options_may_have_an_equals_sign(words, expected):
    assert expected == understood(*words)


@pytest.mark.parametrize(
    ("words", "sources"),
    [
        pytest.param(["--out", ""], ["--out"], id="a word of its own"),
        pytest.param(["--out="], ["--out"], id="nothing after the equals sign"),
        pytest.param(["-n="], ["--namespace"], id="a short option"),
        pytest.param(["-n", "a", "-n", "  "], ["--namespace"], id="spaces, in one of several"),
        pytest.param(["a", ""], ["NAMES"], id="an argument"),
        pytest.param(["--out", "", "-n", ""], ["--namespace", "--out"], id="two options, both are reported"),
    ],
)
def test_an_empty_value_is_refused_with_one_line_each(words, sources):
    with pytest.raises(InputError) as caught:
        understood(*words)

    assert [f"{source}: {EMPTY}" for source in sources] == str(caught.value).splitlines()


@pytest.mark.parametrize("name", [*COMMANDS, *(f"catalog {one}" for one in ("add", "show", "generate"))])
def test_every_command_has_these_habits(name):
    group: click.Command = lamina
    for word in name.split():
        assert isinstance(group, click.Group)
        found = group.get_command(click.Context(group), word)
        assert found is not None
        group = found

    assert isinstance(group, CliCommand | click.Group)


@pytest.mark.parametrize("name", COMMANDS)
def test_what_has_an_output_option_has_it_in_both_spellings(name):
    command = lamina.get_command(click.Context(lamina), name)
    assert command is not None
    spelled = [set(one.opts) for one in command.params if {"-o", "--output", "-v", "--v"} & set(one.opts)]

    assert [] == [one for one in spelled if one not in ({"-o", "--output"}, {"-v", "--v"})]


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_old_name_works_and_says_the_new_one(monkeypatch, capsys, old, new):
    monkeypatch.setattr(sys, "argv", ["lamina", old, "--help"])
    code = run()
    told = capsys.readouterr()

    assert (0, f"lamina {old} was renamed; use lamina {new}\n") == (code, told.err)
    assert told.out.startswith(f"Usage: lamina {new} ")


def test_old_names_are_not_listed():
    shown = CliRunner().invoke(lamina, ["--help"]).output

    assert not set(RENAMED) & {line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line.split()}
