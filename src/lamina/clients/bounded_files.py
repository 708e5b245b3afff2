"""Bounded reads of files named by the user; every failure is an InputError that names the file."""

import os
import stat
from pathlib import Path
from typing import Final

from lamina.model.errors import InputError

FILE_LIMIT: Final = 1024 * 1024


def read_file(path: Path, limit: int = FILE_LIMIT) -> bytes:
    """Return the content of a regular file of at most *limit* bytes. Raises InputError; never blocks on a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError.one(str(path), "is not a regular file; name a file")
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "the file name is not valid"
        raise InputError.one(str(path), f"cannot be read: {reason.lower()}") from None
    if len(data) > limit:
        raise InputError.one(str(path), f"too large; at most {limit // 1024} KiB are read")
    return data


def read_text(path: Path, limit: int = FILE_LIMIT) -> str:
    """Return a UTF-8 text file of at most *limit* bytes; pipes such as stdin are accepted. Raises InputError."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
        text = data.decode()
    except OSError as error:
        raise InputError.one(str(path), f"cannot be read: {(error.strerror or 'input error').lower()}") from None
    except ValueError:
        raise InputError.one(str(path), "is not UTF-8 text; is this the right file?") from None
    if len(data) > limit:
        raise InputError.one(str(path), f"too large; at most {limit // 1024} KiB are read")
    return text
