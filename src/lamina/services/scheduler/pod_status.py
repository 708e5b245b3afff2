"""
Writer of pod status: the PodScheduled condition and events, in kube-scheduler's words.

Only the newest condition of a pod matters, so an unwritten one is replaced. Scheduling never waits for these writes.

    pending --> ready --PATCH--> written
                 ^ |
                 | +-- 429, 5xx, no answer: later, with back-off; after `TRIES` attempts given up
                 | +-- 404, another UID: dropped
                 | +-- any other 4xx, an unexpected error: given up
                 +---- this instance does not lead: stays ready, in order

The loop reports the same message only once. Therefore the writer answers a condition that it gives up with
`ReportUnschedulableFailed`, and the loop reports the pod again at its next attempt. So memory stays bounded.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Literal, Protocol

import msgspec

from lamina.clients.kube import pod_writes
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.event import ObjectReference
from lamina.clients.kube.event_recorder import NORMAL, WARNING, EventRecorder
from lamina.clients.kube.transport import KubeClient
from lamina.clients.rate_limit import RateLimit
from lamina.model.decision import Decision
from lamina.model.events import Event, ReportUnschedulableFailed
from lamina.model.pod import Pod, PodUid
from lamina.services.informers.clock import SteadyClock

WORKERS: Final = 4
MOST_WAITING: Final = 20_000
"""Most unwritten conditions; beyond that the oldest are given up, and reported again at the pod's next attempt."""
PAUSES: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds between the attempts to write one condition."""
TRIES: Final = len(PAUSES) + 1
LONGEST_ASKED: Final = 60.0
"""Longest Retry-After that is honoured, in seconds."""
WRITE_TIMEOUT: Final = 10.0
"""Seconds for one PATCH, so that a server that hangs does not block a worker."""
BETWEEN_LOOKS: Final = 1.0
"""Seconds between two checks of leadership, and of a binding's end."""
PASSING: Final = frozenset({408, 409, 429})
"""4xx status codes that a retry may change; for a patch without a version, 409 means that the server was busy."""
MOST_REPORTED: Final = 20_000
REASONS: Final = {"unschedulable": "Unschedulable", "failed": "SchedulerError"}

log = logging.getLogger(__name__)


def key_of(pod: Pod) -> pod_writes.PodKey:
    """Return the key of a pod, with its uid."""
    return pod_writes.PodKey(pod.namespace, pod.name, pod.uid)


def pod_reference(pod: Pod) -> ObjectReference:
    """Return the object reference of a pod, for events."""
    return ObjectReference("Pod", pod.name, pod.namespace, pod.uid, "v1")


class PodStatusSink(Protocol):
    """Receives the outcome of pods, for their owners."""

    def pending(self, pod: Pod, decision: Decision) -> None:
        """Report that a pod was not placed."""

    def bound(self, pod: Pod, node: str) -> None:
        """Report that a pod was bound."""

    def preempted(self, pod: Pod, preemptor: Pod, node: str) -> None:
        """Report that a pod was evicted from *node* in favour of *preemptor*."""


PodQueueState = Literal["waiting", "binding", "gone"]
"""State of a pod in the loop: it waits, its binding is in flight, or it is placed elsewhere or deleted."""


class PendingCondition(msgspec.Struct, eq=False):
    """A condition that is not written yet."""

    pod: Pod
    decision: Decision
    tries: int = 0
    timer: asyncio.TimerHandle | None = None
    """Set while a retry waits for its time."""
    newer: bool = False
    """Whether the condition was replaced during a write."""


