"""What a plugin is given when it is made. Nothing in it reaches outside."""

from lamina.layers.inventory import Inventory
from lamina.model.pod import Pod
from lamina.scheduling.state.anti_affinity import AntiAffinityIndex
from lamina.scheduling.state.cluster_load import ClusterLoad
from lamina.scheduling.state.cluster_usage import ClusterUsage
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.node_facts import F, FactHandle
from lamina.scheduling.state.pod_cache import PodCache
from lamina.scheduling.state.view import NodeRow


class PluginContext:
    """
    The cluster as `ClusterState` knows it, read only.

    For plugins that look at it outside a cycle (hints), or at layers, load, measured use or single pods.
    """

    __slots__ = ("_cache", "_columns", "inventory", "load", "namespaces", "usage")

    def __init__(self, columns: NodeColumns, inventory: Inventory, cache: PodCache | None = None) -> None:
        """Look at these columns and this inventory; *cache* knows which pods are where."""
        self._columns = columns
        self.inventory = inventory
        self.load = ClusterLoad(columns)
        self.usage = ClusterUsage(columns) if cache is None else cache.usage
        self._cache = PodCache(columns, self.usage) if cache is None else cache
        self.namespaces: dict[str, dict[str, str]] = {}
        """The annotations of namespaces; written by `ClusterState`."""

    @property
    def repulsion(self) -> AntiAffinityIndex:
        """Who keeps whom away."""
        return self._columns.repulsion

    def register(self, fact: F) -> FactHandle[F]:
        """Let the columns keep a fact that a plugin needs; to be called when the plugin is made."""
        return self._columns.register(fact)

    def node(self, row: int) -> NodeRow:
        """Look at one node."""
        return NodeRow(self._columns, row)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """List the pods on a node, assumed ones included; `Pod.requests` is what each of them takes."""
        return self._cache.on(node)
