"""
Settle method for Lamina's own scheduler as a live process: its metrics.

Lamina decides in one thread, which also answers the scrape. A scrape shows a settled scheduler if

1. its reflectors have read at least as many events of pods and nodes as the store has sent;
2. its caches have as many nodes, waiting pods and placed pods as the store;
3. no pod is ready or in back-off, none is held for its image, and none is assumed.

Events that are read wait in a queue before they are taken, and no metric shows that queue. So two scrapes in a row must
agree, and the figures say that this is no proof.
"""

import asyncio
import time
from typing import Final

from lamina.apiserver.settling.metric_text import MetricValues
from lamina.apiserver.settling.metrics_client import MetricsSource
from lamina.apiserver.settling.pending_pods import ENDED, PendingPods
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
from lamina.simulator.facade.kube_object import KubeObject, part
from lamina.simulator.facade.object_store import StoreEvent

EVENTS: Final = "lamina_reflector_events_total"
PENDING: Final = "scheduler_pending_pods"
CACHE: Final = "scheduler_cache_size"
HELD: Final = "lamina_pods_held"
ATTEMPTS: Final = "scheduler_schedule_attempts_total"
LAMINA_METRICS: Final = frozenset({EVENTS, PENDING, CACHE, HELD, ATTEMPTS})
PAUSE: Final = 0.005
"""Real seconds between two scrapes: one slice of deciding."""


class LaminaSettling:
    """Settles one Lamina scheduler by its metrics."""

    def __init__(self, state: ApiState, pods: PendingPods, source: MetricsSource, wait: SignalledWait) -> None:
        """Compare the scrapes of *source* with the store of *state*."""
        self.figures = SettleFigures("lamina", proven=False)
        self._state = state
        self._pods = pods
        self._source = source
        self._wait = wait
        self._nodes = state.store.table("", "nodes")
        self._placed = 0
        """Number of pods on nodes that have not ended."""
        self._base: dict[str, float] | None = None
        """Events that the reflectors had read when the first check ended."""
        self._sent = {"Pod": 0, "Node": 0}
        """Events since then."""
        state.store.table("", "pods").listeners[self._pod_changed] = None
        self._nodes.listeners[self._node_changed] = None

    async def settle(self) -> None:
        """Return when the scheduler has settled."""
        with SettleTimer(self.figures):
            quiet = START_SECONDS if self._base is None else QUIET_SECONDS
            before: tuple[str, int, float] | None = None
            began = since = time.monotonic()
            while True:
                found = await self._source.scrape()
                why = "its metrics cannot be read" if found is None else self.unfinished(found)
                current = (why, self._pods.changes, 0.0 if found is None else found.total(ATTEMPTS))
                if found is not None and not why and current == before:
                    break
                now = time.monotonic()
                if current != before:
                    since = now
                if now - since > quiet or now - began > ENDLESS_SECONDS:
                    self.figures.limits_hit += 1
                    raise SchedulerStuckError(f"Lamina's scheduler has not settled: {why}")
                before = current
                self._wait.check_alive("it was deciding")
                await asyncio.sleep(PAUSE)
            if self._base is None:
                self._base = found.labelled(EVENTS, "kind")
                self._sent = dict.fromkeys(self._sent, 0)

    def unfinished(self, found: MetricValues) -> str:
        """Return what a scrape shows as unfinished; empty: nothing."""
        if self._base is not None:
            read = found.labelled(EVENTS, "kind")
            for kind, count in self._sent.items():
                if read.get(kind, 0.0) < self._base.get(kind, 0.0) + count:
                    return f"events of {kind}s are not read"
        queues = found.labelled(PENDING, "queue")
        moving = int(queues.get("active", 0) + queues.get("backoff", 0) + found.total(HELD))
        if moving:
            return f"{moving} pods are in its queues"
        resting = int(sum(queues.values()))
        if resting < len(self._pods.pending):
            return f"its queues hold {resting} of {len(self._pods.pending)} pods"
        cache = found.labelled(CACHE, "type")
        if cache.get("assumed_pods"):
            return "it is binding pods"
        if int(cache.get("nodes", 0)) != len(self._nodes):
            return f"it knows {int(cache.get('nodes', 0))} of {len(self._nodes)} nodes"
        if int(cache.get("pods", 0)) < self._placed:
            return f"it knows {int(cache.get('pods', 0))} of {self._placed} placed pods"
        return ""

    def _pod_changed(self, event: StoreEvent) -> None:
        # Ended pods are not in its selection: the end is an event, later changes are none.
        if not (_has_ended(event.new.object) and (event.old is None or _has_ended(event.old.object))):
            self._sent["Pod"] += 1
        if event.old is not None:
            self._placed -= _is_placed(event.old.object)
        if event.type != "DELETED":
            self._placed += _is_placed(event.new.object)

    def _node_changed(self, event: StoreEvent) -> None:
        self._sent["Node"] += 1


def _has_ended(pod: KubeObject) -> bool:
    return part(pod, "status").get("phase") in ENDED


def _is_placed(pod: KubeObject) -> bool:
    return bool(part(pod, "spec").get("nodeName")) and not _has_ended(pod)
