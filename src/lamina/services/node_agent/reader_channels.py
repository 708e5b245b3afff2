"""
Connections from readers to the publisher.

    NamedPipeChannel       for a reader in another container; each `open` creates a new pipe under the same name
    ChildProcessChannel    for a reader that this process starts, and restarts when it has ended

Each pipe is used by one reader and one receiver. So data left in it is never mistaken for new data, and a reader that
opens it must send everything. Data flows in one direction: the half with network access cannot send anything to the
half with access to the runtime.
"""

import asyncio
import os
import stat
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from lamina.model.errors import InputError

MODE: Final = 0o620
"""Read by its creator, written by a reader of the same group; the pod's fsGroup is one."""
ENDS_WITHIN: Final = 1.0
"""Seconds that a child has to end before it is killed."""
PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
"""Environment variables that a child gets; others may contain secrets."""


class NamedPipeChannel:
    """A named pipe in a folder that both containers share."""

    def __init__(self, path: Path) -> None:
        """Use a pipe at *path*. Raises InputError if that is not possible."""
        self._path = path
        if not path.parent.is_dir():
            raise InputError.one("--pipe", f"{path.parent} is not a folder; use a folder that both containers share")
        self._check()

    async def open(self) -> int:
        """Create and open a pipe, then move it to the path that readers use. Raises OSError."""
        self._check()
        new = self._path.with_name(f".{self._path.name}.new")
        new.unlink(missing_ok=True)
        os.mkfifo(new)
        new.chmod(MODE)
        pipe = os.open(new, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        new.rename(self._path)
        return pipe

    async def close(self) -> None:
        """Do nothing: the reader notices the closed pipe."""

    def _check(self) -> None:
        try:
            is_pipe = stat.S_ISFIFO(self._path.lstat().st_mode)
        except FileNotFoundError:
            return
        except OSError as error:
            raise InputError.one("--pipe", f"{self._path}: {error.strerror}") from None
        if not is_pipe:
            raise InputError.one("--pipe", f"{self._path} exists and is not a pipe; use another path, or remove it")


class ChildProcessChannel:
    """A reader that is a child of this process."""

    def __init__(self, command: Callable[[int], Sequence[str]]) -> None:
        """Start the command that *command* returns for the file descriptor of an open pipe."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    async def open(self) -> int:
        """Start the child. Raises OSError."""
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this program itself, in another role
                self._command(writing), stdin=subprocess.DEVNULL, pass_fds=[writing], env=environment
            )
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return reading

    async def close(self) -> None:
        """End the child."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            async with asyncio.timeout(ENDS_WITHIN):
                while process.poll() is None:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            process.kill()
            process.wait()
