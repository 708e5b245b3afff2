"""
Recordings of the event ring's segments, and their files in a directory.

Files are written under a temporary name with mode 0600 and renamed when they are complete. Their number and size are
limited; the oldest are deleted. Encoding takes long for a large cluster, so a thread does it: the objects of a segment
never change.
"""

import asyncio
import json
import logging
import os
import re
import secrets
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from time import gmtime, strftime
from typing import Final

import msgspec

from lamina.model.errors import InputError
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.loop.loop_snapshot import pieces
from lamina.services.scheduler.annotation_mask import AnnotationMask
from lamina.services.scheduler.event_ring import Segment
from lamina.trace.recording import (
    SUFFIX,
    DecideCall,
    RecordingError,
    RecordingHeader,
    RecordingRecord,
    SnapshotPart,
    TakenEvents,
    compressed,
)

MOST_FILES: Final = 16
MOST_FILE_BYTES: Final = 64 * 1024**2
# Parts of a configuration that do not affect decisions; `clientConnection` names a file with credentials.
LEFT_OUT: Final = ("clientConnection", "leaderElection")
NAME: Final = re.compile(r"lamina-\d{8}T\d{6}Z-[0-9a-f]{8}-\d{6}" + re.escape(SUFFIX))
PART: Final = re.compile(r"\.[0-9a-f]{8}(-\d+)?\.part")
PART_AGE: Final = 60.0
"""Seconds without a write after which an unfinished file belongs to a process that was killed."""
WAITING: Final = 4
"""Most full segments that wait to be written; beyond that the disk is too slow and new ones are dropped."""

log = logging.getLogger(__name__)


class RecordingSettings(msgspec.Struct, frozen=True):
    """Where recordings are written, and how many."""

    directory: Path
    files: int = MOST_FILES
    file_bytes: int = MOST_FILE_BYTES


def configuration_text(configuration: Configuration) -> str:
    """Return the parts of a configuration that affect decisions, as JSON."""
    found = msgspec.to_builtins(configuration.config)
    for one in found["extenders"]:
        # It may contain a private key, and no decision depends on it.
        del one["tlsConfig"]
    return json.dumps({name: value for name, value in found.items() if name not in LEFT_OUT})


class RecordingWriter:
    """Encodes segments as recordings."""

    def __init__(self, configuration: Configuration, detail: str, lost: tuple[str, ...]) -> None:
        """Record this configuration; *lost* are the plugins whose state a snapshot does not contain completely."""
        self._header = RecordingHeader(
            lamina=version("lamina"),
            configuration=configuration_text(configuration),
            detail=detail,
            exact=not lost,
            lost=lost,
        )
        self._mask = AnnotationMask(secrets.token_bytes(32))

    def encode(self, segment: Segment) -> Iterator[bytes]:
        """Yield the bytes of a recording, in pieces."""
        return compressed(self._records(segment))

    def _records(self, segment: Segment) -> Iterator[RecordingRecord]:
        yield msgspec.structs.replace(self._header, started=segment.started, carried=segment.carried)
        for name, data in pieces(self._mask.snapshot(segment.snapshot)):
            yield SnapshotPart(name, msgspec.Raw(data))
        for entry in segment.entries:
            yield entry if isinstance(entry, DecideCall) else TakenEvents(tuple(map(self._mask.event, entry)))


