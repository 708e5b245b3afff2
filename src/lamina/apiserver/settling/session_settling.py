"""
Settle method for period-driven schedulers: whole sessions without a placement.

    send a barrier pod, and wait for the line about it: all earlier events of pods are in the scheduler's cache
    wait until two whole sessions have begun and ended after that
    settled if no pod was bound, deleted or created, no node changed, and no decided binding is on its way

A change of a status does not count: these schedulers write one in every session while a gang waits. Nodes, PodGroups
and queues have watches of their own, without lines in the log; two sessions are the time for them, which proves
nothing. So the figures say that such a run is not proven.
"""

import asyncio
import time

from lamina.apiserver.settling.pending_pods import BARRIER, PendingPods
from lamina.apiserver.settling.session_log import SessionLog
from lamina.apiserver.settling.settle_method import (
    ENDLESS_SECONDS,
    QUIET_SECONDS,
    START_SECONDS,
    SchedulerStuckError,
    SettleFigures,
    SettleTimer,
    SignalledWait,
)
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject

SESSIONS = 2
"""Number of whole sessions without a placement."""
LOST_SECONDS = 5.0
"""Real seconds without a placement after which decided bindings that did not arrive are given up."""


class SessionSettling:
    """Settles one period-driven scheduler by its sessions."""

    def __init__(
        self, state: ApiState, pods: PendingPods, log: SessionLog, wait: SignalledWait, scheduler: str, pause: float
    ) -> None:
        """Settle the scheduler called *scheduler*; it may need *pause* real seconds between two requests."""
        self.figures = SettleFigures("sessions")
        self._state = state
        self._pods = pods
        self._log = log
        self._wait = wait
        self._scheduler = scheduler
        self._pause = pause
        self._node_changes = pods.node_changes
        self._number = 0
        pods.wake = wait.wake

    async def settle(self) -> None:
        """Return when the scheduler has settled."""
        with SettleTimer(self.figures):
            quiet = START_SECONDS if self.figures.checks == 0 else QUIET_SECONDS
            if self._pods.node_changes != self._node_changes:
                self.figures.proven = False
                self._node_changes = self._pods.node_changes
            end = time.monotonic() + ENDLESS_SECONDS
            while time.monotonic() < end:
                moves, since = self._pods.moves, time.monotonic()
                await self._sessions(quiet, moves)
                if moves == self._pods.moves and await self._arrived(moves, since):
                    return
            raise SchedulerStuckError(f"the scheduler placed and removed pods for {ENDLESS_SECONDS:g} s without an end")

    async def _sessions(self, quiet: float, moves: int) -> None:
        """Wait for the barrier and for whole sessions after it, or for a change."""
        log, pods = self._log, self._pods
        wanted = log.barriers + 1
        self._send_barrier()
        await self._until(lambda: log.barriers >= wanted or pods.moves != moves, "read its watch", quiet)
        first = log.opened
        # A session that is open now may have taken its snapshot before the barrier.
        await self._until(lambda: log.closed >= first + SESSIONS or pods.moves != moves, "had sessions", quiet)

    async def _until(self, condition, what: str, quiet: float) -> None:  # type: ignore[no-untyped-def]
        if not await self._wait.until(condition, f"it should have {what}", quiet):
            self.figures.limits_hit += 1
            raise SchedulerStuckError(
                f"the scheduler did not log within {quiet:g} s that it {what}; "
                "check that it connects to this server and logs to standard error with the documented flags"
            )

    async def _arrived(self, moves: int, since: float) -> bool:
        """Wait until decided bindings have arrived; return whether there was no placement meanwhile."""
        while True:
            waited = time.monotonic() - since
            limit = LOST_SECONDS if self._log.on_their_way() else self._pause
            if waited >= limit:
                break
            if self._pods.moves != moves:
                return False
            self._wait.check_alive("its bindings were on their way")
            await asyncio.sleep(0.02)
        if self._log.on_their_way():
            self.figures.limits_hit += 1
            self.figures.proven = False
        return self._pods.moves == moves

    def _send_barrier(self) -> None:
        """Add the barrier pod, which has ended, or change it."""
        store = self._state.store
        table = store.table("", "pods")
        self._number += 1
        stored = table.get(BARRIER)
        if stored is None:
            store.put(table, BARRIER, self._barrier())
        else:
            metadata = {**stored.object["metadata"], "annotations": {"lamina.dev/barrier": str(self._number)}}
            store.put(table, BARRIER, {**stored.object, "metadata": metadata})

    def _barrier(self) -> KubeObject:
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": BARRIER.name,
                "namespace": BARRIER.namespace,
                "uid": BARRIER.name,
                "creationTimestamp": self._state.timestamp(),
            },
            "spec": {
                "schedulerName": self._scheduler,
                "containers": [{"name": "barrier", "image": "none", "resources": {}}],
            },
            "status": {"phase": "Succeeded"},
        }
