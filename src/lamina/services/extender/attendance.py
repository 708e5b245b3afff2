"""
Which pods were placed with our answer, and which without.

kube-scheduler swallows what goes wrong with an extender: a time-out, a refused connection or an answer it cannot read
cost a line at a verbosity nobody runs with, and the pod is placed as if there were no extender. From here it can be seen: a
pod of a scheduler that asks us waited, was bound, and nobody had asked about it.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final, Protocol

from lamina.model.pod import Pod, PodUid

MOST: Final = 50_000
"""Pods that are remembered, of those that wait and of those that were asked about."""
MOST_SCHEDULERS: Final = 64
LONGEST: Final = 253
"""No API server gives a pod a longer uid, or takes a longer name of a scheduler; who says otherwise is not remembered."""


class BoundWatch(Protocol):
    """Whoever wants to know how pods were bound."""

    def bound(self, *, answered: bool) -> None:
        """A pod of a scheduler that asks us was bound, with our answer or without."""


class Attendance:
    """Remembers who waits and who was asked about."""

    def __init__(self, watch: BoundWatch, schedulers: Iterable[str] = ()) -> None:
        """Tell *watch*; *schedulers* ask us, and so does every other one that once has."""
        self._watch = watch
        self._schedulers: dict[str, None] = dict.fromkeys(schedulers)
        self._waiting: OrderedDict[PodUid, None] = OrderedDict()
        self._answered: OrderedDict[PodUid, None] = OrderedDict()

    def answered(self, pod: Pod) -> None:
        """Somebody asked about a pod and has our answer."""
        known = pod.scheduler_name in self._schedulers or len(pod.scheduler_name) > LONGEST
        if not known and len(self._schedulers) < MOST_SCHEDULERS:
            self._schedulers[pod.scheduler_name] = None
        _remember(self._answered, pod.uid)

    def unanswered(self, uid: PodUid) -> None:
        """Whoever asked was gone before the answer was."""
        self._answered.pop(uid, None)

    def seen(self, pod: Pod) -> None:
        """A pod appeared or changed."""
        if not pod.node_name:
            if not pod.finished and not pod.deleting and not pod.gates:
                _remember(self._waiting, pod.uid)
            return
        if pod.uid not in self._waiting:
            return
        del self._waiting[pod.uid]
        answered = pod.uid in self._answered
        self._answered.pop(pod.uid, None)
        if pod.scheduler_name in self._schedulers:
            self._watch.bound(answered=answered)

    def gone(self, uid: PodUid) -> None:
        """A pod was deleted."""
        self._waiting.pop(uid, None)
        self._answered.pop(uid, None)


def _remember(among: OrderedDict[PodUid, None], uid: PodUid) -> None:
    if len(uid) > LONGEST:
        return
    among[uid] = None
    among.move_to_end(uid)
    if len(among) > MOST:
        among.popitem(last=False)
