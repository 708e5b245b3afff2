"""
Settle method for kube-scheduler (from 1.33): accounting of events in its metrics.

A scrape shows a settled scheduler if

1. no label of `EventAccount` is short: all events that were sent are handled;
2. no pod is in the active or backoff queue, and the other queues hold all pods that the store has without a node:
   otherwise a pod is in an attempt, where no queue has it;
3. no binding and no preemption is running.

A scrape is not atomic: the queue lengths may be older than the counts of events. So the scrape before it must have
shown 1 already, and nothing may have changed since.
"""

import asyncio
import time
from typing import Final, Literal

from lamina.apiserver.settling.event_account import HANDLED, EventAccount
from lamina.apiserver.settling.metric_text import MetricValues
from lamina.apiserver.settling.metrics_client import MetricsSource
from lamina.apiserver.settling.pending_pods import PendingPods
from lamina.apiserver.settling.settle_method import (
    ENDLESS_SECONDS,
    QUIET_SECONDS,
    START_SECONDS,
    SchedulerStuckError,
    SettleFigures,
    SettleTimer,
    SignalledWait,
)

PENDING: Final = "scheduler_pending_pods"
GOROUTINES: Final = "scheduler_goroutines"
VICTIMS: Final = "scheduler_preemption_victims_count"
PREEMPTIONS: Final = "scheduler_preemption_goroutines_execution_total"
NAMES: Final = frozenset({HANDLED, PENDING, GOROUTINES, VICTIMS, PREEMPTIONS})
CONFIRM_SECONDS: Final = 10.0
"""Real seconds in which a confirmation waits for a settled scheduler."""

PreemptionCounting = Literal["started", "selected"]
"""Whether the victims of a preemption count if they are being deleted already: no up to 1.36, yes from 1.37."""


class MetricsSettling:
    """Settles one kube-scheduler by its metrics, and confirms other methods."""

    def __init__(
        self,
        pods: PendingPods,
        account: EventAccount,
        source: MetricsSource,
        wait: SignalledWait,
        counting: PreemptionCounting = "started",
    ) -> None:
        """Compare the scrapes of *source* with *account*."""
        self.figures = SettleFigures("metrics")
        self._pods = pods
        self._account = account
        self._source = source
        self._wait = wait
        self._counting = counting

    async def settle(self) -> None:
        """Return when the scheduler has settled."""
        with SettleTimer(self.figures):
            why = await self._wait_settled(START_SECONDS if self.figures.checks == 0 else QUIET_SECONDS)
            if why:
                self.figures.limits_hit += 1
                raise SchedulerStuckError(f"the scheduler has not settled: {why}")

    async def confirm(self) -> str:
        """Return an empty text if the scheduler has settled, or else what is unfinished."""
        return await self._wait_settled(CONFIRM_SECONDS)

    async def preempting(self) -> bool:
        """Return whether the scheduler is deleting victims."""
        found = await self._source.scrape()
        return found is None or self._running_preemptions(found) > 0

    async def _wait_settled(self, quiet: float) -> str:
        """Scrape until two scrapes show a settled scheduler; return what is unfinished after *quiet* seconds."""
        handled_before, changes_before, state_before = False, -1, ""
        began = since = time.monotonic()
        while True:
            changes = self._pods.changes
            found = await self._source.scrape()
            handled, state = False, "its metrics cannot be read"
            if found is not None:
                short = self._account.short(found.labelled(HANDLED, "event"))
                handled, state = not short, self.unfinished(found)
            if handled and not state and handled_before and changes == changes_before == self._pods.changes:
                return ""
            now = time.monotonic()
            if changes != changes_before or state != state_before:
                since = now
            if now - since > quiet or now - began > ENDLESS_SECONDS:
                return state or "events are not handled"
            handled_before, changes_before, state_before = handled, changes, state
            self._wait.check_alive("it was deciding")
            await asyncio.sleep(0.02 if found is None else 0.001)

    def unfinished(self, found: MetricValues) -> str:
        """Return what a scrape shows as unfinished; empty: nothing."""
        if HANDLED not in found:
            return "its metrics count no events; they do so from version 1.33"
        short = self._account.short(found.labelled(HANDLED, "event"))
        if short:
            return f"events are not handled ({', '.join(sorted(short))})"
        queues = found.labelled(PENDING, "queue")
        moving = int(queues.get("active", 0) + queues.get("backoff", 0))
        if moving:
            return f"{moving} pods are in its queues"
        resting = int(queues.get("unschedulable", 0) + queues.get("gated", 0))
        waiting, leaving = self._account.waiting, self._account.leaving
        if not waiting - leaving <= resting <= waiting:
            return f"its queues hold {resting} of {waiting} pods"
        if found.labelled(GOROUTINES, "operation").get("binding"):
            return "it is binding pods"
        if self._running_preemptions(found) > 0:
            return "it is preempting pods"
        return ""

    def _running_preemptions(self, found: MetricValues) -> int:
        if self._counting == "selected":
            return 0
        return int(found.total(VICTIMS) - found.total(PREEMPTIONS))
