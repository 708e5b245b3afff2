"""
What the server holds of one resource, as far as we have heard, and what the sink has been told about it.

    list:   begin -> see, see, see … -> finish      finish removes what was not seen: it went while nobody looked
    watch:  see and forget, in the server's order

For every object the decoded value and its version are kept: the version tells what a new list brings that is not new,
the value goes to the sink with the removal. An object that cannot be decoded is counted and passed over. If an earlier
version of it could be read, that one stays: an old truth is a better guess than nothing, and the object still exists. If
its UID is another one, the object that was read does not exist any more, and it goes.

Where the caller says which objects have *ended*, such an object is put once and not held any more: only a tombstone stays,
and its deletion is no news to the sink.

Fed by the reflector only. Never talks to anybody but the sink.
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
    """Told what there is, in order and on the event loop; what it raises ends the reflector."""

    def put(self, item: T_contra, /) -> None:
        """Take what is there now, for the first time or changed."""
        ...

    def remove(self, key: str, last: T_contra, /) -> None:
        """Drop what was put under *key*: it is gone; *last* is how it was last seen."""
        ...

    def synced(self) -> None:
        """Hear, after every list, that all that exists has been put and all that does not has been removed."""
        ...


class StoredObject(msgspec.Struct, Generic[T], gc=False):
    """One object. Not tracked by the garbage collector: it is in no cycle, and there are very many."""

    item: T
    version: str
    round: int
    """The list it was last seen in, or the one before the event that brought it."""
    uid: str = ""
    """Empty when the server did not say."""


class ReflectorStore(Generic[T]):
    """The objects of one resource."""

    def __init__(
        self,
        decode: Callable[[bytes], T],
        key: Callable[[T], str],
        sink: ReflectorSink[T],
        counts: ReflectorCounters,
        ended: Callable[[T], bool] | None = None,
    ) -> None:
        """
        Decode with *decode*; *key* is what the sink knows an object by, and may change when one is replaced.

        An object that has *ended* is put once and then forgotten; None where objects do not end.
        """
        self._decode = decode
        self._key = key
        self._sink = sink
        self._counts = counts
        self._ended = ended
        self.tombstones = Tombstones()
        """Objects that have ended and still exist."""
        self._held: dict[str, StoredObject[T]] = {}
        self._unreadable: dict[str, tuple[str, int]] = {}
        self._round = 0
        self._trusting = True

    def __len__(self) -> int:
        return len(self._held)

    def items(self) -> Iterator[T]:
        """Yield what is there."""
        return (held.item for held in self._held.values())

    def version_of(self, name: str) -> str:
        """The version we have of an object; empty when we have none."""
        held = self._held.get(name)
        return held.version if held is not None else ""

    def begin(self, *, trusting: bool = True) -> None:
        """
        Expect a whole list.

        An object with the version that is known has not changed, unless the history itself has: after a restore from
        a backup the same version may stand for something else, and then it is not trusted.
        """
        self._round += 1
        self._trusting = trusting
        if not trusting:
            # In another history, what has ended in ours may not have.
            self.tombstones.clear()

    def see(self, name: str, version: str, data: bytes, *, uid: str = "", listed: bool = False) -> None:
        """Take note of an object as it is now; *listed* when the version may tell that it is as it was."""
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
        except Exception as error:  # noqa: BLE001 - whatever a stranger's object does, the watch goes on
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
        """Take note that an object is gone."""
        self._unreadable.pop(name, None)
        self.tombstones.drop(name)
        held = self._held.pop(name, None)
        if held is not None:
            self._sink.remove(self._key(held.item), held.item)

    def finish(self) -> Iterator[None]:
        """Remove what the list did not have, a step for each."""
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
            log.warning("object cannot be read", extra={"object": one_line(name), "problem": one_line(str(error))})
