"""
DaemonSet controller: one pod on each node that its template matches.

As upstream, each pod has a required node affinity to its node's name and is placed by a scheduler. A node without free
resources gets its pod later. Pods tolerate the taints of the control plane, so a cordoned node also gets its pod. A
node that joins gets a pod; a node that leaves loses its pod. An update replaces the pods that are not ready, and at
most *unavailable* others at once (a share is rounded up; upstream's default is 1).
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from lamina.model.cluster_objects import ClusterObject
from lamina.model.errors import WiringError
from lamina.model.pod import Pod, PodUid
from lamina.model.selectors import IN, NAME_FIELD, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.taints import EXISTS, NO_EXECUTE, NO_SCHEDULE, Toleration, untolerated
from lamina.simulator.cluster import VirtualNode, VirtualPod
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.pod_factory import OwnedPodFactory, with_image, with_owner, with_restart_policy
from lamina.simulator.controllers.replacement_backoff import ReplacementBackoff

_CONDITIONS: Final = (
    ("not-ready", NO_EXECUTE),
    ("unreachable", NO_EXECUTE),
    ("disk-pressure", NO_SCHEDULE),
    ("memory-pressure", NO_SCHEDULE),
    ("pid-pressure", NO_SCHEDULE),
    ("unschedulable", NO_SCHEDULE),
)
TOLERATED: Final = tuple(Toleration(f"node.kubernetes.io/{name}", EXISTS, "", effect) for name, effect in _CONDITIONS)
"""Tolerations that upstream adds to every pod of a DaemonSet."""


class DaemonSetController:
    """Controller of one DaemonSet."""

    def __init__(self, spec: ControllerSpec, factory: OwnedPodFactory) -> None:
        """Start without nodes; the manager reports each one through `node_joined`."""
        self._spec = spec
        self._factory = factory
        self._life = with_restart_policy(spec.life)
        template = with_owner(spec.template, "DaemonSet", spec.name)
        self._template = msgspec.structs.replace(template, tolerations=(*template.tolerations, *TOLERATED))
        self._places: dict[str, ReplacementBackoff] = {}
        """Nodes that need a pod, with the back-off of each."""
        self._missing: dict[str, None] = {}
        """Nodes without a pod, so that a sync does not visit the others."""
        self._pods: dict[str, PodUid] = {}
        self._of: dict[PodUid, str] = {}
        self._ready: set[str] = set()
        """Nodes whose pod is ready and is not being removed."""
        self._old: dict[str, None] = {}
        """Ready nodes whose pod has an older version."""
        self._useless: list[PodUid] = []
        """Pods of an older version that were not ready at the time of the update."""

    # -- desired state -----------------------------------------------------------------------------------------------

    @property
    def wanted(self) -> None:
        """Budgets cannot ask a controller of this kind how many pods it wants."""
        return

    @property
    def selecting(self) -> Sequence[ClusterObject]:
        """Default spread constraints do not read controllers of this kind."""
        return ()

    def scale(self, count: int) -> None:
        """Raise WiringError: the number of nodes determines the number of pods."""
        raise WiringError(f"daemon set {self._spec.name!r} cannot be scaled to {count}: it has a pod on every node")

    def update(self, image: str) -> None:
        """Start a rollout to another image."""
        self._template = with_image(self._template, image)
        self._old = {name: None for name in self._pods if name in self._ready}
        self._useless = [uid for name, uid in self._pods.items() if name not in self._ready]
        for backoff in self._places.values():
            backoff.forget()

    # -- events ------------------------------------------------------------------------------------------------------

    def node_joined(self, node: VirtualNode) -> None:
        """Add a node if the template matches its labels and tolerates its taints."""
        template = self._template
        chosen = template.required_nodes is None or template.required_nodes.matches(node.labels, node.name)
        chosen = chosen and all(node.labels.get(key) == value for key, value in template.node_selector)
        if chosen and untolerated(node.spec.taints, template.tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None:
            self._places[node.name] = ReplacementBackoff()
            self._missing[node.name] = None

    def node_left(self, node: VirtualNode) -> None:
        """Remove a node and its pod."""
        uid = self._pods.get(node.name)
        if uid is not None:
            self._forget(uid)
            self._factory.remove(uid)
        self._places.pop(node.name, None)
        self._missing.pop(node.name, None)

    def pod_started(self, pod: VirtualPod) -> None:
        """Mark the pod's node as ready."""
        name = self._of.get(pod.pod.uid)
        if name is not None and pod.pod.uid not in self._useless:
            self._ready.add(name)

    def pod_ended(self, pod: VirtualPod) -> None:
        """Drop an ended pod; its node needs another one."""
        name = self._forget(pod.pod.uid)
        if name:
            self._missing[name] = None
            self._places[name].ended(pod, self._factory.now)

    def sync(self) -> float:
        """Replace old pods and create missing ones; return the time of the next sync, or infinity."""
        self._replace()
        now, again = self._factory.now, math.inf
        for name in tuple(self._missing):
            ready_at = self._places[name].ready_at
            if ready_at > now:
                again = min(again, ready_at)
                continue
            del self._missing[name]
            uid = self._pods[name] = self._factory.make(_pinned(self._template, name), self._life)
            self._of[uid] = name
        return again

    def _replace(self) -> None:
        """Remove pods of an older version: all that are not ready, and up to *unavailable* ready ones."""
        useless, self._useless = self._useless, []
        for uid in useless:
            self._factory.remove(uid)
        share = self._spec.unavailable
        most = share if isinstance(share, int) else math.ceil(share * len(self._places))
        while self._old and len(self._places) - len(self._ready) < max(1, most):
            name = next(iter(self._old))
            del self._old[name]
            self._ready.discard(name)
            self._factory.remove(self._pods[name])

    def _forget(self, uid: PodUid) -> str:
        """Drop a pod from the bookkeeping; return its node, or an empty string if it was dropped before."""
        name = self._of.pop(uid, "")
        if name:
            del self._pods[name]
            self._ready.discard(name)
            self._old.pop(name, None)
        return name


def _pinned(template: Pod, node: str) -> Pod:
    """Return the template pinned to one node; as upstream, this replaces the template's required terms."""
    term = NodeSelectorTerm(fields=(Requirement(NAME_FIELD, IN, (node,)),))
    return msgspec.structs.replace(template, required_nodes=NodeSelector((term,)))
