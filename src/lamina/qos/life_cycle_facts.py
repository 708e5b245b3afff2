"""
Facts about the life of pods: the only input of the QoS engine.

Each fact has the time at which it happened, in seconds since 1970 (or since the start of a simulation). It can become
known later. The same facts in the same order always produce the same results.
"""

import msgspec

from lamina.model.pod import PodUid
from lamina.qos.promise import ControllerKey, Promise


class LifeCycleFact(msgspec.Struct, frozen=True, tag_field="fact", tag=True):
    """Base of all facts."""

    at: float
    """When it happened."""


class PodFact(LifeCycleFact, frozen=True):
    """Base of the facts about one pod."""

    uid: PodUid


class PodCreated(PodFact, frozen=True):
    """A pod was created, and waits."""

    namespace: str
    name: str
    controller: ControllerKey
    promise: Promise
    replicas: int | None = None
    """Number of pods that should run at the same time; None: not known."""


class PodReserved(PodFact, frozen=True):
    """The scheduler chose a node for the pod."""


class PodUnreserved(PodFact, frozen=True):
    """The scheduler gave up that node."""


class PodWasBound(PodFact, frozen=True):
    """The pod was bound to a node."""

    binding_since: float | None = None
    """When its binding began; None: not known, then the binding took no time."""


class PodRuns(PodFact, frozen=True):
    """The pod's containers run."""


class PodIsReady(PodFact, frozen=True):
    """The pod became ready."""


class PodIsUnready(PodFact, frozen=True):
    """The pod lost its readiness."""


class PodIsTerminating(PodFact, frozen=True):
    """The deletion of the pod began; it may still run."""


class PodEnded(PodFact, frozen=True):
    """The pod's containers ended for good."""

    succeeded: bool


class PodDeleted(PodFact, frozen=True):
    """The pod object is gone; a pod that had not ended ends."""


class ControllerResized(LifeCycleFact, frozen=True):
    """A controller's number of replicas, or its promise, changed."""

    controller: ControllerKey
    replicas: int | None = None
    promise: Promise | None = None


class ControllerGone(LifeCycleFact, frozen=True):
    """A controller was deleted; it is forgotten as soon as it has no pods."""

    controller: ControllerKey


QosFact = (
    PodCreated
    | PodReserved
    | PodUnreserved
    | PodWasBound
    | PodRuns
    | PodIsReady
    | PodIsUnready
    | PodIsTerminating
    | PodEnded
    | PodDeleted
    | ControllerResized
    | ControllerGone
)
"""Every fact, as recorded and replayed."""
