"""
A StatefulSet: pods with names that stay, one after the other.

    up      name-0, name-1, ...: each when all before it are ready
    down    the highest first, each when the one before it is gone
    update  the highest first, each when the one before it is ready again

As upstream with ``OrderedReady``, a pod that does not become ready holds up everything behind it. Unlike there, a pod
that is made again in the middle of an update has the new version at once.
"""

import math

from lamina.model.pod import Pod, PodUid
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.pod_factory import OwnedPodFactory, with_image, with_owner, with_restart_policy
from lamina.simulator.controllers.replacement_backoff import ReplacementBackoff


class _OrdinalPod:
    """One of the names, while there is a pod that has it."""

    __slots__ = ("leaving", "ready", "template")

    def __init__(self, template: Pod) -> None:
        self.template = template
        self.ready = False
        self.leaving = False


class StatefulSetController:
    """One StatefulSet."""

    def __init__(self, spec: ControllerSpec, maker: OwnedPodFactory) -> None:
        """Want what *spec* says."""
        self._name = spec.name
        self._maker = maker
        self._life = with_restart_policy(spec.life)
        self._template = with_owner(spec.template, "StatefulSet", spec.name)
        self.replicas = spec.replicas
        self._slots: dict[int, _OrdinalPod] = {}
        self._uids: dict[int, PodUid] = {}
        self._ordinals: dict[PodUid, int] = {}
        self._patience = ReplacementBackoff()

    def scale(self, count: int) -> None:
        """Want so many pods from now on."""
        self.replicas = count
        self._patience.forget()

    def update(self, image: str) -> None:
        """Want pods with another image from now on."""
        self._template = with_image(self._template, image)
        self._patience.forget()

    def pod_started(self, pod: VirtualPod) -> None:
        """A pod is ready."""
        ordinal = self._ordinals.get(pod.pod.uid)
        if ordinal is not None:
            self._slots[ordinal].ready = True

    def pod_ended(self, pod: VirtualPod) -> None:
        """A pod is no more; its name is free."""
        ordinal = self._ordinals.pop(pod.pod.uid, None)
        if ordinal is not None:
            del self._slots[ordinal], self._uids[ordinal]
        self._patience.ended(pod, self._maker.now)

    def sync(self) -> float:
        """Take the one step that is due now; return when to look again, infinity: when something happens."""
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
        if self._patience.ready_at > self._maker.now:
            return self._patience.ready_at
        uid = self._maker.make(self._template, self._life, f"{self._name}-{ordinal}")
        self._slots[ordinal], self._uids[ordinal], self._ordinals[uid] = _OrdinalPod(self._template), uid, ordinal
        return math.inf

    def _remove(self, ordinal: int) -> None:
        slot = self._slots[ordinal]
        if not slot.leaving:
            slot.leaving = True
            self._maker.remove(self._uids[ordinal])
