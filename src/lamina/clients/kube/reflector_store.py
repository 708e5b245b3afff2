"""
Local store of one API resource, and the calls to the sink that consumes it.

    list:   begin -> see, see, see … -> finish      finish removes objects that the list did not contain
    watch:  see and forget, in the server's order

The store keeps each object's decoded value and version. The version shows which objects of a new list are unchanged;
the value is passed to the sink on removal. An object that cannot be decoded is counted and skipped. An earlier version
that could be decoded stays, because it is the better guess. If the UID differs, the earlier object no longer exists and
is removed.

An object for which *ended* returns True is put once and then no longer held: only a tombstone stays, and its deletion
is not reported to the sink.

Only the reflector calls the store.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from lamina.clients.kube.errors import one_line
from lamina.clients.kube.reflector_counters import ReflectorCounters
from lamina.clients.kube.tombstones import Tombstones
from lamina.wire.errors import NothingSaidError

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

log: Final = logging.getLogger(__name__)


class ReflectorSink(Protocol[T_contra]):
    """Consumer of a reflector, called in order on the event loop; an exception from it ends the reflector."""

    def put(self, item: T_contra, /) -> None:
        """Add or replace an object."""
        ...

    def remove(self, key: str, last: T_contra, /) -> None:
        """Remove the object put under *key*; *last* is its last known value."""
        ...

    def synced(self) -> None:
        """Called after every list, when all existing objects are put and all missing ones removed."""
        ...


class StoredObject(msgspec.Struct, Generic[T], gc=False):
    """One object. Not tracked by the garbage collector: it is in no cycle, and there may be 150,000."""

    item: T
    version: str
    round: int
    """Number of the list it was last seen in; for an object from a watch event, the latest list."""
    uid: str = ""
    """Empty when the server sent none."""


class ReflectorStore(Generic[T]):
    """The objects of one resource, by namespace and name."""

    def __init__(
        self,
        decode: Callable[[bytes], T],
        key: Callable[[T], str],
        sink: ReflectorSink[T],
        counts: ReflectorCounters,
        ended: Callable[[T], bool] | None = None,
    ) -> None:
        """
        Decode objects with *decode*; *key* returns the sink's key of an object, and may differ after a replacement.

        An object for which *ended* returns True is put once and then forgotten; None if objects never end.
        """
        self._decode = decode
        self._key = key
        self._sink = sink
        self._counts = counts
        self._ended = ended
        self.tombstones = Tombstones()
        """Objects that have ended and still exist on the server."""
        self._held: dict[str, StoredObject[T]] = {}
        self._unreadable: dict[str, tuple[str, int]] = {}
        self._round = 0
        self._trusting = True

    def __len__(self) -> int:
        return len(self._held)

    def items(self) -> Iterator[T]:
        """Iterate over the decoded objects."""
        return (held.item for held in self._held.values())

    def version_of(self, name: str) -> str:
        """Return the stored version of an object; "" if it is not stored."""
        held = self._held.get(name)
        return held.version if held is not None else ""

    def find(self, name: str, uid: str, version: str) -> T | None:
        """Return an object if exactly this version of it is stored."""
        held = self._held.get(name)
        return held.item if held is not None and held.uid == uid and held.version == version else None

    def begin(self, *, trusting: bool = True) -> None:
        """
        Start a list.

        With *trusting*, an object with a known version is unchanged. Without it, every object is decoded again: after
        a restore from a backup the same version may stand for other content.
        """
        self._round += 1
        self._trusting = trusting
        if not trusting:
            # In another history, objects that have ended in ours may still be active.
            self.tombstones.clear()

    def see(self, name: str, version: str, data: bytes, *, uid: str = "", listed: bool = False) -> None:
        """Store an object; with *listed*, an object whose version is known is not decoded again."""
        if self.tombstones and self.tombstones.knows(name, uid, self._round):
            return
        held = self._held.get(name)
        if listed and self._trusting and held is not None and held.version == version and version:
            held.round = self._round
            return
        try:
            item = self._decode(data)
            key = self._key(item)
        except NothingSaidError:
            self.forget(name)
            return
        except Exception as error:  # noqa: BLE001 - no object may stop the watch, whatever its decoder raises
            if held is not None and held.uid and uid and held.uid != uid:
                self.forget(name)
            self._pass_over(name, version, error)
            return
        if self._unreadable:
            self._unreadable.pop(name, None)
        if held is not None and (old_key := self._key(held.item)) != key:
            self._sink.remove(old_key, held.item)
        if self._ended is not None and self._ended(item):
            self._held.pop(name, None)
            self.tombstones.put(name, uid, self._round)
        elif held is None:
            self.tombstones.drop(name)
            self._held[name] = StoredObject(item, version, self._round, uid)
        else:
            held.item, held.version, held.round, held.uid = item, version, self._round, uid
        self._sink.put(item)

    def forget(self, name: str) -> None:
        """Remove an object."""
        self._unreadable.pop(name, None)
        self.tombstones.drop(name)
        held = self._held.pop(name, None)
        if held is not None:
            self._sink.remove(self._key(held.item), held.item)

    def finish(self) -> Iterator[None]:
        """End the list: remove objects it did not contain, one in each step of the iterator."""
        gone = [name for name, held in self._held.items() if held.round != self._round]
        for name in gone:
            self.forget(name)
            yield
        self.tombstones.finish(self._round)
        self._unreadable = {name: known for name, known in self._unreadable.items() if known[1] == self._round}

    def _pass_over(self, name: str, version: str, error: Exception) -> None:
        held = self._held.get(name)
        if held is not None:
            held.round = self._round
        known = self._unreadable.get(name)
        self._unreadable[name] = (version, self._round)
        if known is not None and known[0] == version:
            return
        self._counts.undecodable += 1
        if known is None:
            log.warning("object not decodable", extra={"object": one_line(name), "problem": one_line(str(error))})
