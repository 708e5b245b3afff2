"""
State of each pending pod in kube-scheduler, read from its log (1.30 to 1.37).

    pending --moved to Active or Backoff--> queued --Attempting--> open --+--Successfully bound--> gone
       ^                                                                  |
       +--moved to Unschedulable, and condition updated, or recreated-----+--target node determined--> preempting
       |                                                                                                   |
       +<--------------------Async Preemption finished-----------------------------------------------------+

An attempt is over only with the line about the pod's condition, which follows the line about its queue. Lines of two
attempts of one pod may be mixed, because a failed binding is handled beside the next attempt; so attempts are counted.
The end of a preemption may be logged before the end of its attempt. Lines about pods that do not wait are ignored.

A preemption whose victims are all being deleted already starts nothing, and no line says so. Such a preemption is
*doubtful*: another source must tell whether it runs.
"""

import re
from typing import Final

from lamina.apiserver.settling.pending_pods import PendingPods, PodKey

FLAGS: Final = ("--vmodule=schedule_one*=5,*queue*=5,eventhandlers=4,executor=2,preemption=2", "--logging-format=text")
"""Flags of kube-scheduler that make it log these lines."""

_POD: Final = re.compile(r' pod="([^"]+)"')
_ENTITY: Final = re.compile(r' (?:entity|pod)="([^"]+)"')
_QUEUE: Final = re.compile(r' queue="([^"]+)"')
_PREEMPTOR: Final = re.compile(r' preemptor="([^"]+)"')
_NODE: Final = re.compile(r' node="([^"]+)"')
_VICTIMS: Final = re.compile(r"preempting (\d+) victims")
WAITING_QUEUES: Final = frozenset({"Active", "Backoff"})


