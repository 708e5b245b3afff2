"""
Watches: the stream of changes that one client follows.

    opened --initial events--> following --change--> a line for the client
                                   |
                                   +--closed: time is over, the client left, or it does not read

A change is compared with the watch's selectors before and after it: an object that begins to match is ADDED, one that
ceases to match is DELETED. Clients that select unfinished pods learn from that DELETED that a pod has ended.

A watch belongs to one table and calls `send` with complete lines. It knows no socket and no clock: the owner of the
connection closes it when its time is over.
"""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from lamina.simulator.facade.api_errors import StatusError, gone
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName
from lamina.simulator.facade.object_store import EventType, ObjectVersion, ResourceTable, StoreEvent, watch_frame
from lamina.simulator.facade.selectors import FieldQuery, LabelQuery

INITIAL_END: Final = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends the initial events of a streaming list."""

Render = Callable[[KubeObject], KubeObject]
"""Turns a stored object into the form that the client asked for."""


class SelectionPredicate:
    """Which objects of a table a request concerns: one namespace or all, and two selectors."""

    __slots__ = ("_everything", "fields", "labels", "namespace")

    def __init__(self, namespace: str, labels: LabelQuery, fields: FieldQuery) -> None:
        """Select the objects of *namespace* (empty: of all) that both selectors match."""
        self.namespace = namespace
        self.labels = labels
        self.fields = fields
        self._everything = not namespace and labels.everything and fields.everything

    def matches(self, one: ObjectVersion) -> bool:
        """Return whether an object is selected."""
        if self._everything:
            return True
        if self.namespace and one.key.namespace != self.namespace:
            return False
        found = one.object
        if not self.labels.everything and not self.labels.matches(found):
            return False
        return self.fields.everything or self.fields.matches(found)


class Watch:
    """One open watch."""

    def __init__(
        self,
        table: ResourceTable,
        selection: SelectionPredicate,
        send: Callable[[bytes], object],
        render: Render | None = None,
    ) -> None:
        """Follow *table*; *send* receives lines, in the form that *render* gives the objects (None: as stored)."""
        self._table = table
        self._selection = selection
        self._send = send
        self._render = render
        self.sent = 0
        """Number of events that were sent."""

    def begin(self, revision: int) -> None:
        """Send all events after *revision*, then follow. Raises StatusError 410 if some of them are not kept."""
        past = self._table.since(revision)
        if past is None:
            oldest = self._table.forgotten
            raise gone(f"too old resource version: {revision} ({oldest})")
        for event in past:
            self._deliver(event)
        self._table.listeners[self._deliver] = None

    def begin_with_all(self, revision: int, kind: str, api_version: str, *, bookmark: bool) -> None:
        """Send all present objects as ADDED, with *bookmark* a bookmark for *revision*, then follow."""
        selection = self._selection
        if self._render is None and selection.labels.everything and selection.fields.everything:
            lines = self._table.added_lines(selection.namespace)
            if lines:
                self._send(lines)
        else:
            for one in selected(self._table, selection):
                self._write("ADDED", one)
        if bookmark:
            self.bookmark(revision, kind, api_version, initial_end=True)
        self._table.listeners[self._deliver] = None

    def bookmark(self, revision: int, kind: str, api_version: str, *, initial_end: bool = False) -> None:
        """Send a bookmark: the client has seen everything up to *revision*."""
        metadata: KubeObject = {"resourceVersion": str(revision)}
        if initial_end:
            metadata["annotations"] = {INITIAL_END: "true"}
        shown = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
        self._send(watch_frame("BOOKMARK", msgspec.json.encode(shown)))

    def fail(self, error: StatusError) -> None:
        """Send an ERROR event and close."""
        self._send(watch_frame("ERROR", msgspec.json.encode(error.status())))
        self.close()

    def close(self) -> None:
        """Stop following; do nothing if already closed."""
        self._table.listeners.pop(self._deliver, None)

    def _deliver(self, event: StoreEvent) -> None:
        matches = self._selection.matches
        now = event.type != "DELETED" and matches(event.new)
        before = event.old is not None and matches(event.old)
        if not now and not before:
            return
        type_: EventType = "DELETED" if not now else "MODIFIED" if before else "ADDED"
        self.sent += 1
        if self._render is None:
            self._send(event.frame(type_))
        else:
            self._write(type_, event.new if now or event.old is None else event.old)

    def _write(self, type_: EventType, one: ObjectVersion) -> None:
        shown = one.encoded if self._render is None else msgspec.json.encode(self._render(one.object))
        self._send(watch_frame(type_, shown))


def selected(table: ResourceTable, selection: SelectionPredicate) -> Iterable[ObjectVersion]:
    """Yield the selected objects, sorted by namespace and name."""
    name = selection.fields.equals.get("metadata.name") if not selection.fields.everything else None
    if name is not None and selection.namespace:
        found = table.get(NamespacedName(selection.namespace, name))
        return () if found is None or not selection.matches(found) else (found,)
    return (one for one in table.all(selection.namespace) if selection.matches(one))
