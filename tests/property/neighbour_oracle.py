"""
Node affinity, host ports and affinity between pods once more, for one node at a time and in plain Python.

Written from upstream's behaviour (Kubernetes 1.36), like `oracles`: every answer is a loop over the pods of the cluster.
"""

from collections.abc import Mapping, Sequence

from lamina.model.node import Node
from lamina.model.pod import HostPort, Pod, PodTerm
from lamina.model.selectors import NodeSelector
from tests.property.oracles import PASSES, Words

Nodes = Mapping[str, Node]
Placed = Mapping[str, Sequence[Pod]]
Labels = Mapping[str, Mapping[str, str]]
"""Labels of namespaces."""


def affine(node: Node, pod: Pod, added: NodeSelector | None) -> Words:
    """Say whether a node is one the configuration allows and the pod wants."""
    if added is not None and not added.matches(node.labels, node.name):
        return ("node(s) didn't match scheduler-enforced node affinity",), True
    if all(node.labels.get(key) == value for key, value in pod.node_selector) and (
        pod.required_nodes is None or pod.required_nodes.matches(node.labels, node.name)
    ):
        return PASSES
    return ("node(s) didn't match Pod's node affinity/selector",), True


def liked(node: Node, pod: Pod) -> int:
    """Add up what a node is worth to a pod."""
    return sum(one.weight for one in pod.preferred_nodes if one.term.matches(node.labels, node.name))


def _same_port(one: HostPort, other: HostPort) -> bool:
    everywhere = "0.0.0.0"
    return (one.port, one.protocol) == (other.port, other.protocol) and (
        one.ip == other.ip or everywhere in (one.ip, other.ip)
    )


def ports(placed: Sequence[Pod], pod: Pod) -> Words:
    """Say whether the ports are free on a node with these pods."""
    taken = any(_same_port(wanted, held) for wanted in pod.host_ports for other in placed for held in other.host_ports)
    return (("node(s) didn't have free ports for the requested pod ports",), False) if taken else PASSES


def _matches(owner: Pod, term: PodTerm, pod: Pod, namespaces: Labels) -> bool:
    """Say whether a term of one pod is about another."""
    if term.selector is None or not term.selector.matches(pod.labels):
        return False
    if not term.namespaces and term.namespace_selector is None:
        return owner.namespace == pod.namespace
    by_label = term.namespace_selector is not None and term.namespace_selector.matches(
        {**namespaces.get(pod.namespace, {}), "kubernetes.io/metadata.name": pod.namespace}
    )
    return by_label or pod.namespace in term.namespaces


def neighbours(nodes: Nodes, placed: Placed, pod: Pod, namespaces: Labels) -> dict[str, Words]:
    """Say of every node whether the pod may be among those in its domains, and they among it."""
    pairs: dict[str, set[tuple[str, str]]] = {"near": set(), "apart": set(), "away": set()}
    for name, node in nodes.items():
        for other in placed[name]:
            near = all(_matches(pod, term, other, namespaces) for term in pod.required_pods)
            terms = {
                "near": pod.required_pods if near else (),
                "apart": [term for term in pod.repels if _matches(pod, term, other, namespaces)],
                "away": [term for term in other.repels if _matches(other, term, pod, namespaces)],
            }
            for kind, some in terms.items():
                pairs[kind] |= {
                    (term.topology_key, node.labels[term.topology_key])
                    for term in some
                    if term.topology_key in node.labels
                }
    itself = all(_matches(pod, term, pod, namespaces) for term in pod.required_pods)
    return {name: _neighbourly(node, pod, pairs, first=itself and not pairs["near"]) for name, node in nodes.items()}


def _neighbourly(node: Node, pod: Pod, pairs: dict[str, set[tuple[str, str]]], *, first: bool) -> Words:
    labels = set(node.labels.items())
    for term in pod.required_pods:
        value = node.labels.get(term.topology_key)
        if value is None or not (first or (term.topology_key, value) in pairs["near"]):
            return ("node(s) didn't match pod affinity rules",), True
    if labels & pairs["apart"]:
        return ("node(s) didn't match pod anti-affinity rules",), False
    if labels & pairs["away"]:
        return ("node(s) didn't satisfy existing pods anti-affinity rules",), False
    return PASSES


def preferred(nodes: Nodes, placed: Placed, pod: Pod, namespaces: Labels, hard_weight: int) -> dict[str, int]:
    """Add up for every node what the pods in its domains are worth to the pod, and it to them."""
    sums: dict[tuple[str, str], int] = {}

    def add(owner: Pod, term: PodTerm, other: Pod, weight: int, on: Node) -> None:
        if term.topology_key in on.labels and _matches(owner, term, other, namespaces):
            pair = (term.topology_key, on.labels[term.topology_key])
            sums[pair] = sums.get(pair, 0) + weight

    for name, node in nodes.items():
        for other in placed[name]:
            for owner, subject in ((pod, other), (other, pod)):
                for one in owner.preferred_pods:
                    add(owner, one.term, subject, one.weight, node)
                for one in owner.avoided_pods:
                    add(owner, one.term, subject, -one.weight, node)
            for term in other.required_pods:
                add(other, term, pod, hard_weight, node)
    return {name: sum(sums.get(pair, 0) for pair in node.labels.items()) for name, node in nodes.items()}


def stretched(raw: Mapping[str, int]) -> dict[str, int]:
    """Stretch points to 0..100, in floats as upstream does."""
    low, high = min(raw.values(), default=0), max(raw.values(), default=0)
    return {name: int(100.0 * ((one - low) / (high - low))) if high > low else 0 for name, one in raw.items()}
