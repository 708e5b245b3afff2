"""What a run was: each pod's way through it, what each node downloaded, and every decision."""

import msgspec

from lamina.model.decision import Decision
from lamina.simulator.cluster import Cluster, Phase, VirtualPod
from lamina.simulator.cluster.kubelet import Kubelet


class PodOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One pod. Times are seconds of the run; None means that it never came to that."""

    pod: str
    """``namespace/name``."""
    phase: Phase
    """How far it was at the end of the run."""
    node: str = ""
    arrived: float
    decided: float | None = None
    """When its node was chosen."""
    bound: float | None = None
    pull_began: float | None = None
    """When the first pull for it began; None also when nothing had to be pulled."""
    started: float | None = None
    ended: float | None = None
    bytes_wanted: int = 0
    """Compressed bytes of its images, each distinct layer counted once."""
    bytes_pulled: int = 0
    """Bytes that were downloaded because of it."""
    message: str = ""
    """Why it was not placed the last time it was tried; empty once it is bound."""

    @property
    def waiting(self) -> float | None:
        """Seconds from arrival to binding."""
        return None if self.bound is None else self.bound - self.arrived

    @property
    def pulling(self) -> float | None:
        """Seconds from binding to running: the puller's queue, the download and the start."""
        return None if self.started is None or self.bound is None else self.started - self.bound


class NodeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One node."""

    node: str
    bytes_pulled: int
    pulls: int
    """Images that were not on it and were pulled."""
    bytes_held: int
    """Compressed bytes on it at the end."""
    pods: int
    """How many pods started on it."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    scenario: str
    profile: str
    seed: int
    seconds: float
    """When the last thing happened."""
    heating: float | None
    """How much hotter the hottest node was than the mean, see `balance`; None when no cpu was asked for."""
    balance: float | None
    """How far apart the nodes' loads were, see `balance`; None when no cpu was asked for."""
    pods: tuple[PodOutcome, ...]
    """In the order of their arrival."""
    nodes: tuple[NodeOutcome, ...]
    """In the order of the scenario, those that left included."""
    decisions: tuple[Decision, ...]
    """Every decision the loop told of; an attempt that fails for the same reason as the one before is not told again."""


def pod_outcomes(cluster: Cluster, decisions: list[Decision], unserved: dict[str, str]) -> tuple[PodOutcome, ...]:
    """Write down what became of the pods; *unserved* has words for schedulers that nobody runs."""
    decided: dict[str, Decision] = {decision.uid: decision for decision in decisions}
    return tuple(_pod_outcome(pod, decided.get(pod.pod.uid), unserved) for pod in cluster.pods.values())


def node_outcomes(cluster: Cluster) -> tuple[NodeOutcome, ...]:
    """Write down what became of the nodes."""
    started: dict[str, int] = {}
    for pod in cluster.pods.values():
        if pod.started is not None:
            started[pod.node] = started.get(pod.node, 0) + 1
    return tuple(_node_outcome(one, started.get(name, 0)) for name, one in cluster.kubelets.items())


def _pod_outcome(pod: VirtualPod, decision: Decision | None, unserved: dict[str, str]) -> PodOutcome:
    placed = decision is not None and decision.outcome == "placed"
    message = decision.message if decision is not None else unserved.get(pod.pod.scheduler_name, "")
    return PodOutcome(
        pod=pod.pod.key,
        phase=pod.phase,
        node=pod.node,
        arrived=pod.arrived,
        decided=decision.at if decision is not None and placed else None,
        bound=pod.bound,
        pull_began=pod.pull_began,
        started=pod.started,
        ended=pod.ended,
        bytes_wanted=pod.wanted_bytes,
        bytes_pulled=pod.pulled_bytes,
        message="" if pod.bound is not None else message,
    )


def _node_outcome(kubelet: Kubelet, pods: int) -> NodeOutcome:
    return NodeOutcome(
        node=kubelet.node.name,
        bytes_pulled=kubelet.puller.pulled_bytes,
        pulls=kubelet.puller.pulled_images,
        bytes_held=kubelet.node.store.size,
        pods=pods,
    )
