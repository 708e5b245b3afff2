"""
What happened: the only way anything reaches the decision core.

The host (live service, extender, simulator) translates what it sees into these and feeds them to the loop, in the
order it saw them. Time moves by `TimePassed` and by nothing else.
"""

import msgspec

from lamina.model.image import Image
from lamina.model.layer_report import LayerReport
from lamina.model.node import Node
from lamina.model.node_usage import NodeUsage
from lamina.model.pod import Pod, PodUid


class EventBase(msgspec.Struct, frozen=True, tag_field="type", tag=True):
    """
    What all events share: written down, each carries the name of its class as ``type``.

    Every event comes back equal from MessagePack. JSON cannot carry infinite amounts, and turns them into null.
    """


class TimePassed(EventBase, frozen=True):
    """It is *now* now; time-outs, back-offs and orders that depend on time follow from this."""

    now: float


class NodeSeen(EventBase, frozen=True):
    """A node appeared or changed; *node* is how it is now."""

    node: Node


class NodeGone(EventBase, frozen=True):
    """A node left the cluster."""

    name: str


class PodSeen(EventBase, frozen=True):
    """
    A pod appeared or changed; *pod* is how it is now.

    Without a node it waits to be placed; with one it counts on that node, whoever placed it; finished, it counts
    nowhere.
    """

    pod: Pod


class PodGone(EventBase, frozen=True):
    """A pod was deleted."""

    uid: PodUid


class NamespaceSeen(EventBase, frozen=True):
    """A namespace appeared or changed; its annotations hold for pods in it that say nothing themselves."""

    name: str
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class NamespaceGone(EventBase, frozen=True):
    """A namespace was deleted; one made again under its name is another."""

    name: str


class ImagesLearned(EventBase, frozen=True):
    """What these images consist of has become known."""

    images: tuple[Image, ...]
    good_for: float = 0.0
    """Seconds for which their names mean them; 0: until they are seen to mean something else."""


class LayersReported(EventBase, frozen=True):
    """A node's agent reported what the node holds."""

    report: LayerReport


class LayersWithdrawn(EventBase, frozen=True):
    """A node's report is gone, and nothing is known of the node any more."""

    node: str


class UsageReported(EventBase, frozen=True):
    """Somebody measured what nodes are really used for."""

    usages: tuple[NodeUsage, ...]


class BindDone(EventBase, frozen=True):
    """The binding asked for was accepted."""

    uid: PodUid


class BindFailed(EventBase, frozen=True):
    """The binding asked for was refused."""

    uid: PodUid
    reason: str


class ReportUnschedulableFailed(EventBase, frozen=True, tag="TellFailed"):
    """The message of the last `TellPending` for this pod was not written; the pod's next attempt reports it again."""

    uid: PodUid


class WorkDone(EventBase, frozen=True):
    """The work *plugin* asked for before binding is finished."""

    uid: PodUid
    plugin: str
    attempt: int
    """Of the command this answers; an answer to an earlier attempt counts for nothing."""


class WorkFailed(EventBase, frozen=True):
    """The work *plugin* asked for before binding failed."""

    uid: PodUid
    plugin: str
    attempt: int
    reason: str


class PermitGiven(EventBase, frozen=True):
    """Somebody outside allowed a waiting pod to go on, as far as *plugin* is concerned."""

    uid: PodUid
    plugin: str


class PermitRefused(EventBase, frozen=True):
    """Somebody outside refused a waiting pod."""

    uid: PodUid
    plugin: str
    reason: str


ClusterEvent = (
    TimePassed
    | NodeSeen
    | NodeGone
    | PodSeen
    | PodGone
    | NamespaceSeen
    | NamespaceGone
    | ImagesLearned
    | LayersReported
    | LayersWithdrawn
    | UsageReported
)
"""What happened in the cluster, whichever component decides."""

BindingEvent = BindDone | BindFailed | ReportUnschedulableFailed | WorkDone | WorkFailed | PermitGiven | PermitRefused
"""What became of a command of the loop."""

Event = ClusterEvent | BindingEvent
