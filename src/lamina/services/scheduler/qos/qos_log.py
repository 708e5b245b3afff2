"""
The log of finished incarnations: one CSV line for each pod that gave up its replica slot, in the original's columns.

A file that reaches its limit is renamed to FILE.1, FILE.1 to FILE.2 and so on; the oldest is removed. A disk that is
full or too slow never delays a decision: lines wait in a bounded buffer, those of a failed attempt are lost and counted,
and one warning is logged.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from lamina.model.errors import InputError
from lamina.qos.engine import QosEngine
from lamina.qos.incarnation import FinishedIncarnation
from lamina.qos.page_formats import log_line

PAUSE: Final = 0.5
"""Seconds between two writes."""
AFTER_FAILURE: Final = 30.0
"""Seconds until the next attempt after a failed write."""
LAST_LINES: Final = 2.0
"""Seconds for the last lines at the end."""

log = logging.getLogger(__name__)


class QosLogSettings(msgspec.Struct, frozen=True):
    """Where the log is written, and its limits."""

    path: Path
    file_bytes: int = 16 * 1024**2
    files: int = 4
    """Number of files, the current one included."""


class QosLog:
    """Writes the incarnations that an engine finished."""

    def __init__(self, settings: QosLogSettings, engine: Callable[[], QosEngine]) -> None:
        """Open the file to check it. Raises InputError if it cannot be written."""
        self._settings, self._engine = settings, engine
        self._failed = False
        self._lost = 0
        try:
            with settings.path.open("ab"):
                pass
        except OSError as error:
            raise InputError.one(
                "--qos-log", f"cannot write {settings.path}: {error.strerror}; name a file in a folder that exists"
            ) from error

    async def run(self) -> None:
        """Write lines until cancelled."""
        while True:
            await asyncio.sleep(AFTER_FAILURE if self._failed else PAUSE)
            await self._drain()

    async def finish(self) -> None:
        """Write the last lines."""
        try:
            async with asyncio.timeout(LAST_LINES):
                await self._drain()
        except TimeoutError:
            log.warning("QoS log not finished, the disk is too slow: %s", self._settings.path)

    async def _drain(self) -> None:
        finished = list(self._engine().notes.finished)
        if not finished:
            return
        self._engine().notes.finished.clear()
        try:
            await asyncio.to_thread(self.write, finished)
        except OSError as error:
            self._lost += len(finished)
            if not self._failed:
                path, problem = self._settings.path, error.strerror or str(error)
                log.warning("QoS log not written, retrying every %g s: %s: %s", AFTER_FAILURE, path, problem)
            self._failed = True
            return
        if self._failed:
            log.warning("QoS log is written again, %d lines are lost: %s", self._lost, self._settings.path)
        self._failed, self._lost = False, 0

    def write(self, finished: list[FinishedIncarnation]) -> None:
        """Append lines, and begin a new file if this one is full. Raises OSError."""
        path = self._settings.path
        with path.open("ab") as file:
            file.write("".join(map(log_line, finished)).encode())
            size = file.tell()
        if size >= self._settings.file_bytes:
            for number in range(self._settings.files - 1, 0, -1):
                older = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
                if older.exists():
                    older.replace(path.with_name(f"{path.name}.{number}"))
            if self._settings.files == 1:
                path.unlink()
