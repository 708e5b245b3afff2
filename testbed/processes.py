"""
One running part: start, stop, and simulate failures.

               start                    pause
    stopped ----------> running <--------------> paused
       ^                   |         resume        |
       +---- stop, kill ---+-----------------------+

A part keeps its ports, data folder and log file over a restart. It has its own process group, so that Ctrl-C in a
terminal reaches the driver and not the parts.
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

# Time limits on a busy machine: until a part is ready, and until it ends after SIGTERM.
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
        *ready* is polled after the start; it returns whether the part can be used.

        With *port*, it is polled only once the part itself listens there: another program may have taken the port, and
        would be mistaken for the part.
        """
        self.name = name
        self.command = [str(word) for word in command]
        self.log = log
        """The output of the part since its first start."""
        self._ready = ready
        self._port = port
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    # -------------------------------------------------------------------------------------------------- start and stop

    def start(self, wait: bool = True) -> None:
        """Start the part; with *wait*, also wait until it is ready."""
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
        """Wait until the part is ready. Raises PartError with the last lines of its log on a timeout."""
        deadline = time.monotonic() + within
        while not (self._listens() and self._ready()):
            if not self.running:
                code = self._process.returncode if self._process else None
                raise PartError(f"{self.name} ended with exit code {code}; {self.last_words()}")
            if time.monotonic() > deadline:
                raise PartError(f"{self.name} is not ready after {within:.0f} s; {self.last_words()}")
            time.sleep(PAUSE)

    def stop(self, within: float = ENDS_WITHIN) -> None:
        """Terminate the part, and kill it if it has not ended in time."""
        if not self.running:
            return
        self._signal(signal.SIGTERM)
        # A stopped process receives SIGTERM only when it continues.
        self._signal(signal.SIGCONT)
        try:
            self._known().wait(within)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the part, as a crash would."""
        if self.running:
            self._signal(signal.SIGKILL)
            self._known().wait()

    def restart(self) -> None:
        """Stop the part and start it again, with the same ports and data."""
        self.stop()
        self.start()

    def pause(self) -> None:
        """Suspend the part, and wait until it has stopped: it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)
        # The signal alone is not enough: another thread of the part may answer one more request.
        os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        """Continue a suspended part."""
        self._signal(signal.SIGCONT)

    # ----------------------------------------------------------------------------------------------------- inspection

    @property
    def running(self) -> bool:
        """Whether there is a process; a paused one is running."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The pid of the process."""
        return self._known().pid

    def cpu_seconds(self) -> float:
        """Return the user and system CPU time of the process in seconds, since its start."""
        fields = self._stat()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def rss(self) -> int:
        """Return the resident memory of the process in bytes."""
        return int(self._stat()[21]) * os.sysconf("SC_PAGE_SIZE")

    def last_words(self) -> str:
        """Return the end of the log, for an error message."""
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
        # The whole group includes the part's children. The process has not been waited for, so the pid is still its
        # own.
        os.killpg(self.pid, number)
