"""
Detector of pods that kube-scheduler placed without the extender's answer.

kube-scheduler hides failures of an ignorable extender: a timeout, a refused connection or an unreadable answer is
logged only at a high verbosity, and the pod is placed without the extender. The detector finds such pods: a pod waited,
its scheduler uses this extender, and it was bound without a request about it.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from lamina.model.pod import Pod, PodUid

MOST: Final = 50_000
"""Most waiting pods, and most answered pods, that are remembered."""
LASTS: Final = 600.0
"""
Seconds that an answer is valid. A binding can take that long while it waits for volumes. A pod that waits longer was
retried, and the retry sends a new request.
"""
MOST_SCHEDULERS: Final = 64
LONGEST: Final = 253
"""Longest pod uid and scheduler name that the API server accepts; longer ones are not remembered."""


class BypassMetrics(Protocol):
    """Receives how each pod was bound; the metrics implement it."""

    def bound(self, *, answered: bool) -> None:
        """Record that a pod of a scheduler that uses this extender was bound, with or without an answer."""


class BypassDetector:
    """Remembers waiting pods and answered pods."""

    def __init__(
        self, watch: BypassMetrics, schedulers: Iterable[str] = (), now: Callable[[], float] = time.monotonic
    ) -> None:
        """Report to *watch*. *schedulers* use this extender; a scheduler that sends a request is added."""
        self._watch = watch
        self._now = now
        self._schedulers: dict[str, None] = dict.fromkeys(schedulers)
        self._waiting: OrderedDict[PodUid, float] = OrderedDict()
        self._answered: OrderedDict[PodUid, float] = OrderedDict()

    def expects(self, pod: Pod) -> bool:
        """Return whether this pod's scheduler uses this extender."""
        return pod.scheduler_name in self._schedulers

    def answered(self, pod: Pod) -> None:
        """Record that a request about a pod was answered."""
        known = pod.scheduler_name in self._schedulers or len(pod.scheduler_name) > LONGEST
        if not known and len(self._schedulers) < MOST_SCHEDULERS:
            self._schedulers[pod.scheduler_name] = None
        _remember(self._answered, pod.uid, self._now())

    def unanswered(self, uid: PodUid) -> None:
        """Record that the client disconnected before it got the answer."""
        self._answered.pop(uid, None)

    def seen(self, pod: Pod) -> None:
        """Record a pod that appeared or changed."""
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
        """Forget a deleted pod."""
        self._waiting.pop(uid, None)
        self._answered.pop(uid, None)


def _remember(among: OrderedDict[PodUid, float], uid: PodUid, at: float) -> None:
    if len(uid) > LONGEST:
        return
    among[uid] = at
    among.move_to_end(uid)
    if len(among) > MOST:
        among.popitem(last=False)
