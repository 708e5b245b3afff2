"""
ReplicaSets of the Deployments that clients create: one for each version of the pod template.

The simulator's Deployment controls its pods itself. These objects show its versions, as ``kubectl rollout history`` and
``kubectl rollout undo`` read them: a revision number, the template, and the number of pods.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from lamina.simulator.controllers.deployment import HASH_LABEL
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import (
    KubeObject,
    NamespacedName,
    controller_of,
    part,
    uid_of,
    with_metadata,
)
from lamina.simulator.facade.object_store import ObjectVersion, StoreEvent
from lamina.simulator.facade.workload_objects import is_active, template_version, workload_status

REVISION: Final = "deployment.kubernetes.io/revision"
DEFAULT_HISTORY: Final = 10
"""Default of ``revisionHistoryLimit``."""
NOT_COPIED: Final = frozenset({REVISION, "kubectl.kubernetes.io/last-applied-configuration"})
"""Annotations of a Deployment that its ReplicaSets do not get."""


class ReplicaSets:
    """Writes the ReplicaSets of all Deployments of one store."""

    def __init__(self, state: ApiState) -> None:
        """Write to *state*."""
        self._state = state
        self._deployments = state.store.table("apps", "deployments")
        self._table = state.store.table("apps", "replicasets")
        self._keys: dict[str, dict[NamespacedName, None]] = {}
        """Keys of the ReplicaSets of each Deployment, by its uid."""
        self._table.listeners[self._changed] = None

    def _changed(self, event: StoreEvent) -> None:
        owner = str(controller_of(event.new.object).get("uid", ""))
        if not owner:
            return
        keys = self._keys.setdefault(owner, {})
        if event.type != "DELETED":
            keys[event.new.key] = None
            return
        keys.pop(event.new.key, None)
        if not keys:
            del self._keys[owner]

    def renew(self, deployment: ObjectVersion) -> None:
        """Make the ReplicaSet of a Deployment's template the newest, and write the revision to both."""
        found = deployment.object
        sets = self._of(found)
        newest = max(map(_revision, sets), default=0)
        stored = self.find(found, template_version(found))
        if stored is None:
            number, template = newest + 1, self._new(found)
            if self._table.get(_key(template)) is not None:
                # A client's object has this name.
                return
        else:
            number, template = _revision(stored), stored.object
            number = number if number == newest else newest + 1
        annotations = part(found["metadata"], "annotations")
        copied = {name: value for name, value in annotations.items() if name not in NOT_COPIED}
        template = with_metadata(template, annotations={**copied, REVISION: str(number)})
        self._state.store.put(self._table, _key(template), template)
        if annotations.get(REVISION) != str(number):
            shown = with_metadata(found, annotations={**annotations, REVISION: str(number)})
            self._state.store.put(self._deployments, deployment.key, shown)

    def find(self, deployment: KubeObject, version: str) -> ObjectVersion | None:
        """Return the ReplicaSet of one version of a Deployment."""
        metadata = deployment["metadata"]
        stored = self._table.get(NamespacedName(metadata["namespace"], f"{metadata['name']}-{version}"))
        if stored is None or controller_of(stored.object).get("uid") != metadata["uid"]:
            return None
        return stored

    def write_statuses(self, deployment: KubeObject, pods: Iterable[KubeObject]) -> None:
        """Write how many of a Deployment's pods each ReplicaSet has, and remove old ones without pods."""
        sets = self._of(deployment)
        if not sets:
            return
        by_version: dict[str, list[KubeObject]] = {}
        for pod in pods:
            version = str(part(part(pod, "metadata"), "labels").get(HASH_LABEL, ""))
            by_version.setdefault(version, []).append(pod)
        active = {version: sum(map(is_active, found)) for version, found in by_version.items()}
        newest = max(sets, key=_revision)
        empty = []
        for one in sets:
            version = _version(one.object)
            owned, replicas = by_version.get(version, []), active.get(version, 0)
            if one is not newest:
                empty += [] if owned else [one]
            elif replicas == sum(active.values()):
                # No rollout is running.
                replicas = part(deployment, "spec").get("replicas", 1)
            spec = {**one.object["spec"], "replicas": replicas}
            status = workload_status(one.object, owned, self._state.timestamp())
            self._state.store.put(self._table, one.key, {**one.object, "spec": spec, "status": status})
        self._trim(deployment, empty)

    def _trim(self, deployment: KubeObject, empty: Sequence[ObjectVersion]) -> None:
        """Remove the oldest of the *empty* ReplicaSets beyond the history limit."""
        limit = part(deployment, "spec").get("revisionHistoryLimit", DEFAULT_HISTORY)
        for one in sorted(empty, key=_revision)[: max(0, len(empty) - limit)]:
            self._state.store.delete(self._table, one.key)

    def _of(self, deployment: KubeObject) -> list[ObjectVersion]:
        keys = self._keys.get(uid_of(deployment), ())
        return [one for key in keys if (one := self._table.get(key)) is not None]

    def _new(self, deployment: KubeObject) -> KubeObject:
        state, metadata, spec = self._state, deployment["metadata"], part(deployment, "spec")
        version = template_version(deployment)
        template = part(spec, "template")
        labels = {**part(part(template, "metadata"), "labels"), HASH_LABEL: version}
        selector = part(spec, "selector")
        owner = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        return {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{metadata['name']}-{version}",
                "namespace": metadata["namespace"],
                "uid": state.uid(),
                "creationTimestamp": state.timestamp(),
                "generation": 1,
                "labels": labels,
                "ownerReferences": [owner],
            },
            "spec": {
                "replicas": 0,
                "selector": {
                    **selector,
                    "matchLabels": {**part(selector, "matchLabels"), HASH_LABEL: version},
                },
                "template": {**template, "metadata": {**part(template, "metadata"), "labels": labels}},
            },
            "status": {"replicas": 0},
        }


def _key(found: KubeObject) -> NamespacedName:
    return NamespacedName(found["metadata"]["namespace"], found["metadata"]["name"])


def _revision(one: ObjectVersion) -> int:
    number = part(one.object["metadata"], "annotations").get(REVISION, "0")
    return int(number) if isinstance(number, str) and number.isdecimal() else 0


def _version(found: KubeObject) -> str:
    return str(part(found["metadata"], "labels").get(HASH_LABEL, ""))
