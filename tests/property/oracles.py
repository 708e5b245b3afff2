"""
kube-scheduler's rules once more, for one node at a time and in plain Python: what our array code is held against.

Written from upstream's behaviour (Kubernetes 1.36), not from our plugins, and slow on purpose: every sum is a loop over
the pods on a node. Nothing here is imported from the plugins or from the parts they are made of.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from lamina.model.image import Image
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.model.taints import Taint, Toleration

MIB = 1024 * 1024
NATIVE = ("cpu", "memory", "ephemeral-storage")

Words = tuple[tuple[str, ...], bool]
"""Reasons, and whether evicting somebody would not help; no reasons where the node passes."""

PASSES: Words = ((), False)


# ----------------------------------------------------------------------------------------------------------- resources


def _sum(pods: Iterable[Pod], resource: str, *, ranked: bool = False) -> int:
    return sum(dict(pod.scoring_requests if ranked else pod.requests).get(resource, 0) for pod in pods)


def fit(
    node: Node, placed: Sequence[Pod], pod: Pod, ignored: Iterable[str] = (), ignored_groups: Iterable[str] = ()
) -> Words:
    """Say what is short on a node: pods, then what every node has, then the rest by name."""
    has = dict(node.allocatable)
    asked = {name: amount for name, amount in pod.requests if amount > 0}
    reasons, final = [], False
    if len(placed) + 1 > has.get("pods", 0):
        reasons.append("Too many pods")
    for name in [*(one for one in NATIVE if one in asked), *sorted(set(asked) - set(NATIVE))]:
        extended = "/" in name and "kubernetes.io/" not in name
        if extended and (name in ignored or name.split("/")[0] in ignored_groups):
            continue
        if asked[name] > has.get(name, 0) - _sum(placed, name):
            reasons.append(f"Insufficient {name}")
            final = final or asked[name] > has.get(name, 0)
    return tuple(reasons), final


def allocation(node: Node, placed: Sequence[Pod], pod: Pod, weights: Mapping[str, int], *, most: bool = False) -> int:
    """Return the weighted mean of what would be left (or used) of each resource, in percent."""
    total = divisor = 0
    for name, weight in weights.items():
        there, asked = dict(node.allocatable).get(name, 0), _sum([pod], name, ranked=True)
        if there == 0 or (asked == 0 and name not in NATIVE):
            continue
        used = min(_sum(placed, name, ranked=name in ("cpu", "memory")) + asked, there)
        total += weight * ((used if most else there - used) * 100 // there)
        divisor += weight
    return total // divisor if divisor else 0


# -------------------------------------------------------------------------------------------------------- names, taints


def named(node: Node, pod: Pod) -> Words:
    """Refuse every node but the one the pod names."""
    if pod.node_name in ("", node.name):
        return PASSES
    return ("node(s) didn't match the requested node name",), True


def _covers(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)


def _tolerated(pod: Pod, taint: Taint) -> bool:
    return any(_covers(toleration, taint) for toleration in pod.tolerations)


def cordoned(node: Node, pod: Pod) -> Words:
    """Refuse a cordoned node, which counts as tainted."""
    if not node.unschedulable or _tolerated(pod, Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")):
        return PASSES
    return ("node(s) were unschedulable",), True


def tainted(node: Node, pod: Pod) -> Words:
    """Refuse a node with a hard taint that is not tolerated."""
    hard = [taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    if all(_tolerated(pod, taint) for taint in hard):
        return PASSES
    return ("node(s) had untolerated taint(s)",), True


def soft_taints(node: Node, pod: Pod) -> int:
    """Count the soft taints that are not tolerated."""
    return len([one for one in node.taints if one.effect == "PreferNoSchedule" and not _tolerated(pod, one)])


def fewest(counts: Mapping[str, int]) -> dict[str, int]:
    """Give 100 where there is nothing to count and 0 where there is most."""
    most = max(counts.values(), default=0)
    return {name: 100 if most == 0 else 100 - 100 * count // most for name, count in counts.items()}


# -------------------------------------------------------------------------------------------------------------- images


@dataclass
class ImageStates:
    """Upstream's cache of image names: the first size heard of a name stays until no node lists it."""

    sizes: dict[str, int] = field(default_factory=dict)
    nodes: dict[str, set[str]] = field(default_factory=dict)

    def add(self, node: Node) -> None:
        """Hear what a node lists."""
        for image in node.images:
            for name in image.names:
                self.sizes.setdefault(name, image.size)
                self.nodes.setdefault(name, set()).add(node.name)

    def remove(self, node: Node) -> None:
        """Forget what a node listed."""
        for image in node.images:
            for name in image.names:
                self.nodes.get(name, set()).discard(node.name)
                if not self.nodes.get(name):
                    self.nodes.pop(name, None)
                    self.sizes.pop(name, None)

    def score(self, node: Node, pod: Pod, cluster: int) -> int:
        """Score a node of a cluster of so many."""
        total = 0
        for container in (*pod.init_containers, *pod.containers):
            total += self._worth(node, container.image, cluster)
        for volume in pod.image_volumes:
            total += self._worth(node, volume, cluster)
        low, high = 23 * MIB, 1000 * MIB * (len(pod.init_containers) + len(pod.containers))
        return 100 * (min(max(total, low), high) - low) // (high - low)

    def _worth(self, node: Node, image: str, cluster: int) -> int:
        name = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
        if node.name not in self.nodes.get(name, set()):
            return 0
        return int(float(self.sizes[name]) * (float(len(self.nodes[name])) / float(cluster)))


# -------------------------------------------------------------------------------------------------------------- layers


def wanted_layers(pod: Pod, catalog: Mapping[str, Image]) -> dict[str, int] | None:
    """Return the distinct layers of all images of a pod; None when one is not known or there is nothing to fetch."""
    layers: dict[str, int] = {}
    for name in pod.images:
        if name not in catalog:
            return None
        layers.update({str(layer.digest): layer.size for layer in catalog[name].layers})
    return layers if sum(layers.values()) else None


def held_layers(images: Iterable[Image]) -> set[str]:
    """Return the layers of whole images."""
    return {str(layer.digest) for image in images for layer in image.layers}


def layer_share(wanted: Mapping[str, int], held: set[str] | None) -> int:
    """Return the share of bytes a node holds, in percent; -1 when it never said."""
    if held is None:
        return -1
    return sum(size for digest, size in wanted.items() if digest in held) * 100 // sum(wanted.values())


def silent_as_mean(shares: Mapping[str, int]) -> dict[str, int]:
    """Let nodes that never said count as the mean of the others."""
    known = [share for share in shares.values() if share >= 0]
    mean = sum(known) // len(known) if known else 0
    return {name: share if share >= 0 else mean for name, share in shares.items()}
