"""
A value that is made of small files, and made again when they change: a token, a certificate with its key, a CA bundle.

Kubernetes replaces such files while we run. A file that is being replaced may be missing, empty or half written for a
moment; then the last good value stays in use, the trouble is counted and, once for each kind of trouble, logged. Only
the first reading raises: whoever starts with a file that cannot be used wants to hear of it.

Files are compared by content. They are a few kilobytes, and neither time nor size of a file tells every replacement.
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from lamina.clients.bounded_files import read_file
from lamina.model.errors import InputError

ByteSource: TypeAlias = Path | bytes | None
"""Where bytes come from: a file, the configuration itself, or nowhere."""
T = TypeVar("T")

log = logging.getLogger(__name__)


class FileBackedValue(Generic[T]):
    """The value that *make* gives for the bytes of some sources, looked at again at most every so many seconds."""

    def __init__(
        self,
        sources: Sequence[ByteSource],
        make: Callable[[list[bytes]], T],
        *,
        every: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read for the first time. Raises InputError, as *make* may."""
        self.troubles = 0
        """How often a look found something that could not be used."""
        self._sources, self._make, self._every, self._clock = tuple(sources), make, every, clock
        self._changes = any(isinstance(source, Path) for source in self._sources)
        self._told = ""
        self._looked = clock()
        self._bytes = self._read()
        self._value = make(self._bytes)

    def current(self) -> T:
        """Answer with the newest value that could be made."""
        if self._changes and self._clock() - self._looked >= self._every:
            self._look()
        return self._value

    def look_again(self) -> None:
        """Do not wait with the next look: what there is was found to be of no use."""
        self._looked = -float("inf")

    def _look(self) -> None:
        self._looked = self._clock()
        try:
            found = self._read()
            if found != self._bytes:
                self._value = self._make(found)
                self._bytes = found
            self._told = ""
        except InputError as error:
            self.troubles += 1
            if str(error) != self._told:
                self._told = str(error)
                log.warning("credential file kept as it was", extra={"problem": self._told})

    def _read(self) -> list[bytes]:
        return [read_file(source) if isinstance(source, Path) else source or b"" for source in self._sources]
