"""``--profile FILE|NAME``: a configuration file, or the name of a built-in profile."""

from pathlib import Path
from typing import Final

import click

from lamina.model.errors import InputError
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.config.named_profiles import NAMED, current_name, named
from lamina.scheduling.plugins.in_tree import registry

MOST_BYTES: Final = 1024 * 1024


def configuration(profile: str, *, extenders: str = "a simulation") -> Configuration:
    """
    Load the profile with this name, or else the configuration file at this path.

    *extenders* names what uses the configuration and calls no extenders; a configuration with extenders is then rejected.
    It is empty if they are called.
    """
    plugins = registry()
    path = Path(profile)
    if current_name(profile) in NAMED or not (path.suffix or "/" in profile or path.exists()):
        return named(profile, plugins)
    loaded = load(read_text(path, MOST_BYTES), profile, plugins)
    return loaded.refuse_extenders(profile, extenders) if extenders else loaded


def warned(chosen: Configuration) -> Configuration:
    """Print a configuration's warnings on standard error, one line each; return the configuration."""
    for warning in chosen.warnings:
        click.echo(f"warning: {warning}", err=True)
    return chosen


def read_text(path: Path, most: int) -> str:
    """Return the text of a file of at most *most* bytes. Raises InputError."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise InputError.one(str(path), f"larger than {most} bytes; is this the right file?")
        return data.decode()
    except OSError as error:
        raise InputError.one(str(path), f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError.one(str(path), "is not a text file (UTF-8)") from error
