"""
Settle method for kube-scheduler: its log, and barriers that show what it has read.

    wait until no pending pod is queued, attempted or preempting
    send barriers, and wait for the lines about them
    settled if still no pod is busy, and nothing changed since the barriers were sent; else again

If the log meets a time limit, the metrics decide; if these show no settled scheduler either, the run ends with an
error. Resources other than pods and nodes have no barrier, so the metrics confirm that their changes were handled.
"""

import time
from typing import Protocol

from lamina.apiserver.settling.pending_pods import PendingPods
from lamina.apiserver.settling.scheduler_log import SchedulerLog
from lamina.apiserver.settling.settle_method import (
    ENDLESS_SECONDS,
    QUIET_SECONDS,
    START_SECONDS,
    SchedulerStuckError,
    SettleFigures,
    SettleTimer,
    SignalledWait,
)
from lamina.apiserver.settling.watch_barriers import WatchBarriers

DOUBT_SECONDS = 0.05
"""Real seconds without a line after which another source is asked about a doubtful preemption."""
PREEMPTION_SECONDS = 2.0
"""Real seconds without a line after which a doubtful preemption counts as finished, without another source."""


class SettleConfirmation(Protocol):
    """Another source that tells whether a scheduler has settled."""

    async def confirm(self) -> str:
        """Return an empty text if the scheduler has settled, or else what is unfinished."""
        ...

    async def preempting(self) -> bool:
        """Return whether the scheduler is deleting victims."""
        ...


class LogSettling:
    """Settles one kube-scheduler by its log."""

    def __init__(
        self,
        pods: PendingPods,
        log: SchedulerLog,
        barriers: WatchBarriers,
        wait: SignalledWait,
        confirmation: SettleConfirmation | None = None,
    ) -> None:
        """Settle the scheduler whose pods are *pods* and whose log is *log*."""
        self.figures = SettleFigures("log")
        self._pods = pods
        self._log = log
        self._barriers = barriers
        self._wait = wait
        self._confirmation = confirmation
        self._others = pods.other_changes
        pods.wake = wait.wake

    async def settle(self) -> None:
        """Return when the scheduler has settled."""
        with SettleTimer(self.figures):
            quiet = START_SECONDS if self.figures.checks == 0 else QUIET_SECONDS
            began = time.monotonic()
            seen = self._pods.moves
            while True:
                if seen != self._pods.moves:
                    began, seen = time.monotonic(), self._pods.moves
                late = time.monotonic() - began > ENDLESS_SECONDS
                why = f"worked for {ENDLESS_SECONDS:g} s and changed nothing" if late else await self._problem(quiet)
                if why:
                    await self._fall_back(why)
                    return
                if not self._log.busy and self._barriers.confirm() and await self._others_handled():
                    return

    async def _problem(self, quiet: float) -> str:
        """Wait until no pod is busy and the barriers are passed; return what did not happen."""
        log = self._log
        while log.busy:
            if log.only_doubtful:
                await self._resolve_doubts()
            elif not await self._wait.until(
                lambda: not log.busy or log.only_doubtful, "pods were waiting for it", quiet
            ):
                some = ", ".join(sorted(log.busy)[:3])
                return f"did nothing for {quiet:g} s and has not answered for {len(log.busy)} pods ({some})"
        self._barriers.send()
        passed = await self._wait.until(
            lambda: self._barriers.passed or self._barriers.late, "it read its watches", quiet
        )
        return "" if passed else f"did not log within {quiet:g} s that it read its watches"

    async def _resolve_doubts(self) -> None:
        """Wait for lines about the doubtful preemptions; end them if none comes and no preemption is running."""
        log, confirmation = self._log, self._confirmation
        limit = PREEMPTION_SECONDS if confirmation is None else DOUBT_SECONDS
        if await self._wait.until(lambda: not log.only_doubtful, "it was preempting pods", limit):
            return
        if confirmation is None:
            self.figures.limits_hit += 1
            log.end_doubtful()
        elif not await confirmation.preempting():
            log.end_doubtful()

    async def _others_handled(self) -> bool:
        """Return whether changes of other resources were handled, as far as that can be known."""
        changes = self._pods.changes
        if self._pods.other_changes != self._others:
            if self._confirmation is None:
                self.figures.proven = False
            else:
                why = await self._confirmation.confirm()
                if why:
                    await self._fall_back(why)
            self._others = self._pods.other_changes
        return changes == self._pods.changes and not self._log.busy

    async def _fall_back(self, why: str) -> None:
        """Let the metrics decide. Raises SchedulerStuckError if they show no settled scheduler."""
        self.figures.limits_hit += 1
        self._wait.check_alive("it was deciding")
        other = "its metrics are not available" if self._confirmation is None else await self._confirmation.confirm()
        if other:
            raise SchedulerStuckError(
                f"the scheduler {why}; {other}; check that it connects to this server and logs with the documented flags"
            )
        self._log.forget()
