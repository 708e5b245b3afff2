"""
What was learnt from registries, in bounded space.

    Documents   by digest, for ever; the longest unused go when there are too many or too much
    Fading      anything else, for a time: which digest a tag has, what was not found

Documents are kept encoded, so that their bytes can be counted exactly and no collector has to walk them.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

import msgspec

from lamina.clients.oci.registry_documents import CachedDocument
from lamina.model.digest import Digest

MOST_DOCUMENTS: Final = 20_000
MOST_BYTES: Final = 256 * 1024 * 1024
MOST_FADING: Final = 20_000
OVERHEAD: Final = 256
"""Bytes that an entry takes besides its content: key, object heads, its place in the table."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[CachedDocument]] = msgspec.msgpack.Decoder(CachedDocument)


class DocumentCache:
    """Indexes and images by their digests."""

    def __init__(self, most: int = MOST_DOCUMENTS, most_bytes: int = MOST_BYTES) -> None:
        """Begin empty."""
        self.size = 0
        """Bytes of all."""
        self._most, self._most_bytes = most, most_bytes
        self._kept: OrderedDict[Digest, bytes] = OrderedDict()

    def __len__(self) -> int:
        """Count them."""
        return len(self._kept)

    def get(self, digest: Digest) -> CachedDocument | None:
        """Return a document if it is there."""
        data = self._kept.get(digest)
        if data is None:
            return None
        self._kept.move_to_end(digest)
        return _DECODER.decode(data)

    def put(self, digest: Digest, document: CachedDocument) -> None:
        """Keep a document, and let go of others if need be."""
        if digest in self._kept:
            return
        data = _ENCODER.encode(document)
        self._kept[digest] = data
        self.size += len(data) + OVERHEAD
        while len(self._kept) > self._most or self.size > self._most_bytes:
            _, oldest = self._kept.popitem(last=False)
            self.size -= len(oldest) + OVERHEAD


class ExpiringCache(Generic[K, V]):
    """Things that are true for a time."""

    def __init__(self, most: int = MOST_FADING) -> None:
        """Begin empty."""
        self._most = most
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        """Count them, those that are no longer true included."""
        return len(self._kept)

    def get(self, key: K, now: float) -> tuple[V, float] | None:
        """Return what is known and for how many seconds more; nothing when its time is over."""
        until, value = self._kept.get(key, (now, None))
        return (value, until - now) if value is not None and until > now else None

    def last(self, key: K) -> V | None:
        """Return what was known last, true or not."""
        return self._kept[key][1] if key in self._kept else None

    def put(self, key: K, value: V, until: float) -> None:
        """Know something until a time."""
        self._kept[key] = (until, value)
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)

    def drop(self, key: K) -> None:
        """Know it no longer."""
        self._kept.pop(key, None)
