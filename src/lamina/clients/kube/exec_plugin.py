"""
Credentials from a program, as kubectl's exec plugins: run when needed, kept until they expire.

    none --run--> good --early--> good, being renewed beside --expired, refused--> none
            |
            +--failed--> waiting: 1, 2, 4 … 60 s, in which nothing is run

One run at a time, whoever asks. What is good stays in use while a renewal is under way or fails, until it expires or
the server refuses it. A plugin that fails, or whose credentials the server refuses at once, is left alone for longer
and longer; in that time requests fail at once and say why, and no process is started.
"""

import asyncio
import logging
import time
from collections.abc import Callable

import msgspec

from lamina.clients.kube.credentials import ClientCertificate, NoCredentialError
from lamina.clients.kube.exec_command import ExecCommand, ExecCredential, printable, run_exec_command
from lamina.model.errors import InputError

log = logging.getLogger(__name__)


class ExecTimings(msgspec.Struct, frozen=True):
    """Times, in seconds."""

    patience: float = 60.0
    """How long a plugin may take."""
    first: float = 1.0
    """How long it is left alone at least, and at first after a failure."""
    longest: float = 60.0
    early: float = 60.0
    """How long before its end a credential is renewed, or a fifth of its life if that is shorter."""
    settled: float = 10.0
    """A credential that is refused before this age was bad from the start."""


class _ActiveCredential(msgspec.Struct, frozen=True):
    """A credential in use; times are our clock's, infinite for one without an end."""

    given: ExecCredential
    made: float
    renew: float
    end: float


class ExecPlugin:
    """A program that prints credentials."""

    def __init__(
        self,
        command: ExecCommand,
        *,
        pace: ExecTimings = ExecTimings(),  # noqa: B008  frozen
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Run nothing yet."""
        self.runs = self.troubles = 0
        self._command, self._pace = command, pace
        self._clock, self._wall = clock, wall
        self._good: _ActiveCredential | None = None
        self._task: asyncio.Task[None] | None = None
        self._problem = ""
        self._failures = self._refusals = 0
        self._not_before = -float("inf")

    async def authorization(self) -> str:
        """Give the header, from the cache if it can be. Raises NoCredentialError."""
        good = self._usable()
        if good is None or self._clock() >= good.renew:
            self._start()
        if good is None and self._task is not None:
            # Others wait for the same run: one of them being cancelled must not end it.
            await asyncio.shield(self._task)
            good = self._usable()
        if good is None:
            raise NoCredentialError(f"credentials from {self._command.program}", self._problem or "it gave none")
        return good.given.header

    def pair(self) -> ClientCertificate | None:
        """Give the certificate that came with the last credential."""
        return self._good.given.pair if self._good is not None else None

    def refused(self, used: str | None) -> None:
        """Forget what the server does not take, unless it was something older."""
        good = self._good
        if good is None or used not in (None, good.given.header):
            return
        age = self._clock() - good.made
        if used is None and age < self._pace.first:
            return  # an answer to a request that was under way when this one came
        self._good = None
        self._problem = "the server does not take what it gives"
        if age < self._pace.settled:
            self.troubles += 1
            self._refusals += 1
            self._pause(self._refusals)
        else:
            self._refusals = 0

    def _usable(self) -> _ActiveCredential | None:
        return self._good if self._good is not None and self._clock() < self._good.end else None

    def _start(self) -> None:
        if self._task is None and self._clock() >= self._not_before:
            self._task = asyncio.create_task(self._renew(), name="exec plugin")
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None

    def _pause(self, times: int) -> None:
        """Leave the plugin alone, twice as long each time."""
        self._not_before = self._clock() + min(self._pace.first * 2.0 ** min(times - 1, 60), self._pace.longest)

    async def _renew(self) -> None:
        self.runs += 1
        try:
            self._good = self._kept(await run_exec_command(self._command, self._pace.patience))
        except (OSError, ValueError, InputError) as error:
            self.troubles += 1
            self._failures += 1
            self._problem = self._said(error)
            self._pause(self._failures)
            log.warning("exec plugin failed", extra={"problem": self._problem, "program": self._command.program})
        else:
            self._problem, self._failures = "", 0
            self._not_before = self._clock() + self._pace.first

    def _kept(self, given: ExecCredential) -> _ActiveCredential:
        made, left = self._clock(), float("inf")
        if given.until is not None:
            left = given.until - self._wall()
            if left <= 0:
                raise ValueError("what it printed has expired already: is the clock right?")
        return _ActiveCredential(given, made, made + left - min(self._pace.early, left / 5), made + left)

    def _said(self, error: Exception) -> str:
        """Turn what went wrong into one line."""
        if isinstance(error, FileNotFoundError):
            hint = printable(self._command.hint, 500)
            said = f"the program is not there: {hint or 'install it, or correct command'}"
        elif isinstance(error, PermissionError):
            said = "the program cannot be executed; check its permissions"
        elif isinstance(error, TimeoutError):
            said = f"it did not answer within {self._pace.patience:g} s"
        else:
            said = str(error)
        return f"{said} ({self._command.place})" if self._command.place else said
