"""
Utilization of nodes as shares of their capacity, from measurements or annotations.

    used  = (1 - w) · mean + w · forecast     with a forecast, else the mean
    mean  = (used + the pod's request) / capacity     deviation = deviation of usage / capacity     both within 0..1

Annotations state what is *free*, in millicores and bytes: ``mean-free-cpu``, ``std-free-cpu``, ``forcasted-free-cpu``
(the spelling of kube-safe-scheduler), and the same for memory. Trust in a measurement drops with its age. So does trust
in annotations with a time stamp (``lamina.dev/usage-observed-at``); annotations without one have trust 1. Pods that
arrived after annotations were written are not included.

A node without capacity for a resource has trust 0 for it.
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
"""Time of the other annotations; `lamina annotate usage` writes it."""
READS: Final = frozenset({Facet.RESOURCES, Facet.USAGE, Facet.ANNOTATIONS})
"""Facets that the results depend on, row by row."""

CpuAndMemory = tuple[int, int]
"""A pod's requests of cpu (millicores) and memory (bytes)."""


class NodeUtilization(msgspec.Struct, frozen=True):
    """Utilization of one resource on some nodes."""

    mean: Floats
    """Share of the capacity; 0 without data."""
    deviation: Floats
    trust: Floats
    """From 1 (fresh) down to 0 (no data)."""


class UtilizationReader:
    """Reads utilization as its plugin's arguments say."""

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
        Read from *source*; *forecast_weight* is in percent.

        *dated*: annotations lose trust with age. *unasked* returns expected cpu usage beyond measurements and requests.
        """
        self._usage = context.usage
        self._source = source
        self._weight = forecast_weight / 100.0
        self._dated = dated
        self._unasked = unasked

    def read(self, nodes: NodeView, resource: str, demand: float = 0) -> NodeUtilization:
        """Return the utilization of a resource, including a pod that requests *demand*."""
        capacity = nodes.allocatable(resource).astype(np.float64)
        used, deviation, trust = self._known(nodes, resource, capacity)
        known = (trust > 0) & (capacity > 0)
        # A division instead of a multiplication with the inverse: a node at its threshold must not be rounded beyond
        # it.
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
    """Return a reader for *args*; compatible plugins read annotations and ignore their age."""
    source: Source = "annotations" if args.compatible else args.source
    return UtilizationReader(context, source, args.forecast_weight, dated=not args.compatible)


def demand(pod: Pod, *, compatible: bool = False) -> CpuAndMemory:
    """Return a pod's requests; *compatible* ignores overhead and treats sidecars as ordinary init containers."""
    asked = dict(pod.requests)
    if compatible:
        containers = resources.add(*(container.requests for container in pod.containers))
        peak: resources.Amounts = ()
        for container in pod.init_containers:
            peak = resources.at_least(peak, container.requests)
        asked = dict(resources.at_least(containers, peak))
    return asked.get(CPU, 0), asked.get(MEMORY, 0)
