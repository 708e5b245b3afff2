"""
Outcomes of pods and nodes, built from the cluster after a run.

The seconds between a pod's binding and its start are split by its pulls, which follow each other without gaps:

    queue       until a pull starts
    download    until its last byte
    unpack      until the image is unpacked
    start       after the last pull
"""

from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualCluster, VirtualPod
from lamina.simulator.cluster.kubelet import VirtualKubelet
from lamina.simulator.pulls import ImagePullRequest
from lamina.simulator.run.result import NodeOutcome, PodOutcome
from lamina.simulator.run.simulation_host import SimulationHost

NO_PROFILE = "no profile of this configuration is called {!r}"


def pod_outcomes(cluster: VirtualCluster, host: SimulationHost, served: frozenset[str]) -> tuple[PodOutcome, ...]:
    """Return the outcomes of all pods; *served* are the names of the run's schedulers."""
    return tuple([_pod_outcome(uid, pod, host, served) for uid, pod in cluster.pods.items()])


def node_outcomes(cluster: VirtualCluster) -> tuple[NodeOutcome, ...]:
    """Return the outcomes of all nodes, including those that left."""
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
    queue, download, unpack, start = split_startup(pod.bound, pod.started, pulls)
    return PodOutcome(
        pod=pod.key,
        uid=uid,
        phase=pod.phase,
        node=pod.node,
        arrived=pod.arrived,
        decided=host.placed_at.get(uid),
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


StartupParts = tuple[float | None, float | None, float | None, float | None]


def split_startup(bound: float | None, started: float | None, pulls: list[ImagePullRequest]) -> StartupParts:
    """Split the seconds from binding to start into queue, download, unpack and start; None if never started."""
    if bound is None or started is None:
        return None, None, None, None
    if not pulls:
        return 0.0, 0.0, 0.0, started - bound
    queue = download = unpack = 0.0
    here = bound
    for pull in pulls:
        # A lazy pull continues after the start of the pod; that time does not count.
        turn = _between(here, pull.began_at, started)
        last_byte = _between(turn, pull.downloaded_at, started)
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
