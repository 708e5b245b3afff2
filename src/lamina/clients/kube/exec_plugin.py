"""
Credentials from an exec plugin, cached until they expire.

    none --run--> usable --early--> usable, renewed in the background --expired or rejected--> none
            |
            +--failed--> back-off: 1, 2, 4 … 60 s, no runs

Only one run is active at a time; all callers share it. A credential stays in use while its renewal runs or fails, until
it expires or the server rejects it. If the plugin fails, or the server rejects a new credential, runs are delayed by an
exponential back-off. During the back-off, requests fail at once with the last problem.
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
    """Time limits, in seconds."""

    patience: float = 60.0
    """Time limit of a run."""
    first: float = 1.0
    """Minimum time between two runs, and the first back-off delay."""
    longest: float = 60.0
    early: float = 60.0
    """Renew this long before expiry, or at a fifth of the lifetime if that is shorter."""
    settled: float = 10.0
    """If the server rejects a credential younger than this, the plugin is considered faulty and backs off."""


class _ActiveCredential(msgspec.Struct, frozen=True):
    """A credential in use; times are of the monotonic clock, infinite if it does not expire."""

    given: ExecCredential
    made: float
    renew: float
    end: float


class ExecPlugin:
    """Credential source that runs an exec plugin."""

    def __init__(
        self,
        command: ExecCommand,
        *,
        timings: ExecTimings = ExecTimings(),  # noqa: B008  frozen
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Store the command; the first run is on demand."""
        self.runs = self.troubles = 0
        self._command, self._timings = command, timings
        self._clock, self._wall = clock, wall
        self._active: _ActiveCredential | None = None
        self._task: asyncio.Task[None] | None = None
        self._problem = ""
        self._failures = self._refusals = 0
        self._not_before = -float("inf")

    async def authorization(self) -> str:
        """Return the header, from the cache if possible. Raises NoCredentialError."""
        active = self._usable()
        if active is None or self._clock() >= active.renew:
            self._start()
        if active is None and self._task is not None:
            # Other callers share the run: cancelling one of them must not cancel it.
            await asyncio.shield(self._task)
            active = self._usable()
        if active is None:
            raise NoCredentialError(f"credentials from {self._command.program}", self._problem or "it returned none")
        return active.given.header

    def pair(self) -> ClientCertificate | None:
        """Return the certificate of the last credential."""
        return self._active.given.pair if self._active is not None else None

    def refused(self, used: str | None) -> None:
        """Drop the credential that the server rejected, unless *used* is an older one."""
        active = self._active
        if active is None or used not in (None, active.given.header):
            return
        age = self._clock() - active.made
        if used is None and age < self._timings.first:
            return  # a late 401 to a request with the previous credential
        self._active = None
        self._problem = "the server rejects its credentials"
        if age < self._timings.settled:
            self.troubles += 1
            self._refusals += 1
            self._pause(self._refusals)
        else:
            self._refusals = 0

    def _usable(self) -> _ActiveCredential | None:
        return self._active if self._active is not None and self._clock() < self._active.end else None

    def _start(self) -> None:
        if self._task is None and self._clock() >= self._not_before:
            self._task = asyncio.create_task(self._renew(), name="exec plugin")
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None

    def _pause(self, times: int) -> None:
        """Start the back-off; it doubles with *times*."""
        self._not_before = self._clock() + min(self._timings.first * 2.0 ** min(times - 1, 60), self._timings.longest)

    async def _renew(self) -> None:
        self.runs += 1
        try:
            self._active = self._activate(await run_exec_command(self._command, self._timings.patience))
        except (OSError, ValueError, InputError) as error:
            self.troubles += 1
            self._failures += 1
            self._problem = self._message(error)
            self._pause(self._failures)
            log.warning("exec plugin failed", extra={"problem": self._problem, "program": self._command.program})
        else:
            self._problem, self._failures = "", 0
            self._not_before = self._clock() + self._timings.first

    def _activate(self, given: ExecCredential) -> _ActiveCredential:
        made, left = self._clock(), float("inf")
        if given.until is not None:
            left = given.until - self._wall()
            if left <= 0:
                raise ValueError("its credential has already expired: is the clock right?")
        return _ActiveCredential(given, made, made + left - min(self._timings.early, left / 5), made + left)

    def _message(self, error: Exception) -> str:
        """Return the problem as one line."""
        if isinstance(error, FileNotFoundError):
            hint = printable(self._command.hint, 500)
            message = f"the program was not found: {hint or 'install it, or correct command'}"
        elif isinstance(error, PermissionError):
            message = "the program cannot be executed; check its permissions"
        elif isinstance(error, TimeoutError):
            message = f"no output within {self._timings.patience:g} s"
        else:
            message = str(error)
        return f"{message} ({self._command.place})" if self._command.place else message
