"""
Manifests of a real cluster: its nodes, its controllers, and pods without a controller.

    Node                                 a node: allocatable resources, labels, taints, and known images
    Deployment, StatefulSet, DaemonSet, Job   a controller; a ReplicaSet without a Deployment becomes a Deployment
    Pod                                  a pod, unless its controller is in the manifests too, or the pod has ended
    PodDisruptionBudget, Service, claims, volumes, storage classes, CSI objects   kept as they are
    any other kind                       left out and counted in a note; CronJobs too, as no schedule is simulated

All objects exist from the start (`at`). A pod that already had a node is placed anew. The annotation ``simSpec``
lists how long a pod runs and what it uses, as in k8s-cluster-simulator; such a pod runs once and ends. A pod without
the annotation runs until it is removed.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from lamina.model import resources
from lamina.model.cluster_objects import ObjectKey, key_of
from lamina.model.duration import LONGEST
from lamina.model.errors import InputError, Mistake
from lamina.model.image import Platform
from lamina.model.plain import shown
from lamina.model.pod import Container, Pod, PodUid
from lamina.model.resources import PODS
from lamina.model.taints import Taint
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.cluster.pod_lifecycle import LifecycleStage, PodLifecycle, Restart
from lamina.simulator.controllers.controller_spec import ControllerKind, ControllerSpec
from lamina.simulator.workloads.capacity import NodeCapacityCheck
from lamina.simulator.workloads.imports import import_files, pod_drafts
from lamina.simulator.workloads.imports.import_schema import ImportContext, Imported, ImportEntry
from lamina.simulator.workloads.imports.manifest_objects import ManifestObject, objects
from lamina.simulator.workloads.imports.pod_drafts import ImageChooser
from lamina.simulator.workloads.object_entries import OBJECT_KINDS, manifest_object
from lamina.simulator.workloads.pod_entries import SIM_SPEC, stages_of
from lamina.simulator.workloads.scenario import PodArrival, ScenarioEvent, ScenarioObject
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_node, decode_pod
from lamina.wire.kube.meta import ObjectMeta, controller

ManifestSeconds = Annotated[float, msgspec.Meta(ge=0, le=LONGEST)]


class _PodMetaFields(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class _PodSpecFields(msgspec.Struct, frozen=True, rename="camel"):
    restart_policy: Restart | None = None
    active_deadline_seconds: ManifestSeconds | None = None
    termination_grace_period_seconds: ManifestSeconds | None = None


class _PodFields(msgspec.Struct, frozen=True):
    metadata: _PodMetaFields = _PodMetaFields()
    spec: _PodSpecFields = _PodSpecFields()


def manifest_lifecycle_of(found: ManifestObject, where: str, data: bytes | None = None) -> PodLifecycle:
    """Return the lifecycle of a pod; *data* is a pod that is only a part (*where*) of the object *found*."""
    try:
        pod = msgspec.json.decode(found.data if data is None else data, type=_PodFields)
    except (ValueError, RecursionError) as error:
        raise found.wrong(f"cannot be read: {error}", where) from error
    spec = pod.spec
    life = PodLifecycle(
        restart=spec.restart_policy or "Always",
        deadline=spec.active_deadline_seconds,
        grace=30.0 if spec.termination_grace_period_seconds is None else spec.termination_grace_period_seconds,
    )
    text = (pod.metadata.annotations or {}).get(SIM_SPEC)
    if text is None:
        return life
    stages = _stages(found, text)
    return msgspec.structs.replace(life, stages=stages, seconds=sum(stage.seconds for stage in stages), restart="Never")


def _stages(found: ManifestObject, text: str) -> tuple[LifecycleStage, ...]:
    try:
        return stages_of(text)
    except InputError as error:
        first = error.mistakes[0]
        problem = f"{first.message} ({first.path})" if first.path else first.message
        raise found.wrong(problem, f"metadata.annotations.{SIM_SPEC}") from error


CONTROLLERS: Final[dict[str, ControllerKind]] = {
    "Deployment": "Deployment",
    "ReplicaSet": "Deployment",
    "StatefulSet": "StatefulSet",
    "DaemonSet": "DaemonSet",
    "Job": "Job",
}
"""Kinds of controllers that are read, and the simulated controllers for their pods."""
HASH_LABEL: Final = "pod-template-hash"

ReplicaCount = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
RollingShare = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,3}%$")]


class _Rolling(msgspec.Struct, frozen=True, rename="camel"):
    max_surge: RollingShare | None = None
    max_unavailable: RollingShare | None = None


class _Strategy(msgspec.Struct, frozen=True, rename="camel"):
    rolling_update: _Rolling | None = None


class _PodTemplateFields(msgspec.Struct, frozen=True):
    metadata: dict[str, Any] | None = None  # Any: passed to the decoder of pods
    spec: dict[str, Any] | None = None  # Any: likewise


class _ControllerSpecFields(msgspec.Struct, frozen=True, rename="camel"):
    replicas: ReplicaCount | None = None
    completions: ReplicaCount | None = None
    parallelism: ReplicaCount | None = None
    backoff_limit: ReplicaCount | None = None
    active_deadline_seconds: float | None = None
    strategy: _Strategy | None = None
    template: _PodTemplateFields | None = None


class _Controller(msgspec.Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _ControllerSpecFields = _ControllerSpecFields()


class ManifestController(msgspec.Struct, frozen=True):
    """A controller with its pod template."""

    found: ManifestObject
    spec: ControllerSpec
    pod: Pod


class ManifestControllers:
    """The controllers of a cluster, and the pods that they own."""

    def __init__(self) -> None:
        """Start without controllers."""
        self.passed: dict[str, int] = {}
        self._kept: dict[tuple[str, str, str], ManifestController] = {}
        self._owned: dict[tuple[str, str, str], tuple[str, str, str]] = {}
        """Owner of each controller that has one, by kind, namespace and name."""

    def take(self, found: ManifestObject) -> None:
        """Read one controller."""
        try:
            read = msgspec.json.decode(found.data, type=_Controller)
            owner = controller(read.metadata.owner_references)
        except (ValueError, RecursionError) as error:
            raise found.wrong(f"cannot read {found.kind}: {error}") from error
        if not read.metadata.name:
            raise found.wrong(f"a {found.kind} has no name; add metadata.name")
        namespace = read.metadata.namespace or "default"
        key = (found.kind, namespace, read.metadata.name)
        if key in self._kept:
            raise found.wrong(f"there is a second {found.kind} {read.metadata.name!r} in namespace {namespace!r}")
        if owner is not None:
            self._owned[key] = (owner.kind, namespace, owner.name)
        self._kept[key] = self._read(found, read, namespace)

    def _read(self, found: ManifestObject, read: _Controller, namespace: str) -> ManifestController:
        spec, name, kind = read.spec, read.metadata.name, CONTROLLERS[found.kind]
        template = spec.template or _PodTemplateFields()
        metadata = {**(template.metadata or {}), "name": name, "namespace": namespace}
        data = msgspec.json.encode({"kind": "Pod", "metadata": metadata, "spec": template.spec or {}})
        pod, life = decode_pod(data), manifest_lifecycle_of(found, "spec.template", data)
        if not pod.containers:
            raise found.wrong("its pods have no container; add spec.template.spec.containers", "spec.template")
        rolling = (spec.strategy and spec.strategy.rolling_update) or _Rolling()
        replicas = spec.completions if kind == "Job" else spec.replicas
        parallelism = 1 if spec.parallelism is None else spec.parallelism
        if kind == "Job" and spec.completions is None:
            # As in Kubernetes, a Job without completions has as many as its parallelism.
            replicas = parallelism
        if kind == "Job" and spec.active_deadline_seconds is not None:
            life = msgspec.structs.replace(life, deadline=spec.active_deadline_seconds)
        kept = ControllerSpec(
            kind=kind,
            name=name,
            template=pod,
            life=life,
            replicas=1 if replicas is None else replicas,
            parallelism=parallelism,
            surge=_share(rolling.max_surge),
            unavailable=_share(rolling.max_unavailable),
            backoff_limit=6 if spec.backoff_limit is None else spec.backoff_limit,
        )
        return ManifestController(found, kept, pod)

    def pods(self) -> Iterator[ManifestController]:
        """Yield the controllers without an owner among them, in the order of the manifests."""
        for key, one in self._kept.items():
            if self._owned.get(key) not in self._kept:
                yield one

    def owns(self, pod: Pod) -> bool:
        """Return whether one of the controllers owns this pod."""
        if pod.owner is None:
            return False
        if (pod.owner.kind, pod.namespace, pod.owner.name) in self._kept:
            return True
        # Saved manifests often lack the ReplicaSet between a Deployment and its pods.
        deployment = pod.owner.name.removesuffix(f"-{pod.labels.get(HASH_LABEL, '')}")
        return pod.owner.kind == "ReplicaSet" and ("Deployment", pod.namespace, deployment) in self._kept

    def notes(self) -> Iterator[str]:
        """Yield sentences about controllers that behave unexpectedly."""
        endless = [one for one in self.pods() if one.spec.kind == "Job" and one.spec.life.seconds is None]
        if endless:
            names = ", ".join(one.spec.name for one in endless[:5])
            yield f"{len(endless)} Jobs say not how long they run and never end ({names}); add the annotation simSpec"


def _share(value: int | str | None) -> int | float:
    if isinstance(value, str):
        return int(value.removesuffix("%")) / 100
    return 0.25 if value is None else value


UNSCHEDULABLE: Final = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
LINUX: Final = Platform()


def read(entry: ImportEntry, folder: Path, context: ImportContext) -> Imported:
    """Read the manifests that an entry names."""
    assert entry.manifests is not None, "the entry is of this kind"
    path = import_files.located(context, folder, entry.manifests, "manifests")
    reader = ManifestCluster(entry, ImageChooser(entry, folder, context), context)
    reader.take_all(objects(path))
    return reader.imported(str(path))


class _ManifestPod(msgspec.Struct, frozen=True):
    """A pod without a controller, when it comes, and how long it runs if its manifest does not say."""

    found: ManifestObject
    pod: Pod
    at: float
    life: PodLifecycle | None
    removed: float | None


class ManifestCluster:
    """Collects the nodes, controllers and pods of the manifests."""

    def __init__(self, entry: ImportEntry, chooser: ImageChooser, context: ImportContext) -> None:
        self._entry, self._chooser, self._context = entry, chooser, context
        self._nodes: dict[str, VirtualNodeSpec] = {}
        self._pods: list[_ManifestPod] = []
        self._controllers = ManifestControllers()
        self._objects: dict[ObjectKey, ScenarioObject] = {}
        self._passed: dict[str, int] = {}
        self._names = pod_drafts.UniqueNames()

    def take_all(self, found: Iterable[ManifestObject]) -> None:
        """Read objects. Raises InputError with the mistakes of all of them."""
        mistakes: list[Mistake] = []
        for one in found:
            try:
                self.take(one)
            except InputError as error:
                mistakes += error.mistakes
                if len(mistakes) >= import_files.MOST_MISTAKES:
                    break
        if mistakes:
            raise InputError(mistakes[: import_files.MOST_MISTAKES])

    def take(
        self, found: ManifestObject, at: float = 0.0, life: PodLifecycle | None = None, removed: float | None = None
    ) -> None:
        """
        Read one object. Raises InputError.

        A pod comes *at* seconds after the start, has this *life* if its manifest says none, and is *removed* then.
        """
        try:
            if found.kind == "Node":
                self._node(found)
            elif found.kind == "Pod":
                pod = decode_pod(found.data)
                if not pod.name:
                    raise found.wrong("a pod has no name; add metadata.name")
                self._pods.append(_ManifestPod(found, pod, at, life, removed))
            elif found.kind in CONTROLLERS:
                self._controllers.take(found)
            elif found.kind in OBJECT_KINDS:
                self._object(found)
            elif not found.kind:
                raise found.wrong("says not what it is; add kind")
            else:
                self._passed[found.kind] = self._passed.get(found.kind, 0) + 1
        except WireError as error:
            raise found.wrong(str(error)) from error

    def _object(self, found: ManifestObject) -> None:
        try:
            one = manifest_object(found.kind, msgspec.json.decode(found.data))
        except ValueError as error:
            raise found.wrong(f"a {found.kind} {error}") from error
        key = key_of(one.found)
        if key in self._objects:
            raise found.wrong(f"there is a second {key}")
        self._objects[key] = one

    def _node(self, found: ManifestObject) -> None:
        spec = self.node_spec(found)
        if spec is not None:
            self._nodes[spec.name] = spec

    def node_spec(self, found: ManifestObject) -> VirtualNodeSpec | None:
        """Return a node; None if it is of another platform. Raises InputError or WireError."""
        node = decode_node(found.data)
        if node.platform != LINUX:
            what = f"Node for {node.platform.os}/{node.platform.architecture}"
            self._passed[what] = self._passed.get(what, 0) + 1
            return None
        if not node.name or node.name in self._nodes:
            raise found.wrong(f"there is a second node {shown(node.name)}" if node.name else "a node has no name")
        if not node.allocatable:
            raise found.wrong("a node says not what it can give; add status.allocatable", "status.allocatable")
        held = [self._chooser.find(name) for image in node.images for name in image.names]
        taints = node.taints
        if node.unschedulable and all(taint.key != UNSCHEDULABLE.key for taint in taints):
            taints = (*taints, UNSCHEDULABLE)
        spec: VirtualNodeSpec = msgspec.structs.replace(
            self._context.like,
            name=node.name,
            allocatable=resources.filled(node.allocatable, ((PODS, pod_drafts.USUAL_PODS),)),
            holds=tuple({image.digest: image for image in held if image is not None}.values()),
            labels=node.labels,
            annotations=node.annotations,
            taints=taints,
        )
        return spec

    def imported(self, source: str, joining: Iterable[VirtualNodeSpec] = ()) -> Imported:
        """Return everything that was collected; pods may need the nodes that are *joining* later."""
        nodes = (*pod_drafts.equal_nodes(self._entry, self._context), *self._nodes.values())
        kept = list(self._controllers.pods())
        single = [one for one in self._pods if not self._is_kept(one.pod)]
        images = self._images([*((one.found, one.pod) for one in kept), *((one.found, one.pod) for one in single)])
        at = self._entry.at
        arrivals: list[PodArrival] = []
        events: list[ScenarioEvent] = []
        for one in single:
            pod, came = one.pod, at + one.at
            name = self._names.fresh(pod.name, f"{pod.namespace}-{pod.name}")
            life = manifest_lifecycle_of(one.found, "")
            if one.life is not None and life.seconds is None:
                life = one.life
            arrivals.append(PodArrival(came, self._placed(pod, name, came, images), life))
            if one.removed is not None:
                events.append(ScenarioEvent(at + one.removed, "remove", name))
        controllers = tuple(self._named_controller(one, at, images) for one in kept)
        pods = [*zip((one.found for one in single), (one.pod for one in arrivals), strict=True)]
        self._check_room([*pods, *((one.found, one.pod) for one in kept)], (*nodes, *joining))
        pod_drafts.check_count(source, len(arrivals) + sum(one.replicas for one in controllers))
        return Imported(
            nodes=nodes,
            arrivals=tuple(arrivals),
            controllers=controllers,
            objects=tuple(self._objects.values()),
            events=tuple(events),
            notes=tuple(self._notes(source)),
        )

    def _is_kept(self, pod: Pod) -> bool:
        if pod.finished or pod.deleting:
            self._passed["Pod that has ended"] = self._passed.get("Pod that has ended", 0) + 1
            return True
        return self._controllers.owns(pod)

    def _named_controller(self, one: ManifestController, at: float, images: dict[str, str]) -> ControllerSpec:
        name = self._names.fresh(one.spec.name, f"{one.pod.namespace}-{one.spec.name}")
        template = self._placed(one.pod, name, at, images)
        return msgspec.structs.replace(one.spec, name=name, at=at, template=template)

    def _placed(self, pod: Pod, name: str, at: float, images: dict[str, str]) -> Pod:
        """Return a pod without a node, with *images* of the scenario in place of unknown ones."""

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
                if self._chooser.find(name) is None:
                    missing[name] = missing.get(name, 0) + 1
                    where.setdefault(name, found)
        if missing and self._entry.unknown_images == "refuse":
            hint = "or say unknownImages: popularity"
            raise InputError(
                mistake
                for name, found in list(where.items())[: import_files.MOST_MISTAKES]
                for mistake in found.wrong(
                    f"there is no image {shown(name)}; {self._chooser.what_to_try(name)} {hint}"
                ).mistakes
            )
        return self._chooser.choose(missing) if missing else {}

    def _check_room(self, pods: list[tuple[ManifestObject, Pod]], own: tuple[VirtualNodeSpec, ...]) -> None:
        nodes = (*self._context.nodes, *own)
        room = NodeCapacityCheck(nodes)
        mistakes = [
            Mistake(found.source, message, "", found.line)
            for found, pod in pods
            for _, message in (room.missing_resources(pod.requests) if nodes else ())
        ]
        if mistakes:
            raise InputError(mistakes[: import_files.MOST_MISTAKES])

    def _notes(self, source: str) -> Iterator[str]:
        for kind, count in {**self._passed, **self._controllers.passed}.items():
            yield f"{source}: {count} × {kind} left out"
        yield from self._controllers.notes()
