"""
Events: the only input of the decision core.

The host (live service, extender, simulator) translates what it observes into events and passes them to the loop, in the
order of observation. Only `TimePassed` advances the loop's clock.
"""

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey
from lamina.model.extender_answer import ExtenderAnswer
from lamina.model.image import Image
from lamina.model.layer_report import LayerReport
from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage
from lamina.model.pod import Pod, PodUid


class EventBase(msgspec.Struct, frozen=True, tag_field="type", tag=True):
    """
    Base of all events; when encoded, each event has a ``type`` tag.

    Every event survives MessagePack unchanged. JSON cannot represent infinite amounts, and turns them into null.
    """


class TimePassed(EventBase, frozen=True):
    """The time is *now*; timeouts, back-offs and time-dependent orders follow from this event."""

    now: float


class NodeSeen(EventBase, frozen=True):
    """A node was added or updated; *node* is its current state."""

    node: Node


class NodeGone(EventBase, frozen=True):
    """A node was deleted."""

    name: str


class PodSeen(EventBase, frozen=True):
    """
    A pod was added or updated; *pod* is its current state.

    A pod without a node waits to be placed. A pod with a node uses that node's resources, whichever scheduler placed
    it. A finished pod uses none.
    """

    pod: Pod


class PodGone(EventBase, frozen=True):
    """A pod was deleted."""

    uid: PodUid


class NamespaceSeen(EventBase, frozen=True):
    """A namespace was added or updated; its annotations are defaults for its pods."""

    name: str
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class NamespaceGone(EventBase, frozen=True):
    """A namespace was deleted; a new namespace with the same name is a different one."""

    name: str


class ObjectSeen(EventBase, frozen=True):
    """A disruption budget, volume or other object was added or updated; *found* is its current state."""

    found: ClusterObject


class ObjectGone(EventBase, frozen=True):
    """Such an object was deleted."""

    key: ObjectKey


class ImagesLearned(EventBase, frozen=True):
    """The layers of these images became known."""

    images: tuple[Image, ...]
    good_for: float = 0.0
    """Lifetime of the image names in seconds; 0: until another image is seen under the name."""


class LayersReported(EventBase, frozen=True):
    """A node agent reported which images its node holds."""

    report: LayerReport


class LayersWithdrawn(EventBase, frozen=True):
    """A node's report was deleted; the node's layers are unknown from now on."""

    node: str


class UsageReported(EventBase, frozen=True):
    """The measured resource usage of nodes."""

    usages: tuple[NodeUsage, ...]


class BindDone(EventBase, frozen=True):
    """The API server accepted the binding."""

    uid: PodUid


class BindFailed(EventBase, frozen=True):
    """The binding failed."""

    uid: PodUid
    reason: str


class EvictFailed(EventBase, frozen=True):
    """A pod was not evicted in favour of *preemptor*."""

    uid: PodUid
    preemptor: PodUid
    reason: str
    forbidden: bool = False
    """Whether the permission to delete pods is missing."""


class ReportUnschedulableFailed(EventBase, frozen=True, tag="TellFailed"):
    """The last `ReportUnschedulable` for this pod was not written; the pod's next attempt reports it again."""

    uid: PodUid


class WorkDone(EventBase, frozen=True):
    """The work that *plugin* requested before binding is finished."""

    uid: PodUid
    plugin: str
    attempt: int
    """The attempt of the command; a result for an earlier attempt is ignored."""


class WorkFailed(EventBase, frozen=True):
    """The work that *plugin* requested before binding failed."""

    uid: PodUid
    plugin: str
    attempt: int
    reason: str


class ExtendersAnswered(EventBase, frozen=True):
    """The extenders answered an `AskExtenders`, or failed."""

    uid: PodUid
    number: int
    """The number of the command; an answer with another number is ignored."""
    answer: ExtenderAnswer


class PermitGiven(EventBase, frozen=True):
    """An outside component allowed a waiting pod to continue, on behalf of *plugin*."""

    uid: PodUid
    plugin: str


class PermitRefused(EventBase, frozen=True):
    """An outside component rejected a waiting pod."""

    uid: PodUid
    plugin: str
    reason: str


class PluginHistoryLoaded(EventBase, frozen=True):
    """
    The host loaded what an earlier process had stored for *plugin*.

    It is fed when the existing pods are known, and before pods are decided.
    """

    plugin: str
    history: bytes


ClusterEvent = (
    TimePassed
    | NodeSeen
    | NodeGone
    | PodSeen
    | PodGone
    | NamespaceSeen
    | NamespaceGone
    | ObjectSeen
    | ObjectGone
    | ImagesLearned
    | LayersReported
    | LayersWithdrawn
    | UsageReported
)
"""Changes of the cluster, independent of the deciding component."""

BindingEvent = (
    BindDone
    | BindFailed
    | EvictFailed
    | ReportUnschedulableFailed
    | WorkDone
    | WorkFailed
    | ExtendersAnswered
    | PermitGiven
    | PermitRefused
)
"""Results of commands of the loop."""

Event = ClusterEvent | BindingEvent | PluginHistoryLoaded
