"""
Reads files of a store that another process changes meanwhile.

No lock is taken: that would need a writable folder, and a reader could block the runtime. A file is accepted only if it
was not modified shortly before the read and is unchanged afterwards. A file that is replaced (renamed over) meanwhile
is still complete. Only regular files below the given folder are read. Symbolic links are rejected, because the folder
is the host's and a link may point anywhere.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

REST: Final = 0.02
"""Seconds a file must be unmodified: file timestamps have the resolution of kernel ticks, at most 10 ms."""
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class UnusableFileError(Exception):
    """A file that is permanently unusable; *problem* gives the reason."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


class UnsettledFileError(UnusableFileError):
    """A file that is being written; another read may succeed."""


class FileState(msgspec.Struct, frozen=True, gc=False):
    """Identity of a file's state, from stat alone."""

    inode: int
    changed: int
    """Nanoseconds since 1970."""
    size: int


@contextmanager
def folder(name: str, within: int | None = None) -> Iterator[int]:
    """Open a folder within a context; only the outermost may be a symbolic link. Raises OSError."""
    descriptor = os.open(name, _FOLDER if within is None else _FOLDER | os.O_NOFOLLOW, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def mark(name: str, within: int) -> FileState | None:
    """Return the state of a file; None if it does not exist. Raises OSError otherwise."""
    try:
        return _mark(os.stat(name, dir_fd=within, follow_symlinks=False))
    except FileNotFoundError:
        return None


def read(name: str, within: int, limit: int) -> bytes:
    """
    Read a whole regular file of at most *limit* bytes; this may wait for `REST` seconds.

    Raises `UnusableFileError`, and OSError if the file cannot be opened.
    """
    # Checked before opening, because opening a device can have effects.
    _insist_on_a_file(name, os.stat(name, dir_fd=within, follow_symlinks=False))
    descriptor = os.open(name, _FILE, dir_fd=within)
    with os.fdopen(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        _insist_on_a_file(name, before)
        if before.st_size > limit:
            raise UnusableFileError(name, f"has {before.st_size} bytes, more than the limit of {limit}")
        age = (time.time_ns() - before.st_mtime_ns) / 1e9
        if 0 <= age < REST:
            time.sleep(REST - age)
        data = file.read(limit + 1)
        if _mark(os.fstat(descriptor)) != _mark(before):
            raise UnsettledFileError(name, "is being written")
    return data


def _insist_on_a_file(name: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise UnusableFileError(name, "is a symbolic link, and links are not followed")
    if not stat.S_ISREG(found.st_mode):
        raise UnusableFileError(name, "is not a regular file")


def _mark(found: os.stat_result) -> FileState:
    return FileState(found.st_ino, found.st_mtime_ns, found.st_size)