class RecordingFiles:
    """A directory of recordings."""

    def __init__(self, settings: RecordingSettings, writer: RecordingWriter) -> None:
        """Create the directory if needed. Raises `InputError` if it is not writable."""
        self._settings = settings
        self._writer = writer
        self._process = secrets.token_hex(4)
        self._serial = 0
        self._one_writer = threading.Lock()
        self._late = False
        self._todo: asyncio.Queue[Segment] = asyncio.Queue(WAITING)
        self._saving: asyncio.Task[Path | None] | None = None
        """The segment that `run` writes. It is not cancelled with `run`: if its thread had not begun, it would be lost."""
        try:
            settings.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            probe = settings.directory / f".{self._process}.part"
            os.close(_create(probe))
            probe.unlink()
            self._remove_parts()
        except OSError as error:
            message = f"cannot write recordings to {settings.directory}: {error.strerror}"
            raise InputError.one("--record-dir", message) from error

    def put(self, segment: Segment) -> None:
        """Queue a segment to be written; it must not change any more."""
        try:
            self._todo.put_nowait(segment)
        except asyncio.QueueFull:
            log.warning("recording dropped, the disk is too slow", extra={"fields": {"entries": len(segment.entries)}})

    async def run(self) -> None:
        """Write segments until cancelled; `finish` waits for the one that is being written then."""
        while True:
            self._saving = asyncio.create_task(self.save(await self._todo.get()), name="recording")
            await asyncio.shield(self._saving)

    async def save(self, segment: Segment) -> Path | None:
        """Write one segment; log any failure instead of raising it, because scheduling matters more."""
        try:
            path = await asyncio.to_thread(self.write, segment)
        except (OSError, RecordingError) as error:
            log.warning("recording not written", extra={"fields": {"error": str(error)}})
            return None
        except Exception:
            log.exception("recording not written")
            return None
        log.info("recording written", extra={"fields": {"file": str(path), "entries": len(segment.entries)}})
        return path

    async def finish(self, newest: Segment, patience: float) -> None:
        """Write the queued segments and then *newest*; give up after *patience* seconds."""
        saving = self._saving
        left = self._todo.qsize() + 1 + (saving is not None and not saving.done())
        try:
            async with asyncio.timeout(patience):
                if saving is not None and not saving.done():
                    await saving
                    left -= 1
                while not self._todo.empty():
                    await self.save(self._todo.get_nowait())
                    left -= 1
                await self.save(newest)
        except TimeoutError:
            # The thread stops before its next piece; otherwise the process would wait for it.
            self._late = True
            log.warning("recordings not written, the disk is too slow", extra={"fields": {"segments": left}})

    def write(self, segment: Segment) -> Path:
        """Write one segment and delete old files; return the new file."""
        with self._one_writer:
            return self._write(segment)

    def _write(self, segment: Segment) -> Path:
        self._serial += 1
        stamp = strftime("%Y%m%dT%H%M%SZ", gmtime(segment.started))
        path = self._settings.directory / f"lamina-{stamp}-{self._process}-{self._serial:06}{SUFFIX}"
        temporary = self._settings.directory / f".{self._process}-{self._serial}.part"
        try:
            with os.fdopen(_create(temporary), "wb") as file:
                size = 0
                for piece in self._writer.encode(segment):
                    if self._late:
                        raise RecordingError("the process ends before the recording is written")
                    size += len(piece)
                    if size > self._settings.file_bytes:
                        raise RecordingError(
                            f"a recording has more than {self._settings.file_bytes} bytes; raise --record-size"
                        )
                    file.write(piece)
            temporary.replace(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        self._make_room(path)
        return path

    def _make_room(self, written: Path) -> None:
        """Delete the oldest recordings beyond the limit, but never *written*; other files are kept."""
        self._remove_parts()
        # If the clock was set back, the new file looks like the oldest.
        found = sorted((changed, path) for changed, path in self._files(NAME) if path != written)
        for _, path in found[: max(len(found) + 1 - self._settings.files, 0)]:
            path.unlink(missing_ok=True)

    def _remove_parts(self) -> None:
        """Delete unfinished files of killed processes."""
        now = time.time_ns()
        for changed, path in self._files(PART):
            if now - changed > PART_AGE * 1e9:
                path.unlink(missing_ok=True)

    def _files(self, name: re.Pattern[str]) -> Iterator[tuple[int, Path]]:
        """Yield the regular files with such a name, each with its modification time in nanoseconds."""
        for path in list(self._settings.directory.iterdir()):
            if name.fullmatch(path.name):
                # Another process may delete files too.
                with suppress(FileNotFoundError):
                    status = path.lstat()
                    if stat.S_ISREG(status.st_mode):
                        yield status.st_mtime_ns, path


def _create(path: Path) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
