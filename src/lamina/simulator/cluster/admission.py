"""
What a kubelet refuses to run, although a scheduler bound it here.

It looks once more at what a scheduler looked at, because two schedulers, or one with old news, may have given the same
room away twice. Reasons are in kubelet's words, and of several the one that it would name.
"""

from typing import Final

from lamina.model.pod import ANY_IP, HostPort, Pod
from lamina.model.taints import NO_EXECUTE, untolerated
from lamina.simulator.cluster.virtual_node import VirtualNode

OUT_OF: Final = "OutOf{}"
"""``OutOfcpu``, ``OutOfpods``."""
NODE_AFFINITY: Final = "NodeAffinity"
NODE_PORTS: Final = "NodePorts"
TAINTS: Final = "TaintToleration"
EVICTED: Final = "Evicted"

CRITICAL: Final = 2_000_000_000
"""From this priority on a pod is one that the cluster cannot do without (``system-cluster-critical``)."""


def refusal(node: VirtualNode, pod: Pod) -> str:
    """Say why *pod* cannot run on *node*; empty when it can."""
    if node.pressed and pod.priority < CRITICAL:
        return EVICTED
    short_of = node.short_of(pod.requests)
    if short_of:
        return OUT_OF.format(short_of)
    if (pod.node_selector or pod.required_nodes is not None) and not _wants(node, pod):
        return NODE_AFFINITY
    if pod.host_ports and _taken(node, pod.host_ports):
        return NODE_PORTS
    if node.taints and untolerated(node.taints, pod.tolerations, (NO_EXECUTE,)):
        return TAINTS
    return ""


def _wants(node: VirtualNode, pod: Pod) -> bool:
    if any(node.labels.get(key) != value for key, value in pod.node_selector):
        return False
    return pod.required_nodes is None or pod.required_nodes.matches(node.labels, node.name)


def _taken(node: VirtualNode, ports: tuple[HostPort, ...]) -> bool:
    held = [port for other in node.pods.values() for port in other.pod.host_ports]
    return any(_clash(one, other) for one in ports for other in held)


def _clash(one: HostPort, other: HostPort) -> bool:
    same_ip = one.ip == other.ip or ANY_IP in (one.ip, other.ip)
    return one.port == other.port and one.protocol == other.protocol and same_ip
