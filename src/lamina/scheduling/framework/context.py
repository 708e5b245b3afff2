"""What a plugin is given when it is made. Nothing in it reaches outside."""

from lamina.layers.inventory import Inventory
from lamina.scheduling.framework.columns import NodeColumns
from lamina.scheduling.framework.load import ClusterLoad
from lamina.scheduling.framework.repulsion import Repulsion
from lamina.scheduling.framework.usage import ClusterUsage
from lamina.scheduling.framework.view import NodeRow


class Context:
    """The cluster as the loop knows it, for plugins that must look at it outside a cycle (hints), at layers, load or use."""

    __slots__ = ("_columns", "inventory", "load", "namespaces", "usage")

    def __init__(self, columns: NodeColumns, inventory: Inventory) -> None:
        """Look at these columns and this inventory."""
        self._columns = columns
        self.inventory = inventory
        self.load = ClusterLoad(columns)
        self.usage = ClusterUsage(columns)
        self.namespaces: dict[str, dict[str, str]] = {}
        """The annotations of namespaces; written by the loop."""

    @property
    def repulsion(self) -> Repulsion:
        """Who keeps whom away."""
        return self._columns.repulsion

    def node(self, row: int) -> NodeRow:
        """Look at one node."""
        return NodeRow(self._columns, row)
