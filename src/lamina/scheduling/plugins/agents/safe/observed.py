"""
What is known of the use of nodes, as shares of what they can give: measured, or read from annotations.

    used  = (1 - w) · mean + w · forecast     where there is a forecast, else the mean
    mean  = (used + what the pod asks for) / capacity     deviation = deviation of use / capacity     both within 0..1

Annotations say what is *free*, in thousandths of a core and bytes: ``mean-free-cpu``, ``std-free-cpu``,
``forcasted-free-cpu`` (spelt like this by whoever writes them), and the same for memory. They carry no date, so what they
say is believed in full. A measurement is believed as far as it is fresh.

Of a node without capacity for a resource nothing is known in this respect.
"""

from typing import Final

import msgspec
import numpy as np

from lamina.model import resources
from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY
from lamina.scheduling.framework.columns import Floats
from lamina.scheduling.framework.context import Context
from lamina.scheduling.framework.rowlog import Facet
from lamina.scheduling.framework.view import NodeView
from lamina.scheduling.plugins.agents.safe.args import Source

RESOURCES: Final = (CPU, MEMORY)
MEAN: Final = "mean-free-{}"
DEVIATION: Final = "std-free-{}"
FORECAST: Final = "forcasted-free-{}"
READS: Final = frozenset({Facet.RESOURCES, Facet.USAGE, Facet.ANNOTATIONS})
"""What of a node the answers here depend on."""

Demand = tuple[int, int]
"""Cpu and memory a pod asks for."""


class Observed(msgspec.Struct, frozen=True):
    """What one resource of some nodes is used for."""

    mean: Floats
    """A share of the capacity; 0 where nothing is known."""
    deviation: Floats
    trust: Floats
    """From 1 (believed) down to 0 (nothing is known)."""


class Observer:
    """Looks at nodes as its plugin's arguments say."""

    def __init__(self, context: Context, source: Source, forecast_weight: float = 0.0) -> None:
        """Read from *source*; a forecast counts *forecast_weight* percent."""
        self._usage = context.usage
        self._source = source
        self._weight = forecast_weight / 100.0

    def look(self, nodes: NodeView, resource: str, demand: float = 0) -> Observed:
        """Say how a resource is used, with a pod that asks for *demand* of it."""
        capacity = nodes.allocatable(resource).astype(np.float64)
        used, deviation, trust = self._known(nodes, resource, capacity)
        known = (trust > 0) & (capacity > 0)
        # Divided by, not multiplied with what one unit is worth: a node at its threshold is not to be rounded beyond it.
        capacity = np.maximum(capacity, 1.0)
        mean = np.where(known, (used + demand) / capacity, 0.0)
        return Observed(
            np.minimum(mean, 1.0, out=mean),
            np.where(known, np.clip(deviation / capacity, 0.0, 1.0), 0.0),
            np.where(known, trust, 0.0),
        )

    def _known(self, nodes: NodeView, resource: str, capacity: Floats) -> tuple[Floats, Floats, Floats]:
        if self._source == "annotations":
            return self._annotated(nodes, resource, capacity)
        used, deviation, trust = self._measured(nodes, resource)
        if self._source == "auto" and not trust.all():
            silent = trust <= 0
            used_too, deviation_too, said = self._annotated(nodes, resource, capacity)
            used, deviation = np.where(silent, used_too, used), np.where(silent, deviation_too, deviation)
            trust = np.where(silent, said, trust)
        return used, deviation, trust

    def _measured(self, nodes: NodeView, resource: str) -> tuple[Floats, Floats, Floats]:
        measured = self._usage.of(nodes, resource)
        return self._foreseen(measured.mean, measured.forecast), measured.deviation, measured.trust

    def _annotated(self, nodes: NodeView, resource: str, capacity: Floats) -> tuple[Floats, Floats, Floats]:
        mean, deviation = nodes.floats(MEAN.format(resource)), nodes.floats(DEVIATION.format(resource))
        free = self._foreseen(mean, nodes.floats(FORECAST.format(resource)))
        unknown = np.isnan(mean)
        used = np.where(unknown, 0.0, np.maximum(capacity - free, 0.0))
        return used, np.where(np.isnan(deviation), 0.0, deviation), np.where(unknown, 0.0, 1.0)

    def _foreseen(self, mean: Floats, forecast: Floats) -> Floats:
        if not self._weight:
            return mean
        return np.where(np.isnan(forecast), mean, (1.0 - self._weight) * mean + self._weight * forecast)


def demand(pod: Pod, *, compatible: bool = False) -> Demand:
    """Say what a pod asks for; *compatible*: without its overhead, and with sidecars as if they were to end."""
    asked = dict(pod.requests)
    if compatible:
        containers = resources.add(*(container.requests for container in pod.containers))
        peak: resources.Amounts = ()
        for container in pod.init_containers:
            peak = resources.at_least(peak, container.requests)
        asked = dict(resources.at_least(containers, peak))
    return asked.get(CPU, 0), asked.get(MEMORY, 0)
