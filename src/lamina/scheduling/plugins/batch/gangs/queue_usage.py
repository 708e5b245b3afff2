"""What queues and jobs have, request and deserve while a batch is planned."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from lamina.model.pod import Pod
from lamina.model.pod_groups import Queue, group_of
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.plugins.batch.gangs.fair_shares import QueueDemand, Vectors, deserved_shares, share_of
from lamina.scheduling.runtime.gang_directory import GangDirectory
from lamina.scheduling.state.cluster_objects import ClusterObjects
from lamina.scheduling.state.columns import Floats
from lamina.scheduling.state.view import NodeView

SLACK = 1e-6
"""Relative difference below which two amounts are equal: shares are fractions."""


class QueueUsage:
    """Allocations by queue and job, and the shares of the queues."""

    def __init__(
        self, objects: ClusterObjects, gangs: GangDirectory, nodes: NodeView, pending: Iterable[Pod], *, by_queue: bool
    ) -> None:
        """Count the placed pods of *gangs* and the *pending* ones; without *by_queue*, all pods are in one queue."""
        self._queues = {queue.name: queue for queue in objects.all_of(Queue)}
        self._gangs = gangs
        self._by_queue = by_queue
        alive = nodes.alive
        self.vectors = Vectors({name: int(nodes.allocatable(name)[alive].sum()) for name in nodes.resources})
        nothing = partial(self.vectors.of, ())
        self.has: dict[str, Floats] = defaultdict(nothing)
        """By queue; changes as pods are planned."""
        self._jobs: dict[str, Floats] = {}
        request: dict[str, Floats] = {}
        for pod in gangs.placed():
            amount, queue = self.vectors.of(pod.requests), self.queue_of(pod)
            _add(self.has, queue, amount)
            _add(self._jobs, job_of(pod), amount)
            _add(request, queue, amount)
        for pod in pending:
            _add(request, self.queue_of(pod), self.vectors.of(pod.requests))
        shares = deserved_shares(self.vectors.total, [self._demand(name, amount) for name, amount in request.items()])
        # A pod that is counted on its node can still be in the queue that it named before: that one deserves nothing.
        self._deserved: Mapping[str, Floats] = defaultdict(nothing, zip(request, shares, strict=True))

    def queue_of(self, pod: Pod) -> str:
        """Return the pod's queue."""
        return self._gangs.queue_of(pod) if self._by_queue else ""

    def job_has(self, job: str) -> Floats:
        """Return what the placed pods of a job have."""
        return self._jobs.get(job, self.vectors.of(())).copy()

    def share(self, queue: str) -> float:
        """Return the largest fraction of its share that a queue has."""
        return share_of(self.has[queue], self._deserved[queue]) if self._by_queue else 0.0

    def refusal(self, pods: Iterable[Pod]) -> Status | None:
        """Return why the queue of some pods gets nothing for them now; None if it does."""
        if not self._by_queue:
            return None
        together = list(pods)
        name = self.queue_of(together[0])
        queue = self._queues.get(name)
        if queue is not None and not queue.open:
            return unschedulable(f'queue "{name}" is closed')
        wanted = self.vectors.of(()) + sum(self.vectors.of(pod.requests) for pod in together)
        asked, has = wanted > 0, self.has[name]
        if queue is not None and (has + wanted > self.vectors.of(queue.capability, np.inf) * (1 + SLACK))[asked].any():
            return unschedulable(f'queue "{name}" has all that its capability allows')
        if (has >= self._deserved[name] * (1 - SLACK))[asked].all():
            return unschedulable(f'queue "{name}" has its share')
        return None

    def may_reclaim(self, pods: Iterable[Pod]) -> bool:
        """Return whether the queue of some pods stays within its share with them."""
        together = list(pods)
        name = self.queue_of(together[0])
        wanted = self.vectors.of(()) + sum(self.vectors.of(pod.requests) for pod in together)
        return self._by_queue and bool(
            (self.has[name] + wanted <= self._deserved[name] * (1 + SLACK))[wanted > 0].all()
        )

    def reclaimable(self, pod: Pod) -> bool:
        """Return whether a placed pod can be evicted: its queue keeps its share, and allows it."""
        name = self.queue_of(pod)
        queue, amount = self._queues.get(name), self.vectors.of(pod.requests)
        if queue is not None and not queue.reclaimable:
            return False
        asked = amount > 0
        return bool((self.has[name] - amount >= self._deserved[name] * (1 - SLACK))[asked].all())

    def within_shares(self, victims: Iterable[Pod]) -> bool:
        """Return whether all *victims* can be evicted together: each queue keeps its share."""
        before = {name: amount.copy() for name, amount in self.has.items()}
        kept = True
        for pod in victims:
            kept = kept and self.reclaimable(pod)
            self.evicted(pod)
        self.has.update(before)
        return kept

    def evicted(self, pod: Pod) -> None:
        """Note that a pod leaves."""
        name = self.queue_of(pod)
        self.has[name] = self.has[name] - self.vectors.of(pod.requests)

    def _demand(self, name: str, request: Floats) -> QueueDemand:
        queue = self._queues.get(name)
        if queue is None:
            return QueueDemand(1, request)
        return QueueDemand(
            queue.weight,
            request,
            self.vectors.of(queue.deserved, np.nan) if queue.deserved else None,
            self.vectors.of(queue.capability, np.inf) if queue.capability else None,
        )


def job_of(pod: Pod) -> str:
    """Return the job of a pod: its gang, its controller, or the pod itself."""
    ref = group_of(pod)
    if ref is not None:
        return f"gang {ref.key}"
    return f"{pod.namespace}/{pod.owner.kind}/{pod.owner.name}" if pod.owner is not None else f"pod {pod.uid}"


def _add(amounts: dict[str, Floats], name: str, amount: Floats) -> None:
    amounts[name] = amounts[name] + amount if name in amounts else amount.copy()
