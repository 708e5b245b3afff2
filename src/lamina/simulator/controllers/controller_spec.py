"""What a controller is told to keep true: plain settings, no behaviour."""

from typing import Literal

import msgspec

from lamina.model.pod import Pod
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle

ControllerKind = Literal["Deployment", "StatefulSet", "DaemonSet", "Job"]


class ControllerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """
    One controller.

    Its pods are called name-1, name-2 and so on, in the order they are made; those of a StatefulSet name-0, name-1 and
    so on, whichever of them are made again.
    """

    kind: ControllerKind
    name: str
    at: float = 0.0
    """When it is created."""
    template: Pod
    """What its pods are like; name, uid, owner and time of creation are set for each."""
    life: PodLifecycle = RUNS_FOREVER
    replicas: int = 1
    """How many pods a Deployment or StatefulSet keeps, or how many completions a Job needs; 0 is allowed."""
    parallelism: int = 1
    """How many pods of a Job are there at once."""
    surge: int | float = 0.25
    """Pods a Deployment may have beyond its number during a rollout: a number, or a share (rounded up)."""
    unavailable: int | float = 0.25
    """Pods a rollout may leave lacking: a number, or a share (rounded down; of a DaemonSet rounded up)."""
    min_ready: float = 0.0
    """Seconds a Deployment's pod has to run before it counts as ready (``minReadySeconds``)."""
    backoff_limit: int = 6
    """Failed pods after which a Job gives up."""
