"""
`--observe`: decide what would have been done, write it down, and bind nothing.

Every pod is looked at, whatever scheduler it names. It counts where it would have gone until the real scheduler has
placed it; then both places are compared by what was believed when the choice was made. A pod nobody places is let go
after a while, so that it does not keep room for ever in a cluster where it has none.
"""

import logging
from collections import Counter as Tally
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from lamina.layers.inventory import Inventory
from lamina.model.decision import Decision
from lamina.model.events import BindDone, Event, PodGone, PodSeen, WorkDone
from lamina.model.node import Node
from lamina.model.plain import plural
from lamina.model.pod import Pod, PodUid
from lamina.model.quantity import human_bytes
from lamina.scheduling.contract.commands import Bind, Command, DoWork, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.services.informers.clock import SteadyClock

MOST_SHADOWS: Final = 1024
"""Choices that wait to be compared: 16 bytes for each node and choice."""
LET_GO_AFTER: Final = 300.0
MOST_SCHEDULERS: Final = 64
"""Names of schedulers that are counted apart: pods may name any."""
OTHER_SCHEDULERS: Final = "(other schedulers)"
"""What the rest is counted under; no pod can name it."""

log = logging.getLogger(__name__)

Float32 = NDArray[np.float32]


class ShadowDecision(msgspec.Struct, eq=False):
    """A choice that was made and not carried out."""

    pod: Pod
    decision: Decision
    at: float
    seconds: Float32 | None
    """By row: how long the images would have taken. None when nobody knows."""
    download: Float32 | None
    nodes: list[Node | None]
    """Whose rows they were."""

    def row(self, name: str, rows: Mapping[str, int]) -> int:
        """Return the row of a node, if it was that node's when the choice was made; else -1."""
        row = rows.get(name, -1)
        node = self.nodes[row] if 0 <= row < len(self.nodes) else None
        return row if node is not None and node.name == name else -1


class ShadowComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A pod the real scheduler has placed, and where Lamina would have."""

    pod: str
    ours: str
    theirs: str
    seconds: float | None = None
    """How much sooner the images would have been ready; None when nobody knows. Negative: later."""
    bytes: int | None = None


class ShadowTotals(msgspec.Struct):
    """What came of it so far."""

    compared: int = 0
    same: int = 0
    sooner: int = 0
    later: int = 0
    equal: int = 0
    """Another node, on which the images would be ready in the same time."""
    unknown: int = 0
    """Placed, and nothing is known about the images on one of the two nodes."""
    refused: int = 0
    """Attempts after which Lamina would have let the pod wait."""
    let_go: int = 0
    seconds: float = 0.0
    bytes: int = 0


class ShadowExecutor:
    """Stands where the executor stands, and writes nothing to the API server."""

    def __init__(self, answer: Callable[[Event], None], clock: SteadyClock) -> None:
        """Answer the loop as if everything had been done."""
        self._answer = answer
        self._clock = clock
        self._loop: Loop | None = None
        self._shadows: OrderedDict[PodUid, ShadowDecision] = OrderedDict()
        self.tallies = ShadowTotals()
        self.last: OrderedDict[str, ShadowComparison] = OrderedDict()
        """The newest comparisons, by pod."""
        self.schedulers: Tally[str] = Tally()
        """Pods seen unplaced, by the scheduler they name; at most `MOST_SCHEDULERS` names and the rest together."""

    def connect(self, loop: Loop) -> None:
        """Look at what this loop believes."""
        self._loop = loop

    # -- what was seen -----------------------------------------------------------------------------------------------

    def seen(self, pod: Pod) -> Event:
        """Take a pod as one of ours, and compare if it has been placed."""
        if pod.node_name:
            self._compare(pod)
            return PodSeen(pod)
        if pod.finished:
            # It ended without a node, and will not get one.
            self._shadows.pop(pod.uid, None)
            return PodSeen(pod)
        self._count(pod)
        if self._loop is not None and pod.scheduler_name not in self._loop.profiles:
            first = next(iter(self._loop.profiles))
            pod = msgspec.structs.replace(pod, scheduler_name=first)
        return PodSeen(pod)

    def _count(self, pod: Pod) -> None:
        name = pod.scheduler_name
        if name not in self.schedulers and len(self.schedulers) >= MOST_SCHEDULERS:
            name = OTHER_SCHEDULERS
        self.schedulers[name] += pod.uid not in self._shadows

    def gone(self, pod: Pod) -> Event:
        """A pod was deleted, placed or not."""
        self._shadows.pop(pod.uid, None)
        return PodGone(pod.uid)

    # -- what the loop wants -----------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Nothing is on its way. Asked before every attempt, so this is also where choices grow old."""
        self._let_go()
        return False

    def perform(self, command: Command) -> None:
        """Pretend."""
        if isinstance(command, Bind) and command.decision is not None:
            self._remember(command.pod, command.decision)
            self._answer(BindDone(command.pod.uid))
        elif isinstance(command, ReportUnschedulable):
            self.tallies.refused += 1
        elif isinstance(command, DoWork):
            self._answer(WorkDone(command.pod.uid, command.plugin, command.attempt))

    def _remember(self, pod: Pod, decision: Decision) -> None:
        assert self._loop is not None, "connected before anything happens"
        seconds, download = costs(self._loop.cluster.inventory, pod)
        nodes = self._loop.cluster.columns.nodes.copy()
        self._shadows[pod.uid] = ShadowDecision(pod, decision, self._clock.now(), seconds, download, nodes)
        while len(self._shadows) > MOST_SHADOWS:
            self._drop(self._shadows.popitem(last=False)[1])

    def _let_go(self) -> None:
        before = self._clock.now() - LET_GO_AFTER
        while self._shadows and (oldest := next(iter(self._shadows.values()))).at < before:
            self._drop(self._shadows.pop(oldest.pod.uid))

    def _drop(self, shadow: ShadowDecision) -> None:
        self.tallies.let_go += 1
        self._answer(PodGone(shadow.pod.uid))

    # -- comparing ---------------------------------------------------------------------------------------------------

    def _compare(self, pod: Pod) -> None:
        shadow = self._shadows.pop(pod.uid, None)
        if shadow is None or self._loop is None:
            return
        assert shadow.decision.chosen is not None, "only placed pods leave a shadow"
        ours, rows, tallies = shadow.decision.chosen.node, self._loop.cluster.columns.rows, self.tallies
        tallies.compared += 1
        seconds, saved = _difference(shadow, *(shadow.row(name, rows) for name in (ours, pod.node_name)))
        if ours == pod.node_name:
            tallies.same += 1
        elif seconds is None or saved is None:
            tallies.unknown += 1
        else:
            tallies.sooner += seconds > 0
            tallies.later += seconds < 0
            tallies.equal += seconds == 0
            tallies.seconds += seconds
            tallies.bytes += saved
        observed = ShadowComparison(pod=pod.key, ours=ours, theirs=pod.node_name, seconds=seconds, bytes=saved)
        self.last[pod.key] = observed
        if len(self.last) > MOST_SHADOWS:
            self.last.popitem(last=False)
        log.info(_said(observed), extra={"fields": msgspec.structs.asdict(observed)})

    def summary(self) -> str:
        """Say in a line what would have been gained so far."""
        told = self.tallies
        if not told.compared:
            return "observed no pod that another scheduler placed"
        return (
            f"observed {plural(told.compared, 'pod')} placed by others: the same node for {told.same}, images ready sooner for "
            f"{told.sooner}, later for {told.later}, at the same time elsewhere for {told.equal}, not known for "
            f"{told.unknown}; "
            f"{told.seconds:,.1f} s of waiting and {human_bytes(told.bytes)} of downloads would have been saved"
        )


def costs(inventory: Inventory, pod: Pod) -> tuple[Float32 | None, Float32 | None]:
    """Return, by row, the seconds until a pod's images are ready and the bytes to download, as last looked at."""
    ready = inventory.readiness_cache.readiness(pod.images)
    wanted = inventory.readiness_cache.first_known(pod.images)
    if ready is None or wanted is None:
        return None, None
    seconds = np.asarray(ready.seconds, dtype=np.float32).copy()
    return seconds, np.asarray(ready.download * wanted.blobs.total, dtype=np.float32)


def _difference(shadow: ShadowDecision, ours: int, theirs: int) -> tuple[float | None, int | None]:
    seconds, download = shadow.seconds, shadow.download
    if seconds is None or download is None or not (0 <= ours < len(seconds) and 0 <= theirs < len(seconds)):
        return None, None
    saved = float(seconds[theirs]) - float(seconds[ours])
    return (None, None) if np.isnan(saved) else (round(saved, 3), round(float(download[theirs] - download[ours])))


def _said(observed: ShadowComparison) -> str:
    if observed.ours == observed.theirs:
        return f"{observed.pod} went to {observed.theirs}, where Lamina would have put it"
    text = f"{observed.pod} went to {observed.theirs}; Lamina would have put it on {observed.ours}"
    if observed.seconds is None or observed.bytes is None:
        return f"{text}; what its images take there is not known"
    word = "sooner" if observed.seconds >= 0 else "later"
    less = "less" if observed.bytes >= 0 else "more"
    amount = human_bytes(abs(observed.bytes))
    return f"{text}, its images ready {abs(observed.seconds):,.1f} s {word} and {amount} {less} to download"
