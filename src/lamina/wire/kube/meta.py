"""
Common parts of Kubernetes objects, restricted to the fields that Lamina uses.

The structs of this and the neighbouring modules name only the fields in use. The decoder skips all others without
building objects, which makes it fast. Where the API or a client may send ``null``, it is read as a missing value: the
bookmarks of a watch, for example, are pods with ``containers: null``.
"""

from typing import Final

import msgspec

from lamina.model.pod import Owner
from lamina.wire.decode_cache import NULL, memoized
from lamina.wire.errors import WireError


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``metadata`` of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: msgspec.Raw = NULL

    @property
    def key(self) -> str:
        """``namespace/name``, or the name alone for cluster-scoped objects."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class _Named(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()


_NAMED: Final = msgspec.json.Decoder(_Named)


def decode_meta(data: bytes | msgspec.Raw) -> ObjectMeta:
    """Return the metadata of any object. Raises WireError."""
    try:
        return _NAMED.decode(data).metadata
    except (ValueError, RecursionError) as error:
        raise WireError("object", str(error)) from None


class ListMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``metadata`` of a list."""

    resource_version: str = ""
    continue_token: str | None = msgspec.field(default=None, name="continue")


class _CountMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    remaining_item_count: int | None = None


class _Count(msgspec.Struct, frozen=True, gc=False):
    metadata: _CountMeta = _CountMeta()
    items: list[msgspec.Raw] | None = None


_COUNT: Final = msgspec.json.Decoder(_Count)


def decode_count(data: bytes) -> int:
    """Return the total number of objects, from the first page of their list. Raises WireError."""
    try:
        counted = _COUNT.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("list", str(error)) from None
    return len(counted.items or ()) + (counted.metadata.remaining_item_count or 0)


class _NameList(msgspec.Struct, frozen=True, gc=False):
    items: list[_Named] | None = None


_NAMES: Final = msgspec.json.Decoder(_NameList)


def decode_names(data: bytes) -> list[str]:
    """Return the names of the objects of a list. Raises WireError."""
    try:
        return [one.metadata.name for one in _NAMES.decode(data).items or ()]
    except (ValueError, RecursionError) as error:
        raise WireError("list", str(error)) from None


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``metadata.ownerReferences``."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool | None = None


_OWNERS = msgspec.json.Decoder(list[OwnerReference] | None)


def _controller(data: bytes) -> Owner | None:
    for reference in _OWNERS.decode(data) or ():
        if reference.controller:
            return Owner(reference.kind, reference.name, reference.uid, reference.api_version)
    return None


controller = memoized("metadata.ownerReferences", _controller)
"""Return the owner that is the object's controller, or None."""
