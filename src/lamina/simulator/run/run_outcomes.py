"""
From a cluster that has been through a run to what is written down of it.

The seconds between binding and running are cut where its pulls were cut. A pod asks for one image after the other, so
the pieces follow each other and leave no gap: what lies before a pull's turn is queue, up to its last byte download, up
to the whole image unpacking, and what remains after the last is the start.
"""

from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualCluster, VirtualPod
from lamina.simulator.cluster.kubelet import VirtualKubelet
from lamina.simulator.pulls import ImagePullRequest
from lamina.simulator.run.result import NodeOutcome, PodOutcome
from lamina.simulator.run.simulation_host import SimulationHost

NO_PROFILE = "no profile of this configuration is called {!r}"


def pod_outcomes(cluster: VirtualCluster, host: SimulationHost, served: frozenset[str]) -> tuple[PodOutcome, ...]:
    """Write down what became of the pods; *served* are the schedulers that somebody runs."""
    return tuple([_pod_outcome(uid, pod, host, served) for uid, pod in cluster.pods.items()])


def node_outcomes(cluster: VirtualCluster) -> tuple[NodeOutcome, ...]:
    """Write down what became of the nodes."""
    started: dict[str, int] = {}
    for pod in cluster.pods.values():
        if pod.started is not None:
            started[pod.node] = started.get(pod.node, 0) + 1
    return tuple(_node_outcome(one, started.get(name, 0)) for name, one in cluster.kubelets.items())


def _pod_outcome(uid: PodUid, pod: VirtualPod, host: SimulationHost, served: frozenset[str]) -> PodOutcome:
    message = ""
    if pod.bound is None:
        name = pod.pod.scheduler_name
        message = host.messages.get(uid, "") if name in served else NO_PROFILE.format(name)
    pulls = pod.pulls
    queue, download, unpack, start = cut(pod.bound, pod.started, pulls)
    return PodOutcome(
        pod=pod.key,
        uid=uid,
        phase=pod.phase,
        node=pod.node,
        arrived=pod.arrived,
        decided=host.chosen.get(uid),
        bound=pod.bound,
        pull_began=pulls[0].began_at if pulls else None,
        started=pod.started,
        ended=pod.ended,
        pull_queue=queue,
        download=download,
        unpack=unpack,
        start=start,
        bytes_wanted=pod.wanted_bytes,
        bytes_pulled=sum([pull.downloaded for pull in pulls]) if pulls else 0,
        pull_failures=sum([pull.failures for pull in pulls]) if pulls else 0,
        restarts=pod.restarts,
        deadline=pod.life.deadline,
        reason=pod.reason,
        message=message,
    )


Pieces = tuple[float | None, float | None, float | None, float | None]


def cut(bound: float | None, started: float | None, pulls: list[ImagePullRequest]) -> Pieces:
    """Cut the seconds from binding to start into queue, download, unpacking and start; Nones for who never started."""
    if bound is None or started is None:
        return None, None, None, None
    if not pulls:
        return 0.0, 0.0, 0.0, started - bound
    queue = download = unpack = 0.0
    here = bound
    for pull in pulls:
        # A lazy pull goes on after the start; what is after it is not waited for.
        turn = _between(here, pull.began_at, started)
        last_byte = _between(turn, pull.fetched_at, started)
        there = _between(last_byte, pull.done_at, started)
        queue += turn - here
        download += last_byte - turn
        unpack += there - last_byte
        here = there
    return queue, download, unpack, started - here


def _between(here: float, moment: float | None, end: float) -> float:
    return here if moment is None else min(max(here, moment), end)


def _node_outcome(kubelet: VirtualKubelet, pods: int) -> NodeOutcome:
    return NodeOutcome(
        node=kubelet.node.name,
        bytes_pulled=kubelet.puller.pulled_bytes,
        pulls=kubelet.puller.pulled_images,
        bytes_held=kubelet.node.store.size,
        pods=pods,
    )
