"""
Disruption controller: computes how many pods each disruption budget allows to be evicted, by upstream's rules.

    allowed = healthy pods - desired healthy pods, at least 0

A pod is healthy if it is ready and is not being deleted. With ``minAvailable`` as a number, that number is desired. A
percentage and ``maxUnavailable`` refer to the number of pods that the pods' controllers want. If one of the controllers
has no such number (a Job, a DaemonSet), nothing is allowed. Pods whose controller is only a name in the scenario count
as wanted as they are. A node's failure does not change a pod's health before the pod is evicted.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from lamina.model.cluster_objects import ClusterObject, ObjectKey
from lamina.model.disruption_budget import BudgetLimits, PodDisruptionBudget
from lamina.model.pod import PodUid
from lamina.simulator.cluster import ENDED, VirtualCluster, VirtualPod
from lamina.simulator.cluster.cluster_object_table import SYNC
from lamina.simulator.engine import Environment
from lamina.wire.kube.disruption_budget import decode_budget_limits

UNSCALED: Final = frozenset({"Job", "DaemonSet"})
"""Controllers without a number of wanted pods."""

ScaleOfPod = Callable[[PodUid], tuple[str, int] | None]
"""Returns name and wanted number of pods of a pod's simulated controller; None if it has no such number."""


class _BudgetedPods:
    """A budget, its limits and the pods that it protects."""

    __slots__ = ("limits", "name", "namespace", "pods", "selector")

    def __init__(self, found: PodDisruptionBudget, limits: BudgetLimits) -> None:
        self.namespace, self.name = found.namespace, found.name
        self.selector = found.selector
        self.limits = limits
        self.pods: dict[PodUid, VirtualPod] = {}

    def take(self, pod: VirtualPod) -> bool:
        """Add a pod, update it or drop it; return whether it matters to the budget."""
        known = pod.pod.uid in self.pods
        if pod.phase in ENDED:
            self.pods.pop(pod.pod.uid, None)
            return known
        if not known:
            if self.selector is None or not self.selector.matches(pod.pod.labels):
                return False
            self.pods[pod.pod.uid] = pod
        return True


class DisruptionController:
    """Keeps the budgets of one cluster up to date. A budget without a manifest has no limits and stays as it is."""

    def __init__(self, environment: Environment, cluster: VirtualCluster, scale_of: ScaleOfPod) -> None:
        """Follow the budgets and pods of *cluster*."""
        self._environment = environment
        self._cluster = cluster
        self._scale_of = scale_of
        self._budgets: dict[ObjectKey, _BudgetedPods] = {}
        self._due: dict[ObjectKey, None] = {}
        self._scheduled = False
        cluster.objects.listeners.append(self._object_changed)
        cluster.pod_listeners.append(self._pod_changed)

    def _object_changed(self, key: ObjectKey, found: ClusterObject | None) -> None:
        if found is None:
            self._budgets.pop(key, None)
            return
        manifest = self._cluster.objects.manifests.get(key)
        if not isinstance(found, PodDisruptionBudget) or manifest is None:
            return
        limits = decode_budget_limits(msgspec.json.encode(manifest))
        known = self._budgets.get(key)
        if known is not None and (known.limits, known.selector) == (limits, found.selector):
            # Only its status changed, or a client wrote another status.
            self._mark(key)
            return
        budget = self._budgets[key] = _BudgetedPods(found, limits)
        for pod in self._cluster.pods.values():
            if pod.pod.namespace == budget.namespace:
                budget.take(pod)
        self._mark(key)

    def _pod_changed(self, pod: VirtualPod) -> None:
        for key, budget in self._budgets.items():
            if budget.namespace == pod.pod.namespace and budget.take(pod):
                self._mark(key)

    def _mark(self, key: ObjectKey) -> None:
        self._due[key] = None
        if not self._scheduled:
            self._scheduled = True
            # After the controllers, whose numbers of pods count.
            self._environment.after(0.0, self._sync_all, priority=SYNC + 1)

    def _sync_all(self) -> None:
        self._scheduled = False
        due, self._due = self._due, {}
        objects = self._cluster.objects
        for key in due:
            budget = self._budgets.get(key)
            found = objects.get(PodDisruptionBudget, key.namespace, key.name)
            if budget is not None and found is not None:
                objects.put(msgspec.structs.replace(found, disruptions_allowed=self._allowed(budget)))

    def _allowed(self, budget: _BudgetedPods) -> int:
        pods = [one.pod for one in budget.pods.values()]
        if isinstance(budget.limits.min_available, int) and budget.limits.max_unavailable is None:
            expected: int | None = len(pods)
        else:
            expected = self._wanted_by_controllers(budget)
        if not expected:
            return 0
        healthy = sum(pod.ready and not pod.deleting for pod in pods)
        return max(0, healthy - budget.limits.desired_healthy(expected))

    def _wanted_by_controllers(self, budget: _BudgetedPods) -> int | None:
        """Return how many pods the controllers of a budget's pods want; None if one of them has no such number."""
        wanted: dict[str, int] = {}
        for uid, one in budget.pods.items():
            owner = one.pod.owner
            if owner is None:
                continue
            scale = self._scale_of(uid)
            if scale is not None:
                name, wanted_pods = scale
                wanted[name] = wanted_pods
            elif owner.kind in UNSCALED:
                return None
            else:
                name = f"{owner.kind}/{owner.name}"
                wanted[name] = wanted.get(name, 0) + 1
        return sum(wanted.values())
