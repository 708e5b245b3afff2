"""
Settle method for schedulers of which nothing is known: no request for a while, or requests that change nothing.

A scheduler that watches has settled if it sends no request for *silence* real seconds. A scheduler that polls never stops
sending requests. It has settled if it has begun to read pods three times since the last change without writing: the
second read saw the change, and the work on it was over before the third.

This proves nothing: a scheduler may think for longer than the silence, or poll in parallel. The result of such a run says
so. The first wait lasts at least until the scheduler has sent a request.
"""

import asyncio
import time
from typing import Final, Protocol

from lamina.apiserver.settling.pending_pods import PendingPods
from lamina.apiserver.settling.settle_method import (
    ENDLESS_SECONDS,
    START_SECONDS,
    SchedulerStuckError,
    SettleFigures,
    SettleTimer,
    SignalledWait,
)

POLLS: Final = 3
"""Number of reads of pods after the last change, for a scheduler that polls."""


class RequestCounter(Protocol):
    """Counts the requests of clients."""

    @property
    def requests(self) -> int:
        """Number of requests so far."""
        ...

    @property
    def pod_reads(self) -> int:
        """Number of lists and watches of pods so far."""
        ...


class SilenceSettling:
    """Settles one scheduler by waiting."""

    def __init__(self, pods: PendingPods, server: RequestCounter, wait: SignalledWait, silence: float) -> None:
        """Wait for *silence* seconds without a request to *server*."""
        self.figures = SettleFigures("silence", proven=False)
        self._pods = pods
        self._server = server
        self._wait = wait
        self._silence = silence

    async def settle(self) -> None:
        """Return after the silence. Raises SchedulerStuckError if the scheduler changes things without an end."""
        with SettleTimer(self.figures):
            if self.figures.checks == 0:
                await self._first_request()
            server, pods = self._server, self._pods
            changes, reads, requests = pods.changes, server.pod_reads, server.requests
            began = changed_at = heard_at = time.monotonic()
            while True:
                await asyncio.sleep(self._silence / 10)
                self._wait.check_alive("it was deciding")
                now = time.monotonic()
                if pods.changes != changes:
                    changes, reads, changed_at = pods.changes, server.pod_reads, now
                if server.requests != requests:
                    requests, heard_at = server.requests, now
                quiet = now - max(changed_at, heard_at) >= self._silence
                polled = server.pod_reads - reads >= POLLS and now - changed_at >= self._silence
                if quiet or polled:
                    return
                if now - began > ENDLESS_SECONDS:
                    self.figures.limits_hit += 1
                    raise SchedulerStuckError(f"the scheduler wrote for {ENDLESS_SECONDS:g} s without an end")

    async def _first_request(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self._server.requests:
            if time.monotonic() > deadline:
                raise SchedulerStuckError(
                    f"the scheduler sent no request within {START_SECONDS:g} s; check that it uses the kubeconfig "
                    "that KUBECONFIG and {kubeconfig} name"
                )
            await asyncio.sleep(0.02)
            self._wait.check_alive("it was starting")
