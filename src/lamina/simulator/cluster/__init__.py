"""Virtual cluster: nodes with kubelets, their pods, and the events that a scheduler receives of both."""

from lamina.simulator.cluster.usage_sampler import UsageSpec
from lamina.simulator.cluster.virtual_cluster import VirtualCluster
from lamina.simulator.cluster.virtual_node import Delays, VirtualNode, VirtualNodeSpec
from lamina.simulator.cluster.virtual_pod import ENDED, Phase, VirtualPod
from lamina.simulator.cluster.watchers import ClusterRecorder, ClusterWatcher

__all__ = [
    "ENDED",
    "ClusterRecorder",
    "ClusterWatcher",
    "Delays",
    "Phase",
    "UsageSpec",
    "VirtualCluster",
    "VirtualNode",
    "VirtualNodeSpec",
    "VirtualPod",
]
