"""
Pod admission of the kubelet: the checks that reject a pod after a scheduler bound it to the node.

The kubelet repeats the scheduler's checks, because two schedulers, or one with stale data, may have assigned the same
resources twice. Reasons are the kubelet's own; if several apply, the result is the one the kubelet reports.
"""

from typing import Final

from lamina.model.pod import ANY_IP, HostPort, Pod
from lamina.model.taints import NO_EXECUTE, untolerated
from lamina.simulator.cluster.virtual_node import VirtualNode

OUT_OF: Final = "OutOf{}"
"""Gives ``OutOfcpu``, ``OutOfpods``."""
NODE_AFFINITY: Final = "NodeAffinity"
NODE_PORTS: Final = "NodePorts"
TAINTS: Final = "TaintToleration"
EVICTED: Final = "Evicted"

CRITICAL: Final = 2_000_000_000
"""Lowest priority of critical pods (``system-cluster-critical``), which node pressure does not evict."""


def refusal(node: VirtualNode, pod: Pod) -> str:
    """Return the reason why *pod* cannot run on *node*; empty if it can."""
    if node.disk_pressure and pod.priority < CRITICAL:
        return EVICTED
    short_of = node.short_of(pod.requests)
    if short_of:
        return OUT_OF.format(short_of)
    if (pod.node_selector or pod.required_nodes is not None) and not _matches(node, pod):
        return NODE_AFFINITY
    if pod.host_ports and _taken(node, pod.host_ports):
        return NODE_PORTS
    if node.taints and untolerated(node.taints, pod.tolerations, (NO_EXECUTE,)):
        return TAINTS
    return ""


def _matches(node: VirtualNode, pod: Pod) -> bool:
    if any(node.labels.get(key) != value for key, value in pod.node_selector):
        return False
    return pod.required_nodes is None or pod.required_nodes.matches(node.labels, node.name)


def _taken(node: VirtualNode, ports: tuple[HostPort, ...]) -> bool:
    held = [port for other in node.pods.values() for port in other.pod.host_ports]
    return any(_clash(one, other) for one in ports for other in held)


def _clash(one: HostPort, other: HostPort) -> bool:
    same_ip = one.ip == other.ip or ANY_IP in (one.ip, other.ip)
    return one.port == other.port and one.protocol == other.protocol and same_ip
