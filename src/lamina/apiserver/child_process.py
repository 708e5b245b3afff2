"""
A scheduler that Lamina starts and stops: a child process whose log is read line by line.

The process gets a session of its own, so that stopping it also stops what it started. Its log is read without a limit
on its length in total, but a longer line than `LONGEST_LINE` is cut.
"""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lamina.model.errors import InputError

LONGEST_LINE: Final = 64 * 1024
LAST_LINES: Final = 20
"""Lines of the log that are kept for an error message."""
STOP_SECONDS: Final = 5.0

LineReader = Callable[[str], None]


class ChildProcess:
    """One running child process."""

    def __init__(self, process: asyncio.subprocess.Process, name: str, read: LineReader | None) -> None:
        """Read the log of *process*, whose standard error or output is a pipe; *read* receives its lines."""
        self._process = process
        self.name = name
        self.tail: deque[str] = deque(maxlen=LAST_LINES)
        """The last lines of its log."""
        self._read = read
        self._task = asyncio.create_task(self._follow(), name=f"log of {name}")

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        read: LineReader | None = None,
        *,
        output: bool = False,
    ) -> "ChildProcess":
        """Start *command*; with *output*, what it prints is part of its log. Raises InputError if it cannot start."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if output else asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.STDOUT if output else asyncio.subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                limit=LONGEST_LINE,
            )
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise InputError.one(
                "--scheduler", f"cannot start {command[0]}: {why}; name a program on the PATH"
            ) from None
        return cls(process, command[0], read)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.returncode

    async def stop(self) -> None:
        """Ask it to end, and end it after `STOP_SECONDS`."""
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                self._signal(signal.SIGKILL)
                await self._process.wait()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    async def _follow(self) -> None:
        stream = self._process.stderr or self._process.stdout
        assert stream is not None, "standard error or output is a pipe"
        tail, read, rest = self.tail, self._read, b""
        while data := await stream.read(LONGEST_LINE):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                text = line.decode("utf-8", "replace")
                tail.append(text)
                if read is not None:
                    read(text)
            if len(rest) > LONGEST_LINE:
                rest = rest[:LONGEST_LINE]
