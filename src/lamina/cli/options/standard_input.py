"""
Standard input as a file: ``-`` wherever a command reads one.

Readers open a file by name, some more than once and some in other processes. So standard input is copied to a temporary
file, which is removed when the command ends. Messages call that file ``stdin``. Relative file names in it are resolved
from the temporary folder, so they have to be absolute.
"""

import sys
from pathlib import Path
from typing import Any, Final

import click

DASH: Final = "-"
NAME: Final = "stdin"
LARGEST: Final = 8 * 1024**3
"""Most bytes to copy: the size of the largest file that Lamina reads."""
CHUNK: Final = 1024**2

_KEY: Final = "lamina.cli.options.standard_input"


class InputFile(click.Path):
    """The name of a file that a command reads; ``-`` is standard input."""

    def __init__(self) -> None:
        """Accept any name: the reader reports a missing file, in the same form as other mistakes."""
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; for ``-`` that of a copy of standard input."""
        if value != DASH or ctx is None or ctx.resilient_parsing:
            return super().convert(value, param, ctx)
        return copied(ctx)


class OutputPath(click.Path):
    """The name of a file or folder that a command writes; ``-`` is an error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises InputError for ``-``."""
        if value == DASH:
            from lamina.model.errors import InputError

            name = DASH if param is None else max(param.opts, key=len) if param.opts[0].startswith("-") else "FILE"
            raise InputError.one(name, "'-' is standard input, which cannot be written; write a name")
        return super().convert(value, param, ctx)


class ProfileName(click.types.StringParamType):
    """A profile as FILE|NAME; ``-`` is a file on standard input."""

    name = "profile"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text as written; for ``-`` the path of a copy of standard input."""
        return str(copied(ctx)) if value == DASH and ctx is not None and not ctx.resilient_parsing else str(value)


def copied(ctx: click.Context) -> Path:
    """Copy standard input to a temporary file of this command. Raises InputError if another option has read it."""
    import tempfile

    from lamina.model.errors import InputError

    if _KEY in ctx.meta:
        raise InputError.one(DASH, "standard input can be read once; use a file for the other one")
    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="lamina-"))
    path = ctx.meta[_KEY] = Path(folder) / NAME
    size = 0
    with path.open("xb") as file:
        while data := sys.stdin.buffer.read(CHUNK) if sys.stdin is not None else b"":
            size += len(data)
            if size > LARGEST:
                raise InputError.one(NAME, f"longer than {LARGEST} bytes; is this the right file?")
            file.write(data)
    return path


def label(ctx: click.Context, name: str) -> str:
    """Return the name to show for a file or profile: ``stdin`` for the copy of standard input, else *name*."""
    return NAME if name == str(ctx.meta.get(_KEY)) else name


def is_copy(ctx: click.Context, path: Path) -> bool:
    """Return whether *path* is the copy of standard input."""
    return path == ctx.meta.get(_KEY)


def rename(ctx: click.Context, error: Exception) -> None:
    """Replace the temporary file's name by ``stdin`` in the mistakes of *error*."""
    if _KEY not in ctx.meta:
        return
    import msgspec

    from lamina.model.errors import InputError

    if isinstance(error, InputError):
        error.mistakes = tuple(msgspec.structs.replace(one, source=label(ctx, one.source)) for one in error.mistakes)
