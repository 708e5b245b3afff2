"""
Lamina in a retold case: Kubernetes objects are decoded, become events of a loop, and its commands change the objects.

    objects --wire decoders--> events --> Loop with the profile kube-default --> commands --> objects --> events, …

The cluster acts like an API server without kubelets: a bound pod has a node, and a victim is marked as being deleted
until the case hides it.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from lamina.model.cluster_objects import ObjectKey
from lamina.model.events import (
    BindDone,
    Event,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    ObjectGone,
    ObjectSeen,
    PodGone,
    PodSeen,
    TimePassed,
    WorkDone,
)
from lamina.model.pod import PodUid
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.config.named_profiles import KUBE_DEFAULT, named
from lamina.scheduling.contract.commands import Bind, Command, DoWork, Evict, Nominate, ReportUnschedulable
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.wire.kube.codec import decode_node, decode_pod
from lamina.wire.kube.disruption_budget import decode_disruption_budget
from lamina.wire.kube.namespace import decode_namespace
from lamina.wire.kube.storage_classes import decode_csi_driver, decode_csi_node, decode_storage_class
from lamina.wire.kube.storage_objects import decode_claim, decode_volume
from tests.parity.case_objects import KubeJson
from tests.upstream_cases.case_model import Observation, UpstreamCase
from tests.upstream_cases.kube_objects import NAMESPACE, namespace

START: Final = 1_767_229_200.0
"""An hour after the objects were created."""
BACKOFF: Final = 15.0
"""Longer than any pause between two attempts of a pod."""
TURNS: Final = 5
"""Pauses after a change, so that pods can be tried one after the other."""
DELETED_AT: Final = "2026-01-01T01:00:30Z"
PREEMPTED: Final = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}

DECODERS: Final[dict[str, Callable[[bytes], Any]]] = {
    "CSIDriver": decode_csi_driver,
    "CSINode": decode_csi_node,
    "PersistentVolume": decode_volume,
    "PersistentVolumeClaim": decode_claim,
    "PodDisruptionBudget": decode_disruption_budget,
    "StorageClass": decode_storage_class,
}
"""Kind → decoder, for objects that are neither pods nor nodes nor namespaces."""


@functools.cache
def configuration() -> Configuration:
    """Return the profile that stands for kube-scheduler's defaults."""
    return named(KUBE_DEFAULT, registry(entry_points=False))


def play(case: UpstreamCase) -> list[dict[str, Observation]]:
    """Let a new loop decide the case; return what became of the pods after each stage."""
    cluster = LaminaCluster()
    cluster.show(namespace(NAMESPACE), *case.before)
    found = []
    for number, stage in enumerate(case.stages):
        cluster.hide(*stage.hide)
        cluster.show(*stage.show)
        if number:
            cluster.wait()
        found.append(cluster.observe(stage.expect))
    return found


class LaminaCluster:
    """Objects of a cluster, and the loop that watches them."""

    def __init__(self) -> None:
        """Start empty, with a new loop."""
        self._loop = Loop(configuration().profiles, lambda _: 0)
        self._now = START
        self._pods: dict[str, KubeJson] = {}
        """Uid → pod."""
        self._refused: set[str] = set()
        self._feed([TimePassed(START)])

    def show(self, *objects: KubeJson) -> None:
        """Create or replace objects."""
        for one in objects:
            if one["kind"] == "Pod":
                self._pods[one["metadata"]["uid"]] = one
            self._feed([_seen(one)])

    def hide(self, *objects: KubeJson) -> None:
        """Delete objects."""
        for one in objects:
            if one["kind"] == "Pod":
                del self._pods[one["metadata"]["uid"]]
            self._feed([_gone(one)])

    def wait(self) -> None:
        """Let time pass, so that pods are tried again."""
        for _ in range(TURNS):
            self._now += BACKOFF
            self._feed([TimePassed(self._now)])

    def observe(self, names: Iterable[str]) -> dict[str, Observation]:
        """Return what became of these pods; pods without a decision are missing."""
        found: dict[str, Observation] = {}
        ending = [one["metadata"] for one in self._pods.values() if one["metadata"].get("deletionTimestamp")]
        victims = frozenset(one["name"] for one in ending)
        for uid in names:
            pod = self._pods.get(uid)
            if pod is None or not (uid in self._refused or pod["spec"].get("nodeName")):
                continue
            nominated = pod["status"].get("nominatedNodeName", "")
            found[uid] = Observation(pod["spec"].get("nodeName", ""), nominated, victims if nominated else frozenset())
        return found

    def _feed(self, todo: list[Event]) -> None:
        while todo:
            todo = [answer for command in self._loop.feed(*todo) for answer in self._execute(command)]

    def _execute(self, command: Command) -> list[Event]:
        match command:
            case Bind(pod, node):
                return [BindDone(pod.uid), self._change(pod.uid, spec={"nodeName": node})]
            case DoWork(pod, _, plugin, attempt):
                return [WorkDone(pod.uid, plugin, attempt)]
            case Nominate(pod, node):
                return [self._change(pod.uid, status={"nominatedNodeName": node})]
            case Evict(pod):
                conditions = [*self._pods[pod.uid]["status"].get("conditions", ()), PREEMPTED]
                ending = {"deletionTimestamp": DELETED_AT}
                return [self._change(pod.uid, metadata=ending, status={"conditions": conditions})]
            case ReportUnschedulable(pod):
                self._refused.add(pod.uid)
        return []

    def _change(self, uid: PodUid, **parts: KubeJson) -> Event:
        """Change a pod's fields; return the event of its update."""
        old = self._pods[uid]
        self._pods[uid] = {**old, **{part: {**old[part], **fields} for part, fields in parts.items()}}
        return _seen(self._pods[uid])


def _seen(found: KubeJson) -> Event:
    data, kind = msgspec.json.encode(found), found["kind"]
    if kind == "Pod":
        return PodSeen(decode_pod(data))
    if kind == "Node":
        return NodeSeen(decode_node(data))
    if kind == "Namespace":
        one = decode_namespace(data)
        return NamespaceSeen(one.name, one.annotations, one.labels)
    return ObjectSeen(DECODERS[kind](data))


def _gone(found: KubeJson) -> Event:
    kind, metadata = found["kind"], found["metadata"]
    if kind == "Pod":
        return PodGone(PodUid(metadata["uid"]))
    if kind == "Node":
        return NodeGone(metadata["name"])
    if kind == "Namespace":
        return NamespaceGone(metadata["name"])
    return ObjectGone(ObjectKey(kind, metadata.get("namespace", ""), metadata["name"]))
