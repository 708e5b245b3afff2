"""
Tells people how their pods fare: the PodScheduled condition and events, in kube-scheduler's words.

Only the newest news about a pod is worth telling, so what has not been told yet is replaced. Nothing here is waited for:
a pod is placed whether or not its owner could be told why it took so long.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from lamina.clients.kube import writes
from lamina.clients.kube.event import ObjectReference
from lamina.clients.kube.recorder import NORMAL, WARNING, Recorder
from lamina.clients.kube.transport import KubeClient
from lamina.model.decision import Decision
from lamina.model.errors import LaminaError
from lamina.model.pod import Pod, PodUid
from lamina.services.intake.clock import Clock
from lamina.services.scheduler.throttle import Throttle

WORKERS: Final = 4
MOST_WAITING: Final = 20_000
"""Conditions that wait to be written; beyond that the oldest are given up, and told of when they change again."""
MOST_TOLD: Final = 20_000
REASONS: Final = {"unschedulable": "Unschedulable", "failed": "SchedulerError"}

log = logging.getLogger(__name__)


def key_of(pod: Pod) -> writes.PodKey:
    """Name a pod so that no other is meant."""
    return writes.PodKey(pod.namespace, pod.name, pod.uid)


def about(pod: Pod) -> ObjectReference:
    """Name a pod as what an event is about."""
    return ObjectReference("Pod", pod.name, pod.namespace, pod.uid, "v1")


class Teller(Protocol):
    """Whoever lets people know."""

    def pending(self, pod: Pod, decision: Decision) -> None:
        """A pod was not placed this time."""

    def bound(self, pod: Pod, node: str) -> None:
        """A pod was bound."""


class ApiTeller:
    """Writes conditions and events."""

    def __init__(
        self, client: KubeClient, recorder: Recorder, throttle: Throttle, may_act: Callable[[], bool], clock: Clock
    ) -> None:
        """Write conditions through *client*; *recorder* has workers of its own for events."""
        self._client = client
        self._recorder = recorder
        self._throttle = throttle
        self._may_act = may_act
        self._clock = clock
        self._news: dict[PodUid, tuple[Pod, Decision]] = {}
        self._bell = asyncio.Semaphore(0)
        self._told: dict[PodUid, writes.Condition] = {}
        """What was written last: a condition that stays false keeps the time it began."""
        self.given_up = 0

    def pending(self, pod: Pod, decision: Decision) -> None:
        """Tell why a pod was not placed this time."""
        self._recorder.record(about(pod), WARNING, "FailedScheduling", "Scheduling", decision.message)
        if self._news.pop(pod.uid, None) is None:
            self._bell.release()
        self._news[pod.uid] = (pod, decision)
        if len(self._news) > MOST_WAITING:
            del self._news[next(iter(self._news))]
            self.given_up += 1

    def bound(self, pod: Pod, node: str) -> None:
        """Tell where a pod went."""
        self._news.pop(pod.uid, None)
        self._told.pop(pod.uid, None)
        self._recorder.record(about(pod), NORMAL, "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}")

    async def run(self) -> None:
        """Write conditions until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(WORKERS):
                tasks.create_task(self._work(), name=f"conditions {number}")

    async def _work(self) -> None:
        while True:
            await self._bell.acquire()
            if not self._news:
                # What the bell rang for was bound meanwhile, or given up.
                continue
            # Waiting first: a pod that is bound meanwhile must not be told that it waits.
            await self._throttle.pass_by()
            if not self._news or not self._may_act():
                continue
            pod, decision = self._news.pop(next(iter(self._news)))
            try:
                await self._write(pod, decision)
            except LaminaError as error:
                log.warning("cannot write the condition of %s: %s", pod.key, error)
            except Exception:
                # News that cannot be written are one pod's misfortune.
                log.exception("cannot write the condition of %s", pod.key)

    async def _write(self, pod: Pod, decision: Decision) -> None:
        condition = writes.waiting(REASONS[decision.outcome], decision.message)
        patch = writes.status_patch(key_of(pod), self._clock.now(), condition=condition, old=self._told.get(pod.uid))
        if patch is not None:
            await writes.patch_pod_status(self._client, key_of(pod), patch)
            self._told[pod.uid] = condition
            if len(self._told) > MOST_TOLD:
                del self._told[next(iter(self._told))]
