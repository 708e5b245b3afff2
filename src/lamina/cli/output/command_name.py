"""
The words that started this program, for commands it prints: they work when pasted into the same shell.

After `make demo`, `lamina` is not on the PATH: a user who started `.venv/bin/lamina` sees `.venv/bin/lamina` again.
"""

import os
import re
import shlex
import sys
from typing import Final

import click

NAME: Final = "lamina"
MODULES: Final = ("lamina", "lamina.cli.main")

_IN_EPILOG: Final = re.compile(r"(^  |&& |sudo )lamina (?=[a-z-])", flags=re.MULTILINE)


def command_name() -> str:
    """Return the words that start this program again from the current folder, quoted for a shell."""
    started = sys.argv[0]
    if os.path.basename(started) == NAME:  # noqa: PTH119 - as it was typed, which may be no path at all
        return NAME if _is_first_on_path(started) else shlex.quote(started)
    words = sys.orig_argv
    for place, word in enumerate(words[:-1]):
        if word == "-m" and words[place + 1] in MODULES:
            return shlex.join(words[: place + 2])
    return NAME


def name_examples(command: click.Command) -> click.Command:
    """Put the command name into the examples of a command's help and of its subcommands; return the command."""
    name = command_name()
    if name == NAME:
        return command
    if command.epilog:
        command.epilog = _IN_EPILOG.sub(lambda found: f"{found[1]}{name} ", command.epilog)
    if isinstance(command, click.Group):
        for child in command.commands.values():
            name_examples(child)
    return command


def _is_first_on_path(started: str) -> bool:
    """Return whether a shell starts this same file for the bare name."""
    for folder in os.get_exec_path():
        candidate = os.path.join(folder, NAME)  # noqa: PTH118 - pathlib costs more than all of this
        if os.access(candidate, os.X_OK):
            try:
                return os.path.samefile(candidate, started)  # noqa: PTH121 - as above
            except OSError:
                return False
    return False
