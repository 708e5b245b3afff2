"""The guard of whatever carries a mark: a process that cleans up when the driver can no longer do so itself."""

import os
import subprocess
import sys
from pathlib import Path

from testbed import leftovers


class Guard:
    """Stands by from the moment it is made until it is dismissed."""

    def __init__(self, mark: str, folder: Path) -> None:
        """Watch over everything with *mark*, and over *folder*."""
        # Without the mark: it is what outlives the rest.
        command = [sys.executable, "-I", "-S", leftovers.__file__, mark, str(folder), str(os.getpid())]
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            command, stdin=subprocess.PIPE, start_new_session=True
        )

    def dismiss(self) -> None:
        """Let the guard go; nothing happens the second time."""
        if self._process is not None:
            self._process.communicate(b".")
            self._process = None
