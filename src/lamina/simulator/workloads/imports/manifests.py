"""
Manifests of a real cluster: its nodes, its controllers and the pods that nobody keeps.

    Node                                 a node: what it can give, labels, taints, and the images that the scenario knows
    Deployment, StatefulSet, DaemonSet, Job   a controller; a ReplicaSet without a Deployment counts as one
    Pod                                  a pod, unless its controller is there too, or it has ended
    anything else                        counted and told, like CronJobs: nothing here starts by the clock

All of it is there from the start (`at`). A pod that was on a node already is placed anew. The annotation ``simSpec`` says
how long a pod runs and what it uses, as in k8s-cluster-simulator; without it a pod runs until it is removed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from lamina.model import resources
from lamina.model.errors import InputError, Mistake
from lamina.model.image import Platform
from lamina.model.plain import shown
from lamina.model.pod import Container, Pod, PodUid
from lamina.model.resources import PODS
from lamina.model.taints import Taint
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads import units
from lamina.simulator.workloads.imports import import_files, pod_drafts
from lamina.simulator.workloads.imports.image_chooser import ImageChooser
from lamina.simulator.workloads.imports.import_context import ImportContext, Imported
from lamina.simulator.workloads.imports.import_schema import ImportEntry
from lamina.simulator.workloads.imports.manifest_controllers import CONTROLLERS, ManifestController, ManifestControllers
from lamina.simulator.workloads.imports.manifest_lifecycle import manifest_lifecycle_of
from lamina.simulator.workloads.imports.manifest_objects import ManifestObject, objects
from lamina.simulator.workloads.node_capacity import NodeCapacityCheck
from lamina.simulator.workloads.scenario import PodArrival
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_node, decode_pod

UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
LINUX: Final = Platform()


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the manifests an entry names."""
    assert entry.manifests is not None, "the entry is of this kind"
    path = import_files.located(context, folder, entry.manifests, "manifests")
    reader = _ManifestCluster(entry, ImageChooser(entry, folder, context), context)
    mistakes: list[Mistake] = []
    for found in objects(path):
        try:
            reader.take(found)
        except InputError as error:
            mistakes += error.mistakes
            if len(mistakes) >= import_files.MOST_MISTAKES:
                break
    if mistakes:
        raise InputError(mistakes[: import_files.MOST_MISTAKES])
    return reader.imported(str(path))


