"""
What a run was: each pod's way through it, what each node downloaded, and what the cluster did on its own.

Written down once, when the run is over, from what the cluster remembers: nothing here costs anything while it runs.
"""

import msgspec

from lamina.model.decision import Decision
from lamina.simulator.cluster import Phase


class PodOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """
    One pod. Times are seconds of the run; None means that it never came to that.

        arrived --queue--> decided --decision--> bound --pull_queue, download, unpack--> --start--> started --> ended

    The six parts add up to all the seconds from its arrival to its start.
    """

    pod: str
    """``namespace/name``."""
    uid: str = ""
    phase: Phase
    """How far it was at the end of the run."""
    node: str = ""
    arrived: float
    decided: float | None = None
    """When the attempt began that found it its node."""
    bound: float | None = None
    pull_began: float | None = None
    """When the first pull for it began; None also when nothing had to be pulled."""
    started: float | None = None
    """When it ran for the first time."""
    ended: float | None = None
    pull_queue: float | None = None
    """Seconds its pulls waited for their turn, failed attempts and back-off included; None until it has started."""
    download: float | None = None
    """Seconds from the begin of a pull to its last byte, over all its pulls."""
    unpack: float | None = None
    """Seconds from the last byte to the whole image, over all its pulls."""
    start: float | None = None
    """Seconds from the last image to running containers."""
    bytes_wanted: int = 0
    """Compressed bytes of its images, each distinct layer counted once."""
    bytes_pulled: int = 0
    """Bytes that were downloaded because of it."""
    pull_failures: int = 0
    restarts: int = 0
    deadline: float | None = None
    """Seconds after which it would have been ended (``activeDeadlineSeconds``)."""
    reason: str = ""
    """Why it ended, if not by itself and well."""
    message: str = ""
    """Why it was not placed the last time it was tried; empty once it is bound."""

    @property
    def queue(self) -> float | None:
        """Seconds from arrival to the attempt that placed it."""
        return None if self.decided is None or self.bound is None else self.decided - self.arrived

    @property
    def decision(self) -> float | None:
        """Seconds from the begin of that attempt to the binding."""
        return None if self.decided is None or self.bound is None else self.bound - self.decided

    @property
    def waiting(self) -> float | None:
        """Seconds from arrival to binding."""
        return None if self.bound is None else self.bound - self.arrived

    @property
    def pulling(self) -> float | None:
        """Seconds from binding to running: the puller's queue, the download, unpacking and the start."""
        return None if self.started is None or self.bound is None else self.started - self.bound

    @property
    def total(self) -> float | None:
        """Seconds from arrival to running."""
        return None if self.started is None else self.started - self.arrived

    @property
    def slowdown(self) -> float | None:
        """
        How many times as long as it ran it was there, for a pod that finished.

        Bounded as usual in the literature on batch scheduling: what runs for less than ten seconds counts as ten, and
        nothing is below 1, so that very short pods do not drown all others.
        """
        if self.phase != "finished" or self.started is None or self.ended is None:
            return None
        return max(1.0, (self.ended - self.arrived) / max(self.ended - self.started, SHORTEST))


SHORTEST = 10.0
"""Seconds below which a run time does not count in a slowdown."""


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node."""

    node: str
    bytes_pulled: int
    pulls: int
    """Images that were not on it and were pulled."""
    bytes_held: int
    """Compressed bytes on it at the end."""
    pods: int
    """How many pods started on it."""


class ImageRemovals(msgspec.Struct, frozen=True, kw_only=True):
    """What nodes removed from their disks."""

    images: int = 0
    """Images, for whatever reason."""
    bytes: int = 0
    """What became free."""
    pressure_images: int = 0
    """Those that went because a disk was nearly full."""


class Utilisation(msgspec.Struct, frozen=True, kw_only=True):
    """Share of all cpu-seconds of the cluster, over the window of `balance`; None when there were none."""

    requested: float | None = None
    """Asked for by pods, from binding to end."""
    used: float | None = None
    """Really used by pods while they ran."""


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    scenario: str
    profile: str
    seed: int
    latency: str = "free"
    """What deciding cost, see `latency`; a run with a measured one cannot be repeated to the byte."""
    seconds: float
    """When the last thing happened."""
    attempts: int = 0
    """How many decisions were told; an attempt that fails for the same reason as the one before is not told again."""
    heating: float | None
    """How much hotter the hottest node was than the mean, see `balance`; None when no cpu was asked for."""
    balance: float | None
    """How far apart the nodes' loads were, see `balance`; None when no cpu was asked for."""
    utilisation: Utilisation = Utilisation()
    overload_seconds: float | None = None
    """Seconds during which nodes used more than 90 % of their cpu or memory, over all nodes; None: nobody measured."""
    cleared: ImageRemovals = ImageRemovals()
    evictions: int = 0
    """Pods that were ended because their node was short of something or failed."""
    failures: int = 0
    """Pods that ended with a failure of their own."""
    pull_failures: int = 0
    """Attempts to pull that failed."""
    pods: tuple[PodOutcome, ...]
    """In the order of their arrival."""
    nodes: tuple[NodeOutcome, ...]
    """In the order of the scenario, those that left included."""
    decisions: tuple[Decision, ...] = ()
    """Every decision that was told, after a run in full detail. Without it they are in the trace only: they weigh a lot."""
