"""
Files that are imported, as bytes or as rows of a table, within bounds.

Nothing in them is believed. Compressed or not is told by the first bytes (`lamina.wire.compressed_lines`); how much a file may grow
to follows from how large it is, so that a few bytes never become gigabytes. A mistake has file, line and reason.
"""

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

from lamina.model.conversion import suggest
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.simulator.workloads.imports.import_context import ImportContext
from lamina.simulator.workloads.units import LONGEST
from lamina.wire.compressed_lines import ReadBounds, read_lines

T = TypeVar("T")

LARGEST: Final = 512 * 1024**2
"""Bytes of a file, decompressed."""
GROWTH: Final = 200
"""How many times its size a file may have when decompressed: real traces grow by 3 to 30, bombs by a thousand."""
FREE_GROWTH: Final = 32 * 1024**2
"""Up to so many bytes growth is not looked at: a small file of one repeated line is no attack."""
LONGEST_LINE: Final = 1024**2
MOST_MISTAKES: Final = 100
LARGEST_NUMBER: Final = 2.0**53


def located(context: ImportContext, folder: Path, name: str, *steps: str | int) -> Path:
    """Find a file or folder that the entry names *steps* inside it."""
    path = folder / name
    message = ""
    if Path(name).is_absolute():
        message = "must be relative to this file"
    else:
        try:
            if not path.exists():
                near = sorted(one.name for one in path.parent.iterdir() if not one.name.startswith("."))
                message = f"there is no such file; {suggest(path.name, near)}" if near else "there is no such file"
            elif not (path.is_file() or path.is_dir()):
                message = "is not a file"
        except (OSError, ValueError):
            message = "there is no such file"
    if message:
        raise InputError([context.entry.mistake(message, *steps)])
    return path


def content(path: Path) -> bytes:
    """Return all of a file, decompressed."""
    bounds = _bounds(path)
    return b"\n".join(line for _, line in read_lines(path, ReadBounds(line=bounds.size, size=bounds.size)))


def text_of(data: bytes, source: str) -> str:
    """Decode text."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError.one(source, "is not text in UTF-8; save it as such", line=line) from error


def _bounds(path: Path) -> ReadBounds:
    try:
        if not path.is_file():
            raise InputError.one(str(path), "is not a file; name one")
        size = path.stat().st_size
    except OSError as error:
        raise InputError.one(str(path), f"cannot be read ({error.strerror}); check its permissions") from error
    return ReadBounds(line=LONGEST_LINE, size=min(LARGEST, max(FREE_GROWTH, size * GROWTH)))


class TableRow:
    """One row of a table."""

    __slots__ = ("_fields", "columns", "line", "source")

    def __init__(self, source: str, line: int, columns: dict[str, int], fields: list[str]) -> None:
        """Keep the fields; *columns* says which is where."""
        self.source, self.line, self.columns, self._fields = source, line, columns, fields

    def wrong(self, column: str, message: str) -> InputError:
        """Say what is wrong with a field."""
        return InputError.one(self.source, message, path=column, line=self.line)

    def text(self, column: str) -> str:
        """Return a field that must say something."""
        if not (text := self.optional(column)):
            raise self.wrong(column, "is empty: every row needs one")
        return text

    def optional(self, column: str) -> str:
        """Return a field; empty when it, or the whole column, is not there."""
        index = self.columns.get(column)
        return "" if index is None else self._fields[index].strip()

    def fields(self, columns: Iterable[str]) -> list[str]:
        """Return several fields at once."""
        return [self._fields[self.columns[column]] for column in columns]

    def number(self, column: str) -> float:
        """Read a number of 0 or more."""
        return self._number(column, self.text(column))

    def count(self, column: str) -> int:
        """Read a whole number of 0 or more."""
        if (number := self.number(column)) != int(number):
            raise self.wrong(column, f"{shown(self.text(column))} is not a whole number")
        return int(number)

    def time(self, column: str) -> float | None:
        """Read seconds; None when the field is empty."""
        if not (text := self.optional(column)):
            return None
        if (seconds := self._number(column, text)) > LONGEST:
            raise self.wrong(column, f"{shown(text)} is too long; at most ten years are simulated")
        return seconds

    def _number(self, column: str, text: str) -> float:
        try:
            number = float(text) if text.isascii() and "_" not in text else math.nan
        except ValueError:
            number = math.nan
        if math.isnan(number) or math.isinf(number):
            raise self.wrong(column, f"{shown(text)} is not a number")
        if number < 0:
            raise self.wrong(column, f"{shown(text)} is negative: it must be 0 or more")
        if number > LARGEST_NUMBER:
            raise self.wrong(column, f"{shown(text)} is too large")
        return number


def rows(
    path: Path, needed: Sequence[str], known: Iterable[str] = (), *, open_ended: bool = False
) -> Iterator[TableRow]:
    """
    Go through a CSV table whose first line names its columns.

    All columns that are *needed* must be there; others must be *known*, unless the table is *open_ended*.
    """
    source = str(path)
    columns: dict[str, int] | None = None
    for number, line in read_lines(path, _bounds(path)):
        if not line.strip():
            continue
        fields = _fields(source, number, line)
        if columns is None:
            columns = _header(source, number, fields, needed, None if open_ended else known)
        elif len(fields) != len(columns):
            message = f"has {len(fields)} of {len(columns)} fields: was the file cut short, or is it another table?"
            raise InputError.one(source, message, line=number)
        else:
            yield TableRow(source, number, columns, fields)
    if columns is None:
        raise InputError.one(source, f"is empty: the first line names the columns {', '.join(needed)}")


def _fields(source: str, number: int, line: bytes) -> list[str]:
    try:
        (fields,) = csv.reader([line.decode("utf-8-sig").rstrip("\r")], strict=True)
    except UnicodeDecodeError as error:
        raise InputError.one(source, "is not text in UTF-8; save it as such", line=number) from error
    except (csv.Error, ValueError) as error:
        raise InputError.one(source, f"is not a line of a CSV table ({error})", line=number) from error
    return fields


def _header(
    source: str, number: int, names: list[str], needed: Sequence[str], known: Iterable[str] | None
) -> dict[str, int]:
    columns = {name.strip(): index for index, name in enumerate(names)}
    mistakes: list[str] = []
    if len(columns) != len(names):
        mistakes.append("two columns have the same name")
    if missing := [name for name in needed if name not in columns]:
        mistakes.append(f"has no column {', '.join(missing)}; is this the right file?")
    if known is not None:
        valid = [*needed, *known]
        unknown = [name for name in columns if name not in valid]
        mistakes += (f"unknown column {shown(name)}; {suggest(name, valid)}" for name in unknown[:MOST_MISTAKES])
    if mistakes:
        raise InputError([Mistake(source, message, line=number) for message in mistakes])
    return columns


def each(found: Iterable[TableRow], take: Callable[[TableRow], T]) -> list[T]:
    """Read every row, and tell the mistakes of all of them together."""
    taken: list[T] = []
    mistakes: list[Mistake] = []
    for row in found:
        try:
            taken.append(take(row))
        except InputError as error:
            mistakes += error.mistakes
            if len(mistakes) >= MOST_MISTAKES:
                break
    if mistakes:
        raise InputError(mistakes[:MOST_MISTAKES])
    return taken
