"""Services and controllers, restricted to the pods that they select: default spread constraints count those."""

from typing import Final

import msgspec

from lamina.model.pod import Owner
from lamina.model.selectors import LabelSelector

CORE_V1: Final = "v1"
APPS_V1: Final = "apps/v1"


class SelectingObject(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An object that selects pods of its namespace."""

    namespace: str
    name: str
    selector: LabelSelector | None = None
    """The selected pods; None for no pods."""


class Service(SelectingObject, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A v1 Service."""


class OwningObject(SelectingObject, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An object that also creates the pods that it selects."""

    replicas: int | None = None
    """Number of pods that should run at the same time, if known."""
    owner: Owner | None = None
    """The controller that owns it."""


class ReplicationController(OwningObject, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A v1 ReplicationController."""


class ReplicaSet(OwningObject, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An apps/v1 ReplicaSet."""


class StatefulSet(OwningObject, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An apps/v1 StatefulSet."""
