"""
The lines of a file that may be compressed, one at a time and within bounds.

Whether a file is compressed is told by its first bytes and not by its name. Nothing is believed: what a few bytes grow
to when decompressed is bounded step by step, and a file that was cut short is refused.
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
# The most a frame may ask us to remember while decompressing it: what the zstd program itself allows without a flag.
WINDOW_LIMIT: Final = 128 * 1024**2
# Four bytes of zstd can stand for 128 KiB, so this much input becomes at most 16 MiB at once.
ZSTD_CHUNK: Final = 512
CHUNK: Final = 256 * 1024
GZIP: Final = 31
"""What zlib calls a deflate stream with gzip's header and checksum."""

AGAIN: Final = "write it or copy it again"


class ReadBounds(msgspec.Struct, frozen=True):
    """How much of a file is read."""

    line: int
    """Bytes of a line."""
    size: int
    """Bytes of all lines, decompressed."""


def read_lines(path: Path, bounds: ReadBounds) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers, without their ends. Raises InputError in words."""
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
            raise InputError.one(source, f"is longer than {bounds.size} bytes when decompressed; split it")
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
        raise InputError.one(source, f"a line of more than {bounds.line} bytes; is this the right file?", line=number)


def _chunks(source: str, file: BinaryIO) -> Iterator[bytes]:
    magic = file.read(len(ZSTD_MAGIC))
    file.seek(0)
    if magic == ZSTD_MAGIC:
        return _from_zstd(source, file)
    if magic.startswith(GZIP_MAGIC):
        return _from_gzip(source, file)
    return iter(lambda: file.read(CHUNK), b"")


def _from_gzip(source: str, file: BinaryIO) -> Iterator[bytes]:
    """Decompress gzip members one after the other; several of them make one file, as gzip has it."""
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
        raise InputError.one(source, f"was cut short in its compressed data; {AGAIN}")


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
        raise InputError.one(source, f"goes on after the end of its compressed data; {AGAIN}")
    if not stream.eof:
        raise InputError.one(source, f"was cut short in its compressed data; {AGAIN}")
