"""The nodes of a run as Batsim's resources: their numbers, whether they are available, and which jobs are on them."""

from collections.abc import Iterable

from lamina.model.resources import CPU
from lamina.simulator.cluster import VirtualCluster, VirtualNodeSpec
from lamina.simulator.cluster.outage import UNREACHABLE
from lamina.simulator.workloads import Scenario
from lamina.wire.batsim.simulator_events import BatsimHost
from lamina.wire.kube.encoded_values import encode_amounts


class HostTable:
    """
    Numbers the nodes of a run from 0: those of the scenario, then those that join later.

    A node is available while it is present, schedulable and not known to have failed.
    """

    def __init__(self, scenario: Scenario) -> None:
        """Number the nodes of *scenario*."""
        joining = (one.node for one in scenario.events if one.kind == "join" and one.node is not None)
        specs = {spec.name: spec for spec in (*scenario.nodes, *joining)}
        self.names = list(specs)
        self._specs = list(specs.values())
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self.unavailable: dict[int, None] = {}
        """Numbers of the nodes on which no job can be executed."""
        self._jobs: dict[int, dict[str, None]] = {}

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.names)

    def described(self) -> tuple[BatsimHost, ...]:
        """Return all nodes as Batsim's compute resources."""
        return tuple(
            BatsimHost(id=number, name=spec.name, properties=_properties(spec))
            for number, spec in enumerate(self._specs)
        )

    def changed(self, names: Iterable[str], cluster: VirtualCluster) -> tuple[list[int], list[int]]:
        """Compare nodes with the cluster; return those that became available, and those that became unavailable."""
        up: list[int] = []
        down: list[int] = []
        for name in dict.fromkeys(names):
            number = self._numbers.get(name)
            if number is None:
                continue
            if _available(name, cluster):
                if number in self.unavailable:
                    del self.unavailable[number]
                    up.append(number)
            elif number not in self.unavailable:
                self.unavailable[number] = None
                down.append(number)
        return up, down

    def jobs_on(self, number: int) -> list[str]:
        """Return the jobs that run on a node."""
        return list(self._jobs.get(number, ()))

    def occupy(self, numbers: Iterable[int], job: str) -> None:
        """Record that a job runs on nodes."""
        for number in numbers:
            self._jobs.setdefault(number, {})[job] = None

    def vacate(self, numbers: Iterable[int], job: str) -> None:
        """Record that a job runs on these nodes no more."""
        for number in numbers:
            self._jobs.get(number, {}).pop(job, None)


def _available(name: str, cluster: VirtualCluster) -> bool:
    node = cluster.nodes.get(name)
    return node is not None and not node.unschedulable and all(taint.key != UNREACHABLE for taint in node.taints)


def _properties(spec: VirtualNodeSpec) -> dict[str, str]:
    """Return labels and allocatable resources; batkube and Lamina read ``core`` and ``memory``."""
    amounts = encode_amounts(spec.allocatable)
    return {**spec.labels, **amounts, "core": amounts.get(CPU, "0")}
