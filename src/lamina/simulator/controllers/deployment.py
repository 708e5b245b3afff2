"""
Deployment controller: keeps a number of pods and performs rolling updates.

    update --> a new ReplicaSet grows while the old ones shrink, by upstream's rules:
      at most replicas + surge (rounded up) pods; at least replicas - unavailable (rounded down) ready pods;
      if surge and unavailable are both 0, one pod may be unavailable;
      old pods that are not ready are removed first; ready ones as new pods become ready

A pod is ready when it has run for `min_ready` seconds. A rollback to an earlier version uses its ReplicaSet again. If
the Deployment is scaled during a rollout, all ReplicaSets are scaled in proportion.
"""

import math
from collections.abc import Sequence

import msgspec

from lamina.model.pod import Pod
from lamina.model.selecting_objects import ReplicaSet
from lamina.model.selectors import LabelSelector
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.pod_factory import OwnedPodFactory, with_image, with_owner, with_restart_policy
from lamina.simulator.controllers.replica_set import ReplicaSetController

HASH_LABEL = "pod-template-hash"
"""Label that identifies the pods of one version."""


class DeploymentController:
    """Controller of one Deployment and its ReplicaSets."""

    def __init__(self, spec: ControllerSpec, factory: OwnedPodFactory) -> None:
        """Start with the ReplicaSet of the template and no pods."""
        self._spec = spec
        self._factory = factory
        self._life = with_restart_policy(spec.life)
        self._template = spec.template
        self.replicas = spec.replicas
        self._sets: dict[str, ReplicaSetController] = {}
        """ReplicaSets by name, the newest version last."""
        self._number = 0
        self._renew(spec.version or self._next_version())

    # -- desired state -----------------------------------------------------------------------------------------------

    def scale(self, count: int) -> None:
        """Change the number of pods."""
        before = self.replicas + self.surge
        self.replicas = count
        self._rescale(before)
        for one in self._sets.values():
            one.backoff.forget()

    def update(self, image: str) -> None:
        """Start a rollout to another image; a version that had it is used again."""
        self._template = with_image(self._template, image)
        images = self._template.images
        known = (one.template.labels[HASH_LABEL] for one in self._sets.values() if one.template.images == images)
        self._renew(next(known, "") or self._next_version())

    def replace(self, template: Pod, version: str) -> None:
        """Start a rollout to another template, unless *version* is the newest; an earlier version is used again."""
        self._template = template
        self._renew(version)

    @property
    def surge(self) -> int:
        """Number of pods that a rollout may have above *replicas*."""
        share = self._spec.surge
        return share if isinstance(share, int) else math.ceil(share * self.replicas)

    @property
    def unavailable(self) -> int:
        """Number of pods that may be unavailable during a rollout."""
        share = self._spec.unavailable
        number = share if isinstance(share, int) else math.floor(share * self.replicas)
        return min(number or int(self.surge == 0), self.replicas)

    @property
    def wanted(self) -> int:
        """Number of pods that a disruption budget expects."""
        return self.replicas

    @property
    def selecting(self) -> Sequence[ReplicaSet]:
        """Its ReplicaSets, as default spread constraints read them."""
        return [
            ReplicaSet(
                namespace=one.template.namespace,
                name=name,
                selector=LabelSelector(tuple(sorted(one.template.labels.items()))),
            )
            for name, one in self._sets.items()
        ]

    # -- events ------------------------------------------------------------------------------------------------------

    def pod_started(self, pod: VirtualPod) -> None:
        """Pass the event to the pod's ReplicaSet."""
        self._replica_set_of(pod).started(pod.pod.uid, self._factory.now)

    def pod_ended(self, pod: VirtualPod) -> None:
        """Pass the event to the pod's ReplicaSet."""
        self._replica_set_of(pod).ended(pod, self._factory.now)

    def sync(self) -> float:
        """Advance the rollout, create and remove pods; return the time of the next sync, or infinity."""
        now = self._factory.now
        settled_at = min(one.settle(now) for one in self._sets.values())
        new = self._newest
        if self._total_replicas() == new.replicas:
            new.replicas = self.replicas
        else:
            self._grow()
            self._shrink()
            # The new version can use what the old ones gave up. Pods that are still stopping do not count.
            self._grow()
        # ReplicaSets that shrink sync first, so that the limit is never exceeded in between.
        ordered = sorted(self._sets.values(), key=lambda one: one.size < one.replicas)
        return min(settled_at, *(one.sync(now) for one in ordered))

    def _grow(self) -> None:
        """Grow the newest ReplicaSet up to replicas + surge in total."""
        new = self._newest
        room = self.replicas + self.surge - self._total_replicas()
        new.replicas = min(self.replicas, new.replicas + max(0, room))

    def _shrink(self) -> None:
        """Shrink older ReplicaSets without falling below the required number of ready pods."""
        *olds, new = self._sets.values()
        least = self.replicas - self.unavailable
        spare = self._total_replicas() - least - (new.replicas - len(new.ready))
        if spare <= 0:
            return
        for old in olds:
            gone = min(spare, max(0, old.replicas - len(old.ready)))
            old.replicas -= gone
            spare -= gone
        spare = sum(len(one.ready) for one in self._sets.values()) - least
        for old in olds:
            gone = max(0, min(spare, old.replicas))
            old.replicas -= gone
            spare -= gone

    def _rescale(self, before: int) -> None:
        """Distribute a new number over the ReplicaSets in proportion; *before* was their largest total."""
        active = [one for one in self._sets.values() if one.replicas]
        if len(active) <= 1:
            for one in active:
                one.replicas = self.replicas
            return
        whole = self.replicas + self.surge if self.replicas else 0
        left = whole - self._total_replicas()
        # Growth prefers large and new ReplicaSets, shrinking prefers large and old ones.
        active = active[::-1] if left > 0 else active
        active.sort(key=lambda one: -one.replicas)
        for one in active:
            share = math.floor(one.replicas * whole / before + 0.5) - one.replicas
            share = min(share, left) if left > 0 else max(share, left)
            # The last step distributes what is left by rounding.
            share = share if share * left > 0 else 0
            one.replicas += share
            left -= share
        active[0].replicas = max(0, active[0].replicas + left)

    # -- versions ----------------------------------------------------------------------------------------------------

    def _next_version(self) -> str:
        self._number += 1
        return str(self._number)

    def _renew(self, version: str) -> None:
        """Make the ReplicaSet of the current template the newest."""
        name = f"{self._spec.name}-{version}"
        known = self._sets.pop(name, None)
        if known is not None:
            known.backoff.forget()
            self._sets[name] = known
            return
        labels = {**self._template.labels, HASH_LABEL: version}
        template = msgspec.structs.replace(with_owner(self._template, "ReplicaSet", name), labels=labels)
        self._sets[name] = ReplicaSetController(name, template, self._life, self._factory, self._spec.min_ready)

    @property
    def _newest(self) -> ReplicaSetController:
        return next(reversed(self._sets.values()))

    def _total_replicas(self) -> int:
        return sum(one.replicas for one in self._sets.values())

    def _replica_set_of(self, pod: VirtualPod) -> ReplicaSetController:
        assert pod.pod.owner is not None, "a Deployment's pods belong to one of its ReplicaSets"
        return self._sets[pod.pod.owner.name]
