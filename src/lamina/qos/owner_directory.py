"""
Follows owner references from a pod to its topmost controller.

The host gives it facts about ReplicaSets, Deployments, Jobs and other owners. Owners that are not known yet end the
chain: then a ReplicaSet's Deployment is recognised by the pod's template hash.
"""

from typing import Final

import msgspec

from lamina.model.pod import Owner, Pod
from lamina.qos.promise import ControllerKey

MOST_OWNERS: Final = 8
"""A longer chain of owners is cut; it protects against owners that own each other."""
TEMPLATE_HASH: Final = "pod-template-hash"
REPLICA_SET: Final = "ReplicaSet"
DEPLOYMENT: Final = "Deployment"
JOB: Final = "Job"
BARE_POD: Final = "Pod"


class OwnerFacts(msgspec.Struct, frozen=True):
    """What is known about an owner of pods."""

    namespace: str
    kind: str
    name: str
    replicas: int | None = None
    """Number of pods that should run at the same time: ``spec.replicas``, or ``spec.parallelism`` of a Job."""
    completions: int | None = None
    """Number of pods of a Job that should succeed."""
    owner: Owner | None = None

    @property
    def key(self) -> ControllerKey:
        """The owner's identity."""
        return ControllerKey(self.namespace, self.kind, self.name)


class ControllerFacts(msgspec.Struct, frozen=True):
    """The controller of a pod, found by following its owners."""

    key: ControllerKey
    replicas: int | None
    """None if no known owner states a number."""
    completions: int | None
    of_job: bool
    """Whether a Job is among the owners."""
    owned: bool
    """Whether the pod has an owner at all."""


class OwnerDirectory:
    """Owners by namespace, kind and name."""

    def __init__(self) -> None:
        """Start without owners."""
        self._owners: dict[ControllerKey, OwnerFacts] = {}

    def __len__(self) -> int:
        """Return the number of known owners."""
        return len(self._owners)

    def put(self, facts: OwnerFacts) -> None:
        """Add or replace an owner."""
        self._owners[facts.key] = facts

    def remove(self, key: ControllerKey) -> None:
        """Forget an owner; an unknown one is ignored."""
        self._owners.pop(key, None)

    def find(self, key: ControllerKey) -> OwnerFacts | None:
        """Return what is known about an owner; None if it is not known."""
        return self._owners.get(key)

    def controller_of(self, pod: Pod) -> ControllerFacts:
        """
        Return the topmost owner of a pod; the pod itself if it has none.

        The topmost owner that states a number of replicas decides about the number: during a rolling update this is
        the Deployment, not one of its ReplicaSets. If the owner of a ReplicaSet is not known, no number is.
        """
        if pod.owner is None:
            return ControllerFacts(ControllerKey(pod.namespace, BARE_POD, pod.name), 1, None, of_job=False, owned=False)
        replicas = completions = None
        of_job, below = False, ""
        owner: Owner | None = pod.owner
        key = ControllerKey(pod.namespace, pod.owner.kind, pod.owner.name)
        for _ in range(MOST_OWNERS):
            if owner is None:
                break
            key = ControllerKey(pod.namespace, owner.kind, owner.name)
            of_job = of_job or owner.kind == JOB
            facts = self.find(key)
            if facts is None:
                key = _deployment_of(pod, key)
                # The Deployment can be known although its ReplicaSet is not.
                facts = self.find(key)
            if facts is None:
                replicas = None if below == REPLICA_SET else replicas
                break
            below = facts.kind
            replicas = facts.replicas if facts.replicas is not None else replicas
            completions = facts.completions if facts.completions is not None else completions
            owner = facts.owner
        return ControllerFacts(key, replicas, completions, of_job, owned=True)


def _deployment_of(pod: Pod, key: ControllerKey) -> ControllerKey:
    """Return the Deployment that an unknown ReplicaSet belongs to, as its name shows; otherwise *key*."""
    hashed = pod.labels.get(TEMPLATE_HASH, "")
    if key.kind == REPLICA_SET and hashed and key.name.endswith(f"-{hashed}"):
        return ControllerKey(key.namespace, DEPLOYMENT, key.name[: -len(hashed) - 1])
    return key
