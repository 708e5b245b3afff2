"""
Stands between the watches and the inbox, and lets a pod in when it is known what its images consist of.

                     +------- all images known, or nothing can be found out -------+
                     |                                                             v
    watched --> at the door --unknown--> held --answered, or the deadline has passed--> inbox
                     |                     |
                     +--- not open yet ----+--- bound, gated, deleted: not held any longer

Only a pod that waits for us to place it is ever held, never longer than the deadline, and never twice for the same
images. While it is held, its newest version replaces the one before. What is found out later helps the next pods. Before
everything was seen, and while another instance leads, nothing is decided here: then pods whose images are not known
wait until that changes, nobody is asked meanwhile, and their time begins when it does.

Everything else passes at once and in order. Beyond `MOST_HELD` pods nobody is held.
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
"""Pods that wait inside, and which images they were let in with."""
BETWEEN_LOOKS: Final = 0.02

Images = tuple[str, ...]


class GatedPod(msgspec.Struct, eq=False):
    """A pod at the door."""

    pod: Pod
    since: float
    due: float | None = None
    """None: nobody was asked yet."""
    questions: set[ImageQuery] = msgspec.field(default_factory=set)


class GateMetrics(Protocol):
    """Whoever wants to know how long pods are held."""

    def held(self, seconds: float) -> None:
        """A pod was held for so long."""


class ImageGate:
    """Lets events in, some pods a little later."""

    def __init__(
        self,
        inside: EventSink,
        resolving: PodImageResolver,
        *,
        ours: Callable[[Pod], bool],
        deadline: float = DEADLINE,
        watch: GateMetrics | None = None,
    ) -> None:
        """Let events in to *inside*; *ours* says which pods are placed here. A *deadline* of 0 holds nobody."""
        self._inside = inside
        self._resolving = resolving
        self._ours = ours
        self._deadline = deadline
        self._watch = watch
        self._held: dict[PodUid, GatedPod] = {}
        self._due: deque[tuple[float, GatedPod]] = deque()
        """In the order in which their time is up: all have the same."""
        self._waiting: dict[ImageQuery, dict[PodUid, None]] = {}
        self._let_in: OrderedDict[PodUid, Images] = OrderedDict()
        self._opened = False
        self._unsorted = asyncio.Event()
        self.may_open: Callable[[], bool] = lambda: True
        """Whether everything was seen, and what was seen is known inside."""
        self.may_ask: Callable[[], bool] = lambda: True
        """Whether it is for this instance to decide, and so to ask."""
        self._handlers: dict[type, Callable[..., None]] = {
            PodSeen: self._pod_seen,
            PodGone: self._pod_gone,
            NodeSeen: lambda event: resolving.nodes.node(event.node),
            NodeGone: lambda event: resolving.nodes.gone(event.name),
            LayersReported: lambda event: resolving.nodes.reported(event.report),
            LayersWithdrawn: lambda event: resolving.nodes.withdrawn(event.node),
            NamespaceSeen: lambda event: resolving.namespace(event.name, event.annotations, event.labels),
            NamespaceGone: lambda event: resolving.namespace(event.name, {}, {}),
        }
        resolving.tell(self._answered, inside.put)

    def __len__(self) -> int:
        """Count the pods that are held."""
        return len(self._held)

    def held(self) -> Iterable[PodUid]:
        """Name the pods that are held."""
        return self._held.keys()

    @property
    def opened(self) -> bool:
        """Whether those who came before everything was seen have been looked at."""
        return self._opened

    # -- what was seen -----------------------------------------------------------------------------------------------

    def put(self, event: Event) -> None:
        """Take an event, and let it in at once or later."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)
        if type(event) is not PodSeen:
            self._inside.put(event)

    def ring(self) -> None:
        """Wake whoever waits inside."""
        self._inside.ring()

    def _pod_gone(self, event: PodGone) -> None:
        self._held.pop(event.uid, None)
        self._let_in.pop(event.uid, None)

    def _pod_seen(self, event: PodSeen) -> None:
        pod = event.pod
        if pod.node_name or pod.finished or pod.deleting:
            self._held.pop(pod.uid, None)
            self._let_in.pop(pod.uid, None)
            self._inside.put(event)
        elif pod.gates or pod.unmet or not self._ours(pod):
            self._held.pop(pod.uid, None)
            self._inside.put(event)
        elif (held := self._held.get(pod.uid)) is not None:
            self._replace(held, pod)
        elif self._let_in.get(pod.uid) == pod.images:
            self._inside.put(event)
        else:
            self._arrive(pod, event)

    def _arrive(self, pod: Pod, event: PodSeen) -> None:
        if self._opened and self.may_ask():
            questions = self._resolving.questions(pod)
            if not questions or self._deadline <= 0 or len(self._held) >= MOST_HELD:
                self._resolving.ask(pod, questions)
                self._remember(pod)
                self._inside.put(event)
            else:
                self._hold(GatedPod(pod, _now()), questions)
        elif len(self._held) >= MOST_HELD or self._deadline <= 0 or (self._opened and self._resolving.knows(pod)):
            self._remember(pod)
            self._inside.put(event)
        else:
            self._held[pod.uid] = GatedPod(pod, _now())
            self._unsorted.set()

    def _replace(self, held: GatedPod, pod: Pod) -> None:
        other = pod.images != held.pod.images
        held.pod = pod
        if other and held.due is not None:
            # Its time goes on: who changes a pod every second must not keep it out for ever.
            held.questions.clear()
            self._ask(held, self._resolving.questions(pod))

    # -- holding and letting in ----------------------------------------------------------------------------------------

    def _hold(self, held: GatedPod, questions: Iterable[ImageQuery]) -> None:
        """Ask, and hold a pod until there are answers."""
        self._held[held.pod.uid] = held
        held.due = _now() + self._deadline
        if not self._due:
            asyncio.get_running_loop().call_at(held.due, self._time_is_up)
        self._due.append((held.due, held))
        self._ask(held, questions)

    def _ask(self, held: GatedPod, questions: Iterable[ImageQuery]) -> None:
        # All are noted before the first is asked, for it may be answered on the spot.
        asked = list(questions)
        held.questions.update(asked)
        for question in asked:
            self._waiting.setdefault(question, {})[held.pod.uid] = None
        if asked:
            self._resolving.ask(held.pod, asked)
        else:
            self._release(held)

    def _answered(self, question: ImageQuery) -> None:
        for uid in self._waiting.pop(question, ()):
            held = self._held.get(uid)
            if held is not None and question in held.questions:
                held.questions.discard(question)
                if not held.questions:
                    self._release(held)

    def _time_is_up(self) -> None:
        now = _now()
        while self._due and self._due[0][0] <= now:
            _, held = self._due.popleft()
            if self._held.get(held.pod.uid) is held:
                self._release(held)
        if self._due:
            asyncio.get_running_loop().call_at(self._due[0][0], self._time_is_up)

    def _release(self, held: GatedPod) -> None:
        del self._held[held.pod.uid]
        held.questions.clear()
        self._remember(held.pod)
        if self._watch is not None and held.due is not None:
            self._watch.held(_now() - held.since)
        self._inside.put(PodSeen(held.pod))

    def _remember(self, pod: Pod) -> None:
        self._let_in[pod.uid] = pod.images
        if len(self._let_in) > MOST_REMEMBERED:
            self._let_in.popitem(last=False)

    # -- opening -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Open when everything was seen, and again whenever it becomes ours to ask; until cancelled."""
        while not self.may_open():
            await asyncio.sleep(BETWEEN_LOOKS)
        self._opened = True
        for held in [one for one in self._held.values() if one.due is None and self._resolving.knows(one.pod)]:
            self._release(held)
        while True:
            if self._unsorted.is_set() and self.may_ask():
                self._unsorted.clear()
                self._sort()
            elif self._unsorted.is_set():
                await asyncio.sleep(BETWEEN_LOOKS)
            else:
                await self._unsorted.wait()

    def _sort(self) -> None:
        """Look at the pods that came while nobody could be asked, in the order they came."""
        for held in [one for one in self._held.values() if one.due is None]:
            held.since = _now()
            self._hold(held, self._resolving.questions(held.pod))


def _now() -> float:
    return asyncio.get_running_loop().time()
