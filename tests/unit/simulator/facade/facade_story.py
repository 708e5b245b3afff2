"""
Runs whose scheduler is a function: it reads and writes through the API, as a real scheduler does, without a transport.

    story = FacadeStory({0.0: lambda client: client.made(DEPLOYMENTS, a_deployment("web"))})
    story.run(a_scenario([a_node_spec("n1")], []))

What happens at a time is a function of the client, called when the scheduler is first asked at or after that time.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from lamina.apiserver.facade_parts import FacadeParts, assemble_facade
from lamina.simulator.decider import Decider
from lamina.simulator.facade.decision_log import DecisionLogWriter
from lamina.simulator.facade.facade_decider import FacadeDecider
from lamina.simulator.run import SimulationResult, simulate
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.workloads import Scenario
from lamina.trace.trace_records import TraceHeader, TraceRecord
from lamina.trace.trace_writer import MemoryTrace
from tests.unit.simulator.facade.api_client import ApiClient, Object

Action = Callable[[ApiClient], object]
ENDED = {"Succeeded", "Failed"}
NAME = "default-scheduler"


def cores(found: str) -> float:
    """Return a quantity of CPU in cores."""
    return float(found.removesuffix("m")) / 1000 if found.endswith("m") else float(found)


def first_fit(client: ApiClient) -> None:
    """Bind every waiting pod to the first node with room, in the order of creation and name."""
    pods = client.get("/api/v1/pods")["items"]
    nodes = client.get("/api/v1/nodes")["items"]
    free = {node["metadata"]["name"]: cores(node["status"]["allocatable"]["cpu"]) for node in nodes if is_open(node)}
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node in free and pod["status"].get("phase") not in ENDED:
            free[node] -= requested(pod)
    for pod in sorted(
        filter(waits, pods), key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"])
    ):
        place(client, pod, free)


def place(client: ApiClient, pod: Object, free: dict[str, float]) -> None:
    """Bind one pod, or write why it waits."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    for node, left in free.items():
        if left >= requested(pod) and node in wanted(pod, free):
            free[node] -= requested(pod)
            body = {
                "metadata": {"name": metadata["name"], "uid": metadata["uid"]},
                "target": {"kind": "Node", "name": node},
            }
            status, found = client.post(f"{path}/binding", body)
            assert 201 == status, found
            return
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": f"0/{len(free)} nodes",
    }
    client.patch(f"{path}/status", {"status": {"conditions": [condition]}})


def wanted(pod: Object, nodes: Collection[str]) -> Collection[str]:
    """Return the names of the nodes that a pod may go to: a pod of a DaemonSet names one."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", ())
    named = [rule["values"] for term in terms for rule in term.get("matchFields", ())]
    return named[0] if named else nodes


def is_open(node: Object) -> bool:
    """Return whether new pods may go to a node."""
    taints = node["spec"].get("taints", ())
    return not node["spec"].get("unschedulable") and all(taint["effect"] == "PreferNoSchedule" for taint in taints)


def waits(pod: Object) -> bool:
    """Return whether a pod waits for this scheduler."""
    return (
        not pod["spec"].get("nodeName")
        and "deletionTimestamp" not in pod["metadata"]
        and pod["spec"]["schedulerName"] == NAME
        and not pod["spec"].get("schedulingGates")
    )


def requested(pod: Object) -> float:
    """Return the cores that a pod requests."""
    return sum(cores(one.get("resources", {}).get("requests", {}).get("cpu", "0")) for one in pod["spec"]["containers"])


class FacadeStory:
    """One run with clients that are functions."""

    def __init__(
        self,
        actions: Mapping[float, Action] | None = None,
        scheduler: Action = first_fit,
        log: DecisionLogWriter | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._clock = clock
        self._actions = dict(sorted((actions or {}).items()))
        self._scheduler = scheduler
        self._log = log
        self.settled: list[float] = []
        """Times at which the clients were asked."""
        self.facade: FacadeParts | None = None
        self.trace = MemoryTrace()

    @property
    def client(self) -> ApiClient:
        """A client of the façade of the run."""
        assert self.facade is not None
        return ApiClient(self.facade.handler)

    def make(self, parts: RunParts) -> Decider:
        """Make the decider of the run."""
        self.facade = assemble_facade(parts, NAME, clock=self._clock)
        facade, client = self.facade, self.client

        def settle() -> None:
            now = parts.environment.now
            self.settled.append(now)
            for at in [at for at in self._actions if at <= now]:
                self._actions.pop(at)(client)
            self._scheduler(client)

        return FacadeDecider(facade.state, facade.reader, facade.writer, settle, (NAME,), self._log)

    def run(self, scenario: Scenario, **more: Any) -> SimulationResult:
        """Run a scenario."""
        return simulate(scenario, decider=self.make, trace=self.trace, **more)

    @property
    def records(self) -> list[TraceRecord]:
        """The trace without its header."""
        return [one for one in self.trace.records if not isinstance(one, TraceHeader)]
