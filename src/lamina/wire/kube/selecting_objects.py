"""Decoders of Services and of the controllers whose selectors default spread constraints use."""

from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from lamina.model.selecting_objects import (
    OwningObject,
    ReplicaSet,
    ReplicationController,
    SelectingObject,
    Service,
    StatefulSet,
)
from lamina.model.selectors import LabelSelector
from lamina.wire.errors import WireError
from lamina.wire.kube.constraints import LabelSelectorObject, label_selector
from lamina.wire.kube.meta import ObjectMeta, controller

S = TypeVar("S", bound=OwningObject)


class LabelsSpec(msgspec.Struct, frozen=True, gc=False):
    """``spec`` of an object whose selector is a set of labels."""

    selector: dict[str, str] | None = None
    replicas: int | None = None


class SelectorSpec(msgspec.Struct, frozen=True, gc=False):
    """``spec`` of an object whose selector is a label selector."""

    selector: LabelSelectorObject | None = None
    replicas: int | None = None


class LabelsObject(msgspec.Struct, frozen=True, gc=False):
    """A Service or a ReplicationController."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: LabelsSpec | None = None


class SelectorObject(msgspec.Struct, frozen=True, gc=False):
    """A ReplicaSet or a StatefulSet."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: SelectorSpec | None = None


_LABELS: Final = msgspec.json.Decoder(LabelsObject)
_SELECTORS: Final = msgspec.json.Decoder(SelectorObject)


def decode_service(data: bytes | Raw) -> Service:
    """Return a decoded v1 Service. Raises WireError."""
    found = _decoded(_LABELS, Service, data)
    return Service(namespace=found.metadata.namespace, name=found.metadata.name, selector=_labels(found.spec))


def decode_replication_controller(data: bytes | Raw) -> ReplicationController:
    """Return a decoded v1 ReplicationController. Raises WireError."""
    found = _decoded(_LABELS, ReplicationController, data)
    return _owning(ReplicationController, found, _labels(found.spec))


def decode_replica_set(data: bytes | Raw) -> ReplicaSet:
    """Return a decoded apps/v1 ReplicaSet. Raises WireError."""
    return _by_selector(ReplicaSet, data)


def decode_stateful_set(data: bytes | Raw) -> StatefulSet:
    """Return a decoded apps/v1 StatefulSet. Raises WireError."""
    return _by_selector(StatefulSet, data)


def _labels(spec: LabelsSpec | None) -> LabelSelector | None:
    labels = None if spec is None else spec.selector
    return None if labels is None else LabelSelector(tuple(sorted(labels.items())))


def _by_selector(kind: type[S], data: bytes | Raw) -> S:
    found = _decoded(_SELECTORS, kind, data)
    selector = None if found.spec is None or found.spec.selector is None else label_selector(found.spec.selector)
    return _owning(kind, found, selector)


def _owning(kind: type[S], found: LabelsObject | SelectorObject, selector: LabelSelector | None) -> S:
    return kind(
        namespace=found.metadata.namespace,
        name=found.metadata.name,
        selector=selector,
        replicas=None if found.spec is None else found.spec.replicas,
        owner=controller(found.metadata.owner_references),
    )


# Any: the struct of the decoder.
def _decoded(decoder: msgspec.json.Decoder[Any], kind: type[SelectingObject], data: bytes | Raw) -> Any:
    name = kind.__name__
    try:
        found = decoder.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError(name, f"{error}; check that a Kubernetes API server sent it") from error
    if found.kind and found.kind != name:
        raise WireError(name, f"this is a {found.kind:.80}; ask for {name.lower()}s")
    return found
