"""Controllers in manifests: what they keep, and which of the pods beside them are theirs."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec

from lamina.model.pod import Pod
from lamina.simulator.controllers.controller_spec import ControllerKind, ControllerSpec
from lamina.simulator.workloads.imports.manifest_lifecycle import manifest_lifecycle_of
from lamina.simulator.workloads.imports.manifest_objects import ManifestObject
from lamina.wire.kube.codec import decode_pod
from lamina.wire.kube.meta import ObjectMeta, controller

CONTROLLERS: Final[dict[str, ControllerKind]] = {
    "Deployment": "Deployment",
    "ReplicaSet": "Deployment",
    "StatefulSet": "StatefulSet",
    "DaemonSet": "DaemonSet",
    "Job": "Job",
}
"""Kinds that are read, and what keeps their pods here."""
HASH_LABEL: Final = "pod-template-hash"

ReplicaCount = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
RollingShare = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] | Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,3}%$")]


class _Rolling(msgspec.Struct, frozen=True, rename="camel"):
    max_surge: RollingShare | None = None
    max_unavailable: RollingShare | None = None


class _Strategy(msgspec.Struct, frozen=True, rename="camel"):
    rolling_update: _Rolling | None = None


class _PodTemplateFields(msgspec.Struct, frozen=True):
    metadata: dict[str, Any] | None = None  # Any: handed on to the reader of pods
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
    """A controller with the pod it makes copies of."""

    found: ManifestObject
    spec: ControllerSpec
    pod: Pod


class ManifestControllers:
    """The controllers of a cluster."""

    def __init__(self) -> None:
        """Start without any."""
        self.passed: dict[str, int] = {}
        self._kept: dict[tuple[str, str, str], ManifestController] = {}
        self._owned: dict[tuple[str, str, str], tuple[str, str, str]] = {}
        """Controllers that another one keeps, by kind, namespace and name."""

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
            # Without a number of completions a Job has as many as run at once.
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
        """Go through the controllers that no other one keeps, in the order they were found."""
        for key, one in self._kept.items():
            if self._owned.get(key) not in self._kept:
                yield one

    def keeps(self, pod: Pod) -> bool:
        """Whether one of the controllers would make this pod."""
        if pod.owner is None:
            return False
        if (pod.owner.kind, pod.namespace, pod.owner.name) in self._kept:
            return True
        # The ReplicaSet between a Deployment and its pods is often left out of what people save.
        deployment = pod.owner.name.removesuffix(f"-{pod.labels.get(HASH_LABEL, '')}")
        return pod.owner.kind == "ReplicaSet" and ("Deployment", pod.namespace, deployment) in self._kept

    def notes(self) -> Iterator[str]:
        """Say what will surprise."""
        endless = [one for one in self.pods() if one.spec.kind == "Job" and one.spec.life.seconds is None]
        if endless:
            names = ", ".join(one.spec.name for one in endless[:5])
            yield f"{len(endless)} Jobs say not how long they run and never end ({names}); add the annotation simSpec"


def _share(value: int | str | None) -> int | float:
    if isinstance(value, str):
        return int(value.removesuffix("%")) / 100
    return 0.25 if value is None else value
