"""
Recogniser of requests about pods and nodes that the extender knows already.

The roster of node names is built when two requests in a row see the same set of nodes, so that a cluster that grows
node by node does not build it for every request. Whatever is not recognised is decoded.
"""

from collections.abc import Callable

import msgspec
import numpy as np

from lamina.model.pod import Pod
from lamina.scheduling.loop.extender_core import Rows
from lamina.scheduling.state.columns import NodeColumns
from lamina.services.extender.name_roster import NameRoster, Places
from lamina.serving.request import Body
from lamina.wire.extender.plain_request import recognize_request

PodLookup = Callable[[str, str, str], Pod | None]
"""Returns the pod of a namespace and name ("a/b"), uid and version."""


def no_pod(_name: str, _uid: str, _version: str) -> Pod | None:
    """Know no pod."""
    return None


class KnownRequest(msgspec.Struct, frozen=True):
    """A request about a known pod and known nodes, each named once."""

    pod: Pod
    rows: Rows
    places: Places
    """The nodes' places in *roster*."""
    roster: NameRoster


class RequestRecognizer:
    """Recognises requests."""

    def __init__(self, columns: NodeColumns, pods: PodLookup) -> None:
        """Find nodes in *columns*, and pods with *pods*."""
        self._columns = columns
        self._pods = pods
        self._roster: NameRoster | None = None
        self._rows: Rows = np.zeros(0, dtype=np.intp)
        """The row of each place of the roster."""
        self._naming = -1
        """The set of nodes at the last request."""

    def recognize(self, body: Body) -> KnownRequest | None:
        """Return what a request is about; None if it has to be decoded."""
        asked = recognize_request(body)
        if asked is None:
            return None
        pod = self._pods(asked.pod, asked.uid, asked.version)
        roster = None if pod is None else self._current_roster()
        places = None if roster is None else roster.find(asked.names)
        if pod is None or roster is None or places is None:
            return None
        return KnownRequest(pod, self._rows[places], places, roster)

    def _current_roster(self) -> NameRoster | None:
        naming = self._columns.naming
        if naming != self._naming:
            self._naming, self._roster = naming, None
            return None
        if self._roster is None:
            rows = self._columns.rows
            self._roster = NameRoster(list(rows))
            self._rows = np.fromiter(rows.values(), np.intp, len(rows))[self._roster.numbers]
        return self._roster
