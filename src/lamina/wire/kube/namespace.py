"""Namespaces as the Kubernetes API writes them: a name and the annotations that hold for its pods."""

from typing import Final

import msgspec
from msgspec import Raw

from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta


class Namespace(msgspec.Struct, frozen=True):
    """What the scheduler sees in a namespace."""

    name: str
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class NamespaceObject(msgspec.Struct, frozen=True, gc=False):
    """A namespace."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()


_DECODER: Final = msgspec.json.Decoder(NamespaceObject)


def decode_namespace(data: bytes | Raw) -> Namespace:
    """Read a v1 Namespace."""
    try:
        found = _DECODER.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("Namespace", f"{error}; check that a Kubernetes API server sent it") from error
    if found.kind and found.kind != "Namespace":
        raise WireError("Namespace", f"this is a {found.kind:.80}; ask for namespaces")
    return Namespace(found.metadata.name, found.metadata.annotations or {}, found.metadata.labels or {})
