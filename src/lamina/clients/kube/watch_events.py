"""
One line of a watch, read as far as the watch itself needs it.

The object inside is passed over, except for whose it is and which version it has; its own decoder reads the rest. That
its bytes are cut out of the line by position, where a line begins as API servers begin them, saves reading every line
once more: about a quarter of what a watch costs beyond the decoding of its objects.
"""

from typing import Final

import msgspec
from msgspec import Raw

from lamina.clients.kube.errors import ApiError, ApiStatus, from_status

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"
BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends a streamed list."""

BEGINNINGS: Final = {kind: f'{{"type":"{kind}","object":'.encode() for kind in (ADDED, MODIFIED, DELETED)}
"""How a line begins, up to its object; after the object comes one brace."""


class WatchedMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What identifies an object and its version."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class ObjectHead(msgspec.Struct, frozen=True, gc=False):
    """An object, of which only the metadata is read."""

    metadata: WatchedMeta = WatchedMeta()

    @property
    def name(self) -> str:
        """``namespace/name``, or the name alone; empty when it has none."""
        meta = self.metadata
        return f"{meta.namespace}/{meta.name}" if meta.namespace and meta.name else meta.name or ""

    @property
    def version(self) -> str:
        """The object's version."""
        return self.metadata.resource_version or ""

    @property
    def uid(self) -> str:
        """Which of the objects that have had this name; empty when it does not say."""
        return self.metadata.uid or ""


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """A line: what happened and to what. *kind* stands there only when a server sends a bare Status instead."""

    type: str = ""
    object: ObjectHead = ObjectHead()
    kind: str | None = None


class WatchEnvelope(msgspec.Struct, frozen=True, gc=False):
    """A line whose object is not looked at."""

    type: str = ""
    object: Raw = Raw(b"null")
    kind: str | None = None


class BookmarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    """The metadata of a bookmark."""

    resource_version: str | None = None
    annotations: dict[str, str] | None = None


class Bookmark(msgspec.Struct, frozen=True):
    """A bookmark: an object of the watched kind with nothing in it but a version; the rest may be null."""

    metadata: BookmarkMeta

    @property
    def version(self) -> str:
        """How far the watch has come."""
        return self.metadata.resource_version or ""

    @property
    def ends_list(self) -> bool:
        """Whether everything that existed has been sent."""
        return (self.metadata.annotations or {}).get(INITIAL_EVENTS_END) == "true"


_EVENT: Final = msgspec.json.Decoder(WatchEvent)
_ENVELOPE: Final = msgspec.json.Decoder(WatchEnvelope)
_HEAD: Final = msgspec.json.Decoder(ObjectHead)
_BOOKMARK: Final = msgspec.json.Decoder(Bookmark)
_STATUS: Final = msgspec.json.Decoder(ApiStatus)


def read_event(line: bytes) -> WatchEvent | None:
    """Read a line; None when it is none. An object that does not say whose it is has no name."""
    try:
        return _EVENT.decode(line)
    except msgspec.ValidationError:
        envelope = _envelope(line)
        return WatchEvent(envelope.type, ObjectHead(), envelope.kind) if envelope is not None else None
    except (ValueError, RecursionError):
        return None


def object_of(line: bytes, event: WatchEvent) -> bytes:
    """Cut the object out of a line that was read as *event*."""
    beginning = BEGINNINGS.get(event.type)
    if beginning is not None and line.startswith(beginning) and line.endswith(b"}"):
        return line[len(beginning) : -1]
    envelope = _envelope(line)
    return bytes(envelope.object) if envelope is not None else b""


def _envelope(line: bytes) -> WatchEnvelope | None:
    try:
        return _ENVELOPE.decode(line)
    except (ValueError, RecursionError):
        return None


def read_head(data: bytes) -> ObjectHead:
    """Read whose object this is; one that does not say so has no name."""
    try:
        return _HEAD.decode(data)
    except (ValueError, RecursionError):
        return ObjectHead()


def read_bookmark(data: bytes) -> Bookmark | None:
    """Read a bookmark; None when it is none."""
    try:
        return _BOOKMARK.decode(data)
    except (ValueError, RecursionError):
        return None


def read_error(what: str, data: bytes) -> ApiError:
    """Read what an ERROR event says."""
    try:
        return from_status(what, _STATUS.decode(data))
    except (ValueError, RecursionError):
        return ApiError(what, 500, "Error", "the watch was ended by an error that cannot be read")
