"""
Bounded caches for registry data.

    DocumentCache   manifests and indexes by digest; no expiry, least recently used evicted first
    ExpiringCache   anything with a lifetime: the digest of a tag, failed look-ups

Documents are kept encoded, so that their bytes can be counted exactly and the garbage collector does not visit them.
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
"""Bytes of an entry besides its content: key, object headers, table slot."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final[msgspec.msgpack.Decoder[CachedDocument]] = msgspec.msgpack.Decoder(CachedDocument)


class DocumentCache:
    """Indexes and images by digest."""

    def __init__(self, most: int = MOST_DOCUMENTS, most_bytes: int = MOST_BYTES) -> None:
        """Start empty."""
        self.size = 0
        """Bytes of all entries, overhead included."""
        self._most, self._most_bytes = most, most_bytes
        self._entries: OrderedDict[Digest, bytes] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self._entries)

    def get(self, digest: Digest) -> CachedDocument | None:
        """Return a document; None if it is not cached."""
        data = self._entries.get(digest)
        if data is None:
            return None
        self._entries.move_to_end(digest)
        return _DECODER.decode(data)

    def put(self, digest: Digest, document: CachedDocument) -> None:
        """Add a document, and evict the least recently used beyond the limits."""
        if digest in self._entries:
            return
        data = _ENCODER.encode(document)
        self._entries[digest] = data
        self.size += len(data) + OVERHEAD
        while len(self._entries) > self._most or self.size > self._most_bytes:
            _, oldest = self._entries.popitem(last=False)
            self.size -= len(oldest) + OVERHEAD


class ExpiringCache(Generic[K, V]):
    """Values with an expiry time."""

    def __init__(self, most: int = MOST_FADING) -> None:
        """Start empty."""
        self._most = most
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of values, expired ones included."""
        return len(self._entries)

    def get(self, key: K, now: float) -> tuple[V, float] | None:
        """Return a value and its remaining seconds; None if absent or expired."""
        until, value = self._entries.get(key, (now, None))
        return (value, until - now) if value is not None and until > now else None

    def last(self, key: K) -> V | None:
        """Return the last value, even if expired."""
        return self._entries[key][1] if key in self._entries else None

    def put(self, key: K, value: V, until: float) -> None:
        """Store a value until a time."""
        self._entries[key] = (until, value)
        self._entries.move_to_end(key)
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        """Remove a value."""
        self._entries.pop(key, None)
