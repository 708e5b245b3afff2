"""A measured process: CPU time, peak memory and log."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

TICK: Final = os.sysconf("SC_CLK_TCK")
PAUSE: Final = 0.05
PROFILE: Final = "LAMINA_PROFILE"
"""If set, Lamina runs under cProfile and writes the profile to this file; such figures are not comparable."""


class Measured:
    """A process that the benchmark has started."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self.log = log
        self.began = time.monotonic()

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def cpu_seconds(self) -> float:
        """Return user and system CPU time since the start, in seconds."""
        return cpu_seconds(self._process.pid)

    def peak_mib(self) -> float:
        """Return the peak resident memory in MiB."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise ValueError("/proc has no peak memory of the process")

    def said(self, words: str) -> str:
        """Return the first line of the log with *words*; empty if there is none."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return next((line for line in lines if words in line), "")

    def wait(self, until: Callable[[], bool], within: float, pause: float = PAUSE) -> None:
        """Wait until *until* returns true. Raises with the end of the log if the process ends or the time is up."""
        while not until():
            if self._process.poll() is not None:
                raise RuntimeError(f"ended with code {self._process.returncode}:\n{self.end_of_log()}")
            if time.monotonic() - self.began > within:
                raise TimeoutError(f"not ready after {within:.0f} s:\n{self.end_of_log()}")
            time.sleep(pause)

    def end_of_log(self) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process since its start, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def lamina(*words: str) -> list[str]:
    """Return the command that runs Lamina with this interpreter, under a profiler if `PROFILE` is set."""
    wanted = os.environ.get(PROFILE)
    profiler = ["-m", "cProfile", "-o", wanted] if wanted else []
    return [sys.executable, *profiler, "-m", "lamina.cli.main", *words]


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[Measured]:
    """Run a process during the block; then terminate it, and kill it if it does not end."""
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=environment) as process:
        try:
            yield Measured(process, log)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
