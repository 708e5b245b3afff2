"""
kube-scheduler's rules once more, for one node at a time and in plain Python: what our array code is held against.

Written from upstream's behaviour (Kubernetes 1.36), not from our plugins, and slow on purpose: every sum is a loop over
the pods on a node. Nothing here is imported from the plugins or from the parts they are made of.
"""

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

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


def on_line(shape: Sequence[tuple[int, int]], used: int) -> int:
    """Return the height of a broken line at a percentage, between points of (percentage, 0..10), in steps of 0..100."""
    if used <= shape[0][0]:
        return shape[0][1] * 10
    for (left, low), (right, high) in itertools.pairwise(shape):
        if used <= right:
            # Go cuts towards zero.
            return low * 10 + int(Fraction((high - low) * 10 * (used - left), right - left))
    return shape[-1][1] * 10


def ratio(
    node: Node, placed: Sequence[Pod], pod: Pod, weights: Mapping[str, int], shape: Sequence[tuple[int, int]]
) -> int:
    """Return the weighted mean of what a shape makes of each resource's use; what scores nothing is left out."""
    total = divisor = 0
    for name, weight in weights.items():
        there, asked = dict(node.allocatable).get(name, 0), _sum([pod], name, ranked=True)
        if there == 0 or (asked == 0 and name not in NATIVE):
            continue
        used = _sum(placed, name, ranked=name in ("cpu", "memory")) + asked
        score = on_line(shape, 100 if used > there else used * 100 // there)
        if score > 0:
            total += score * weight
            divisor += weight
    return math.floor(Fraction(total, divisor) + Fraction(1, 2)) if divisor else 0


def balanced(node: Node, placed: Sequence[Pod], pod: Pod, resources: Sequence[str]) -> int | None:
    """Say how much more even the use of resources gets; None for a pod that asks for none of them."""
    asked = {name: dict(pod.requests).get(name, 0) for name in resources}
    if not any(asked.values()):
        return None
    before, after = [], []
    for name in resources:
        there = dict(node.allocatable).get(name, 0)
        if there == 0 or (asked[name] == 0 and name not in NATIVE):
            continue
        used = _sum(placed, name)
        before.append(min(float(used) / float(there), 1.0))
        after.append(min(float(used + asked[name]) / float(there), 1.0))
    return 50 + (50 + _evenness(after) - _evenness(before)) // 2


def _evenness(shares: Sequence[float]) -> int:
    deviation = 0.0
    if len(shares) == 2:
        deviation = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        mean = functools.reduce(operator.add, shares, 0.0) / float(len(shares))
        squares = functools.reduce(operator.add, ((one - mean) * (one - mean) for one in shares), 0.0)
        deviation = math.sqrt(squares / float(len(shares)))
    return int((1 - deviation) * 100.0)


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


def wanted_images(pod: Pod, catalog: Mapping[str, Image]) -> list[Image] | None:
    """Return the distinct images of a pod; None when one is not known."""
    if not all(name in catalog for name in pod.images):
        return None
    return list({catalog[name].digest: catalog[name] for name in pod.images}.values())


def _chains(images: Iterable[Image]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return what each layer on top of the ones below it costs, compressed and unpacked; a blob is downloaded once."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for image in images:
        digests = [str(layer.digest) for layer in image.layers]
        for place, layer in enumerate(image.layers):
            size = 0 if digests[place] in digests[:place] else layer.size
            found.setdefault(tuple(digests[: place + 1]), (size, round(2.3 * layer.size)))
    return found


def layer_worth(wanted: Sequence[Image], held: Sequence[Image] | None, mode: str) -> float | None:
    """
    Return what a node is worth that reuses layers by prefix, in points that are not rounded; None if it never said.

    By bytes the share it need not download; by seconds 100·5/(5 + E), with a pull at 125 MB/s that unpacks at 100 MB/s.
    """
    if held is None:
        return None
    there, total = _chains(held), sum({layer.digest: layer.size for one in wanted for layer in one.layers}.values())
    missing = [cost for chain, cost in _chains(wanted).items() if chain not in there]
    download, unpacked = sum(one[0] for one in missing), sum(one[1] for one in missing)
    if mode == "bytes":
        return 100 * max(1 - download / max(total, 1), 1e-6)
    if {one.digest for one in wanted} <= {one.digest for one in held}:
        return 100.0
    loading, unpacking = download / 125e6, unpacked / 100e6
    waiting = max(loading, unpacking) + 0.15 * min(loading, unpacking) + 0.04
    return 500 / (5 + (waiting if waiting >= 0.5 else 0) + 0.25 * loading)


def silent_as_mean(worths: Mapping[str, float | None]) -> dict[str, float]:
    """Let nodes that never said count as the mean of the others; all alike if nobody did."""
    known = [worth for worth in worths.values() if worth is not None]
    mean = sum(known) / len(known) if known else 100.0
    return {name: mean if worth is None else worth for name, worth in worths.items()}
