"""List of all plugins and scheduling agents that come with Lamina."""

from typing import Final

from lamina.scheduling.contract.plugin_registry import PluginClass, PluginRegistry
from lamina.scheduling.contract.scheduling_agent import SchedulingAgent, SchedulingAgentRegistry
from lamina.scheduling.plugins.agents import congestion, foo, pigeon, safe
from lamina.scheduling.plugins.baselines.hot_edge import HotEdge
from lamina.scheduling.plugins.baselines.lr_scheduler import LRScheduler
from lamina.scheduling.plugins.batch.backfill.plugin import Backfill
from lamina.scheduling.plugins.batch.gangs.plugin import GangScheduling
from lamina.scheduling.plugins.batch.min_cost_flow import MinCostFlow
from lamina.scheduling.plugins.locality.image_presence import ImagePresence
from lamina.scheduling.plugins.locality.layer_locality import LayerLocality
from lamina.scheduling.plugins.locality.layer_locality import layers_agent as layers
from lamina.scheduling.plugins.qos_aware.plugin import QosAware
from lamina.scheduling.plugins.unmet_demands import UnmetDemands
from lamina.scheduling.plugins.upstream.default_binder import DefaultBinder
from lamina.scheduling.plugins.upstream.default_preemption.plugin import DefaultPreemption
from lamina.scheduling.plugins.upstream.image_locality import ImageLocality
from lamina.scheduling.plugins.upstream.inter_pod_affinity.plugin import InterPodAffinity
from lamina.scheduling.plugins.upstream.node_affinity.plugin import NodeAffinity
from lamina.scheduling.plugins.upstream.node_declared_features.plugin import NodeDeclaredFeatures
from lamina.scheduling.plugins.upstream.node_name import NodeName
from lamina.scheduling.plugins.upstream.node_ports.plugin import NodePorts
from lamina.scheduling.plugins.upstream.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from lamina.scheduling.plugins.upstream.node_resources_fit import NodeResourcesFit
from lamina.scheduling.plugins.upstream.node_unschedulable import NodeUnschedulable
from lamina.scheduling.plugins.upstream.node_volume_limits.plugin import NodeVolumeLimits
from lamina.scheduling.plugins.upstream.pod_topology_spread.plugin import PodTopologySpread
from lamina.scheduling.plugins.upstream.priority_sort import PrioritySort
from lamina.scheduling.plugins.upstream.scheduling_gates import SchedulingGates
from lamina.scheduling.plugins.upstream.taint_toleration import TaintToleration
from lamina.scheduling.plugins.upstream.volume_binding.plugin import VolumeBinding
from lamina.scheduling.plugins.upstream.volume_restrictions.plugin import VolumeRestrictions
from lamina.scheduling.plugins.upstream.volume_zone.plugin import VolumeZone

IN_TREE: Final[tuple[PluginClass, ...]] = (
    SchedulingGates,
    PrioritySort,
    UnmetDemands,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    LayerLocality,
    ImagePresence,
    MinCostFlow,
    HotEdge,
    LRScheduler,
    QosAware,
    *safe.AGENT.plugins,
    *pigeon.AGENT.plugins,
    *congestion.AGENT.plugins,
    *foo.AGENT.plugins,
    DefaultBinder,
    NodeDeclaredFeatures,
    Backfill,
    GangScheduling,
)
AGENTS: Final[tuple[SchedulingAgent, ...]] = (layers.AGENT, safe.AGENT, pigeon.AGENT, congestion.AGENT, foo.AGENT)


def registry(*, entry_points: bool = True) -> PluginRegistry:
    """Return a registry of in-tree plugins; with *entry_points*, also of those in other distributions."""
    plugins = PluginRegistry(*IN_TREE)
    if entry_points:
        plugins.load_entry_points()
    return plugins


def agents(*, entry_points: bool = True) -> SchedulingAgentRegistry:
    """Return a registry of in-tree scheduling agents; with *entry_points*, also of those in other distributions."""
    known = SchedulingAgentRegistry(*AGENTS)
    if entry_points:
        known.load_entry_points()
    return known