class SchedulerLog:
    """Follows the log of one kube-scheduler."""

    def __init__(self, pods: PendingPods, *, async_preemption: bool = True) -> None:
        """Follow the pods of *pods*; without *async_preemption* victims are deleted within the attempt."""
        self._pods = pods
        self.busy: set[PodKey] = set(pods.pending)
        """Pending pods that are not at rest."""
        self._unseen: set[PodKey] = set(pods.pending)
        """Pending pods of which no line has told a queue."""
        self._queued: set[PodKey] = set()
        """Pending pods whose last queue was Active or Backoff."""
        self._open: dict[PodKey, int] = {}
        """Number of attempts of each pod, pending or not, that have begun and not ended."""
        self._preempting: dict[PodKey, int] = {}
        """Number of preemptions of each pod that have begun and not ended."""
        self._spared: dict[PodKey, int] = {}
        """Number of victims in the current preemption of a pod that are being deleted already."""
        self.doubtful: set[PodKey] = set()
        """Pods in `preempting` whose preemption may have started nothing."""
        self.barriers: dict[str, int] = {}
        """Number of lines about each barrier pod, and about each node that serves as one."""
        self.nodes_added = 0
        """Number of lines about new nodes."""
        self.lines = 0
        self.attempts = 0
        """Number of attempts to schedule a pod."""
        self.restarts = -1
        """Number of restarts of the scheduler."""
        pods.on_pending = self._appeared
        pods.on_gone = self._gone
        moved = self._moved
        self._handlers = {
            "Pod moved to an internal scheduling queue": moved,
            "Pod moved to an internal scheduling queue, because the pod is gated": moved,
            "Pod moved to an internal scheduling queue because the Pod is updated": moved,
            "Entity moved to an internal scheduling queue": moved,
            "Entity moved to an internal scheduling queue, because it is gated": moved,
            "Entity moved to an internal scheduling queue because the Pod is updated": moved,
            "Attempting to schedule pod": self._attempted,
            "Updating pod condition": self._refused,
            "Updating pod condition and nominated node name": self._refused,
            "Pod was recreated while handling scheduling failure. Skip requeueing and status updates.": self._ended,
            "Successfully bound pod to node": self._ended,
            "Async Preemption finished completely": self._preempted,
            "Victim Pod is already being deleted, skipping the API call for it": self._victim_spared,
            "Status after running PostFilter plugins for pod": self._victims_told,
            "Add event for unscheduled pod": self._pod_added,
            "Delete event for unscheduled pod": self._pod_seen,
            "Add event for scheduled pod": self._pod_seen,
            "Update event for scheduled pod": self._pod_seen,
            "Add event for node": self._node_added,
            "Update event for node": self._node_seen,
            "Starting Kubernetes Scheduler": self._restarted,
        }
        if async_preemption:
            self._handlers["the target node for the preemption is determined"] = self._preempts

    @property
    def preempting(self) -> int:
        """Number of pods whose victims are being deleted."""
        return len(self._preempting)

    @property
    def only_doubtful(self) -> bool:
        """Whether pods are busy, all of them with a doubtful preemption."""
        return bool(self.busy) and self.busy <= self.doubtful

    def read(self, line: str) -> None:
        """Read one line."""
        self.lines += 1
        begin = line.find('] "')
        if begin < 0:
            return
        handler = self._handlers.get(line[begin + 3 : line.find('"', begin + 3)])
        if handler is not None:
            handler(line)

    def end_doubtful(self) -> None:
        """End the doubtful preemptions: another source showed that none is running."""
        for pod in list(self.doubtful):
            self._end_preempting(pod, everything=True)

    def forget(self) -> None:
        """Forget all attempts and preemptions: another source showed that the scheduler has settled."""
        self._unseen.clear()
        self._queued.clear()
        self._open.clear()
        self._preempting.clear()
        self._spared.clear()
        self.doubtful.clear()
        self.busy.clear()

    # -- queues and attempts -------------------------------------------------------------------------------------------

    def _moved(self, line: str) -> None:
        pod, queue = _ENTITY.search(line), _QUEUE.search(line)
        if pod is None or queue is None or pod[1] not in self._pods.pending:
            return
        self._unseen.discard(pod[1])
        if queue[1] in WAITING_QUEUES:
            self._queued.add(pod[1])
        else:
            self._queued.discard(pod[1])
        self._show(pod[1])

    def _attempted(self, line: str) -> None:
        pod = _POD.search(line)
        if pod is not None:
            self.attempts += 1
            self._open[pod[1]] = self._open.get(pod[1], 0) + 1
            self._unseen.discard(pod[1])
            self._queued.discard(pod[1])
            self._spared.pop(pod[1], None)
            self._show(pod[1])

    def _refused(self, line: str) -> None:
        # Without a condition, the line is about a nomination in a binding cycle, which goes on.
        if " conditionType=" in line:
            self._ended(line)

    def _ended(self, line: str) -> None:
        pod = _POD.search(line)
        if pod is None:
            return
        left = self._open.get(pod[1], 0) - 1
        if left > 0:
            self._open[pod[1]] = left
        else:
            self._open.pop(pod[1], None)
        if pod[1] in self._preempting and self._spared.get(pod[1]):
            self.doubtful.add(pod[1])
        self._show(pod[1])

    # -- preemptions ---------------------------------------------------------------------------------------------------

    def _preempts(self, line: str) -> None:
        pod = _POD.search(line)
        if pod is not None and pod[1] in self._pods.pending:
            self._preempting[pod[1]] = self._preempting.get(pod[1], 0) + 1
            self._spared.pop(pod[1], None)
            self._show(pod[1])

    def _victim_spared(self, line: str) -> None:
        pod = _PREEMPTOR.search(line)
        if pod is not None and pod[1] in self._preempting:
            self._spared[pod[1]] = self._spared.get(pod[1], 0) + 1

    def _victims_told(self, line: str) -> None:
        pod, victims = _POD.search(line), _VICTIMS.search(line)
        if pod is not None and victims is not None and self._spared.get(pod[1]):
            spared = self._spared.pop(pod[1])
            if spared >= int(victims[1]):
                self._end_preempting(pod[1])

    def _preempted(self, line: str) -> None:
        pod = _PREEMPTOR.search(line)
        if pod is None or pod[1] not in self._preempting:
            return
        if ' result="error"' in line and pod[1] not in self._open and pod[1] in self._pods.pending:
            # The scheduler activates the pod after this line.
            self._queued.add(pod[1])
        self._end_preempting(pod[1])

    def _end_preempting(self, pod: PodKey, *, everything: bool = False) -> None:
        left = 0 if everything else self._preempting.get(pod, 0) - 1
        if left > 0:
            self._preempting[pod] = left
        else:
            self._preempting.pop(pod, None)
            self._spared.pop(pod, None)
            self.doubtful.discard(pod)
        self._show(pod)

    # -- events and barriers -------------------------------------------------------------------------------------------

    def _pod_added(self, line: str) -> None:
        pod = _POD.search(line)
        if pod is not None:
            if pod[1] in self.barriers:
                self.barriers[pod[1]] += 1
            elif pod[1] not in self._pods.pending:
                self._pods.adopt(pod[1])

    def _pod_seen(self, line: str) -> None:
        self._count(_POD, line)

    def _node_added(self, _: str) -> None:
        self.nodes_added += 1

    def _node_seen(self, line: str) -> None:
        self._count(_NODE, line)

    def _count(self, pattern: re.Pattern[str], line: str) -> None:
        found = pattern.search(line)
        if found is not None and found[1] in self.barriers:
            self.barriers[found[1]] += 1

    def _restarted(self, _: str) -> None:
        """Begin again: a new scheduler reads everything again."""
        self.restarts += 1
        self.forget()
        self.nodes_added = 0
        self._unseen.update(self._pods.pending)
        self.busy.update(self._pods.pending)

    # -- the store -----------------------------------------------------------------------------------------------------

    def _appeared(self, pod: PodKey) -> None:
        self._unseen.add(pod)
        self._show(pod)

    def _gone(self, pod: PodKey) -> None:
        # Open attempts stay: a pod of the same name may come before their end.
        self._unseen.discard(pod)
        self._queued.discard(pod)
        self._preempting.pop(pod, None)
        self._spared.pop(pod, None)
        self.doubtful.discard(pod)
        self.busy.discard(pod)

    def _show(self, pod: PodKey) -> None:
        """Mark a pod as busy or at rest."""
        if pod in self._pods.pending and (
            pod in self._queued or pod in self._open or pod in self._unseen or pod in self._preempting
        ):
            self.busy.add(pod)
        else:
            self.busy.discard(pod)
