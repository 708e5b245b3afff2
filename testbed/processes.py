"""
One running part: started, looked after, and treated badly on purpose.

               start                    pause
    stopped ----------> running <--------------> paused
       ^                   |         resume        |
       +---- stop, kill ---+-----------------------+

A part keeps its ports and its data folder over a restart, and its log goes on in the same file. It has a process group
of its own, so a key pressed in a terminal reaches the driver and not the parts.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from testbed import leftovers, ports
from testbed.errors import PartError

# What a part may take to be ready on a busy machine, and to end by itself when asked to.
READY_WITHIN: Final = 60.0
ENDS_WITHIN: Final = 10.0
PAUSE: Final = 0.03
LAST_LINES: Final = 15
LONGEST_LINE: Final = 400


class Program:
    """A process that can be started again."""

    def __init__(
        self,
        name: str,
        command: Sequence[str | Path],
        log: Path,
        *,
        ready: Callable[[], bool],
        environment: Mapping[str, str],
        port: int | None = None,
    ) -> None:
        """
        *ready* is asked again and again after the start; it answers whether the part can be used.

        With a *port*, it is asked only once the part itself listens there: somebody else may have been quicker, and
        would be mistaken for it.
        """
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        """Everything the part wrote since the first start."""
        self._ready = ready
        self._port = port
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    # ------------------------------------------------------------------------------------------------ coming and going

    def start(self, wait: bool = True) -> None:
        """Start the part, and wait until it can be used unless told not to."""
        if self.running:
            raise PartError(f"{self.name} is running already")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=self._environment,
                cwd=self.log.parent,
            )
        if wait:
            self.wait_ready()

    def wait_ready(self, within: float = READY_WITHIN) -> None:
        """Wait until the part can be used; raises with the last lines of its log when it does not come to that."""
        deadline = time.monotonic() + within
        while not (self._listens() and self._ready()):
            if not self.running:
                code = self._process.returncode if self._process else None
                raise PartError(f"{self.name} ended with exit code {code}; {self.last_words()}")
            if time.monotonic() > deadline:
                raise PartError(f"{self.name} is not ready after {within:.0f} s; {self.last_words()}")
            time.sleep(PAUSE)

    def stop(self, within: float = ENDS_WITHIN) -> None:
        """Ask the part to end, and end it if it does not."""
        if not self.running:
            return
        self._signal(signal.SIGTERM)
        # A process that sleeps gets the request only when it wakes up.
        self._signal(signal.SIGCONT)
        try:
            self._known().wait(within)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the part at once, as a crash would."""
        if self.running:
            self._signal(signal.SIGKILL)
            self._known().wait()

    def restart(self) -> None:
        """Stop the part and start it again, with the same ports and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Let the part hang: it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused part go on."""
        self._signal(signal.SIGCONT)

    # -------------------------------------------------------------------------------------------------- looking at it

    @property
    def running(self) -> bool:
        """Whether there is a process; a paused one counts."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._known().pid

    def cpu_seconds(self) -> float:
        """Processor time the process has used since it was started, by itself and for the kernel's work."""
        fields = self._stat()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self) -> int:
        """Bytes of memory the process holds."""
        return int(self._stat()[21]) * os.sysconf("SC_PAGE_SIZE")

    def last_words(self) -> str:
        """The end of the log, as a part of an error message."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
        return f"the end of {self.log}:\n" + "\n".join(f"  {line[:LONGEST_LINE]}" for line in lines)

    def _listens(self) -> bool:
        return self._port is None or ports.held_by(self._port, self.pid)

    def _stat(self) -> list[str]:
        fields = leftovers.stat(self.pid) if self.running else []
        if not fields:
            raise PartError(f"{self.name} is not running")
        return fields

    def _known(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise PartError(f"{self.name} was never started")
        return self._process

    def _signal(self, number: signal.Signals) -> None:
        if not self.running:
            raise PartError(f"{self.name} is not running")
        # Its whole group: what it started belongs to it. The process is not waited for yet, so the number is its own.
        os.killpg(self.pid, number)
