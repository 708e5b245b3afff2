"""A small cluster for stories about it, and two logs: what was written down, and what a scheduler heard."""

from typing import Any

from lamina.model.events import Event
from lamina.model.image import Image
from lamina.model.pod import PodUid
from lamina.model.resources import amounts
from lamina.simulator.cluster import Delays, VirtualCluster, VirtualNode, VirtualNodeSpec, VirtualPod
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.engine import Environment
from lamina.simulator.pulls import RuntimeSpec
from lamina.testing import a_pod, an_image
from lamina.trace import trace_records
from lamina.trace.trace_records import TraceRecord, type_of

WEB = an_image("web:1", {"base": 600, "web": 200})
API = an_image("api:1", {"base": 600, "api": 100})
TOOL = an_image("tool:1", {"tool": 50})

ONE_BY_ONE = RuntimeSpec(slots=1)

Line = tuple[float, str, str]

LIFE = frozenset(PodLifecycle.__struct_fields__)


class World:
    """A cluster whose nodes load 100 bytes per second, one layer after the other, and have 4 cpu; and two logs of it."""

    def __init__(self, *images: Image, **delays: Any) -> None:
        self.env = Environment()
        self.records: list[TraceRecord] = []
        self.told: list[tuple[float, Event]] = []
        known = {name: delays.pop(name) for name in ("draw", "registry", "uplinks", "usage") if name in delays}
        delays = {"start": 0.5, **delays}
        self.cluster = VirtualCluster(self.env, [WEB, API, TOOL, *images], Delays(**delays), self, **known)

    def note(self, record: TraceRecord) -> None:
        self.records.append(record)

    def publish(self, event: Event) -> None:
        self.told.append((self.env.now, event))

    def node(self, name: str = "n1", *holds: Image, pods: int = 10, **spec: Any) -> VirtualNode:
        """Let a node join."""
        allocatable = amounts({"cpu": 4, "memory": "8Gi", "pods": pods})
        given = {"allocatable": allocatable, "bandwidth": 100.0, "holds": holds, "runtime": ONE_BY_ONE, **spec}
        self.cluster.join(VirtualNodeSpec(name=name, **given))
        return self.cluster.nodes[name]

    def run_on(self, node: str, name: str, image: str = "web:1", *, cpu: int = 1, **more: Any) -> str:
        """Submit a pod and bind it at once; *more* is about its life or about the pod."""
        life = PodLifecycle(**{key: more.pop(key) for key in LIFE & set(more)})
        self.cluster.submit(a_pod(name, cpu, image=image, **more), life)
        return self.cluster.bind(PodUid(name), node)

    def pod(self, name: str) -> VirtualPod:
        return self.cluster.pods[PodUid(name)]

    def at(self, time: float, what: Any, *args: Any) -> None:
        self.env.at(time, what, *args)

    def log(self, *kinds: type[TraceRecord]) -> list[Line]:
        """Say who did what when, or only records of some kinds."""
        return [
            (one.at, type_of(one), str(getattr(one, "pod", "") or getattr(one, "image", "")))
            for one in self.records
            if (not kinds or isinstance(one, kinds))
            and not isinstance(one, trace_records.NodeJoined | trace_records.PodArrived)
        ]

    def heard(self, kind: type[Event], since: float = 0.0) -> list[tuple[float, Any]]:
        return [(when, event) for when, event in self.told if isinstance(event, kind) and when >= since]
