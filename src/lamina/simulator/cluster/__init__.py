"""Virtual nodes with their kubelets, the pods on them, and what a scheduler gets to see of both."""

from lamina.simulator.cluster.cluster import Cluster, Witness
from lamina.simulator.cluster.node import Delays, NodeSpec, VirtualNode
from lamina.simulator.cluster.pod import Phase, VirtualPod

__all__ = ["Cluster", "Delays", "NodeSpec", "Phase", "VirtualNode", "VirtualPod", "Witness"]
