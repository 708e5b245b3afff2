"""
Node affinity, host ports and other pods' anti-affinity once more, for one node at a time and in plain Python.

Written from upstream's behaviour (Kubernetes 1.36), like `oracles`: every answer is a loop over the pods of the cluster.
"""

from collections.abc import Mapping, Sequence

from lamina.model.node import Node
from lamina.model.pod import HostPort, Pod, PodTerm
from lamina.model.selectors import NodeSelector
from tests.property.oracles import PASSES, Words


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


def _minds(owner: Pod, term: PodTerm, pod: Pod) -> bool:
    if term.selector is None or not term.selector.matches(pod.labels):
        return False
    if not term.namespaces and term.namespace_selector is None:
        return owner.namespace == pod.namespace
    by_label = term.namespace_selector is not None and term.namespace_selector.matches(
        {"kubernetes.io/metadata.name": pod.namespace}
    )
    return by_label or pod.namespace in term.namespaces


def kept_away(nodes: Mapping[str, Node], placed: Mapping[str, Sequence[Pod]], pod: Pod) -> dict[str, Words]:
    """Say of every node whether a pod on a node of the same domain minds."""
    pairs = {
        (term.topology_key, nodes[name].labels[term.topology_key])
        for name in nodes
        for owner in placed[name]
        for term in owner.repels
        if term.topology_key in nodes[name].labels and _minds(owner, term, pod)
    }
    words = (("node(s) didn't satisfy existing pods anti-affinity rules",), False)
    return {name: words if pairs & set(node.labels.items()) else PASSES for name, node in nodes.items()}
