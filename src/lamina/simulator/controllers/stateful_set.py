"""
StatefulSet controller: pods with stable names, created and removed in order.

    scale up    name-0, name-1, ...: each when all lower ordinals are ready
    scale down  highest ordinal first, each when the previous pod is gone
    update      highest ordinal first, each when the previous pod is ready again

As upstream with ``OrderedReady``, a pod that does not become ready blocks all later steps. Unlike upstream, a pod that
is replaced during an update gets the new version at once.
"""

import math
from collections.abc import Sequence

import msgspec

from lamina.model.pod import Pod, PodUid
from lamina.model.pod_volumes import CLAIM, PodVolume
from lamina.model.selecting_objects import StatefulSet
from lamina.model.selectors import LabelSelector
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.pod_factory import OwnedPodFactory, with_image, with_owner, with_restart_policy
from lamina.simulator.controllers.replacement_backoff import ReplacementBackoff


class _OrdinalPod:
    """The present pod of one ordinal."""

    __slots__ = ("leaving", "ready", "template")

    def __init__(self, template: Pod) -> None:
        self.template = template
        self.ready = False
        self.leaving = False


class StatefulSetController:
    """Controller of one StatefulSet."""

    def __init__(self, spec: ControllerSpec, factory: OwnedPodFactory) -> None:
        """Start without pods."""
        self._name = spec.name
        self._factory = factory
        self._life = with_restart_policy(spec.life)
        self._template = with_owner(spec.template, "StatefulSet", spec.name)
        self.replicas = spec.replicas
        self._claims = spec.claims
        self._slots: dict[int, _OrdinalPod] = {}
        self._uids: dict[int, PodUid] = {}
        self._ordinals: dict[PodUid, int] = {}
        self._backoff = ReplacementBackoff()

    @property
    def wanted(self) -> int:
        """Number of pods that a disruption budget expects."""
        return self.replicas

    @property
    def selecting(self) -> Sequence[StatefulSet]:
        """Itself, as default spread constraints read it."""
        labels = LabelSelector(tuple(sorted(self._template.labels.items())))
        return [StatefulSet(namespace=self._template.namespace, name=self._name, selector=labels)]

    def scale(self, count: int) -> None:
        """Change the number of pods."""
        self.replicas = count
        self._backoff.forget()

    def update(self, image: str) -> None:
        """Start a rolling update to another image."""
        self._template = with_image(self._template, image)
        self._backoff.forget()

    def pod_started(self, pod: VirtualPod) -> None:
        """Mark the pod's ordinal as ready."""
        ordinal = self._ordinals.get(pod.pod.uid)
        if ordinal is not None:
            self._slots[ordinal].ready = True

    def pod_ended(self, pod: VirtualPod) -> None:
        """Drop an ended pod; its name is free again."""
        ordinal = self._ordinals.pop(pod.pod.uid, None)
        if ordinal is not None:
            del self._slots[ordinal], self._uids[ordinal]
        self._backoff.ended(pod, self._factory.now)

    def sync(self) -> float:
        """Perform the next step; return the time of the next sync, or infinity to wait for an event."""
        for ordinal in range(self.replicas):
            slot = self._slots.get(ordinal)
            if slot is None:
                return self._make(ordinal)
            if slot.leaving or not slot.ready:
                return math.inf
        last = max(self._slots, default=-1)
        if last >= self.replicas:
            self._remove(last)
            return math.inf
        for ordinal in reversed(range(self.replicas)):
            if self._slots[ordinal].template != self._template:
                self._remove(ordinal)
                break
        return math.inf

    def _make(self, ordinal: int) -> float:
        if self._backoff.ready_at > self._factory.now:
            return self._backoff.ready_at
        name = f"{self._name}-{ordinal}"
        uid = self._factory.make(self._with_claims(name), self._life, name)
        self._slots[ordinal], self._uids[ordinal], self._ordinals[uid] = _OrdinalPod(self._template), uid, ordinal
        return math.inf

    def _with_claims(self, pod: str) -> Pod:
        """Return the template of one pod, after its claims were made."""
        made = [one.claim_of(self._template.namespace, pod) for one in self._claims]
        for claim in made:
            self._factory.make_claim(claim)
        if not made:
            return self._template
        volumes = (*self._template.volumes, *(PodVolume(CLAIM, claim.name) for claim in made))
        return msgspec.structs.replace(self._template, volumes=volumes)

    def _remove(self, ordinal: int) -> None:
        slot = self._slots[ordinal]
        if not slot.leaving:
            slot.leaving = True
            self._factory.remove(self._uids[ordinal])
