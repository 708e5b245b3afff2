"""
The log of kube-scheduler during a recording: which objects it has read, what it scored, and when an attempt ended.

    Add / Delete event for node, scheduled pod      mirrors of what the scheduler knows
    Update event for node                           shows that earlier node events were handled
    Attempting to schedule pod                      counts attempts; only the first of a pod is recorded
    Plugin scored node for pod                      normalised and weighted score
    Successfully bound pod to node                  the attempt is over, and all score lines were read
    Async Preemption finished completely            all victims were deleted
"""

import re
from collections.abc import Callable
from typing import Final

FLAGS: Final = (
    "--vmodule=schedule_one*=10,eventhandlers=4,executor=2,preemption=2",
    "--logging-format=text",
)
_FIELD: Final = re.compile(r' (\w+)=(?:"([^"]*)"|(-?\d+))')


class RecordingLog:
    """Follows the log of one kube-scheduler."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Call *wake* after every line that changes something."""
        self._wake = wake
        self.nodes: set[str] = set()
        self.pods: set[str] = set()
        """Scheduled pods that the scheduler knows, as namespace/name."""
        self.waiting: set[str] = set()
        """Pods without a node that the scheduler knows."""
        self.touched: set[str] = set()
        """Nodes that were updated since the last `begin`."""
        self._pod = ""
        self.attempts = 0
        self.bound = False
        self.preempted = False
        self.scores: dict[str, dict[str, int]] = {}
        """Plugin → node → score of the first attempt of the current pod."""
        self._handlers: dict[str, Callable[[dict[str, str]], None]] = {
            "Add event for node": lambda found: self.nodes.add(found["node"]),
            "Delete event for node": lambda found: self.nodes.discard(found["node"]),
            "Update event for node": lambda found: self.touched.add(found["node"]),
            "Add event for scheduled pod": lambda found: self.pods.add(found["pod"]),
            "Delete event for scheduled pod": lambda found: self.pods.discard(found["pod"]),
            "Add event for unscheduled pod": lambda found: self.waiting.add(found["pod"]),
            "Delete event for unscheduled pod": lambda found: self.waiting.discard(found["pod"]),
            "Attempting to schedule pod": self._attempted,
            "Plugin scored node for pod": self._scored,
            "Successfully bound pod to node": self._placed,
            "Async Preemption finished completely": self._finished,
        }

    def begin(self, pod: str) -> None:
        """Record the attempt of *pod* from now on."""
        self._pod = pod
        self.attempts = 0
        self.bound = self.preempted = False
        self.scores = {}

    def read(self, line: str) -> None:
        """Read one line."""
        begin = line.find('] "')
        if begin < 0:
            return
        end = line.find('"', begin + 3)
        handler = self._handlers.get(line[begin + 3 : end])
        if handler is not None:
            handler({name: text or number for name, text, number in _FIELD.findall(line, end)})
            self._wake()

    def _attempted(self, found: dict[str, str]) -> None:
        self.attempts += found["pod"] == self._pod

    def _scored(self, found: dict[str, str]) -> None:
        if found["pod"] == self._pod and self.attempts == 1:
            self.scores.setdefault(found["plugin"], {})[found["node"]] = int(found["score"])

    def _placed(self, found: dict[str, str]) -> None:
        self.bound |= found["pod"] == self._pod

    def _finished(self, found: dict[str, str]) -> None:
        self.preempted |= found.get("preemptor") == self._pod
