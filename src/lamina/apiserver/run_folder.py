"""
Temporary folders of façades. A killed process cannot remove its folder, so the next façade of the same user does.

The process that uses a folder holds a lock on a file in it, and the kernel releases the lock when the process ends. A
folder whose lock is free belongs to no process. A folder without that file is being made, or is not a façade's.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "lamina-apiserver-"
LOCK: Final = "in-use"


class RunFolder:
    """A temporary folder that is in use until `remove`."""

    def __init__(self) -> None:
        """Make the folder, and remove those of processes that were killed."""
        remove_abandoned(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        new = self.path / f"{LOCK}.new"
        self._lock = os.open(new, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # The file gets its name when it is locked, so that another process cannot find it free.
        new.rename(self.path / LOCK)

    def remove(self) -> None:
        """Remove the folder with all files. May be called again."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def remove_abandoned(parent: Path) -> None:
    """Remove the folders in *parent* that no process uses."""
    for folder in parent.glob(f"{PREFIX}*"):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            if os.fstat(lock).st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            # It is in use.
            continue
        finally:
            os.close(lock)
