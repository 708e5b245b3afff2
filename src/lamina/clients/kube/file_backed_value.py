"""
A value built from small files and rebuilt when they change: a token, a certificate with its key, a CA bundle.

Kubernetes replaces such files while Lamina runs. During a replacement a file may be missing, empty or half written. The
last good value then stays in use, the failure is counted, and each distinct problem is logged once. Only the first read
raises, so that a configuration mistake is reported at start.

Files are compared by content: they are a few kilobytes, and time and size do not reveal every replacement.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from lamina.clients.bounded_files import read_file
from lamina.model.errors import InputError

ByteSource: TypeAlias = Path | bytes | None
"""Source of bytes: a file, data in the configuration, or none."""
T = TypeVar("T")

log = logging.getLogger(__name__)


class FileBackedValue(Generic[T]):
    """The result of *make* for the bytes of the sources, checked again at most once in *every* seconds."""

    def __init__(
        self,
        sources: Sequence[ByteSource],
        make: Callable[[list[bytes]], T],
        *,
        every: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the sources for the first time. Raises InputError from a read or from *make*."""
        self.troubles = 0
        """How often a check found unusable content."""
        self._sources, self._make, self._every, self._clock = tuple(sources), make, every, clock
        self._changes = any(isinstance(source, Path) for source in self._sources)
        self._last_problem = ""
        self._looked = clock()
        self._bytes = self._read()
        self._value = make(self._bytes)

    def current(self) -> T:
        """Return the newest value that could be built."""
        if self._changes and self._clock() - self._looked >= self._every:
            self._look()
        return self._value

    def look_again(self) -> None:
        """Check the files at the next call of `current`."""
        self._looked = -float("inf")

    def _look(self) -> None:
        self._looked = self._clock()
        try:
            found = self._read()
            if found != self._bytes:
                self._value = self._make(found)
                self._bytes = found
            self._last_problem = ""
        except InputError as error:
            self.troubles += 1
            if str(error) != self._last_problem:
                self._last_problem = str(error)
                log.warning("credential file unusable, keeping old value", extra={"problem": self._last_problem})

    def _read(self) -> list[bytes]:
        return [read_file(source) if isinstance(source, Path) else source or b"" for source in self._sources]
