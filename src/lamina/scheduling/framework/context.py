"""What a plugin is given when it is made. Nothing in it reaches outside."""

from lamina.layers.inventory import Inventory
from lamina.scheduling.framework.columns import NodeColumns
from lamina.scheduling.framework.view import NodeRow


class Context:
    """The cluster as the loop knows it, for plugins that must look at it outside a cycle (hints) or at layers."""

    __slots__ = ("_columns", "inventory")

    def __init__(self, columns: NodeColumns, inventory: Inventory) -> None:
        """Look at these columns and this inventory."""
        self._columns = columns
        self.inventory = inventory

    def node(self, row: int) -> NodeRow:
        """Look at one node."""
        return NodeRow(self._columns, row)
