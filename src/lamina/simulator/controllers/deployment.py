"""
A Deployment: keeps so many pods, and rolls them from one version to the next.

    update --> a new ReplicaSet grows while the old ones shrink, by upstream's rules:
      never more pods than replicas + surge (rounded up), never fewer ready than replicas - unavailable (rounded down);
      when both come to nothing, one may be unavailable;
      old pods that are not ready go first; ready ones as new ones become ready

A pod is ready when it has run for `min_ready` seconds. Going back to a version that was there takes up its ReplicaSet again. Scaled
in the middle of a rollout, all ReplicaSets are scaled in proportion.
"""

import math

import msgspec

from lamina.simulator.cluster import VirtualPod
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.pod_factory import OwnedPodFactory, with_image, with_owner, with_restart_policy
from lamina.simulator.controllers.replica_set import ReplicaSetController

HASH_LABEL = "pod-template-hash"
"""By which pods of one version are told from those of another."""


class DeploymentController:
    """One Deployment and its ReplicaSets."""

    def __init__(self, spec: ControllerSpec, maker: OwnedPodFactory) -> None:
        """Want what *spec* says."""
        self._spec = spec
        self._maker = maker
        self._life = with_restart_policy(spec.life)
        self._template = spec.template
        self.replicas = spec.replicas
        self._sets: dict[str, ReplicaSetController] = {}
        """By name; the newest version last."""
        self._number = 0
        self._renew()

    # -- what is asked for -------------------------------------------------------------------------------------------

    def scale(self, count: int) -> None:
        """Want so many pods from now on."""
        before = self.replicas + self.surge
        self.replicas = count
        self._rescale(before)
        for one in self._sets.values():
            one.patience.forget()

    def update(self, image: str) -> None:
        """Want pods with another image from now on."""
        self._template = with_image(self._template, image)
        self._renew()

    @property
    def surge(self) -> int:
        """How many pods more than wanted a rollout may have."""
        share = self._spec.surge
        return share if isinstance(share, int) else math.ceil(share * self.replicas)

    @property
    def unavailable(self) -> int:
        """How many of the wanted pods a rollout may leave lacking."""
        share = self._spec.unavailable
        number = share if isinstance(share, int) else math.floor(share * self.replicas)
        return min(number or int(self.surge == 0), self.replicas)

    # -- what happens ------------------------------------------------------------------------------------------------

    def pod_started(self, pod: VirtualPod) -> None:
        """A pod is ready."""
        self._home(pod).started(pod.pod.uid, self._maker.now)

    def pod_ended(self, pod: VirtualPod) -> None:
        """A pod is no more."""
        self._home(pod).ended(pod, self._maker.now)

    def sync(self) -> float:
        """Do what is to be done now; return when to look again, infinity: when something happens."""
        now = self._maker.now
        settled_at = min(one.settle(now) for one in self._sets.values())
        new = self._newest
        if self._wanted() == new.wanted:
            new.wanted = self.replicas
        else:
            self._grow()
            self._shrink()
            # What old versions gave up is room for the new one; an old pod that takes its time to stop holds up nobody.
            self._grow()
        # First the ReplicaSets that shrink, so that there are never too many pods, not even for a moment.
        ordered = sorted(self._sets.values(), key=lambda one: one.size < one.wanted)
        return min(settled_at, *(one.sync(now) for one in ordered))

    def _grow(self) -> None:
        """Let the newest version have as many as it may."""
        new = self._newest
        room = self.replicas + self.surge - self._wanted()
        new.wanted = min(self.replicas, new.wanted + max(0, room))

    def _shrink(self) -> None:
        """Take from older versions what can be spared."""
        *olds, new = self._sets.values()
        least = self.replicas - self.unavailable
        spare = self._wanted() - least - (new.wanted - len(new.ready))
        if spare <= 0:
            return
        for old in olds:
            gone = min(spare, max(0, old.wanted - len(old.ready)))
            old.wanted -= gone
            spare -= gone
        spare = sum(len(one.ready) for one in self._sets.values()) - least
        for old in olds:
            gone = max(0, min(spare, old.wanted))
            old.wanted -= gone
            spare -= gone

    def _rescale(self, before: int) -> None:
        """Spread a new number over the versions there are; *before* is what all of them could be until now."""
        active = [one for one in self._sets.values() if one.wanted]
        if len(active) <= 1:
            for one in active:
                one.wanted = self.replicas
            return
        whole = self.replicas + self.surge if self.replicas else 0
        left = whole - self._wanted()
        # Growing favours large and new ones, shrinking large and old ones.
        active = active[::-1] if left > 0 else active
        active.sort(key=lambda one: -one.wanted)
        for one in active:
            share = math.floor(one.wanted * whole / before + 0.5) - one.wanted
            share = min(share, left) if left > 0 else max(share, left)
            # What rounding goes against is left to the last step.
            share = share if share * left > 0 else 0
            one.wanted += share
            left -= share
        active[0].wanted = max(0, active[0].wanted + left)

    # -- versions ----------------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        """Make the ReplicaSet of the current template the newest."""
        images = self._template.images
        for name, one in self._sets.items():
            if one.template.images == images:
                self._sets[name] = self._sets.pop(name)
                one.patience.forget()
                return
        self._number += 1
        name = f"{self._spec.name}-{self._number}"
        labels = {**self._template.labels, HASH_LABEL: str(self._number)}
        template = msgspec.structs.replace(with_owner(self._template, "ReplicaSet", name), labels=labels)
        self._sets[name] = ReplicaSetController(name, template, self._life, self._maker, self._spec.min_ready)

    @property
    def _newest(self) -> ReplicaSetController:
        return next(reversed(self._sets.values()))

    def _wanted(self) -> int:
        return sum(one.wanted for one in self._sets.values())

    def _home(self, pod: VirtualPod) -> ReplicaSetController:
        assert pod.pod.owner is not None, "a Deployment's pods belong to one of its ReplicaSets"
        return self._sets[pod.pod.owner.name]
