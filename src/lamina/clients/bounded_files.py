"""Files that people name: read whole, within bounds, and with words where that cannot be done."""

import os
import stat
from pathlib import Path
from typing import Final

from lamina.model.errors import InputError

FILE_LIMIT: Final = 1024 * 1024


def read_file(path: Path, limit: int = FILE_LIMIT) -> bytes:
    """Read a whole regular file of bounded size. Raises InputError; never waits, as it would for the end of a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError.one(str(path), "is not a regular file; name a file")
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        said = (error.strerror if isinstance(error, OSError) else None) or "its name cannot be used"
        raise InputError.one(str(path), f"cannot be read: {said.lower()}") from None
    if len(data) > limit:
        raise InputError.one(str(path), f"too large; at most {limit // 1024} KiB are read")
    return data


def read_text(path: Path, limit: int = FILE_LIMIT) -> str:
    """Read a text file likewise."""
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
