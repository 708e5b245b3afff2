"""
Facts from containerd's events since the last look.

Events mark what may have changed; the next look queries it. Only snapshots are updated from events directly, because
they are many and every pull changes them. The times of events give how long a layer took to unpack. Unpacking starts
when the download, the parent layer and the snapshot's preparation are done, and ends with the commit.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from google.protobuf.message import DecodeError

from lamina.clients.cri.protos import happenings_pb2, types_pb2

TOPICS: Final = "^/(images|content|snapshot)/"

IMAGES: Final = "images"
CONTENTS: Final = "contents"
SNAPSHOTS: Final = "snapshots"
EVERYTHING: Final = frozenset({IMAGES, CONTENTS, SNAPSHOTS})

REMEMBERED: Final = 512
"""Entries of each table of times; the oldest are dropped first."""
CHANGE_LIMIT: Final = 10_000
"""Changes kept between two looks; beyond that, everything is queried again."""
UNPACKING: Final = "extract-"


class UnpackSpan(msgspec.Struct, frozen=True, gc=False):
    """When unpacking of a layer started (as far as known) and ended, in seconds since 1970."""

    start: float
    end: float


class RuntimeSnapshotChange(msgspec.Struct, frozen=True, gc=False):
    """A committed snapshot that appeared or was removed."""

    snapshotter: str
    name: str
    there: bool


class ContainerdEventLog:
    """Written by the event listener, read and cleared by the inventory."""

    def __init__(self) -> None:
        self.stale: set[str] = set(EVERYTHING)
        """What must be queried again."""
        self.changes: list[RuntimeSnapshotChange] = []
        self.created: dict[str, float] = {}
        """Completion times of blobs."""
        self.sizes: dict[str, int] = {}
        self.prepared: dict[str, float] = {}
        """When containerd prepared a layer's snapshot, by chain id."""
        self.begun: list[float] = []
        """Start times of pulls since the last read."""
        self.spans: dict[str, UnpackSpan] = {}
        """Unpack times of layers, by chain id."""
        self.given_up: set[str] = set()
        """Chain ids of layers whose unpacking was aborted."""
        self._last_commit = 0.0

    def take(self) -> tuple[set[str], list[RuntimeSnapshotChange]]:
        """Return and clear what must be queried again and the snapshot changes."""
        stale, self.stale = self.stale, set()
        changes, self.changes = self.changes, []
        return stale, changes

    def missed(self) -> None:
        """Mark everything as changed, because events may have been missed."""
        self.stale |= EVERYTHING
        self.changes.clear()

    def enter(self, envelope: types_pb2.Envelope) -> bool:
        """Record an event; return whether it makes another look useful."""
        at = envelope.timestamp.seconds + envelope.timestamp.nanos / 1e9
        body = envelope.event.value
        try:
            match envelope.topic:
                case "/images/create" | "/images/update" | "/images/delete":
                    self.stale |= {IMAGES, CONTENTS}
                    return True
                case "/content/create":
                    return self._blob(happenings_pb2.ContentCreate.FromString(body), at)
                case "/snapshot/prepare":
                    return self._prepare(happenings_pb2.SnapshotPrepare.FromString(body), at)
                case "/snapshot/commit":
                    return self._commit(happenings_pb2.SnapshotCommit.FromString(body), at)
                case "/snapshot/remove":
                    return self._remove(happenings_pb2.SnapshotRemove.FromString(body))
        except DecodeError:
            self.missed()
            return True
        return False

    def complete(self, digest: str, at: float) -> None:
        """Record the completion time of a blob from the store, unless an event gave it."""
        if digest not in self.created:
            _remember(self.created, digest, at)

    def downloaded(self) -> Iterator[tuple[str, int, float]]:
        """Yield digest, size and completion time of blobs completed since the last call."""
        sizes, self.sizes = self.sizes, {}
        for digest, size in sizes.items():
            # After a burst of events, the oldest times have been dropped.
            if digest in self.created:
                yield digest, size, self.created[digest]

    def _blob(self, event: happenings_pb2.ContentCreate, at: float) -> bool:
        _remember(self.created, event.digest, at)
        self.sizes[event.digest] = event.size
        self.sizes = {digest: size for digest, size in self.sizes.items() if digest in self.created}
        return True

    def _prepare(self, event: happenings_pb2.SnapshotPrepare, at: float) -> bool:
        chain = unpacking(event.key)
        if not chain:
            return False  # a container's writable layer
        _remember(self.prepared, chain, at)
        if len(self.begun) < REMEMBERED:
            self.begun.append(at)
        return True

    def _commit(self, event: happenings_pb2.SnapshotCommit, at: float) -> bool:
        if not event.name.startswith("sha"):
            return False
        self._change(event.snapshotter, event.name, there=True)
        if event.name in self.prepared:
            start = max(self.prepared[event.name], self._last_commit)
            _remember(self.spans, event.name, UnpackSpan(start, at))
        self._last_commit = at
        return True

    def _remove(self, event: happenings_pb2.SnapshotRemove) -> bool:
        chain = unpacking(event.key)
        if chain:
            self.given_up = {chain, *list(self.given_up)[:REMEMBERED]}
            return True
        if not event.key.startswith("sha"):
            return False
        self._change(event.snapshotter, event.key, there=False)
        return True

    def _change(self, snapshotter: str, name: str, *, there: bool) -> None:
        # Old versions do not name the snapshotter.
        if not snapshotter or len(self.changes) >= CHANGE_LIMIT:
            self.stale.add(SNAPSHOTS)
        else:
            self.changes.append(RuntimeSnapshotChange(snapshotter, name, there))


def unpacking(key: str) -> str:
    """Return the chain id of the layer that is unpacked under *key*; "" if it is no layer."""
    if not key.startswith(UNPACKING):
        return ""
    return key.partition(" ")[2]


def _remember(times: dict[str, Any], key: str, value: float | UnpackSpan) -> None:
    times.pop(key, None)
    times[key] = value
    while len(times) > REMEMBERED:
        del times[next(iter(times))]
