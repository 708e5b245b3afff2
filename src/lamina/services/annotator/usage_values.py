"""
Free resources of nodes from measured usage: the annotations that the scheduling agent `safe` reads.

Free is allocatable minus used, and at least 0. CPU is in thousandths of a core, memory in bytes. The annotation names
keep the spelling ``forcasted``, because existing readers use it.
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
"""Share of a node's allocatable amount that must change before a write."""
LEAST: Final = {CPU: 10.0, MEMORY: 16.0 * 1024**2}
"""Smallest change that is written, whatever the share."""


class UsageValues:
    """Computes free resources from measured usage."""

    def __init__(self, source: UsageSource) -> None:
        """Measure with *source*."""
        self._source = source
        self.remark = ""

    async def values(self, nodes: Mapping[str, Node], now: float) -> dict[str, DesiredValues]:
        """Measure once. Raises the source's errors."""
        usages, strange = of_known_age(await self._source.look(nodes), now)
        skewed = (
            f"{plural(strange, 'node has', 'nodes have')} a clock that differs too much from ours" if strange else ""
        )
        self.remark = "; ".join(one for one in (skewed, self._source.remark) if one)
        wanted = {}
        for usage in usages:
            able = dict(nodes[usage.node].allocatable)
            numbers = {**_free(CPU, usage.cpu, able.get(CPU, 0)), **_free(MEMORY, usage.memory, able.get(MEMORY, 0))}
            wanted[usage.node] = DesiredValues(numbers, usage.until, frozenset(KEYS) - numbers.keys())
        return wanted

    async def close(self) -> None:
        """Close the source."""
        await self._source.close()


def _free(resource: str, load: ResourceUsage | None, able: int) -> dict[str, DesiredNumber]:
    if load is None:
        return {}
    step = max(SHARE * able, LEAST[resource])
    numbers = {MEAN: max(able - load.mean, 0.0), DEVIATION: load.deviation}
    if load.forecast is not None:
        numbers[FORECAST] = max(able - load.forecast, 0.0)
    return {f"{what}-{resource}": DesiredNumber(round(value), step) for what, value in numbers.items()}
