"""Decoder of namespaces: name, labels, and the annotations that are defaults for their pods."""

from typing import Final

import msgspec
from msgspec import Raw

from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta


class Namespace(msgspec.Struct, frozen=True):
    """The parts of a namespace that the scheduler uses."""

    name: str
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class NamespaceObject(msgspec.Struct, frozen=True, gc=False):
    """A namespace."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()


_DECODER: Final = msgspec.json.Decoder(NamespaceObject)


def decode_namespace(data: bytes | Raw) -> Namespace:
    """Return a decoded v1 Namespace. Raises WireError."""
    try:
        found = _DECODER.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("Namespace", f"{error}; check that a Kubernetes API server sent it") from error
    if found.kind and found.kind != "Namespace":
        raise WireError("Namespace", f"this is a {found.kind:.80}; ask for namespaces")
    return Namespace(found.metadata.name, found.metadata.annotations or {}, found.metadata.labels or {})
