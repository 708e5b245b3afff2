"""The guard of a testbed: a process that cleans up if the driver process can no longer do so."""

import os
import subprocess
import sys
from pathlib import Path

from testbed import leftovers


class Guard:
    """Runs from its creation until it is dismissed."""

    def __init__(self, mark: str, folder: Path) -> None:
        """Clean up every process with *mark*, and *folder*, when this process ends."""
        # The guard has no mark: it must survive the cleanup.
        command = [sys.executable, "-I", "-S", leftovers.__file__, mark, str(folder), str(os.getpid())]
        self._process: subprocess.Popen[bytes] | None = subprocess.Popen(
            command, stdin=subprocess.PIPE, start_new_session=True
        )

    def dismiss(self) -> None:
        """End the guard without cleaning up; a second call does nothing."""
        if self._process is not None:
            self._process.communicate(b".")
            self._process = None
