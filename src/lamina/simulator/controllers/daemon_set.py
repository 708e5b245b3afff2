"""
A DaemonSet: one pod on each node that its template may be on.

Each pod is pinned to its node by a required affinity to the node's name and still placed by a scheduler, as upstream;
so a node without room gets its pod when there is room. Pods put up with whatever the control plane taints nodes with:
a cordoned node keeps its pod and gets one. A node that joins gets a pod, one that leaves takes it along. An update
replaces pods that are not ready, and at most *unavailable* others at once (a share is rounded up; upstream's own
default is 1).
"""

import math
from typing import Final

import msgspec

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
"""What upstream adds to every pod of a DaemonSet."""


class DaemonSetController:
    """One DaemonSet."""

    def __init__(self, spec: ControllerSpec, maker: OwnedPodFactory) -> None:
        """Want what *spec* says, on nodes as they are made known."""
        self._spec = spec
        self._maker = maker
        self._life = with_restart_policy(spec.life)
        template = with_owner(spec.template, "DaemonSet", spec.name)
        self._template = msgspec.structs.replace(template, tolerations=(*template.tolerations, *TOLERATED))
        self._places: dict[str, ReplacementBackoff] = {}
        """Nodes that are to have a pod."""
        self._lacking: dict[str, None] = {}
        """Those that have none, so that the others cost nothing."""
        self._pods: dict[str, PodUid] = {}
        self._of: dict[PodUid, str] = {}
        self._ready: set[str] = set()
        """Those whose pod is ready and is to stay."""
        self._old: dict[str, None] = {}
        """Those of them whose pod has an older version."""
        self._useless: list[PodUid] = []
        """Pods of an older version that were not ready when the next one came."""

    # -- what is asked for -------------------------------------------------------------------------------------------

    def scale(self, count: int) -> None:
        """Refuse: nodes decide how many there are."""
        raise WiringError(f"daemon set {self._spec.name!r} cannot be scaled to {count}: it has a pod on every node")

    def update(self, image: str) -> None:
        """Want pods with another image from now on."""
        self._template = with_image(self._template, image)
        self._old = {name: None for name in self._pods if name in self._ready}
        self._useless = [uid for name, uid in self._pods.items() if name not in self._ready]
        for patience in self._places.values():
            patience.forget()

    # -- what happens ------------------------------------------------------------------------------------------------

    def node_joined(self, node: VirtualNode) -> None:
        """Want a pod there, if it may be there."""
        template = self._template
        chosen = template.required_nodes is None or template.required_nodes.matches(node.labels, node.name)
        chosen = chosen and all(node.labels.get(key) == value for key, value in template.node_selector)
        if chosen and untolerated(node.spec.taints, template.tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None:
            self._places[node.name] = ReplacementBackoff()
            self._lacking[node.name] = None

    def node_left(self, node: VirtualNode) -> None:
        """Want no pod there any more."""
        uid = self._pods.get(node.name)
        if uid is not None:
            self._forget(uid)
            self._maker.remove(uid)
        self._places.pop(node.name, None)
        self._lacking.pop(node.name, None)

    def pod_started(self, pod: VirtualPod) -> None:
        """A pod is ready."""
        name = self._of.get(pod.pod.uid)
        if name is not None and pod.pod.uid not in self._useless:
            self._ready.add(name)

    def pod_ended(self, pod: VirtualPod) -> None:
        """A pod is no more; its node lacks one."""
        name = self._forget(pod.pod.uid)
        if name:
            self._lacking[name] = None
            self._places[name].ended(pod, self._maker.now)

    def sync(self) -> float:
        """Do what is to be done now; return when to look again, infinity: when something happens."""
        self._replace()
        now, again = self._maker.now, math.inf
        for name in tuple(self._lacking):
            ready_at = self._places[name].ready_at
            if ready_at > now:
                again = min(again, ready_at)
                continue
            del self._lacking[name]
            uid = self._pods[name] = self._maker.make(_pinned(self._template, name), self._life)
            self._of[uid] = name
        return again

    def _replace(self) -> None:
        """Remove pods of an older version: all that are not ready, and of the others as many as may be lacking."""
        useless, self._useless = self._useless, []
        for uid in useless:
            self._maker.remove(uid)
        share = self._spec.unavailable
        most = share if isinstance(share, int) else math.ceil(share * len(self._places))
        while self._old and len(self._places) - len(self._ready) < max(1, most):
            name = next(iter(self._old))
            del self._old[name]
            self._ready.discard(name)
            self._maker.remove(self._pods[name])

    def _forget(self, uid: PodUid) -> str:
        """Let go of a pod; return which node it was for, empty if it was let go before."""
        name = self._of.pop(uid, "")
        if name:
            del self._pods[name]
            self._ready.discard(name)
            self._old.pop(name, None)
        return name


def _pinned(template: Pod, node: str) -> Pod:
    """Return the template for one node; like upstream, the pin takes the place of the template's own required terms."""
    term = NodeSelectorTerm(fields=(Requirement(NAME_FIELD, IN, (node,)),))
    return msgspec.structs.replace(template, required_nodes=NodeSelector((term,)))
