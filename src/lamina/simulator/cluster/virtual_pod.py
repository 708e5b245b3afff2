"""
A pod in a virtual cluster: its phase and the times of its history.

    pending --bind--> pulling --images held---> starting --start delay--> running --duration--> stopping --stop delay--+
       |  |              |                         |                      |  ^   |                  |                  |
       |  |              |                         |       restart policy |  |   +--deleted---------+                  |
       |  |              |                         |                      v  |back-off              |                  |
       |  |              |                         |                   restarting                   |                  |
       |  +-rejected-> rejected                    |                      |                         |                  |
       +-----------------+---------remove----------+----------------------+-------------------------+--> removed       |
                                                                               finished, failed <----------------------+

An eviction or a deadline makes an admitted pod failed from any phase. Only the cluster and the kubelets change a pod.
"""

from typing import Final, Literal

from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.model.resources import Amounts
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle
from lamina.simulator.engine import Timer
from lamina.simulator.pulls import ImagePullRequest

Phase = Literal[
    "pending",
    "pulling",
    "starting",
    "running",
    "restarting",
    "stopping",
    "finished",
    "failed",
    "rejected",
    "removed",
]

ENDED: Final[frozenset[Phase]] = frozenset({"finished", "failed", "rejected", "removed"})


# Shared by all pods without pulls, which are most pods of a long run.
NO_PULLS: Final[list[ImagePullRequest]] = []


class VirtualPod:
    """One pod: its specification, lifecycle and history."""

    __slots__ = (
        "accepted",
        "alarm",
        "arrived",
        "backoff",
        "bound",
        "ended",
        "grace",
        "images",
        "key",
        "life",
        "node",
        "phase",
        "pod",
        "pulls",
        "ready_images",
        "reason",
        "restarts",
        "since",
        "stage",
        "started",
        "timer",
        "wanted_bytes",
    )

    def __init__(
        self,
        pod: Pod,
        images: tuple[Image, ...],
        arrived: float,
        life: PodLifecycle = RUNS_FOREVER,
        wanted_bytes: int | None = None,
    ) -> None:
        """Create a pending pod that needs *images* in this order; *wanted_bytes* is computed if None."""
        self.pod = pod
        self.key = pod.key
        self.images = images
        self.life = life
        self.phase: Phase = "pending"
        self.node = ""
        """The node it is or was bound to."""
        self.arrived = arrived
        self.bound: float | None = None
        self.accepted: float | None = None
        """When its kubelet admitted it."""
        self.started: float | None = None
        """When its containers ran for the first time."""
        self.ended: float | None = None
        """When it finished, failed, was rejected or was removed."""
        self.reason = ""
        """Kubernetes' reason why it failed, was rejected or was evicted; empty otherwise."""
        self.pulls = NO_PULLS
        """Its image pulls. The list is replaced, never changed."""
        self.restarts = 0
        self.wanted_bytes = distinct_bytes(images) if wanted_bytes is None else wanted_bytes
        """Compressed bytes of its images, each distinct layer counted once."""
        self.grace: float | None = None
        """Grace period in seconds of its deletion; None: it is not being deleted."""
        self.ready_images = 0
        """Number of its images that the node holds for it."""
        self.since: float | None = None
        """Start of the current run of its containers; None: they do not run."""
        self.backoff = 0.0
        """Seconds of back-off before the next restart."""
        self.timer: Timer | None = None
        """Timer of its next phase."""
        self.alarm: Timer | None = None
        """Timer of its deadline."""
        self.stage: Timer | None = None
        """Timer of the next stage of its run."""

    @property
    def pull_began(self) -> float | None:
        """Start of its first pull; None if the node held all its images."""
        return self.pulls[0].began_at if self.pulls else None

    @property
    def pulled_bytes(self) -> int:
        """Bytes that its pulls downloaded, also after its removal."""
        return sum(pull.downloaded for pull in self.pulls)

    def using(self, now: float) -> Amounts:
        """Return its actual usage at time *now*."""
        if self.since is None:
            return ()
        stages = self.life.stages
        if not stages:
            return self.pod.requests
        # The same float sums as in `NodePressure`, so that a new stage applies exactly when it begins.
        seconds = 0.0
        for stage in stages:
            seconds += stage.seconds
            if now < self.since + seconds:
                return stage.usage
        return stages[-1].usage


def distinct_bytes(images: tuple[Image, ...]) -> int:
    """Return the compressed bytes of *images*, each distinct layer once."""
    return sum({layer.digest: layer.size for image in images for layer in image.layers}.values())
