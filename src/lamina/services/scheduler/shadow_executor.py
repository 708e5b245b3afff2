"""
Shadow executor for `--observe`: decides on pods and compares with the real scheduler, but binds nothing.

Every pod is decided, whatever scheduler it names. It is assumed on the chosen node until the real scheduler has placed
it. Then both choices are scored with the data available at decision time. A pod that stays unplaced expires after a
while, so that it does not reserve resources forever.
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
"""Most decisions that wait to be compared: 16 bytes for each node and decision."""
LET_GO_AFTER: Final = 300.0
MOST_SCHEDULERS: Final = 64
"""Most scheduler names that are counted separately: pods may name any."""
OTHER_SCHEDULERS: Final = "(other schedulers)"
"""The name for all others; no pod can name it."""

log = logging.getLogger(__name__)

Float32 = NDArray[np.float32]


class ShadowDecision(msgspec.Struct, eq=False):
    """A decision that was not carried out."""

    pod: Pod
    decision: Decision
    at: float
    seconds: Float32 | None
    """By row: seconds until the images would be ready. None if unknown."""
    download: Float32 | None
    nodes: list[Node | None]
    """The nodes of the rows."""

    def row(self, name: str, rows: Mapping[str, int]) -> int:
        """Return the row of a node, if it had the same row at decision time; else -1."""
        row = rows.get(name, -1)
        node = self.nodes[row] if 0 <= row < len(self.nodes) else None
        return row if node is not None and node.name == name else -1


class ShadowComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that the real scheduler has placed, and the node that Lamina chose."""

    pod: str
    ours: str
    theirs: str
    seconds: float | None = None
    """Seconds by which the images would have been ready sooner; negative: later. None if unknown."""
    bytes: int | None = None


class ShadowTotals(msgspec.Struct):
    """Totals of all comparisons."""

    compared: int = 0
    same: int = 0
    sooner: int = 0
    later: int = 0
    equal: int = 0
    """Another node, with images ready at the same time."""
    unknown: int = 0
    """Placed, but the images of one of the two nodes are unknown."""
    refused: int = 0
    """Attempts in which Lamina found no node."""
    let_go: int = 0
    seconds: float = 0.0
    bytes: int = 0


class ShadowExecutor:
    """Replaces the executor, and writes nothing to the API server."""

    def __init__(self, loop: Loop, answer: Callable[[Event], None], clock: SteadyClock) -> None:
        """Answer *loop* as if each command had succeeded, and compare with its state."""
        self._loop = loop
        self._answer = answer
        self._clock = clock
        self._shadows: OrderedDict[PodUid, ShadowDecision] = OrderedDict()
        self.totals = ShadowTotals()
        self.last: OrderedDict[str, ShadowComparison] = OrderedDict()
        """The newest comparisons, by pod."""
        self.schedulers: Tally[str] = Tally()
        """Unplaced pods by the scheduler they name; at most `MOST_SCHEDULERS` names, and one for all others."""

    # -- events ------------------------------------------------------------------------------------------------------

    def seen(self, pod: Pod) -> Event:
        """Accept a pod as one of ours, and compare if it is placed."""
        if pod.node_name:
            self._compare(pod)
            return PodSeen(pod)
        if pod.finished:
            # It ended without a node, and will not get one.
            self._shadows.pop(pod.uid, None)
            return PodSeen(pod)
        self._count(pod)
        if pod.scheduler_name not in self._loop.profiles:
            first = next(iter(self._loop.profiles))
            pod = msgspec.structs.replace(pod, scheduler_name=first)
        return PodSeen(pod)

    def _count(self, pod: Pod) -> None:
        name = pod.scheduler_name
        if name not in self.schedulers and len(self.schedulers) >= MOST_SCHEDULERS:
            name = OTHER_SCHEDULERS
        self.schedulers[name] += pod.uid not in self._shadows

    def gone(self, pod: Pod) -> Event:
        """Forget a deleted pod."""
        self._shadows.pop(pod.uid, None)
        return PodGone(pod.uid)

    # -- commands ----------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        """Return False, as nothing is in flight. Called before every attempt, so decisions expire here."""
        self._let_go()
        return False

    def perform(self, command: Command) -> None:
        """Answer a command as if it had succeeded."""
        if isinstance(command, Bind) and command.decision is not None:
            self._remember(command.pod, command.decision)
            self._answer(BindDone(command.pod.uid))
        elif isinstance(command, ReportUnschedulable):
            self.totals.refused += 1
        elif isinstance(command, DoWork):
            self._answer(WorkDone(command.pod.uid, command.plugin, command.attempt))

    def _remember(self, pod: Pod, decision: Decision) -> None:
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
        self.totals.let_go += 1
        self._answer(PodGone(shadow.pod.uid))

    # -- comparison --------------------------------------------------------------------------------------------------

    def _compare(self, pod: Pod) -> None:
        shadow = self._shadows.pop(pod.uid, None)
        if shadow is None:
            return
        assert shadow.decision.chosen is not None, "only placed pods leave a shadow"
        ours, rows, totals = shadow.decision.chosen.node, self._loop.cluster.columns.rows, self.totals
        totals.compared += 1
        seconds, saved = _difference(shadow, *(shadow.row(name, rows) for name in (ours, pod.node_name)))
        if ours == pod.node_name:
            totals.same += 1
        elif seconds is None or saved is None:
            totals.unknown += 1
        else:
            totals.sooner += seconds > 0
            totals.later += seconds < 0
            totals.equal += seconds == 0
            totals.seconds += seconds
            totals.bytes += saved
        observed = ShadowComparison(pod=pod.key, ours=ours, theirs=pod.node_name, seconds=seconds, bytes=saved)
        self.last[pod.key] = observed
        if len(self.last) > MOST_SHADOWS:
            self.last.popitem(last=False)
        log.info(_said(observed), extra={"fields": msgspec.structs.asdict(observed)})

    def summary(self) -> str:
        """Return one line with the totals."""
        told = self.totals
        if not told.compared:
            return "observed no pod placed by another scheduler"
        return (
            f"observed {plural(told.compared, 'pod')} placed by others: the same node for {told.same}, images ready sooner for "
            f"{told.sooner}, later for {told.later}, at the same time elsewhere for {told.equal}, unknown for "
            f"{told.unknown}; "
            f"{told.seconds:,.1f} s of waiting and {human_bytes(told.bytes)} of downloads would have been saved"
        )


def costs(inventory: Inventory, pod: Pod) -> tuple[Float32 | None, Float32 | None]:
    """Return, by row, the seconds until a pod's images are ready and the bytes to download, as last computed."""
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
        return f"{text}; its readiness estimate there is unknown"
    word = "sooner" if observed.seconds >= 0 else "later"
    less = "less" if observed.bytes >= 0 else "more"
    amount = human_bytes(abs(observed.bytes))
    return f"{text}, its images ready {abs(observed.seconds):,.1f} s {word} and {amount} {less} to download"
