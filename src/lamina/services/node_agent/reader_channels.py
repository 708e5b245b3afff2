"""
Where a reader comes in.

    NamedPipe    for a reader in another container; each opening makes a new pipe under the same name
    Child        for a reader that is started here, and again whenever it has ended

A pipe is opened for one reader and one hearing. So whatever is left in it when one of both ends is never mistaken for the
beginning of what comes next, and a reader that opens it knows that everything has yet to be told. It goes in one
direction: who has the network cannot say anything to who has the runtime.
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
"""Read by its maker, written by a reader of the same group; the pod's fsGroup is one."""
ENDS_WITHIN: Final = 1.0
"""Seconds a child has to end before it is killed."""
PASSED_ON: Final = ("PATH", "LANG", "LC_ALL", "TZ", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
"""What a child gets of the environment; the rest may hold secrets."""


class NamedPipeChannel:
    """A pipe in a folder that both containers have."""

    def __init__(self, path: Path) -> None:
        """Make it at *path*. Raises InputError when that cannot be."""
        self._path = path
        if not path.parent.is_dir():
            raise InputError.one("--pipe", f"{path.parent} is no folder; name a pipe in a folder that both sides have")
        self._check()

    async def open(self) -> int:
        """Make a pipe, open it, and only then put it where readers look. Raises OSError."""
        self._check()
        new = self._path.with_name(f".{self._path.name}.new")
        new.unlink(missing_ok=True)
        os.mkfifo(new)
        new.chmod(MODE)
        pipe = os.open(new, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        new.rename(self._path)
        return pipe

    async def close(self) -> None:
        """The reader notices by itself."""

    def _check(self) -> None:
        try:
            is_pipe = stat.S_ISFIFO(self._path.lstat().st_mode)
        except FileNotFoundError:
            return
        except OSError as error:
            raise InputError.one("--pipe", f"{self._path}: {error.strerror}") from None
        if not is_pipe:
            raise InputError.one("--pipe", f"{self._path} is there and is no pipe; name another, or remove it")


class ChildProcessChannel:
    """A reader that is a child of this process."""

    def __init__(self, command: Callable[[int], Sequence[str]]) -> None:
        """Start what *command* says for the number of a pipe that the child finds open."""
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    async def open(self) -> int:
        """Start it; raises OSError."""
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
        """End it."""
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
