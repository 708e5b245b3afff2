"""Read-only access to the cluster state, passed to a plugin's constructor."""

from collections.abc import Callable
from typing import Any, TypeVar

from lamina.layers.inventory import Inventory
from lamina.model.pod import Pod
from lamina.scheduling.state.cluster_load import ClusterLoad
from lamina.scheduling.state.cluster_objects import ClusterObjects
from lamina.scheduling.state.cluster_usage import ClusterUsage
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.evictions import Evictions
from lamina.scheduling.state.image_names import ImageNames
from lamina.scheduling.state.namespace_labels import NamespaceLabels
from lamina.scheduling.state.node_facts import F, FactHandle
from lamina.scheduling.state.placed_pods import PlacedPods
from lamina.scheduling.state.placed_terms import PlacedTermIndex
from lamina.scheduling.state.pod_cache import PodCache
from lamina.scheduling.state.view import NodeRow

T = TypeVar("T")


class PluginContext:
    """
    The cluster as `ClusterState` holds it, read-only.

    For plugins that read it outside of a cycle (retry hints), or that read layers, load, measured usage or single pods.
    """

    __slots__ = ("_cache", "_columns", "_shared", "evictions", "inventory", "load", "namespaces", "objects", "usage")

    def __init__(self, columns: NodeColumns, inventory: Inventory, cache: PodCache | None = None) -> None:
        """Give access to these columns and this inventory; *cache* maps pods to nodes."""
        self._columns = columns
        # Any: each plugin has its own type.
        self._shared: dict[str, Any] = {}
        self.inventory = inventory
        self.load = ClusterLoad(columns)
        self.usage = ClusterUsage(columns) if cache is None else cache.usage
        self._cache = PodCache(columns, self.usage) if cache is None else cache
        self.evictions = Evictions()
        """Evictions in flight; the loop writes them."""
        self.namespaces: dict[str, dict[str, str]] = {}
        """Annotations by namespace; `ClusterState` writes them."""
        self.objects = ClusterObjects(columns.touch)
        """Disruption budgets, volumes and other objects; `ClusterState` writes them, and plugins can assume some."""

    @property
    def anti_affinity(self) -> PlacedTermIndex:
        """Required anti-affinity of all placed pods."""
        return self._columns.anti_affinity

    @property
    def scoring_terms(self) -> PlacedTermIndex:
        """All other affinity terms of placed pods."""
        return self._columns.scoring_terms

    @property
    def images(self) -> ImageNames:
        """Image names listed in node statuses."""
        return self._columns.images

    @property
    def namespace_labels(self) -> NamespaceLabels:
        """Labels by namespace."""
        return self._columns.namespaces

    def placed_pods(self) -> PlacedPods:
        """Return arrays of all placed pods; they are kept from the first call on."""
        return self._cache.arrays()

    def register(self, fact: F) -> FactHandle[F]:
        """Register a fact for the columns to maintain. Plugins call it in their constructor."""
        return self._columns.register(fact)

    def shared(self, name: str, make: Callable[[], T]) -> T:
        """Return what the plugins of this name share in all profiles; made by the first that asks for it."""
        if name not in self._shared:
            self._shared[name] = make()
        found: T = self._shared[name]
        return found

    def node(self, row: int) -> NodeRow:
        """Return one node's row."""
        return NodeRow(self._columns, row)

    def row(self, node: str) -> int:
        """Return the row of a node; -1 if there is no such node."""
        return self._columns.rows.get(node, -1)

    def pods_on(self, node: str) -> tuple[Pod, ...]:
        """List the pods on a node, including assumed ones; `Pod.requests` is what each of them requests."""
        return self._cache.on(node)

    def leaves(self, pod: Pod) -> bool:
        """Return whether a pod is being deleted, or its eviction is requested."""
        return pod.deleting or pod.uid in self.evictions
