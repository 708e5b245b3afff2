"""Commands that the loop returns to its host. The scheduler service executes them; the simulator acts them out."""

import msgspec

from lamina.model.decision import Decision
from lamina.model.pod import Pod


class Bind(msgspec.Struct, frozen=True):
    """Bind *pod* to *node*. The host answers with BindDone or BindFailed."""

    pod: Pod
    node: str
    decision: Decision | None = None
    extender: str = ""
    """The extender that binds the pod, or empty; see `contract/extender_chain.py`."""


class DoWork(msgspec.Struct, frozen=True):
    """Do the work that *plugin* needs before *pod* can be bound. The host answers with WorkDone or WorkFailed."""

    pod: Pod
    node: str
    plugin: str
    attempt: int
    """The host repeats it in its answer."""
    task: object


class ProposedVictims(msgspec.Struct, frozen=True):
    """Pods on one node whose eviction would make room for another pod."""

    node: str
    victims: tuple[Pod, ...]
    violations: int = 0
    """Number of victims whose disruption budget would be violated."""


class AskExtenders(msgspec.Struct, frozen=True):
    """
    Ask extenders which of *nodes* suit *pod*, and for scores. The host always answers, with ExtendersAnswered.

    The extenders with a filter verb are asked one after the other, each about the nodes that are left. If several nodes
    are left then, those with a prioritize verb are asked, all at once.

    With *proposed*, the pod fits on no node, and the question is which of these victims may be evicted. The extenders
    with a preempt verb are asked one after the other, each about the victims that are left.
    """

    pod: Pod
    attempt: int
    number: int
    """The host repeats it in its answer."""
    nodes: tuple[str, ...]
    extenders: tuple[str, ...]
    """Names of the extenders that are interested in the pod, in order."""
    proposed: tuple[ProposedVictims, ...] = ()
    """At most one entry for each node; *nodes* are theirs."""


class Evict(msgspec.Struct, frozen=True):
    """Delete *pod* to make room for *preemptor*. The host answers with EvictFailed if the pod was not deleted."""

    pod: Pod
    preemptor: Pod
    node: str


class Nominate(msgspec.Struct, frozen=True):
    """Set the pod's nominatedNodeName to *node*, where victims are being evicted; an empty node clears it."""

    pod: Pod
    node: str


class ReportUnschedulable(msgspec.Struct, frozen=True):
    """Report to the pod's owner why this attempt failed, as a condition and an event."""

    pod: Pod
    decision: Decision


class ReportPluginError(msgspec.Struct, frozen=True):
    """Report to the operator that a plugin raised outside of a pod's attempt. The host does not answer."""

    plugin: str
    point: str
    """The method that raised: post_bind, unreserve, wake, pod_seen, ..."""
    message: str
    pod: Pod | None = None


class WakeAt(msgspec.Struct, frozen=True):
    """Feed TimePassed at *at* (in seconds) or soon after. The newest WakeAt replaces earlier ones."""

    at: float


Command = AskExtenders | Bind | DoWork | Evict | Nominate | ReportPluginError | ReportUnschedulable | WakeAt
