"""
How a trace gets into a file.

A trace is written under a temporary name beside its final one and renamed when it is complete, so whatever has the
final name is whole: an interrupted run leaves what was there before, or nothing.

    open --write…--> open --close--> kept under the final name
                      |
                      +--discard (also: an exception inside ``with``)--> nothing left

The same records give the same bytes, whenever and wherever they are written (with one release of zstd).
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec
import zstandard

from lamina.model.errors import InputError, WiringError
from lamina.trace.trace_records import LINE_LIMIT, TraceEnd, TraceHeader, TraceRecord, not_finite, type_of

SUFFIX: Final = ".jsonl.zst"
PLAIN_SUFFIX: Final = ".jsonl"

# Level 3 is the usual trade between size and time; it is fixed because the bytes depend on it.
LEVEL: Final = 3
BATCH: Final = 256 * 1024

ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class TraceSink(Protocol):
    """Takes the records of a run, in the order things happened, the `TraceHeader` first."""

    def write(self, record: TraceRecord) -> None:
        """Take one record; the `TraceEnd` is the sink's own business."""
        ...


class AtomicFile:
    """A file that does not have its final name yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._temporary = path.with_name(f".{secrets.token_hex(8)}.part")
        with _writing(path):
            self._file = self._temporary.open("xb")

    def write(self, data: bytes) -> None:
        """Append *data*."""
        with _writing(self.path):
            self._file.write(data)

    def keep(self) -> None:
        """Give the file its final name, in place of what had it before."""
        with _writing(self.path):
            self._file.close()
            self._temporary.replace(self.path)

    def discard(self) -> None:
        """Remove the file; what has the final name stays as it is."""
        # Closing may fail on a full disk, because it writes what is left; the file has to go all the same.
        with suppress(OSError):
            self._file.close()
        with suppress(OSError):
            self._temporary.unlink()


class RecordCounter:
    """Sees to it that a trace begins with its header, and counts."""

    def __init__(self) -> None:
        self.records = 0
        self.last_at = 0.0

    def admit(self, record: TraceRecord) -> None:
        """Refuse a record that a reader would refuse."""
        if (self.records == 0) is not isinstance(record, TraceHeader):
            raise WiringError("a trace begins with a header and has no other")
        if isinstance(record, TraceEnd):
            raise WiringError("the end of a trace is written by closing it")
        if field := not_finite(record):
            raise WiringError(f"{type_of(record)}.{field} is not a finite number")

    def count(self, record: TraceRecord) -> None:
        """Take note that a record was written."""
        self.records += 1
        self.last_at = record.at

    def end(self) -> TraceEnd:
        """Say how many records there were."""
        if self.records == 0:
            raise WiringError("a trace without a header was closed")
        return TraceEnd(self.last_at, self.records)


class TraceWriter:
    """Writes a trace file: compressed when its name ends in ``.jsonl.zst``, plain when it ends in ``.jsonl``."""

    def __init__(self, path: str | Path) -> None:
        path = Path(path)
        if not path.name.endswith((SUFFIX, PLAIN_SUFFIX)):
            raise InputError.one(str(path), f"a trace is named *{SUFFIX}, or *{PLAIN_SUFFIX} to leave it uncompressed")
        compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True, write_content_size=False)
        self._compressor = compressor.compressobj() if path.name.endswith(SUFFIX) else None
        self._ledger = RecordCounter()
        self._batch = bytearray()
        self._draft = AtomicFile(path)
        self._open = True

    def write(self, record: TraceRecord) -> None:
        """Append one record."""
        if not self._open:
            raise WiringError("a record was written to a trace that is closed")
        self._ledger.admit(record)
        self._append(record)
        self._ledger.count(record)

    def close(self) -> None:
        """Complete the trace and give it its final name; what cannot be completed is removed."""
        if not self._open:
            return
        try:
            self._append(self._ledger.end())
            self._flush()
            if self._compressor is not None:
                self._draft.write(self._compressor.flush())
            self._draft.keep()
        except BaseException:
            self.discard()
            raise
        self._open = False

    def discard(self) -> None:
        """Give the trace up; nothing is left of it."""
        if self._open:
            self._open = False
            self._draft.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _append(self, record: TraceRecord) -> None:
        line = ENCODER.encode(record)
        if len(line) > LINE_LIMIT:
            message = (
                f"a record of type {type_of(record)} takes {len(line)} bytes, and a line may have "
                f"{LINE_LIMIT}: record decisions in brief detail"
            )
            raise InputError.one(str(self._draft.path), message, line=self._ledger.records + 1)
        self._batch += line
        self._batch += b"\n"
        if len(self._batch) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        data = bytes(self._batch)
        self._batch.clear()
        self._draft.write(data if self._compressor is None else self._compressor.compress(data))


class MemoryTrace:
    """Keeps the records of a run that nobody wants on disk."""

    def __init__(self) -> None:
        self.records: list[TraceRecord] = []
        self._ledger = RecordCounter()

    def write(self, record: TraceRecord) -> None:
        """Append one record."""
        self._ledger.admit(record)
        self._ledger.count(record)
        self.records.append(record)


def atomic_write(path: str | Path, data: bytes) -> None:
    """Write a whole file, or leave what was there."""
    draft = AtomicFile(Path(path))
    try:
        draft.write(data)
        draft.keep()
    except BaseException:
        draft.discard()
        raise


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Tell the person who named *path* why it cannot be written."""
    try:
        yield
    except OSError as error:
        message = f"cannot be written ({error.strerror}); check the folder, its permissions and the space left"
        raise InputError.one(str(path), message) from error
