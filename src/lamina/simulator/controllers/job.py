"""
Job controller: creates pods until enough of them have succeeded.

At most *parallelism* pods run at once, and never more than completions are missing. As upstream, a pod that failed or
was rejected, evicted or removed counts as failed. The next pod is created after 10 s, 20 s and so on up to 6 min; a
success resets this back-off. When more than *backoff_limit* pods have failed, the Job fails and its other pods are
removed. A restart in place (``OnFailure``) is not a failed pod. With *ignore_disruptions*, pods that were preempted or
evicted are replaced at once and do not count as failed. Upstream's podFailurePolicy can ignore them, too, but waits
before the replacement.
"""

import math
from collections.abc import Sequence
from typing import Final

from lamina.model.cluster_objects import ClusterObject
from lamina.model.errors import WiringError
from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualPod
from lamina.simulator.cluster.admission import EVICTED
from lamina.simulator.cluster.outage import UNREACHABLE
from lamina.simulator.cluster.virtual_cluster import PREEMPTED
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.pod_factory import OwnedPodFactory, with_owner, with_restart_policy
from lamina.simulator.controllers.replacement_backoff import doubled

FIRST: Final = 10.0
MOST: Final = 360.0
DISRUPTIONS: Final = (PREEMPTED, EVICTED, UNREACHABLE)
"""Reasons of pods that ended although they would have gone on."""


class JobController:
    """Controller of one Job."""

    def __init__(self, spec: ControllerSpec, factory: OwnedPodFactory) -> None:
        """Start without pods."""
        self._spec = spec
        self._factory = factory
        # Pods of a Job must end; upstream rejects ``Always``.
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
        """Whether the Job has succeeded or failed."""
        return self.succeeded >= self._spec.replicas or self.failed > self._spec.backoff_limit

    @property
    def wanted(self) -> None:
        """Budgets cannot ask a controller of this kind how many pods it wants."""
        return

    @property
    def selecting(self) -> Sequence[ClusterObject]:
        """Default spread constraints do not read controllers of this kind."""
        return ()

    def scale(self, count: int) -> None:
        """Change the parallelism; 0 suspends the Job."""
        self.parallelism = count

    def update(self, image: str) -> None:
        """Raise WiringError: the template of a Job is immutable."""
        raise WiringError(f"job {self._spec.name!r} cannot be updated to {image!r}; create another job")

    def pod_started(self, pod: VirtualPod) -> None:
        """Do nothing: a Job only counts ended pods."""

    def pod_ended(self, pod: VirtualPod) -> None:
        """Count a pod as succeeded or failed, unless the Job itself removed it."""
        if pod.pod.uid not in self._active:
            return
        del self._active[pod.pod.uid]
        if self._spec.ignore_disruptions and pod.reason in DISRUPTIONS:
            return
        if pod.phase == "finished":
            self.succeeded += 1
            self._in_a_row = 0
            self._ready_at = 0.0
        else:
            self.failed += 1
            self._in_a_row += 1
            self._ready_at = self._factory.now + doubled(self._in_a_row, FIRST, MOST)

    def sync(self) -> float:
        """Create or remove pods; return the time of the next sync, or infinity."""
        needed = 0 if self.over else min(self.parallelism, self._spec.replicas - self.succeeded)
        while len(self._active) > needed:
            self._factory.remove(self._active.popitem()[0])
        if len(self._active) < needed and self._ready_at > self._factory.now:
            return self._ready_at
        while len(self._active) < needed:
            self._active[self._factory.make(self._template, self._life)] = None
        return math.inf
