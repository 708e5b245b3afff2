"""
Hold new pods until the layers of their images are known, or a deadline passes.

                     +--- all images known, or no registry can be queried ---+
                     |                                                       v
    watched --> image gate --unknown--> held --answered or past deadline--> queue
                     |                    |
                     +-- not open yet ----+--- bound, gated or deleted: no longer held

The gate holds only pods that this scheduler places, never past the deadline, and never twice for the same images. A
newer version of a held pod replaces the older one. Answers after the deadline help later pods.

Before the caches are synced, and while another instance leads, no pod is placed here. Pods with unknown images then
wait, no registry is queried, and their deadline starts when that changes.

All other events pass at once and in order. With `MOST_HELD` pods held, further pods pass at once.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import msgspec

from lamina.model.events import (
    Event,
    LayersReported,
    LayersWithdrawn,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PodGone,
    PodSeen,
)
from lamina.model.pod import Pod, PodUid
from lamina.services.informers.event_queue import EventSink
from lamina.services.informers.pod_image_resolver import ImageQuery, PodImageResolver

DEADLINE: Final = 2.0
"""Seconds that a pod waits for its images to become known."""
MOST_HELD: Final = 10_000
MOST_REMEMBERED: Final = 100_000
"""Pods that have passed the gate and are not placed yet, with the images they had then."""
BETWEEN_LOOKS: Final = 0.02

Images = tuple[str, ...]


class GatedPod(msgspec.Struct, eq=False):
    """A pod that the gate holds."""

    pod: Pod
    since: float
    due: float | None = None
    """When the pod is released regardless, in event loop time; None until the resolver has been queried."""
    questions: set[ImageQuery] = msgspec.field(default_factory=set)


class GateMetrics(Protocol):
    """Receives how long each pod was held; the metrics implement it."""

    def held(self, seconds: float) -> None:
        """Record that a pod was held for *seconds*."""


class ImageGate:
    """Passes events on; delays pods whose images are unknown."""

    def __init__(
        self,
        sink: EventSink,
        resolver: PodImageResolver,
        *,
        ours: Callable[[Pod], bool],
        deadline: float = DEADLINE,
        may_ask: Callable[[], bool] = lambda: True,
        watch: GateMetrics | None = None,
    ) -> None:
        """
        Pass events to *sink*.

        *ours* returns whether this process places a pod. *deadline* 0: no pod is held. *may_ask* returns whether this
        instance leads, and so queries registries.
        """
        self._sink = sink
        self._resolver = resolver
        self._ours = ours
        self._deadline = deadline
        self._may_ask = may_ask
        self._watch = watch
        self._held: dict[PodUid, GatedPod] = {}
        self._due: deque[tuple[float, GatedPod]] = deque()
        """Held pods by deadline. All have the same delay, so appending keeps the order."""
        self._waiting: dict[ImageQuery, dict[PodUid, None]] = {}
        self._passed: OrderedDict[PodUid, Images] = OrderedDict()
        self._opened = False
        self._unqueried = asyncio.Event()
        self._handlers: dict[type, Callable[..., None]] = {
            PodSeen: self._pod_seen,
            PodGone: self._pod_gone,
            NodeSeen: lambda event: resolver.nodes.node(event.node),
            NodeGone: lambda event: resolver.nodes.gone(event.name),
            LayersReported: lambda event: resolver.nodes.reported(event.report),
            LayersWithdrawn: lambda event: resolver.nodes.withdrawn(event.node),
            NamespaceSeen: lambda event: resolver.namespace(event.name, event.annotations, event.labels),
            NamespaceGone: lambda event: resolver.namespace(event.name, {}, {}),
        }

    def __len__(self) -> int:
        """Return the number of held pods."""
        return len(self._held)

    def held(self) -> Iterable[PodUid]:
        """Return the uids of held pods."""
        return self._held.keys()

    @property
    def opened(self) -> bool:
        """Whether the gate has opened, and so has checked the pods that arrived before the caches were synced."""
        return self._opened

    # -- events ------------------------------------------------------------------------------------------------------

    def put(self, event: Event) -> None:
        """Accept an event, and pass it on at once or later."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        if type(event) is not PodSeen:
            self._sink.put(event)

    def wake(self) -> None:
        """Wake the reader of the queue."""
        self._sink.wake()

    def _pod_gone(self, event: PodGone) -> None:
        self._held.pop(event.uid, None)
        self._passed.pop(event.uid, None)

    def _pod_seen(self, event: PodSeen) -> None:
        pod = event.pod
        if pod.node_name or pod.finished or pod.deleting:
            self._held.pop(pod.uid, None)
            self._passed.pop(pod.uid, None)
            self._sink.put(event)
        elif pod.gates or pod.unmet or not self._ours(pod):
            self._held.pop(pod.uid, None)
            self._sink.put(event)
        elif (held := self._held.get(pod.uid)) is not None:
            self._replace(held, pod)
        elif self._passed.get(pod.uid) == pod.images:
            self._sink.put(event)
        else:
            self._arrive(pod, event)

    def _arrive(self, pod: Pod, event: PodSeen) -> None:
        if self._opened and self._may_ask():
            questions = self._resolver.questions(pod)
            if not questions or self._deadline <= 0 or len(self._held) >= MOST_HELD:
                self._resolver.ask(questions, self._answered)
                self._remember(pod)
                self._sink.put(event)
            else:
                self._hold(GatedPod(pod, _now()), questions)
        elif len(self._held) >= MOST_HELD or self._deadline <= 0 or (self._opened and self._resolver.knows(pod)):
            self._remember(pod)
            self._sink.put(event)
        else:
            self._held[pod.uid] = GatedPod(pod, _now())
            self._unqueried.set()

    def _replace(self, held: GatedPod, pod: Pod) -> None:
        other = pod.images != held.pod.images
        held.pod = pod
        if other and held.due is not None:
            # The deadline stays: otherwise a user could delay a pod forever by changing it every second.
            held.questions.clear()
            self._ask(held, self._resolver.questions(pod))

    # -- holding and releasing -----------------------------------------------------------------------------------------

    def _hold(self, held: GatedPod, questions: Iterable[ImageQuery]) -> None:
        """Query the images of a pod, and hold the pod until all are answered."""
        self._held[held.pod.uid] = held
        held.due = _now() + self._deadline
        if not self._due:
            asyncio.get_running_loop().call_at(held.due, self._release_due)
        self._due.append((held.due, held))
        self._ask(held, questions)

    def _ask(self, held: GatedPod, questions: Iterable[ImageQuery]) -> None:
        # Register all queries before the first is sent, because it may be answered at once.
        asked = list(questions)
        held.questions.update(asked)
        for question in asked:
            self._waiting.setdefault(question, {})[held.pod.uid] = None
        if asked:
            self._resolver.ask(asked, self._answered)
        else:
            self._release(held)

    def _answered(self, question: ImageQuery) -> None:
        for uid in self._waiting.pop(question, ()):
            held = self._held.get(uid)
            if held is not None and question in held.questions:
                held.questions.discard(question)
                if not held.questions:
                    self._release(held)

    def _release_due(self) -> None:
        now = _now()
        while self._due and self._due[0][0] <= now:
            _, held = self._due.popleft()
            if self._held.get(held.pod.uid) is held:
                self._release(held)
        if self._due:
            asyncio.get_running_loop().call_at(self._due[0][0], self._release_due)

    def _release(self, held: GatedPod) -> None:
        del self._held[held.pod.uid]
        held.questions.clear()
        self._remember(held.pod)
        if self._watch is not None and held.due is not None:
            self._watch.held(_now() - held.since)
        self._sink.put(PodSeen(held.pod))

    def _remember(self, pod: Pod) -> None:
        self._passed[pod.uid] = pod.images
        if len(self._passed) > MOST_REMEMBERED:
            self._passed.popitem(last=False)

    # -- opening -----------------------------------------------------------------------------------------------------

    async def run(self, may_open: Callable[[], bool]) -> None:
        """
        Open the gate, then query for waiting pods whenever this instance leads.

        *may_open* returns whether the caches are synced and the decision loop has processed their events.
        """
        while not may_open():
            await asyncio.sleep(BETWEEN_LOOKS)
        self._opened = True
        for held in [one for one in self._held.values() if one.due is None and self._resolver.knows(one.pod)]:
            self._release(held)
        while True:
            if self._unqueried.is_set() and self._may_ask():
                self._unqueried.clear()
                self._query_waiting()
            elif self._unqueried.is_set():
                await asyncio.sleep(BETWEEN_LOOKS)
            else:
                await self._unqueried.wait()

    def _query_waiting(self) -> None:
        """Query the images of pods that arrived while queries were not permitted, in order of arrival."""
        for held in [one for one in self._held.values() if one.due is None]:
            held.since = _now()
            self._hold(held, self._resolver.questions(held.pod))


def _now() -> float:
    return asyncio.get_running_loop().time()
