"""Interface of the settle methods, the figures they report, and waiting with a limit."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from lamina.apiserver.child_process import ChildProcess
from lamina.model.errors import LaminaError

START_SECONDS = 60.0
"""Real seconds for a scheduler to start and read everything."""
QUIET_SECONDS = 30.0
"""Real seconds without any sign of work after which a scheduler that has not settled counts as stuck."""
ENDLESS_SECONDS = 300.0
"""Real seconds of work that changes nothing after which a scheduler counts as stuck."""


class SchedulerStuckError(LaminaError):
    """A scheduler ended, or neither settled nor did anything."""


class SettleFigures(msgspec.Struct):
    """How the scheduler of a run settled, for the result."""

    method: str
    proven: bool = True
    """Whether the method knows that the scheduler had finished; False: it waited, at least once."""
    checks: int = 0
    """Number of times that the run waited for the scheduler."""
    limits_hit: int = 0
    """Number of times that a time limit ended the wait; 0 unless something is wrong."""
    seconds: float = 0.0
    """Real seconds of waiting in total."""
    decisions: int = 0
    """Number of bindings and of refusals that the scheduler wrote."""
    starved: int = 0
    """Number of pods that still waited for the scheduler when the run had no events left."""
    scheduler: str = ""
    """Name and version of the scheduler, if it tells."""

    @property
    def milliseconds_per_decision(self) -> float | None:
        """Real milliseconds of waiting per decision; None without a decision."""
        return None if self.decisions == 0 else 1000.0 * self.seconds / self.decisions


class SettleMethod(Protocol):
    """Waits until one scheduler has settled."""

    figures: SettleFigures

    async def settle(self) -> None:
        """Return when the scheduler has reacted to everything in the store. Raises SchedulerStuckError."""
        ...


class SignalledWait:
    """Waits for a condition; every part that may change the condition calls `wake`."""

    def __init__(self, process: Callable[[], ChildProcess | None]) -> None:
        """Give up when the process that *process* returns has ended; None: the scheduler was attached by hand."""
        self._process = process
        self._event = asyncio.Event()
        self.wake = self._event.set

    async def until(self, condition: Callable[[], bool], what: str, quiet: float = QUIET_SECONDS) -> bool:
        """Wait for *condition*; return whether it holds, or False after *quiet* seconds without a wake-up."""
        while not condition():
            self._event.clear()
            try:
                async with asyncio.timeout(quiet):
                    await self._wait(what)
            except TimeoutError:
                return condition()
        return True

    async def _wait(self, what: str) -> None:
        while not self._event.is_set():
            try:
                async with asyncio.timeout(0.5):
                    await self._event.wait()
            except TimeoutError:
                self.check_alive(what)

    def check_alive(self, what: str) -> None:
        """Raise if the scheduler has ended."""
        process = self._process()
        if process is not None and process.exit_code is not None:
            last = "\n  ".join(process.tail) or "(its log is empty)"
            raise SchedulerStuckError(
                f"{process.name} ended with status {process.exit_code} while {what}; its last lines:\n  {last}"
            )


class SettleTimer:
    """Adds the real time of a block to the figures."""

    def __init__(self, figures: SettleFigures) -> None:
        """Add to *figures*."""
        self._figures = figures
        self._began = 0.0

    def __enter__(self) -> None:
        """Begin a check."""
        self._began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        """End the check."""
        self._figures.checks += 1
        self._figures.seconds += time.perf_counter() - self._began
