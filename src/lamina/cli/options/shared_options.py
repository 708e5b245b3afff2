"""Options that several commands share: ``-o`` and ``-v``."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

MOST_VERBOSE: Final = 10


def output_option(*formats: str) -> Callable[[F], F]:
    """Return ``-o``/``--output`` with these formats; the first is the default."""
    return click.option(
        "-o", "--output", "output", type=click.Choice(formats), default=formats[0], show_default=True, help="Format."
    )


def verbosity_option(default: int | None = 0) -> Callable[[F], F]:
    """Return ``-v``/``--v``. Numbers above the largest are reduced to it, as with kubectl."""
    return click.option(
        "-v",
        "--v",
        "verbosity",
        type=click.IntRange(0, MOST_VERBOSE, clamp=True),
        default=default,
        show_default=default is not None,
        metavar="LEVEL",
        help=f"Log verbosity, 0 to {MOST_VERBOSE}." + ("" if default is not None else "  [default: 0]"),
    )


def print_data(found: object, output: str) -> None:
    """Print *found* as indented JSON, or as YAML."""
    import msgspec

    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
    else:
        click.echo(msgspec.yaml.encode(found), nl=False)
