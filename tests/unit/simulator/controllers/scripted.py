"""A cluster that does what a test says: pods start after a while or not at all, end as told, and everything is logged."""

from dataclasses import dataclass, field
from typing import Any

from lamina.model.pod import Pod, PodUid
from lamina.model.resources import amounts
from lamina.model.taints import Taint
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.cluster.cluster_object_table import ClusterObjectTable
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.controllers import ControllerManager, ControllerSpec
from lamina.simulator.engine import Environment
from lamina.testing import a_pod

Line = tuple[float, str, str]


@dataclass
class SeenPod:
    """What controllers look at of a pod."""

    pod: Pod
    life: PodLifecycle
    arrived: float
    phase: str = "pending"
    started: float | None = None
    ended: float | None = None
    reason: str = ""


@dataclass
class SeenNode:
    """What controllers look at of a node."""

    name: str
    labels: dict[str, str]
    spec: VirtualNodeSpec


@dataclass
class Script:
    """
    Stands in for a cluster.

    Pods start *start* seconds after they were made (None: when the test says), and a removed pod that runs is gone
    *stop* seconds later. Those whose image is in *refused* are rejected at once.
    """

    start: float | None = 1.0
    stop: float = 0.0
    refused: set[str] = field(default_factory=set)
    env: Environment = field(default_factory=Environment)
    pods: dict[str, SeenPod] = field(default_factory=dict)
    nodes: dict[str, SeenNode] = field(default_factory=dict)
    watchers: list[Any] = field(default_factory=list)
    log: list[Line] = field(default_factory=list)
    seen: list[Any] = field(default_factory=list)
    """What a scheduler would see of objects besides pods and nodes."""

    def __post_init__(self) -> None:
        self.objects = ClusterObjectTable(self.seen.append)
        self.controllers = ControllerManager(self.env, self, scheduler="default-scheduler")

    # -- what controllers do -----------------------------------------------------------------------------------------

    def submit(self, pod: Pod, life: PodLifecycle) -> None:
        assert pod.uid not in self.pods
        self.pods[pod.uid] = SeenPod(pod, life, self.env.now)
        self._say("made", pod.uid)
        if pod.images[0] in self.refused:
            self.env.after(0.0, self.end, pod.uid, "rejected")
        elif self.start is not None:
            self.env.after(self.start, self.begin, pod.uid)

    def remove(self, uid: PodUid, grace: float | None = 0.0) -> None:
        if self.alive(uid):
            self._say("removed", uid)
            if self.pods[uid].started is None or not self.stop:
                self.end(uid, "removed")
            else:
                self.env.after(self.stop, self.end, uid, "removed")

    # -- what tests do -----------------------------------------------------------------------------------------------

    def begin(self, uid: str) -> None:
        if self.alive(uid) and self.pods[uid].started is None:
            self.pods[uid].phase, self.pods[uid].started = "running", self.env.now
            self._say("started", uid)
            self.watchers[0].pod_started(self.pods[uid])

    def end(self, uid: str, phase: str = "failed") -> None:
        if self.alive(uid):
            self.pods[uid].phase, self.pods[uid].ended = phase, self.env.now
            if phase != "removed":
                self._say(phase, uid)
            self.watchers[0].pod_ended(self.pods[uid])

    def join(self, name: str, *taints: Taint, **labels: str) -> None:
        allocatable = amounts({"cpu": 4, "memory": "8Gi", "pods": 10})
        spec = VirtualNodeSpec(name=name, allocatable=allocatable, bandwidth=1.0, labels=labels, taints=taints)
        self.nodes[name] = SeenNode(name, labels, spec)
        self.watchers[0].node_joined(self.nodes[name])

    def drop(self, name: str) -> None:
        self.watchers[0].node_left(self.nodes.pop(name))

    def add(self, kind: str, **more: Any) -> None:
        template = more.pop("template", a_pod("template", 1, image="app:1", scheduler=""))
        self.controllers.add(ControllerSpec(kind=kind, name="app", template=template, **more))

    def run(self, until: float | None = None) -> list[Line]:
        """Run on, and return what happened since the last time."""
        self.env.run(until)
        told, self.log = self.log, []
        return told

    # -- what tests look at ------------------------------------------------------------------------------------------

    def alive(self, uid: str) -> bool:
        return self.pods[uid].ended is None

    def now_there(self) -> list[str]:
        """Name the pods that have not ended, with their images."""
        return [f"{one.pod.name} {one.pod.images[0]}" for one in self.pods.values() if one.ended is None]

    def _say(self, what: str, uid: str) -> None:
        self.log.append((self.env.now, what, f"{self.pods[uid].pod.name} {self.pods[uid].pod.images[0]}"))
