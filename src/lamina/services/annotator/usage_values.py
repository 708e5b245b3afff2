"""
What is free of nodes, measured: the annotations that the agent `safe` reads.

Free is what a node can give to pods (allocatable) less what is used, and never below nothing. Cpu is in thousandths of a
core, memory in bytes. The spelling ``forcasted`` is the one that its readers know.
"""

from collections.abc import Mapping
from typing import Final

from lamina.model.node import Node
from lamina.model.node_usage import ResourceUsage
from lamina.model.plain import plural
from lamina.model.resources import CPU, MEMORY
from lamina.services.annotator.node_values import DesiredNumber, DesiredValues
from lamina.services.informers.usage.usage_source import UsageSource, of_known_age

STAMP: Final = "lamina.dev/usage-observed-at"
MEAN: Final = "mean-free"
DEVIATION: Final = "std-free"
FORECAST: Final = "forcasted-free"
KEYS: Final = tuple(f"{what}-{resource}" for what in (MEAN, DEVIATION, FORECAST) for resource in (CPU, MEMORY))

SHARE: Final = 0.02
"""Of what a node can give: as much has to come or go to be worth a write."""
LEAST: Final = {CPU: 10.0, MEMORY: 16.0 * 1024**2}
"""But never less than this."""


class UsageValues:
    """Tells what is free, as somebody measured it."""

    def __init__(self, source: UsageSource) -> None:
        """Ask *source*."""
        self._source = source
        self.remark = ""

    async def values(self, nodes: Mapping[str, Node], now: float) -> dict[str, DesiredValues]:
        """Look once. Raises what the source raises."""
        usages, strange = of_known_age(await self._source.look(nodes), now)
        skewed = f"{plural(strange, 'node was', 'nodes were')} measured by a clock too far from ours" if strange else ""
        self.remark = "; ".join(one for one in (skewed, self._source.remark) if one)
        wanted = {}
        for usage in usages:
            able = dict(nodes[usage.node].allocatable)
            numbers = {**_free(CPU, usage.cpu, able.get(CPU, 0)), **_free(MEMORY, usage.memory, able.get(MEMORY, 0))}
            wanted[usage.node] = DesiredValues(numbers, usage.until, frozenset(KEYS) - numbers.keys())
        return wanted

    async def close(self) -> None:
        """End what is open."""
        await self._source.close()


def _free(resource: str, load: ResourceUsage | None, able: int) -> dict[str, DesiredNumber]:
    if load is None:
        return {}
    step = max(SHARE * able, LEAST[resource])
    numbers = {MEAN: max(able - load.mean, 0.0), DEVIATION: load.deviation}
    if load.forecast is not None:
        numbers[FORECAST] = max(able - load.forecast, 0.0)
    return {f"{what}-{resource}": DesiredNumber(round(value), step) for what, value in numbers.items()}
