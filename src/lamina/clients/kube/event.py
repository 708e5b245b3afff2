"""An event in the events.k8s.io/v1 format."""

import re
import uuid
from typing import Final

import msgspec

from lamina.clients.kube.api_timestamps import micro_time
from lamina.clients.kube.pod_writes import clipped

NOTE_LIMIT: Final = 1024
PART_LIMIT: Final = 128
"""Bytes of an action, a reason or an instance; the API server rejects longer ones."""
NAME_LIMIT: Final = 253 - len(".ffffffffffffffff")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_ENCODER: Final = msgspec.json.Encoder()


class ObjectReference(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Reference to the object an event is about."""

    kind: str
    name: str
    namespace: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""

    @property
    def identity(self) -> str:
        """A key that is unique among objects: the UID if known."""
        return self.uid or f"{self.kind}/{self.namespace}/{self.name}"


class EventMetadata(msgspec.Struct, gc=False):
    """``metadata`` of a new event."""

    name: str
    namespace: str


class EventSeries(msgspec.Struct, rename="camel", gc=False):
    """``series`` of a repeated event."""

    count: int
    last_observed_time: str


class KubeEvent(msgspec.Struct, rename="camel", omit_defaults=True):
    """An event of events.k8s.io/v1."""

    metadata: EventMetadata
    event_time: str
    reporting_controller: str
    reporting_instance: str
    action: str
    reason: str
    regarding: ObjectReference
    note: str
    type: str
    related: ObjectReference | None = None
    series: EventSeries | None = None
    # A default_factory, because omit_defaults would leave plain defaults out of the JSON.
    api_version: str = msgspec.field(default_factory=lambda: "events.k8s.io/v1")
    kind: str = msgspec.field(default_factory=lambda: "Event")

    def repeated(self, count: int, seen: int) -> None:
        """Set the number of occurrences and the time of the last one, in nanoseconds since 1970."""
        self.series = EventSeries(count, micro_time(seen)) if count > 1 else None

    def encoded(self) -> bytes:
        """Return the event as JSON."""
        return _ENCODER.encode(self)

    def encoded_series(self) -> bytes:
        """Return the JSON patch body that updates the series."""
        return _ENCODER.encode({"series": self.series})


def event_name(name: str, nanos: int) -> str:
    """Return a name as client-go builds it: object name and time, or a UUID where that would be invalid."""
    if len(name) <= NAME_LIMIT and _NAME.fullmatch(name):
        return f"{name}.{nanos:x}"
    return str(uuid.uuid4())


def clipped_note(note: str) -> str:
    """Cut a note to `NOTE_LIMIT` bytes, the API server's limit."""
    return clipped(note, NOTE_LIMIT)
