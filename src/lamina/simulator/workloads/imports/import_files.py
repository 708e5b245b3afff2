"""
Imported files as bytes, rows of a CSV table or JSON, within bounds.

The content is not trusted. The first bytes decide whether a file is compressed (`lamina.wire.compressed_lines`). The
limit on decompressed bytes grows with the size of the file, so a few bytes cannot expand to gigabytes. Each mistake has
file, line and reason.
"""

import csv
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from lamina.model.conversion import suggest
from lamina.model.duration import LONGEST
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.simulator.workloads.imports.import_schema import ImportContext
from lamina.wire.compressed_lines import ReadBounds, read_lines

T = TypeVar("T")

LARGEST: Final = 512 * 1024**2
"""Largest decompressed size of a file in bytes."""
GROWTH: Final = 200
"""Largest ratio of decompressed to compressed size: real traces reach 3 to 30, decompression bombs a thousand."""
FREE_GROWTH: Final = 32 * 1024**2
"""Decompressed bytes below which the ratio is not checked: a small file of one repeated line is no attack."""
LONGEST_LINE: Final = 1024**2
MOST_MISTAKES: Final = 100
LARGEST_NUMBER: Final = 2.0**53


def located(context: ImportContext, folder: Path, name: str, *steps: str | int) -> Path:
    """Return the path of a file or folder; if it is missing, raise InputError located *steps* inside the entry."""
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
    """Return the whole file, decompressed."""
    bounds = _bounds(path)
    return b"\n".join(line for _, line in read_lines(path, ReadBounds(line=bounds.size, size=bounds.size)))


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, decompressed."""
    return read_lines(path, _bounds(path))


def text_of(data: bytes, source: str) -> str:
    """Return UTF-8 data as text. Raises InputError with the line of the first bad byte."""
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
        """Keep the fields; *columns* has the position of each column."""
        self.source, self.line, self.columns, self._fields = source, line, columns, fields

    def wrong(self, column: str, message: str) -> InputError:
        """Return an error located at a field."""
        return InputError.one(self.source, message, path=column, line=self.line)

    def text(self, column: str) -> str:
        """Return a field that must not be empty."""
        if not (text := self.optional(column)):
            raise self.wrong(column, "is empty: every row needs one")
        return text

    def optional(self, column: str) -> str:
        """Return a field; empty if the field or its column is missing."""
        index = self.columns.get(column)
        return "" if index is None else self._fields[index].strip()

    def fields(self, columns: Iterable[str]) -> list[str]:
        """Return several fields at once."""
        return [self._fields[self.columns[column]] for column in columns]

    def number(self, column: str) -> float:
        """Return a number of 0 or more."""
        return self._number(column, self.text(column))

    def count(self, column: str) -> int:
        """Return a whole number of 0 or more."""
        if (number := self.number(column)) != int(number):
            raise self.wrong(column, f"{shown(self.text(column))} is not a whole number")
        return int(number)

    def time(self, column: str) -> float | None:
        """Return seconds; None if the field is empty."""
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
    Yield the rows of a CSV table whose first line names its columns.

    All *needed* columns must exist; other columns must be *known*, unless the table is *open_ended*.
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


def headless_rows(path: Path, columns: Sequence[str]) -> Iterator[TableRow]:
    """Yield the rows of a CSV table without a header; `check_length` finds rows that are too short or too long."""
    source, empty = str(path), True
    for number, line in read_lines(path, _bounds(path)):
        if line.strip():
            empty = False
            fields = _fields(source, number, line)
            names = [
                *columns[: len(fields)],
                *(f"column {extra}" for extra in range(len(columns) + 1, len(fields) + 1)),
            ]
            yield TableRow(source, number, {name: index for index, name in enumerate(names)}, fields)
    if empty:
        raise InputError.one(source, f"is empty; a row has the columns {', '.join(columns)}")


def check_length(row: TableRow, columns: Sequence[str], least: int) -> None:
    """Raise InputError for a row of a table without a header that has fewer than *least* fields, or too many."""
    if not least <= len(row.columns) <= len(columns):
        message = f"has {len(row.columns)} fields, and a row has {least} to {len(columns)}: {', '.join(columns)}"
        raise InputError.one(row.source, message, line=row.line)


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
    """Return the result of *take* for every row. Raises InputError with the mistakes of all rows."""
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


_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_TRUNCATED: Final = "truncated"


class JsonFile:
    """A JSON file, with the lines of its parts for messages."""

    def __init__(self, path: Path) -> None:
        """Read the file, decompressed."""
        self.source = str(path)
        self.data = content(path).removeprefix(b"\xef\xbb\xbf")
        text_of(self.data, self.source)

    def decode(self, kind: type[T], part: bytes | msgspec.Raw | None = None, start: int = 0, path: str = "") -> T:
        """Return the file, or the *part* of it that begins at *start* or later, as a *kind*."""
        data = self.data if part is None else bytes(part)
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.ValidationError as error:
            # Valid JSON of another shape; msgspec reports the path, without the line.
            what, _, where = str(error).partition(" - at `$")
            line = 0 if part is None else self.line(data, start)
            raise InputError.one(self.source, what, path=f"{path}{where.rstrip('`')}".strip("."), line=line) from error
        except (ValueError, RecursionError) as error:
            raise InputError([self._unreadable(str(error))]) from error

    def _unreadable(self, problem: str) -> Mistake:
        line = 0
        if at := _BYTE.search(problem):
            line = self.data.count(b"\n", 0, int(at.group(1))) + 1
        elif _TRUNCATED in problem:
            line = self.data.count(b"\n") + 1
            problem = "it ends in the middle; was it cut short? Copy it again"
        return Mistake(self.source, f"cannot be read as JSON: {problem}", line=line)

    def mistake(self, message: str, part: bytes | msgspec.Raw, start: int = 0, path: str = "") -> Mistake:
        """Return a mistake located at a *part*."""
        return Mistake(self.source, message, path, self.line(part, start))

    def line(self, part: bytes | msgspec.Raw, start: int = 0) -> int:
        """Return the line on which a *part* begins; the search begins at *start*."""
        at = self.data.find(bytes(part), start)
        return self.data.count(b"\n", 0, max(at, 0)) + 1

    def places(self, parts: list[msgspec.Raw]) -> Iterator[tuple[int, int]]:
        """Yield offset and line of each of the *parts* of a list; they follow one another in the file."""
        at, line, counted = 0, 1, 0
        for part in parts:
            size = len(bytes(part))
            at = max(self.data.find(bytes(part), at), at)
            line += self.data.count(b"\n", counted, at)
            counted = at
            yield at, line
            at += size
