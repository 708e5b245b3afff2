"""
Sessions of a period-driven scheduler (kube-batch, Volcano), read from its log at verbosity 3.

    Open Session 6f0… with <3> Job and <1> Queues       the snapshot is taken
    Binding Task <default/a> to node <n1>               a placement, of which a gang may come to nothing
    Close Session 6f0…

A task that is bound leaves the pending tasks, so that the next session does not place it again. A task of a gang that
is not complete stays pending, and the next session places it again. So a pod that a whole session left out after its
placement is on its way to the API server.
"""

import re
from typing import Final

import msgspec

from lamina.apiserver.settling.pending_pods import BARRIER, PendingPods, PodKey


class SessionLines(msgspec.Struct, frozen=True, kw_only=True):
    """Regular expressions for the lines of a period-driven scheduler."""

    opens: str = r"Open Session "
    closes: str = r"Close Session "
    places: str = r"Binding Task <([^>]+)>"
    """Its first group is ``namespace/name`` of the pod."""


DEFAULT_LINES: Final = SessionLines()


class SessionLog:
    """Counts the sessions of one scheduler."""

    def __init__(self, pods: PendingPods, lines: SessionLines = DEFAULT_LINES) -> None:
        """Follow the pods of *pods*."""
        self._pods = pods
        self._opens: Final = re.compile(lines.opens)
        self._closes: Final = re.compile(lines.closes)
        self._places: Final = re.compile(lines.places)
        self.opened = 0
        """Number of sessions that have begun."""
        self.closed = 0
        """Number of sessions that have ended."""
        self.barriers = 0
        """Number of lines about the barrier pod."""
        self._placed: dict[PodKey, int] = {}
        """Session in which each pod was placed last."""

    def read(self, line: str) -> None:
        """Read one line."""
        if self._opens.search(line):
            self.opened += 1
        elif self._closes.search(line):
            self.closed = self.opened
        elif BARRIER.name in line:
            self.barriers += 1
        else:
            found = self._places.search(line)
            if found is not None and found[1] in self._pods.pending:
                self._placed[found[1]] = self.opened

    def on_their_way(self) -> int:
        """Return the number of pods whose binding was decided, and has not reached the API server."""
        for pod in [one for one in self._placed if one not in self._pods.pending]:
            del self._placed[pod]
        return sum(session < self.closed for session in self._placed.values())