class _ManifestCluster:
    """Collects what the manifests say."""

    def __init__(self, entry: ImportEntry, shelf: ImageChooser, context: ImportContext) -> None:
        self._entry, self._shelf, self._context = entry, shelf, context
        self._nodes: dict[str, VirtualNodeSpec] = {}
        self._pods: list[tuple[ManifestObject, Pod]] = []
        self._keeper = ManifestControllers()
        self._passed: dict[str, int] = {}
        self._names = pod_drafts.UniqueNames()

    def take(self, found: ManifestObject) -> None:
        """Read one object."""
        try:
            if found.kind == "Node":
                self._node(found)
            elif found.kind == "Pod":
                pod = decode_pod(found.data)
                if not pod.name:
                    raise found.wrong("a pod has no name; add metadata.name")
                self._pods.append((found, pod))
            elif found.kind in CONTROLLERS:
                self._keeper.take(found)
            elif not found.kind:
                raise found.wrong("says not what it is; add kind")
            else:
                self._passed[found.kind] = self._passed.get(found.kind, 0) + 1
        except WireError as error:
            raise found.wrong(str(error)) from error

    def _node(self, found: ManifestObject) -> None:
        node = decode_node(found.data)
        if node.platform != LINUX:
            what = f"Node for {node.platform.os}/{node.platform.architecture}"
            self._passed[what] = self._passed.get(what, 0) + 1
            return
        if not node.name or node.name in self._nodes:
            raise found.wrong(f"there is a second node {shown(node.name)}" if node.name else "a node has no name")
        if not node.allocatable:
            raise found.wrong("a node says not what it can give; add status.allocatable", "status.allocatable")
        held = [self._shelf.find(name) for image in node.images for name in image.names]
        taints = node.taints
        if node.unschedulable and all(taint.key != UNSCHEDULABLE.key for taint in taints):
            taints = (*taints, UNSCHEDULABLE)
        self._nodes[node.name] = msgspec.structs.replace(
            self._context.like,
            name=node.name,
            allocatable=resources.filled(node.allocatable, ((PODS, pod_drafts.USUAL_PODS),)),
            holds=tuple({image.digest: image for image in held if image is not None}.values()),
            labels=node.labels,
            annotations=node.annotations,
            taints=taints,
        )

    def imported(self, source: str) -> Imported:
        """Put it together."""
        nodes = (*pod_drafts.equal_nodes(self._entry, self._context), *self._nodes.values())
        kept = list(self._keeper.pods())
        single = [(found, pod) for found, pod in self._pods if not self._is_kept(pod)]
        images = self._images([*((one.found, one.pod) for one in kept), *single])
        at = units.seconds(self._entry.at)
        arrivals: list[PodArrival] = []
        for found, pod in single:
            name = self._names.fresh(pod.name, f"{pod.namespace}-{pod.name}")
            arrivals.append(PodArrival(at, self._placed(pod, name, at, images), manifest_lifecycle_of(found, "")))
        controllers = tuple(self._controller(one, at, images) for one in kept)
        pods = [*zip((found for found, _ in single), (one.pod for one in arrivals), strict=True)]
        self._check_room([*pods, *((one.found, one.pod) for one in kept)], nodes)
        pod_drafts.check_count(source, len(arrivals) + sum(one.replicas for one in controllers))
        return Imported(
            nodes=nodes, arrivals=tuple(arrivals), controllers=controllers, notes=tuple(self._notes(source))
        )

    def _is_kept(self, pod: Pod) -> bool:
        if pod.finished or pod.deleting:
            self._passed["Pod that has ended"] = self._passed.get("Pod that has ended", 0) + 1
            return True
        return self._keeper.keeps(pod)

    def _controller(self, one: ManifestController, at: float, images: dict[str, str]) -> ControllerSpec:
        name = self._names.fresh(one.spec.name, f"{one.pod.namespace}-{one.spec.name}")
        template = self._placed(one.pod, name, at, images)
        return msgspec.structs.replace(one.spec, name=name, at=at, template=template)

    def _placed(self, pod: Pod, name: str, at: float, images: dict[str, str]) -> Pod:
        """Return a pod as it is before anybody has placed it, with images the scenario has."""

        def run(containers: tuple[Container, ...]) -> tuple[Container, ...]:
            return tuple(msgspec.structs.replace(one, image=images.get(one.image, one.image)) for one in containers)

        return msgspec.structs.replace(
            pod,
            uid=PodUid(name),
            name=name,
            containers=run(pod.containers),
            init_containers=run(pod.init_containers),
            node_name="",
            nominated_node="",
            started=False,
            scheduler_name=self._entry.scheduler,
            created_at=at,
        )

    def _images(self, pods: list[tuple[ManifestObject, Pod]]) -> dict[str, str]:
        """Find an image for every name nothing has; refuse them unless the entry lets popularity decide."""
        missing: dict[str, int] = {}
        where: dict[str, ManifestObject] = {}
        for found, pod in pods:
            for name in pod.images:
                if self._shelf.find(name) is None:
                    missing[name] = missing.get(name, 0) + 1
                    where.setdefault(name, found)
        if missing and self._entry.unknown_images == "refuse":
            hint = "or say unknownImages: popularity"
            raise InputError(
                mistake
                for name, found in list(where.items())[: import_files.MOST_MISTAKES]
                for mistake in found.wrong(
                    f"there is no image {shown(name)}; {self._shelf.what_to_try(name)} {hint}"
                ).mistakes
            )
        return self._shelf.choose(missing) if missing else {}

    def _check_room(self, pods: list[tuple[ManifestObject, Pod]], own: tuple[VirtualNodeSpec, ...]) -> None:
        nodes = (*self._context.nodes, *own)
        room = NodeCapacityCheck(nodes)
        mistakes = [
            Mistake(found.source, message, "", found.line)
            for found, pod in pods
            for _, message in (room.lacking(pod.requests) if nodes else ())
        ]
        if mistakes:
            raise InputError(mistakes[: import_files.MOST_MISTAKES])

    def _notes(self, source: str) -> Iterator[str]:
        for kind, count in {**self._passed, **self._keeper.passed}.items():
            yield f"{source}: {count} × {kind} left out"
        yield from self._keeper.notes()
