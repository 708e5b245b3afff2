"""Virtual nodes with their kubelets, the pods on them, and what a scheduler gets to see of both."""

from lamina.simulator.cluster.cluster import Cluster
from lamina.simulator.cluster.metering import UsageSpec
from lamina.simulator.cluster.node import Delays, NodeSpec, VirtualNode
from lamina.simulator.cluster.pod import ENDED, Phase, VirtualPod
from lamina.simulator.cluster.witness import ClusterWatcher, Witness

__all__ = [
    "ENDED",
    "Cluster",
    "ClusterWatcher",
    "Delays",
    "NodeSpec",
    "Phase",
    "UsageSpec",
    "VirtualNode",
    "VirtualPod",
    "Witness",
]