class PodStatusWriter:
    """Writes conditions and events."""

    def __init__(  # noqa: PLR0913 - its clients and its callbacks
        self,
        client: KubeClient,
        recorder: EventRecorder,
        rate_limit: RateLimit,
        may_act: Callable[[], bool],
        clock: SteadyClock,
        *,
        answer: Callable[[Event], None] = lambda _: None,
        standing: Callable[[PodUid], PodQueueState] = lambda _: "waiting",
    ) -> None:
        """
        Write conditions through *client*; *recorder* has workers of its own for events.

        *answer* receives `ReportUnschedulableFailed` for a condition that was given up. *standing* is called right
        before every write.
        """
        self._client = client
        self._recorder = recorder
        self._rate_limit = rate_limit
        self._may_act = may_act
        self._clock = clock
        self._answer = answer
        self._standing = standing
        self._news: dict[PodUid, PendingCondition] = {}
        """All unwritten conditions, by the time of their last report."""
        self._ready: dict[PodUid, None] = {}
        """Those that can be written now, in order."""
        self._claims = 0
        """Workers that wait for the rate limit or for leadership, each for one ready condition."""
        self._bell = asyncio.Event()
        self._told: dict[PodUid, pod_writes.PodCondition] = {}
        """Last written conditions: a condition that stays false keeps its transition time."""
        self.given_up = 0

    def pending(self, pod: Pod, decision: Decision) -> None:
        """Report why a pod was not placed."""
        self._recorder.record(pod_reference(pod), WARNING, "FailedScheduling", "Scheduling", decision.message)
        news = self._news.pop(pod.uid, None)
        if news is None:
            news = PendingCondition(pod, decision)
            self._make_ready(news)
        else:
            # It keeps its place in the queue: otherwise a pod whose message keeps changing would never be first.
            news.pod, news.decision, news.newer = pod, decision, True
        self._news[pod.uid] = news
        if len(self._news) > MOST_WAITING:
            self._give_up(next(iter(self._news.values())))

    def bound(self, pod: Pod, node: str) -> None:
        """Report the node of a bound pod."""
        self._drop(pod.uid)
        self._told.pop(pod.uid, None)
        self._recorder.record(
            pod_reference(pod), NORMAL, "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}"
        )

    def preempted(self, pod: Pod, preemptor: Pod, node: str) -> None:
        """Report the preemptor of an evicted pod."""
        note = f"Preempted by pod {preemptor.uid} on node {node}"
        related = pod_reference(preemptor)
        self._recorder.record(pod_reference(pod), NORMAL, "Preempted", "Preempting", note, related)

    async def run(self) -> None:
        """Write conditions until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(WORKERS):
                tasks.create_task(self._work(), name=f"conditions {number}")

    # -- queue -------------------------------------------------------------------------------------------------------

    def _make_ready(self, news: PendingCondition) -> None:
        self._ready.pop(news.pod.uid, None)
        self._ready[news.pod.uid] = None
        news.timer = None
        self._bell.set()

    def _later(self, news: PendingCondition, seconds: float) -> None:
        news.timer = asyncio.get_running_loop().call_later(seconds, self._make_ready, news)

    def _drop(self, uid: PodUid) -> None:
        self._ready.pop(uid, None)
        news = self._news.pop(uid, None)
        if news is not None and news.timer is not None:
            news.timer.cancel()

    def _give_up(self, news: PendingCondition) -> None:
        self.given_up += 1
        self._drop(news.pod.uid)
        self._answer(ReportUnschedulableFailed(news.pod.uid))

    # -- writing -----------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            while len(self._ready) <= self._claims:
                self._bell.clear()
                await self._bell.wait()
            self._claims += 1
            try:
                # Wait first: the pod may be bound meanwhile, and then must not get this condition.
                await self._rate_limit.turn()
                while self._ready and not self._may_act():
                    await asyncio.sleep(BETWEEN_LOOKS)
            finally:
                self._claims -= 1
            if self._ready:
                uid = next(iter(self._ready))
                del self._ready[uid]
                await self._tell(self._news[uid])

    async def _tell(self, news: PendingCondition) -> None:
        """Write one condition; no other worker writes about this pod until it has ended."""
        standing = self._standing(news.pod.uid)
        if standing == "gone":
            self._drop(news.pod.uid)
        elif standing == "binding":
            # If the pod is bound, the API server writes the condition; if not, this one is still valid, or a newer one
            # is.
            self._later(news, BETWEEN_LOOKS)
        else:
            await self._attempt(news)

    async def _attempt(self, news: PendingCondition) -> None:
        news.newer = False
        pause: float | None = None
        settled = False
        try:
            async with asyncio.timeout(WRITE_TIMEOUT):
                await self._write(news.pod, news.decision)
            settled = True
        except TimeoutError:
            pause = self._failed(news, f"no answer within {WRITE_TIMEOUT:g} seconds", passing=True)
        except UnreachableError as error:
            pause = self._failed(news, str(error), passing=True)
        except ApiError as error:
            passing = error.status in PASSING or error.status >= 500
            pause = self._failed(news, str(error), passing=passing, asked=error.retry_after)
        except Exception:
            # One condition that fails must not end the worker.
            log.exception("pod condition write failed: %s", news.pod.key)
        if self._news.get(news.pod.uid) is not news:
            # Bound or given up meanwhile.
            return
        if pause is not None:
            self._later(news, pause)
        elif news.newer:
            news.tries = 0
            self._make_ready(news)
        elif settled:
            self._drop(news.pod.uid)
        else:
            # Permissions may return, and the server may accept the next message.
            self._give_up(news)

    def _failed(
        self, news: PendingCondition, problem: str, *, passing: bool, asked: float | None = None
    ) -> float | None:
        """Return the seconds until the retry; None if there is none."""
        news.tries += 1
        if not passing:
            log.warning("pod condition write failed: %s: %s", news.pod.key, problem)
            return None
        if news.tries >= TRIES:
            log.warning("pod condition write given up: %s: %s", news.pod.key, problem)
            if self._news.get(news.pod.uid) is news:
                self._give_up(news)
            return None
        if news.tries == 1:
            log.warning("pod condition write failed, retrying: %s: %s", news.pod.key, problem)
        return max(PAUSES[news.tries - 1], min(asked or 0.0, LONGEST_ASKED))

    async def _write(self, pod: Pod, decision: Decision) -> None:
        condition = pod_writes.unscheduled_condition(REASONS[decision.outcome], decision.message)
        patch = pod_writes.status_patch(
            key_of(pod), self._clock.now(), condition=condition, old=self._told.get(pod.uid)
        )
        if patch is not None:
            await pod_writes.patch_pod_status(self._client, key_of(pod), patch)
            self._told[pod.uid] = condition
            if len(self._told) > MOST_REPORTED:
                del self._told[next(iter(self._told))]
