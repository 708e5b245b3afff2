"""
Reads the files of a store that belongs to somebody else and changes while we look.

Nobody here takes a lock: that would need a writable folder, and would let a reader hold up the runtime. A file is taken
only when it was whole: it had rested for a moment before the reading began and was the same afterwards. A file that is
replaced by another meanwhile is whole all the same. Whatever is not a regular file below the folder we were given is
refused, links too: the folder is the host's, and a link in it may point anywhere.
"""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec

REST: Final = 0.02
"""Seconds a file has to have rested: the kernel stamps files no finer than its ticks, of at most 10 ms."""
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class UnusableFileError(Exception):
    """A file that cannot be used, and would not be if it were read again; *problem* says why."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(name, problem)
        self.name, self.problem = name, problem

    def __str__(self) -> str:
        return f"{self.name} {self.problem}"


class UnsettledFileError(UnusableFileError):
    """A file that is being written; reading it again may go well."""


class FileState(msgspec.Struct, frozen=True, gc=False):
    """What tells one state of a file from another without reading it."""

    inode: int
    changed: int
    """Nanoseconds since the epoch."""
    size: int


@contextmanager
def folder(name: str, within: int | None = None) -> Iterator[int]:
    """Open a folder, for as long as it is needed; only the outermost may be a link. Raises OSError."""
    descriptor = os.open(name, _FOLDER if within is None else _FOLDER | os.O_NOFOLLOW, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def mark(name: str, within: int) -> FileState | None:
    """The state of the file *name*; None when there is none. Raises OSError for other troubles."""
    try:
        return _mark(os.stat(name, dir_fd=within, follow_symlinks=False))
    except FileNotFoundError:
        return None


def read(name: str, within: int, limit: int) -> bytes:
    """
    Read a whole regular file of at most *limit* bytes; this may wait for `REST` seconds.

    Raises `UnusableFileError`, and OSError when it cannot be opened.
    """
    # Looked at before it is opened, because opening a device may already do something.
    _insist_on_a_file(name, os.stat(name, dir_fd=within, follow_symlinks=False))
    descriptor = os.open(name, _FILE, dir_fd=within)
    with os.fdopen(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        _insist_on_a_file(name, before)
        if before.st_size > limit:
            raise UnusableFileError(name, f"has {before.st_size} bytes, more than the {limit} that are read")
        age = (time.time_ns() - before.st_mtime_ns) / 1e9
        if 0 <= age < REST:
            time.sleep(REST - age)
        data = file.read(limit + 1)
        if _mark(os.fstat(descriptor)) != _mark(before):
            raise UnsettledFileError(name, "is being written")
    return data


def _insist_on_a_file(name: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise UnusableFileError(name, "is a link, and no link is followed")
    if not stat.S_ISREG(found.st_mode):
        raise UnusableFileError(name, "is not a regular file")


def _mark(found: os.stat_result) -> FileState:
    return FileState(found.st_ino, found.st_mtime_ns, found.st_size)
