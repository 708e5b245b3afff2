"""
What is known of the use of nodes, as shares of what they can give: measured, or read from annotations.

    used  = (1 - w) · mean + w · forecast     where there is a forecast, else the mean
    mean  = (used + what the pod asks for) / capacity     deviation = deviation of use / capacity     both within 0..1

Annotations say what is *free*, in thousandths of a core and bytes: ``mean-free-cpu``, ``std-free-cpu``,
``forcasted-free-cpu`` (spelt like this by whoever writes them), and the same for memory. A measurement is believed as far
as it is fresh, and so are annotations that say when they were written (``lamina.dev/usage-observed-at``). Those that do not
are believed in full. Pods that came since annotations were written are not in them.

Of a node without capacity for a resource nothing is known in this respect.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import numpy as np

from lamina.model import resources
from lamina.model.pod import Pod
from lamina.model.resources import CPU, MEMORY
from lamina.scheduling.plugins.agents.safe.args import Source, StatisticsArgs
from lamina.scheduling.state.columns import Floats
from lamina.scheduling.state.facets import Facet
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

RESOURCES: Final = (CPU, MEMORY)
MEAN: Final = "mean-free-{}"
DEVIATION: Final = "std-free-{}"
FORECAST: Final = "forcasted-free-{}"
STAMP: Final = "lamina.dev/usage-observed-at"
"""Says when the others were so; `lamina annotate usage` writes it."""
READS: Final = frozenset({Facet.RESOURCES, Facet.USAGE, Facet.ANNOTATIONS})
"""What of a node the answers here depend on."""

CpuAndMemory = tuple[int, int]
"""Cpu and memory a pod asks for."""


class NodeUtilization(msgspec.Struct, frozen=True):
    """What one resource of some nodes is used for."""

    mean: Floats
    """A share of the capacity; 0 where nothing is known."""
    deviation: Floats
    trust: Floats
    """From 1 (believed) down to 0 (nothing is known)."""


class UtilizationReader:
    """Looks at nodes as its plugin's arguments say."""

    def __init__(
        self,
        context: PluginContext,
        source: Source,
        forecast_weight: float = 0.0,
        *,
        dated: bool = True,
        unasked: Callable[[NodeView], Floats] | None = None,
    ) -> None:
        """
        Read from *source*; a forecast counts *forecast_weight* percent.

        *dated*: annotations grow old. *unasked* says how much cpu is in use beyond what was measured and asked for.
        """
        self._usage = context.usage
        self._source = source
        self._weight = forecast_weight / 100.0
        self._dated = dated
        self._unasked = unasked

    def look(self, nodes: NodeView, resource: str, demand: float = 0) -> NodeUtilization:
        """Say how a resource is used, with a pod that asks for *demand* of it."""
        capacity = nodes.allocatable(resource).astype(np.float64)
        used, deviation, trust = self._known(nodes, resource, capacity)
        known = (trust > 0) & (capacity > 0)
        # Divided by, not multiplied with what one unit is worth: a node at its threshold is not to be rounded beyond it.
        capacity = np.maximum(capacity, 1.0)
        mean = np.where(known, (used + demand) / capacity, 0.0)
        return NodeUtilization(
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
        used = self._foreseen(measured.mean, measured.forecast)
        if self._unasked is not None and resource == CPU:
            used = np.maximum(used + self._unasked(nodes), 0.0)
        return used, measured.deviation, measured.trust

    def _annotated(self, nodes: NodeView, resource: str, capacity: Floats) -> tuple[Floats, Floats, Floats]:
        mean, deviation = nodes.floats(MEAN.format(resource)), nodes.floats(DEVIATION.format(resource))
        free = self._foreseen(mean, nodes.floats(FORECAST.format(resource)))
        unknown = np.isnan(mean)
        used = np.where(unknown, 0.0, np.maximum(capacity - free, 0.0))
        trust = self._usage.dated(nodes, STAMP) if self._dated else 1.0
        return used, np.where(np.isnan(deviation), 0.0, deviation), np.where(unknown, 0.0, trust)

    def _foreseen(self, mean: Floats, forecast: Floats) -> Floats:
        if not self._weight:
            return mean
        return np.where(np.isnan(forecast), mean, (1.0 - self._weight) * mean + self._weight * forecast)


def utilization_reader(context: PluginContext, args: StatisticsArgs) -> UtilizationReader:
    """Make one as *args* say; what is compatible reads annotations, and asks for no date."""
    source: Source = "annotations" if args.compatible else args.source
    return UtilizationReader(context, source, args.forecast_weight, dated=not args.compatible)


def demand(pod: Pod, *, compatible: bool = False) -> CpuAndMemory:
    """Say what a pod asks for; *compatible*: without its overhead, and with sidecars as if they were to end."""
    asked = dict(pod.requests)
    if compatible:
        containers = resources.add(*(container.requests for container in pod.containers))
        peak: resources.Amounts = ()
        for container in pod.init_containers:
            peak = resources.at_least(peak, container.requests)
        asked = dict(resources.at_least(containers, peak))
    return asked.get(CPU, 0), asked.get(MEMORY, 0)
