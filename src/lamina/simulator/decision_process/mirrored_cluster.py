"""
A cluster that follows a simulator: its nodes, pods and clock do what the simulator's messages say.

Its pods run until the simulator reports that their job has ended. Nothing takes time in it: pods start when they are
bound. A scheduler decides in it as in any simulated cluster, whichever decider it is behind.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from lamina.model import resources
from lamina.model.errors import LaminaError
from lamina.model.pod import Container, Owner, Pod, PodUid, total_requests
from lamina.model.pod_groups import gang_annotations
from lamina.model.quantity import QuantityError
from lamina.model.resources import CPU, MEMORY, PODS, Amounts
from lamina.simulator.cluster import Delays, VirtualCluster, VirtualNode, VirtualNodeSpec
from lamina.simulator.cluster.image_reports import empty_image
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER
from lamina.simulator.cluster.virtual_pod import ENDED, VirtualPod
from lamina.simulator.controllers.disruption_controller import DisruptionController
from lamina.simulator.decider import Decider
from lamina.simulator.engine import Environment
from lamina.simulator.engine.environment import INFINITY
from lamina.simulator.run.run_parts import DeciderFactory, LazyControllers, RunParts
from lamina.simulator.run.simulation_host import SimulationHost
from lamina.simulator.workloads.imports.pod_drafts import UniqueNames
from lamina.wire.batsim.messages import ProtocolError
from lamina.wire.batsim.simulator_events import BatsimHost

NO_DELAYS: Final = Delays(report=0.0, status=0.0, start=0.0)
USUAL_MEMORY: Final = "4Gi"
"""Memory of a host that says none, as in imported platforms."""
USUAL_PODS: Final = 110
BANDWIDTH: Final = 125e6
CHANGES: Final = -20
"""Event priority of what a message reports: that of arrivals in a simulation."""
NEVER: Final = 1e15
"""A time in seconds that no simulation reaches."""
GATE: Final = "lamina.dev/gang"
"""Scheduling gate of pods whose turn has not come."""


class MirroredCluster:
    """The hosts and jobs of a simulator as nodes and pods."""

    def __init__(
        self, hosts: Iterable[BatsimHost], make_decider: DeciderFactory, *, sharing: bool, now: float = 0.0
    ) -> None:
        """Create a node for each host; unless hosts are shared, a node takes one pod at a time."""
        self._environment = Environment(now)
        self._host = SimulationHost(self._environment, {}, 0.0)
        cluster = self._cluster = VirtualCluster(
            self._environment, (), NO_DELAYS, self._host, unknown_image=empty_image
        )
        controllers = LazyControllers(self._environment, cluster)
        DisruptionController(self._environment, cluster, controllers.scale_of)
        parts = RunParts(self._environment, cluster, controllers.get, self._host.request_feed)
        self._decider: Decider = make_decider(parts)
        self._scheduler = controllers.scheduler = next(iter(self._decider.names))
        self._host.connect(cluster, self._decider)
        # With an event to come, the scheduler's periodic retries happen as in a cluster in which jobs run.
        self._environment.at(NEVER, self.settle)
        self._names: dict[int, str] = {}
        self.numbers: dict[str, int] = {}
        """Number of each node in the simulator."""
        unique = UniqueNames()
        for host in hosts:
            name = unique.fresh(host.name)
            if host.id in self._names:
                raise ProtocolError(f"compute_resources: there is a second resource {host.id}")
            self._names[host.id], self.numbers[name] = name, host.id
            cluster.join(VirtualNodeSpec(name=name, allocatable=_allocatable(host, sharing), bandwidth=BANDWIDTH))

    @property
    def now(self) -> float:
        """The current time in seconds."""
        return self._environment.now

    @property
    def wake_up(self) -> float:
        """When the scheduler has something to do without an event; infinity if it does not."""
        next_event = self._environment.peek() if self._decider.trying else INFINITY
        return INFINITY if next_event >= NEVER else next_event

    @property
    def nodes(self) -> Mapping[str, VirtualNode]:
        """The nodes by name."""
        return self._cluster.nodes

    def follow_pods(self, listener: Callable[[VirtualPod], object]) -> None:
        """Call *listener* after every change of a pod."""
        self._cluster.pod_listeners.append(listener)

    def advance(self, now: float, apply: Callable[[], None]) -> None:
        """Move the clock to *now*, call *apply* there, and let the scheduler decide everything until then."""
        # Before the scheduler's own timers of that time: changes and timers are one feed, as in a simulation.
        self._environment.at(now, apply, priority=CHANGES)
        self._environment.run(now)

    def settle(self) -> None:
        """Let the scheduler react to all changes."""
        self._environment.run(self._environment.now)

    def set_available(self, numbers: Iterable[int], *, available: bool) -> None:
        """Make nodes schedulable or unschedulable."""
        for number in numbers:
            name = self._names.get(number)
            if name is None:
                raise ProtocolError(f"resources: there is no resource {number}")
            (self._cluster.uncordon if available else self._cluster.cordon)(name)

    def submit(self, pod: Pod) -> None:
        """Create a pod, which runs until `finish`."""
        self._cluster.submit(
            msgspec.structs.replace(pod, scheduler_name=self._scheduler, created_at=self.now), RUNS_FOREVER
        )

    def ungate(self, uid: PodUid) -> None:
        """Let the scheduler place a pod."""
        self._cluster.ungate(uid)

    def finish(self, uid: PodUid, *, failed: bool) -> None:
        """End a pod that ran."""
        self._cluster.finish(uid, failed=failed)

    def remove(self, uid: PodUid) -> None:
        """Delete a pod at once."""
        self._cluster.remove(uid, 0.0)

    def node_of(self, uid: PodUid) -> str:
        """Return the node that a pod was bound to; empty if it has none, or has ended."""
        pod = self._cluster.pods[uid]
        return "" if pod.phase in ENDED else pod.node

    def has_ended(self, uid: PodUid) -> bool:
        """Return whether a pod has ended."""
        return self._cluster.pods[uid].phase in ENDED

    def places(self, requests: Amounts, *, empty: bool = False) -> int:
        """Return how many pods with these requests have room; on *empty* nodes, also those that are cordoned count."""
        return sum(
            _times(node, requests, {} if empty else node.used)
            for node in self._cluster.nodes.values()
            if empty or not node.unschedulable
        )


def gang_pod(uid: str, name: str, image: str, requests: Amounts, annotations: dict[str, str], *, gated: bool) -> Pod:
    """Return a pod of a job."""
    containers = (Container(image, requests),)
    total, scoring = total_requests(containers)
    return Pod(
        uid=PodUid(uid),
        name=name,
        containers=containers,
        requests=total,
        scoring_requests=scoring,
        owner=Owner("Job", name, name),
        annotations=annotations,
        gates=(GATE,) if gated else (),
    )


def in_gang(pod: Pod, names: Sequence[str]) -> Pod:
    """Return a pod as a member of the gang of the pods with these names, which belong to one owner."""
    written = pod.annotations | gang_annotations(names[0], len(names))
    return msgspec.structs.replace(pod, annotations=written, owner=Owner("Job", names[0], names[0]))


def _times(node: VirtualNode, requests: Amounts, used: Mapping[str, int]) -> int:
    room = [
        (node.allocatable.get(name, 0) - used.get(name, 0)) // amount
        for name, amount in (*requests, (PODS, 1))
        if amount
    ]
    return max(0, min(room, default=0))


def _allocatable(host: BatsimHost, sharing: bool) -> Amounts:
    """Return what a host offers: ``core`` or ``cpu``, ``memory``, ``pods``, and properties that are named as resources."""
    properties: dict[str, Any] = {**host.zone_properties, **host.properties}
    found: dict[str, str | float] = {
        CPU: properties.get(CPU, properties.get("core", 1)),
        MEMORY: properties.get(MEMORY, USUAL_MEMORY),
        PODS: properties.get(PODS, USUAL_PODS) if sharing else 1,
    }
    try:
        fixed = resources.amounts(found)
    except (QuantityError, TypeError, LaminaError) as error:
        raise ProtocolError(f"compute_resources: properties of {host.name}: {error}") from error
    return tuple(sorted((*fixed, *_extended(properties))))


def _extended(properties: Mapping[str, Any]) -> Iterable[tuple[str, int]]:
    """Yield the properties that are extended resources, such as ``nvidia.com/gpu``; labels look similar and are skipped."""
    for name, value in properties.items():
        if "/" in name and "kubernetes.io" not in name:
            try:
                yield name, resources.amount(name, value)
            except (QuantityError, TypeError):
                continue
