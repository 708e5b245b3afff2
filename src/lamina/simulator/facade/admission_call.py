"""What the parts of admission share: the context of the server, and one object on its way into the store."""

from collections.abc import Callable

import msgspec

from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.resource_type import ResourceType
from lamina.wire.kube.encoded_values import encode_timestamp


class AdmissionContext(msgspec.Struct, frozen=True):
    """What admission needs to know about the cluster."""

    now: Callable[[], float]
    """Returns the current time of the run in Unix seconds."""
    priority_class: Callable[[str], KubeObject | None]
    default_priority_class: Callable[[], KubeObject | None]
    namespace_exists: Callable[[str], bool]
    new_nodes_not_ready: bool = False
    """Whether a new node gets the taint ``node.kubernetes.io/not-ready``, which a controller removes on a real server."""

    def timestamp(self) -> str:
        """Return the current time as the API writes it."""
        return encode_timestamp(self.now())


class AdmissionCall(msgspec.Struct, frozen=True):
    """One object that a client creates, with the problems that were found in it."""

    type: ResourceType
    context: AdmissionContext
    problems: FieldProblems
    api_version: str
    """The ``apiVersion`` of the request's path; it differs from the stored one for legacy views."""
