"""Services and controllers, restricted to the pods that they select: default spread constraints count those."""

from typing import Final

import msgspec

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


class ReplicationController(SelectingObject, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """A v1 ReplicationController."""


class ReplicaSet(SelectingObject, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An apps/v1 ReplicaSet."""


class StatefulSet(SelectingObject, frozen=True, kw_only=True, tag_field="kind", tag=True):
    """An apps/v1 StatefulSet."""
