"""
Bounded reader of the lines of a file that may be compressed.

The first bytes decide whether a file is compressed, not its name. The content is untrusted: the decompressed size is
bounded step by step, and a truncated file is rejected.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import zstandard

from lamina.model.errors import InputError

GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
# Largest window that a frame may request: the default limit of the zstd program.
WINDOW_LIMIT: Final = 128 * 1024**2
# Four bytes of zstd can expand to 128 KiB, so one chunk of input becomes at most 16 MiB.
ZSTD_CHUNK: Final = 512
CHUNK: Final = 256 * 1024
GZIP: Final = 31
"""zlib's ``wbits`` for a deflate stream with gzip header and checksum."""

AGAIN: Final = "write it or copy it again"


class ReadBounds(msgspec.Struct, frozen=True):
    """Limits of the reader, in bytes."""

    line: int
    """Longest line."""
    size: int
    """Total of all lines, decompressed."""


def read_lines(path: Path, bounds: ReadBounds) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, without line ends. Raises InputError."""
    try:
        with path.open("rb") as file:
            yield from _numbered(str(path), _chunks(str(path), file), bounds)
    except OSError as error:
        message = f"cannot be read ({error.strerror}); check the name and its permissions"
        raise InputError.one(str(path), message) from error


def _numbered(source: str, chunks: Iterator[bytes], bounds: ReadBounds) -> Iterator[tuple[int, bytes]]:
    number, size = 1, 0
    held = bytearray()
    for chunk in chunks:
        size += len(chunk)
        if size > bounds.size:
            raise InputError.one(source, f"is larger than {bounds.size} bytes when decompressed; split it")
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            held += line
            _check_length(source, number, len(held), bounds)
            yield number, bytes(held)
            held.clear()
            number += 1
        held += rest
        _check_length(source, number, len(held), bounds)
    if held:
        yield number, bytes(held)


def _check_length(source: str, number: int, length: int, bounds: ReadBounds) -> None:
    if length > bounds.line:
        raise InputError.one(
            source, f"has a line of more than {bounds.line} bytes; check that this is the right file", line=number
        )


def _chunks(source: str, file: BinaryIO) -> Iterator[bytes]:
    magic = file.read(len(ZSTD_MAGIC))
    file.seek(0)
    if magic == ZSTD_MAGIC:
        return _from_zstd(source, file)
    if magic.startswith(GZIP_MAGIC):
        return _from_gzip(source, file)
    return iter(lambda: file.read(CHUNK), b"")


def _from_gzip(source: str, file: BinaryIO) -> Iterator[bytes]:
    """Decompress gzip members one after the other; several members make one file, as in gzip."""
    stream = zlib.decompressobj(wbits=GZIP)
    data = file.read(CHUNK)
    while data:
        try:
            chunk = stream.decompress(data, CHUNK)
        except zlib.error as error:
            raise InputError.one(source, f"is damaged ({error}); {AGAIN}") from error
        yield chunk
        if stream.eof:
            data = stream.unused_data or file.read(CHUNK)
            if data:
                stream = zlib.decompressobj(wbits=GZIP)
        else:
            data = stream.unconsumed_tail or file.read(CHUNK)
    if not stream.eof:
        raise InputError.one(source, f"is truncated in its compressed data; {AGAIN}")


def _from_zstd(source: str, file: BinaryIO) -> Iterator[bytes]:
    """Decompress one zstd frame, which must be the whole file."""
    stream = zstandard.ZstdDecompressor(max_window_size=WINDOW_LIMIT).decompressobj()
    while data := file.read(ZSTD_CHUNK):
        if stream.eof:
            break
        try:
            chunk = stream.decompress(data)
        except zstandard.ZstdError as error:
            raise InputError.one(source, f"is damaged ({error}); {AGAIN}") from error
        yield chunk
    if data or stream.unused_data:
        raise InputError.one(source, f"has data after the end of its compressed data; {AGAIN}")
    if not stream.eof:
        raise InputError.one(source, f"is truncated in its compressed data; {AGAIN}")
