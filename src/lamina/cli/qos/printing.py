"""Prints the QoS page, once or until the user stops it."""

import time
from typing import Final

import click
import msgspec

from lamina.cli.options.shared_options import print_data
from lamina.cli.output.screen import Screen
from lamina.cli.qos.page_source import PageSource
from lamina.model.errors import InputError, LaminaError

CLEAR: Final = "\x1b[H\x1b[2J"


def print_once(source: PageSource, path: str, output: str) -> None:
    """Print the page. Raises LaminaError if it cannot be read."""
    body = source.read(path)
    if output == "table":
        click.echo(_printable(body.decode(errors="replace")), nl=False)
        return
    try:
        found = msgspec.json.decode(body)
    except ValueError as error:
        raise InputError.one("--url", f"the answer is not the QoS page of a scheduler: {error}") from None
    print_data(found, output)


def print_repeatedly(source: PageSource, path: str, output: str, every: float) -> None:
    """Print the page every few seconds until the user stops; a failure is printed, and the next attempt follows."""
    terminal = Screen().is_terminal
    while True:
        if terminal:
            click.echo(CLEAR, nl=False)
        try:
            print_once(source, path, output)
        except LaminaError as error:
            # A scheduler or API server that is restarted answers again soon.
            click.echo(str(error), err=True)
        if not terminal:
            click.echo()
        time.sleep(every)


def _printable(table: str) -> str:
    """Replace control characters: names come from users of the cluster."""
    return "".join(one if one.isprintable() or one == "\n" else "�" for one in table)
