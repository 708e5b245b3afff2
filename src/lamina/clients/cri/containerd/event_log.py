"""
What containerd's events said since the last look, and when.

Events say that something may have changed; what, is asked. Only snapshots are kept in step by the events themselves,
because there are many and a pull changes them all the time. The times that events carry tell how long a layer took to
unpack: from when nothing more had to be waited for, that is the download, the layer below and its own preparation, until
it was committed.
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
"""Times that are kept of each kind; the oldest go first."""
CHANGE_LIMIT: Final = 10_000
"""Changes that wait for a look; where nobody looks for long, everything is asked for instead."""
UNPACKING: Final = "extract-"


class UnpackSpan(msgspec.Struct, frozen=True, gc=False):
    """When a layer began to be unpacked, as far as that is known, and when that was done."""

    start: float
    end: float


class RuntimeSnapshotChange(msgspec.Struct, frozen=True, gc=False):
    """A complete snapshot that is new, or gone."""

    snapshotter: str
    name: str
    there: bool


class ContainerdEventLog:
    """Kept by whoever listens; read and struck out by whoever looks."""

    def __init__(self) -> None:
        self.stale: set[str] = set(EVERYTHING)
        """What has to be asked for again."""
        self.changes: list[RuntimeSnapshotChange] = []
        self.created: dict[str, float] = {}
        """When a blob was complete."""
        self.sizes: dict[str, int] = {}
        self.prepared: dict[str, float] = {}
        """When containerd began with a layer, by chain id."""
        self.begun: list[float] = []
        """When something began to be pulled, since somebody last asked."""
        self.spans: dict[str, UnpackSpan] = {}
        """When layers were unpacked, by chain id."""
        self.given_up: set[str] = set()
        """Chain ids of layers whose unpacking was broken off."""
        self._last_commit = 0.0

    def take(self) -> tuple[set[str], list[RuntimeSnapshotChange]]:
        """Return what has to be asked for again and which snapshots changed, and strike both out."""
        stale, self.stale = self.stale, set()
        changes, self.changes = self.changes, []
        return stale, changes

    def missed(self) -> None:
        """Something may have happened that nobody heard: everything has to be asked for again."""
        self.stale |= EVERYTHING
        self.changes.clear()

    def enter(self, envelope: types_pb2.Envelope) -> bool:
        """Write down an event; whether it makes another look worth while."""
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
        """Write down what the store says of a blob, where no event did."""
        if digest not in self.created:
            _remember(self.created, digest, at)

    def downloaded(self) -> Iterator[tuple[str, int, float]]:
        """Blobs that were completed since this was asked last: digest, size and when."""
        sizes, self.sizes = self.sizes, {}
        for digest, size in sizes.items():
            # Of very many at once the times of the first are forgotten.
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
            return False  # a container's own file system
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
        # Early versions do not say which snapshotter it is.
        if not snapshotter or len(self.changes) >= CHANGE_LIMIT:
            self.stale.add(SNAPSHOTS)
        else:
            self.changes.append(RuntimeSnapshotChange(snapshotter, name, there))


def unpacking(key: str) -> str:
    """Return the chain id of the layer that is unpacked under *key*; empty: no layer is."""
    if not key.startswith(UNPACKING):
        return ""
    return key.partition(" ")[2]


def _remember(times: dict[str, Any], key: str, value: float | UnpackSpan) -> None:
    times.pop(key, None)
    times[key] = value
    while len(times) > REMEMBERED:
        del times[next(iter(times))]
