"""Checks that the command line accepts the commands that the check does not run itself."""

import shlex
from collections.abc import Iterator
from typing import Final

import click

from docs_check.shell import ASSIGNMENT, ShellCommand

LAMINA: Final = frozenset({"lamina", ".venv/bin/lamina"})
OPERATORS: Final = frozenset("();<>|&")


def usage_error(command: ShellCommand) -> str | None:
    """Return the command line's error for a `lamina` command of a page, or None."""
    for words in calls(command.plain):
        if (error := _error(words)) is not None:
            return error
    return None


def calls(text: str) -> Iterator[list[str]]:
    """Yield the arguments of every call of `lamina` in a line of shell."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in [*lexer, ";"]:
        if OPERATORS.issuperset(word):
            if words and words[0] in LAMINA:
                yield words[1:]
            words = []
        elif words or not (word == "sudo" or ASSIGNMENT.match(word)):
            words.append(word)


def _error(words: list[str]) -> str | None:
    from lamina.cli.main import lamina

    command: click.Command = lamina
    try:
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            with click.Context(command) as context:
                name, found, words = command.resolve_command(context, words)
            assert found is not None
            assert name is not None
            command = found
        if not isinstance(command, click.Group):
            command.make_context(command.name, list(words))
    except click.exceptions.Exit:
        return None
    except click.ClickException as error:
        return error.format_message()
    return None
