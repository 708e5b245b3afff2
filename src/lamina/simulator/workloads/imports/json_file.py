"""JSON that somebody else wrote, with the line of what is wrong in it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from lamina.model.errors import InputError, Mistake
from lamina.simulator.workloads.imports import import_files

T = TypeVar("T")

_BYTE: Final = re.compile(r"\(byte (\d+)\)")
_TRUNCATED: Final = "truncated"


class JsonFile:
    """The bytes of one file."""

    def __init__(self, path: Path) -> None:
        """Read it, decompressed."""
        self.source = str(path)
        self.data = import_files.content(path).removeprefix(b"\xef\xbb\xbf")
        import_files.text_of(self.data, self.source)

    def decode(self, kind: type[T], part: bytes | msgspec.Raw | None = None, start: int = 0, path: str = "") -> T:
        """Read all of it, or the *part* of it that stands at *start* or later, as a *kind*."""
        data = self.data if part is None else bytes(part)
        try:
            return msgspec.json.decode(data, type=kind)
        except msgspec.ValidationError as error:
            # JSON of another shape; msgspec says at which place, without its line.
            what, _, where = str(error).partition(" - at `$")
            line = 0 if part is None else self.line(data, start)
            raise InputError.one(self.source, what, path=f"{path}{where.rstrip('`')}".strip("."), line=line) from error
        except (ValueError, RecursionError) as error:
            raise InputError([self._unreadable(str(error))]) from error

    def _unreadable(self, told: str) -> Mistake:
        line = 0
        if at := _BYTE.search(told):
            line = self.data.count(b"\n", 0, int(at.group(1))) + 1
        elif _TRUNCATED in told:
            line = self.data.count(b"\n") + 1
            told = "it ends in the middle; was it cut short? Copy it again"
        return Mistake(self.source, f"cannot be read as JSON: {told}", line=line)

    def mistake(self, message: str, part: bytes | msgspec.Raw, start: int = 0, path: str = "") -> Mistake:
        """Say what is wrong with a *part*."""
        return Mistake(self.source, message, path, self.line(part, start))

    def line(self, part: bytes | msgspec.Raw, start: int = 0) -> int:
        """Say on which line a *part* begins; looked for from *start* on."""
        at = self.data.find(bytes(part), start)
        return self.data.count(b"\n", 0, max(at, 0)) + 1

    def places(self, parts: list[msgspec.Raw]) -> Iterator[tuple[int, int]]:
        """Say for each of the *parts* of a list where it begins and on which line: they stand one after the other."""
        at, line, counted = 0, 1, 0
        for part in parts:
            size = len(bytes(part))
            at = max(self.data.find(bytes(part), at), at)
            line += self.data.count(b"\n", counted, at)
            counted = at
            yield at, line
            at += size
