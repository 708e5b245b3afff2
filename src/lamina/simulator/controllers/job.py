"""
A Job: pods until enough of them have ended well.

At most *parallelism* of them at once, and never more than are still needed. A pod that failed, was refused, evicted or
removed counts as failed, as upstream; the next one is made after 10 s, 20 s and so on up to 6 min, counted since a pod
last ended well. When more have failed than *backoff_limit* allows, the Job has failed and its other pods are removed.
A restart in place (``OnFailure``) is not a failed pod.
"""

import math
from typing import Final

from lamina.model.errors import WiringError
from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.pod_factory import OwnedPodFactory, with_owner, with_restart_policy
from lamina.simulator.controllers.replacement_backoff import doubled

FIRST: Final = 10.0
MOST: Final = 360.0


class JobController:
    """One Job."""

    def __init__(self, spec: ControllerSpec, maker: OwnedPodFactory) -> None:
        """Want what *spec* says."""
        self._spec = spec
        self._maker = maker
        # What never ends cannot be a Job's pod; upstream refuses it.
        self._life = with_restart_policy(spec.life, "OnFailure") if spec.life.restart == "Always" else spec.life
        self._template = with_owner(spec.template, "Job", spec.name)
        self.parallelism = spec.parallelism
        self._active: dict[PodUid, None] = {}
        self.succeeded = 0
        self.failed = 0
        self._in_a_row = 0
        self._ready_at = 0.0

    @property
    def over(self) -> bool:
        """Whether it has ended, well or not."""
        return self.succeeded >= self._spec.replicas or self.failed > self._spec.backoff_limit

    def scale(self, count: int) -> None:
        """Have so many pods at once from now on; 0 suspends it."""
        self.parallelism = count

    def update(self, image: str) -> None:
        """Refuse: what a Job runs cannot be changed."""
        raise WiringError(f"job {self._spec.name!r} cannot be updated to {image!r}; make another one")

    def pod_started(self, pod: VirtualPod) -> None:
        """Nothing: a Job's pods count when they have ended."""

    def pod_ended(self, pod: VirtualPod) -> None:
        """Count how a pod ended, unless it was the Job that removed it."""
        if pod.pod.uid not in self._active:
            return
        del self._active[pod.pod.uid]
        if pod.phase == "finished":
            self.succeeded += 1
            self._in_a_row = 0
            self._ready_at = 0.0
        else:
            self.failed += 1
            self._in_a_row += 1
            self._ready_at = self._maker.now + doubled(self._in_a_row, FIRST, MOST)

    def sync(self) -> float:
        """Have as many pods as are needed; return when to look again, infinity: when something happens."""
        needed = 0 if self.over else min(self.parallelism, self._spec.replicas - self.succeeded)
        while len(self._active) > needed:
            self._maker.remove(self._active.popitem()[0])
        if len(self._active) < needed and self._ready_at > self._maker.now:
            return self._ready_at
        while len(self._active) < needed:
            self._active[self._maker.make(self._template, self._life)] = None
        return math.inf
