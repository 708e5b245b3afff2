"""
Store of the façade: all objects of all resources, with resource versions and the log that watches start from.

    client or cluster --put, delete--> ObjectStore --StoreEvent--> listeners (watches)
                                           |
                                           +--> log, bounded: a watch may begin at an older resource version

Every change gets the next resource version of one counter for all resources, as in etcd. A write that changes nothing
gets none, and sends no event. The store knows no semantics of any resource.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec

from lamina.simulator.facade.kube_object import KubeObject, NamespacedName

LOG_LENGTH: Final = 50_000
"""Most events that the log of one resource keeps. A watch that begins earlier gets 410 and lists again."""

EventType = Literal["ADDED", "MODIFIED", "DELETED"]

_ENCODER: Final = msgspec.json.Encoder()


class ObjectVersion:
    """One version of an object, with its JSON once that was needed."""

    __slots__ = ("_encoded", "key", "object", "revision")

    def __init__(self, key: NamespacedName, found: KubeObject, revision: int) -> None:
        """Keep *found*, which must not be changed any more."""
        self.key = key
        self.object = found
        self.revision = revision
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        """The object as JSON."""
        if self._encoded is None:
            self._encoded = _ENCODER.encode(self.object)
        return self._encoded

    @property
    def listed(self) -> bytes:
        """The object as JSON without kind and apiVersion, which items of a list do not have."""
        kind, version = self.object["kind"], self.object["apiVersion"]
        head = len('{"kind":"","apiVersion":"",') + len(kind) + len(version)
        return b"{" + self.encoded[head:]


class StoreEvent:
    """One change: the new version, and the version before it. A deletion has the last version with a new revision."""

    __slots__ = ("_frames", "new", "old", "revision", "type")

    def __init__(self, type_: EventType, new: ObjectVersion, old: ObjectVersion | None) -> None:
        """Describe the change from *old* to *new*."""
        self.type = type_
        self.new = new
        self.old = old
        self.revision = new.revision
        self._frames: dict[EventType, bytes] = {}

    def frame(self, type_: EventType) -> bytes:
        """Return the line of a watch stream for this change; encoded once for all watches."""
        found = self._frames.get(type_)
        if found is None:
            shown = self.new
            if type_ == "DELETED" and self.type != "DELETED" and self.old is not None:
                # The object left the watch's selection: show its previous state with the new resource version.
                shown = ObjectVersion(self.old.key, with_revision(self.old.object, self.revision), self.revision)
            found = self._frames[type_] = watch_frame(type_, shown.encoded)
        return found


StoreListener = Callable[[StoreEvent], None]


def watch_frame(type_: str, encoded: bytes) -> bytes:
    """Return one line of a watch stream."""
    return b'{"type":"%b","object":%b}\n' % (type_.encode(), encoded)


def with_revision(found: KubeObject, revision: int) -> KubeObject:
    """Return the object with this resource version; kind and apiVersion come first (`ObjectVersion.listed`)."""
    metadata = {**found["metadata"], "resourceVersion": str(revision)}
    return {"kind": found["kind"], "apiVersion": found["apiVersion"], **found, "metadata": metadata}


class ResourceTable:
    """All objects of one resource."""

    def __init__(self, length: int = LOG_LENGTH) -> None:
        """Start empty; keep the last *length* events."""
        self._objects: dict[NamespacedName, ObjectVersion] = {}
        self._sorted: list[NamespacedName] | None = []
        self.log: deque[StoreEvent] = deque(maxlen=length)
        self.forgotten = 0
        """Revision of the newest event that the log has dropped."""
        self.listeners: dict[StoreListener, None] = {}
        """Called for every change, in the order in which they were added."""
        self._added: tuple[str, bytes] | None = None
        """The last result of `added_lines` and its namespace, until a change."""

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._objects)

    def get(self, key: NamespacedName) -> ObjectVersion | None:
        """Return the current version of an object."""
        return self._objects.get(key)

    def keys(self) -> list[NamespacedName]:
        """Return all keys, sorted by namespace and name, as the API server lists them."""
        if self._sorted is None:
            self._sorted = sorted(self._objects)
        return self._sorted

    def all(self, namespace: str = "") -> Iterator[ObjectVersion]:
        """Yield the objects of a namespace (empty: of all), sorted."""
        objects = self._objects
        for key in self.keys():
            if not namespace or key.namespace == namespace:
                yield objects[key]

    def added_lines(self, namespace: str = "") -> bytes:
        """Return an ADDED line for each object of a namespace (empty: of all), sorted; watches share the result."""
        if self._added is None or self._added[0] != namespace:
            lines = [watch_frame("ADDED", one.encoded) for one in self.all(namespace)]
            self._added = (namespace, b"".join(lines))
        return self._added[1]

    def at(self, revision: int) -> list[ObjectVersion] | None:
        """Return all objects as they were at *revision*, sorted; None if the log has dropped later events."""
        if revision < self.forgotten:
            return None
        objects = dict(self._objects)
        for event in reversed(self.log):
            if event.revision <= revision:
                break
            if event.old is None:
                del objects[event.new.key]
            else:
                objects[event.new.key] = event.old
        return [objects[key] for key in sorted(objects)]

    def since(self, revision: int) -> Iterator[StoreEvent] | None:
        """Yield the events after *revision*, oldest first; None if the log has dropped some of them."""
        if revision < self.forgotten:
            return None
        return (event for event in tuple(self.log) if event.revision > revision)

    def record(self, event: StoreEvent) -> None:
        """Apply a change, keep it in the log and pass it to the listeners."""
        key = event.new.key
        self._added = None
        if event.type == "DELETED":
            del self._objects[key]
            self._sorted = None
        else:
            if event.type == "ADDED":
                self._sorted = None
            self._objects[key] = event.new
        if len(self.log) == self.log.maxlen:
            self.forgotten = self.log[0].revision
        self.log.append(event)
        for listener in tuple(self.listeners):
            listener(event)


class ObjectStore:
    """All resources, by group and plural name."""

    def __init__(self) -> None:
        """Start empty."""
        self.revision = 1
        """The newest resource version."""
        self._tables: dict[tuple[str, str], ResourceTable] = {}
        self._deferred: deque[Callable[[], None]] = deque()
        self._running = False

    def table(self, group: str, resource: str) -> ResourceTable:
        """Return the table of a resource; the caller has checked that the resource exists."""
        table = self._tables.get((group, resource))
        if table is None:
            table = self._tables[group, resource] = ResourceTable()
        return table

    def defer(self, action: Callable[[], None]) -> None:
        """Let a listener act on a change: call *action* after all listeners of that change, so that none is overtaken."""
        self._deferred.append(action)

    def put(self, table: ResourceTable, key: NamespacedName, found: KubeObject) -> ObjectVersion:
        """Create or replace an object; return its new version, or the old one if nothing changed."""
        old = table.get(key)
        if old is not None and is_unchanged(old.object, found):
            return old
        self.revision += 1
        new = ObjectVersion(key, with_revision(found, self.revision), self.revision)
        table.record(StoreEvent("ADDED" if old is None else "MODIFIED", new, old))
        self._act()
        return new

    def delete(self, table: ResourceTable, key: NamespacedName) -> ObjectVersion | None:
        """Remove an object; return its last version with a new resource version, or None if it does not exist."""
        old = table.get(key)
        if old is None:
            return None
        self.revision += 1
        last = ObjectVersion(key, with_revision(old.object, self.revision), self.revision)
        table.record(StoreEvent("DELETED", last, old))
        self._act()
        return last

    def _act(self) -> None:
        """Call the deferred actions; those of nested writes follow in the outermost call."""
        if self._running:
            return
        self._running = True
        try:
            while self._deferred:
                self._deferred.popleft()()
        finally:
            self._running = False


def is_unchanged(old: KubeObject, new: KubeObject) -> bool:
    """Return whether two versions differ in nothing but the resource version."""
    if len(old) != len(new):
        return False
    for key, value in new.items():
        if key != "metadata" and (key not in old or old[key] != value):
            return False
    before = {key: value for key, value in old["metadata"].items() if key != "resourceVersion"}
    after = {key: value for key, value in new["metadata"].items() if key != "resourceVersion"}
    return before == after
