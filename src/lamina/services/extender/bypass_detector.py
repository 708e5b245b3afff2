"""
Which pods were placed with our answer, and which without.

kube-scheduler swallows what goes wrong with an extender: a time-out, a refused connection or an answer it cannot read
cost a line at a verbosity nobody runs with, and the pod is placed as if there were no extender. From here it can be seen: a
pod of a scheduler that asks us waited, was bound, and nobody had asked about it.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from lamina.model.pod import Pod, PodUid

MOST: Final = 50_000
"""Pods that are remembered, of those that wait and of those that were asked about."""
LASTS: Final = 600.0
"""Seconds that an answer is good for. A binding may take that long, waiting for volumes; a pod that waits for longer was
tried again, and whoever bound it then has asked again or has not."""
MOST_SCHEDULERS: Final = 64
LONGEST: Final = 253
"""No API server gives a pod a longer uid, or takes a longer name of a scheduler; who says otherwise is not remembered."""


class BypassMetrics(Protocol):
    """Whoever wants to know how pods were bound."""

    def bound(self, *, answered: bool) -> None:
        """A pod of a scheduler that asks us was bound, with our answer or without."""


class BypassDetector:
    """Remembers who waits and who was asked about."""

    def __init__(
        self, watch: BypassMetrics, schedulers: Iterable[str] = (), now: Callable[[], float] = time.monotonic
    ) -> None:
        """Tell *watch*; *schedulers* ask us, and so does every other one that once has."""
        self._watch = watch
        self._now = now
        self._schedulers: dict[str, None] = dict.fromkeys(schedulers)
        self._waiting: OrderedDict[PodUid, float] = OrderedDict()
        self._answered: OrderedDict[PodUid, float] = OrderedDict()

    def expects(self, pod: Pod) -> bool:
        """Say whether this pod's scheduler is one that asks us."""
        return pod.scheduler_name in self._schedulers

    def answered(self, pod: Pod) -> None:
        """Somebody asked about a pod and has our answer."""
        known = pod.scheduler_name in self._schedulers or len(pod.scheduler_name) > LONGEST
        if not known and len(self._schedulers) < MOST_SCHEDULERS:
            self._schedulers[pod.scheduler_name] = None
        _remember(self._answered, pod.uid, self._now())

    def unanswered(self, uid: PodUid) -> None:
        """Whoever asked was gone before the answer was."""
        self._answered.pop(uid, None)

    def seen(self, pod: Pod) -> None:
        """A pod appeared or changed."""
        if not pod.node_name:
            if not pod.finished and not pod.deleting and not pod.gates:
                _remember(self._waiting, pod.uid, 0.0)
            return
        if pod.uid not in self._waiting:
            return
        del self._waiting[pod.uid]
        at = self._answered.pop(pod.uid, None)
        if self.expects(pod):
            self._watch.bound(answered=at is not None and self._now() - at <= LASTS)

    def gone(self, uid: PodUid) -> None:
        """A pod was deleted."""
        self._waiting.pop(uid, None)
        self._answered.pop(uid, None)


def _remember(among: OrderedDict[PodUid, float], uid: PodUid, at: float) -> None:
    if len(uid) > LONGEST:
        return
    among[uid] = at
    among.move_to_end(uid)
    if len(among) > MOST:
        among.popitem(last=False)
