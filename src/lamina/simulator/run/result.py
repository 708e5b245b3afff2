"""
Result of a run: the outcome of each pod and node, and totals of the cluster.

It is built once after the run from the state of the cluster, and costs nothing during the run.
"""

import msgspec

from lamina.model.decision import Decision
from lamina.simulator.cluster import Phase
from lamina.simulator.run.service_levels import RunServiceLevels


class PodOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    Outcome of one pod. Times are seconds of the run; None if the pod did not get that far.

        arrived --queue--> decided --decision--> bound --pull_queue, download, unpack--> --start--> started --> ended

    The six parts add up to the seconds from its arrival to its start.
    """

    pod: str
    """``namespace/name``."""
    uid: str = ""
    phase: Phase
    """Its phase at the end of the run."""
    node: str = ""
    arrived: float
    decided: float | None = None
    """Start of the attempt that placed it."""
    bound: float | None = None
    pull_began: float | None = None
    """Start of its first pull; None also if no pull was needed."""
    started: float | None = None
    """First start of its containers."""
    ended: float | None = None
    pull_queue: float | None = None
    """Seconds its pulls were queued, including failed attempts and back-off; None if it never started."""
    download: float | None = None
    """Seconds from the start of a pull to its last byte, summed over its pulls."""
    unpack: float | None = None
    """Seconds from the last byte to the unpacked image, summed over its pulls."""
    start: float | None = None
    """Seconds from the last image to running containers."""
    bytes_wanted: int = 0
    """Compressed bytes of its images, each distinct layer counted once."""
    bytes_pulled: int = 0
    """Bytes that its pulls downloaded."""
    pull_failures: int = 0
    restarts: int = 0
    deadline: float | None = None
    """``activeDeadlineSeconds``; None: no deadline."""
    reason: str = ""
    """Why it failed, was rejected or was evicted; empty otherwise."""
    message: str = ""
    """Why its last attempt did not place it; empty once it is bound."""

    @property
    def queue(self) -> float | None:
        """Seconds from arrival to the attempt that placed it."""
        return None if self.decided is None or self.bound is None else self.decided - self.arrived

    @property
    def decision(self) -> float | None:
        """Seconds from the start of that attempt to the binding."""
        return None if self.decided is None or self.bound is None else self.bound - self.decided

    @property
    def waiting(self) -> float | None:
        """Seconds from arrival to binding."""
        return None if self.bound is None else self.bound - self.arrived

    @property
    def pulling(self) -> float | None:
        """Seconds from binding to running: pull queue, download, unpacking and start."""
        return None if self.started is None or self.bound is None else self.started - self.bound

    @property
    def total(self) -> float | None:
        """Seconds from arrival to running."""
        return None if self.started is None else self.started - self.arrived

    @property
    def slowdown(self) -> float | None:
        """
        Bounded slowdown of a finished pod: (end - arrival) / max(run time, 10 s), at least 1.

        The bound is common in the literature on batch scheduling: very short pods would otherwise dominate the mean.
        """
        if self.phase != "finished" or self.started is None or self.ended is None:
            return None
        return max(1.0, (self.ended - self.arrived) / max(self.ended - self.started, SHORTEST))


SHORTEST = 10.0
"""Shortest run time, in seconds, used in a slowdown."""


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Outcome of one node."""

    node: str
    bytes_pulled: int
    pulls: int
    """Images that it did not hold and pulled."""
    bytes_held: int
    """Compressed bytes that it holds at the end."""
    pods: int
    """Number of pods that started on it."""


class ImageRemovals(msgspec.Struct, frozen=True, kw_only=True):
    """Images that garbage collection removed from all nodes."""

    images: int = 0
    """Removed images, for any reason."""
    bytes: int = 0
    """Bytes that became free."""
    pressure_images: int = 0
    """Images removed because of disk pressure."""


class Utilisation(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the cluster's cpu-seconds, over the window of `load_imbalance`; None if it has no cpu."""

    requested: float | None = None
    """Requested by pods, from binding to end."""
    used: float | None = None
    """Used by pods while they ran."""


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one run."""

    scenario: str
    profile: str
    seed: int
    latency: str = "free"
    """Decision latency (`latency`); a run with measured latency is not reproducible."""
    seconds: float
    """Time of the last trace record."""
    attempts: int = 0
    """Number of reported decisions. An attempt that fails for the same reason as the previous one is not reported."""
    peak_load: float | None
    """Load of the fullest node / mean load, averaged over time (`load_imbalance`); None if no pod requested cpu."""
    imbalance: float | None
    """Coefficient of variation of the nodes' loads, averaged over time; None if no pod requested cpu."""
    utilisation: Utilisation = Utilisation()
    overload_seconds: float | None = None
    """Seconds during which nodes used more than 90 % of cpu or memory, summed over nodes; None: not measured."""
    cleared: ImageRemovals = ImageRemovals()
    evictions: int = 0
    """Pods evicted because their node failed or was short of memory or disk."""
    preemptions: int = 0
    """Pods that the scheduler evicted in favour of others; not among the evictions."""
    failures: int = 0
    """Pods that failed by themselves."""
    pull_failures: int = 0
    """Failed attempts to pull an image."""
    pods: tuple[PodOutcome, ...]
    """Pods in the order of their arrival."""
    nodes: tuple[NodeOutcome, ...]
    """Nodes in the order of the scenario, including those that left."""
    service_levels: RunServiceLevels | None = None
    """How controllers kept the availability that they promised; None: none of them promised any."""
    stopped: str = ""
    """Why the run ended too early; empty if it did not."""
    decisions: tuple[Decision, ...] = ()
    """All reported decisions, if the run has full detail; otherwise they are only in the trace, to save memory."""
