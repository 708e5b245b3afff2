"""What the loop asks its host to do. Plain data: the live service performs it, the simulator pretends to."""

import msgspec

from lamina.model.decision import Decision
from lamina.model.pod import Pod


class Bind(msgspec.Struct, frozen=True):
    """Bind *pod* to *node*; answer with BindDone or BindFailed."""

    pod: Pod
    node: str
    decision: Decision | None = None


class DoWork(msgspec.Struct, frozen=True):
    """Do what *plugin* needs before *pod* may be bound; answer with WorkDone or WorkFailed."""

    pod: Pod
    node: str
    plugin: str
    attempt: int
    """To be repeated in the answer."""
    task: object


class Evict(msgspec.Struct, frozen=True):
    """Delete *pod* to make room for *preemptor*."""

    pod: Pod
    preemptor: Pod
    node: str


class Nominate(msgspec.Struct, frozen=True):
    """Write down that *pod* is meant for *node* once room has been made; an empty node clears it."""

    pod: Pod
    node: str


class ReportUnschedulable(msgspec.Struct, frozen=True):
    """Tell the pod's owner why it was not placed this time (condition and event)."""

    pod: Pod
    decision: Decision


class ReportPluginError(msgspec.Struct, frozen=True):
    """Tell the operator that a plugin raised where no pod's attempt could fail for it: nothing is to be answered."""

    plugin: str
    point: str
    """The method that raised: post_bind, unreserve, wake, pod_seen, ..."""
    message: str
    pod: Pod | None = None


class WakeAt(msgspec.Struct, frozen=True):
    """Feed TimePassed at this time or soon after. The newest WakeAt replaces earlier ones."""

    at: float


Command = Bind | DoWork | Evict | Nominate | ReportPluginError | ReportUnschedulable | WakeAt
