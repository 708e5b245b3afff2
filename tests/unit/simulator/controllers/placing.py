"""A virtual cluster with controllers and the simplest of schedulers: the first node with room."""

from typing import Any

from lamina.model.events import Event
from lamina.model.pod import PodUid
from lamina.model.resources import amounts
from lamina.simulator.cluster import Delays, VirtualCluster, VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER, PodLifecycle
from lamina.simulator.controllers import ControllerManager, ControllerSpec
from lamina.simulator.engine import Environment
from lamina.testing import a_pod, an_image
from lamina.trace import trace_records
from lamina.trace.trace_records import TraceRecord, type_of

IMAGES = [
    an_image("app:1", {"base": 600, "one": 200}),
    an_image("app:2", {"base": 600, "two": 100}),
    an_image("app:3", {"other": 900}),
]
TOLD = (
    trace_records.PodArrived
    | trace_records.PodStarted
    | trace_records.PodRemoved
    | trace_records.PodEvicted
    | trace_records.PodFinished
    | trace_records.PodFailed
    | trace_records.PodRejected
)


class World:
    """A cluster whose nodes load 100 bytes a second."""

    def __init__(self, *nodes: str, pods: int = 2) -> None:
        self.env = Environment()
        self.records: list[TraceRecord] = []
        self.cluster = VirtualCluster(self.env, IMAGES, Delays(start=0.5), self)
        self.controllers = ControllerManager(self.env, self.cluster)
        self._pods = pods
        self._pending: dict[PodUid, None] = {}
        self._placing = False
        for name in nodes:
            self.join(name)

    # -- a scheduler -------------------------------------------------------------------------------------------------

    def note(self, record: TraceRecord) -> None:
        self.records.append(record)
        if isinstance(record, trace_records.PodArrived):
            self._pending[PodUid(record.uid)] = None

    def publish(self, event: Event) -> None:
        if not self._placing:
            self._placing = True
            self.env.after(0.0, self._place, priority=10)

    def _place(self) -> None:
        self._placing = False
        for uid in tuple(self._pending):
            pod = self.cluster.pods[uid]
            if pod.phase != "pending" or self._bound(uid):
                del self._pending[uid]

    def _bound(self, uid: PodUid) -> bool:
        pod = self.cluster.pods[uid].pod
        for name, node in self.cluster.nodes.items():
            chosen = pod.required_nodes is None or pod.required_nodes.matches(node.labels, name)
            if chosen and not node.unschedulable and len(node.pods) < node.allocatable["pods"]:
                return not self.cluster.bind(uid, name)
        return False

    # -- what tests do -----------------------------------------------------------------------------------------------

    def join(self, name: str) -> None:
        allocatable = amounts({"cpu": 100, "memory": "100Gi", "pods": self._pods})
        self.cluster.join(VirtualNodeSpec(name=name, allocatable=allocatable, bandwidth=100.0))

    def add(self, kind: str, life: PodLifecycle = RUNS_FOREVER, **more: Any) -> None:
        template = a_pod("t", 1, image="app:1")
        self.controllers.add(ControllerSpec(kind=kind, name="app", template=template, life=life, **more))

    def log(self, since: float = 0.0) -> list[tuple[float, str, str]]:
        """Run to the end, and return who did what when."""
        self.env.run()
        told = [one for one in self.records if isinstance(one, TOLD) and one.at >= since]
        return [(one.at, type_of(one), one.pod.removeprefix("default/")) for one in told]
