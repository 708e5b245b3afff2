"""MinCostFlow: places all pending pods together, at the least total cost."""

from lamina.scheduling.plugins.batch.min_cost_flow.args import MinCostFlowArgs
from lamina.scheduling.plugins.batch.min_cost_flow.plugin import MinCostFlow

__all__ = ["MinCostFlow", "MinCostFlowArgs"]
