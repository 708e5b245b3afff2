"""
Cost models: what it costs to start a pod of a class on a node, in milliseconds.

- *layers*: seconds until the images are ready, as LayerLocality estimates them, a part of the download, points of the
  profile's score, and a rising price for load.
- *quincy*: the time to transfer the bytes that the node does not hold, after Isard et al. (Quincy 2009) with layers
  instead of input files. A node that holds less than a tenth of them costs as much as one that holds nothing.
- *octopus*: the number of pods on the node, as in Firmament's model of that name.
"""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import numpy as np

from lamina.model.layer_wish import FULL, weight_of_layers
from lamina.model.resources import CPU, MEMORY, PODS
from lamina.scheduling.plugins.batch.min_cost_flow.args import LoadPrice, MinCostFlowArgs
from lamina.scheduling.plugins.batch.min_cost_flow.pod_classes import PodClass
from lamina.scheduling.state.columns import Floats, Ints
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

MILLIS: Final = 1000.0
MOST_SECONDS: Final = 3600.0
"""Limit of a cost, so that it stays comparable with the cost of waiting."""
NEUTRAL: Final = 0.5
"""Waiting times below this many seconds are treated as 0, as by LayerLocality."""
PREFERRED: Final = 0.9
"""A node that would download more than this share of the bytes is not preferred by *quincy*."""
POD_SECONDS: Final = 1.0
"""What *octopus* charges for each pod on a node."""


class Costs(msgspec.Struct, frozen=True):
    """The costs of a batch before any of its pods is placed."""

    base: Ints
    """Class × node."""
    pulls: Ints
    """Class × node: the part of it that is a pull of its own; 0 where the images are held or arriving."""
    downloads: Ints
    """Class × node: the price of the bytes of that pull, which pods with the same images do not pay again."""
    price: Callable[[int], Ints]
    """Price of each node's nth further pod, given n; must not fall with n."""


Model = Callable[[Sequence[PodClass], NodeView], Costs]


def cost_model(context: PluginContext, args: MinCostFlowArgs) -> Model:
    """Return the configured model."""
    match args.cost_model:
        case "layers":
            return _Layers(context, args).costs
        case "quincy":
            return _Quincy(context).costs
        case "octopus":
            return _count_pods


def millis(seconds: Floats) -> Ints:
    """Return seconds as bounded milliseconds; the most where they are not a number, as in rows without a node."""
    bounded = np.clip(np.nan_to_num(seconds, nan=MOST_SECONDS), 0.0, MOST_SECONDS)
    return np.rint(bounded * MILLIS).astype(np.int64)


class _Layers:
    """Costs in seconds until ready."""

    def __init__(self, context: PluginContext, args: MinCostFlowArgs) -> None:
        self._cache = context.inventory.readiness_cache
        self._load = context.load
        self._namespaces = context.namespaces
        self._args = args

    def costs(self, classes: Sequence[PodClass], nodes: NodeView) -> Costs:
        base = np.zeros((len(classes), len(nodes)), dtype=np.int64)
        pulls, downloads = np.zeros_like(base), np.zeros_like(base)
        for row, one in enumerate(classes):
            seconds, pull, download = self._seconds(one, nodes)
            if one.feasible.any():
                seconds = seconds + self._args.score_price * (
                    one.scores.max(where=one.feasible, initial=0) - one.scores
                )
            base[row], pulls[row], downloads[row] = millis(seconds), millis(pull), millis(download)
        return Costs(base, pulls, downloads, _LoadPrices(self._load_prices(classes, nodes)).of)

    def _seconds(self, one: PodClass, nodes: NodeView) -> tuple[Floats, Floats, Floats]:
        """Return the seconds until ready with the price of the download, those of an own pull, and that price."""
        none = np.zeros(len(nodes))
        pod = one.pod
        percent = weight_of_layers(pod.annotations, self._namespaces.get(pod.namespace, {}))
        ready = self._cache.readiness(pod.images) if percent and pod.images else None
        if ready is None:
            return none, none, none
        self._cache.look(ready, nodes.height)
        seconds = _of(ready.seconds, nodes)
        seconds[seconds < NEUTRAL] = 0.0
        download = self._args.byte_price * _of(ready.transfer, nodes)
        seconds += download
        pull = _of(ready.pull, nodes) * _of(ready.waits, nodes)
        unknown = np.isnan(seconds)
        if unknown.any():
            # A node without a report gets the mean of the feasible nodes with one.
            known = one.feasible & ~unknown
            seconds[unknown] = float(seconds[known].mean()) if known.any() else 0.0
            pull[unknown] = download[unknown] = 0.0
        weight = percent / FULL
        return seconds * weight, pull * weight, download * weight

    def _load_prices(self, classes: Sequence[PodClass], nodes: NodeView) -> Callable[[int], Floats]:
        """Return the price in seconds of each node's nth further pod of the batch's mean size."""
        load, price = self._load, self._args.load
        counts = np.array([len(one.members) for one in classes], dtype=np.float64)
        shares = np.array([load.share(one.pod) for one in classes])
        total = float(counts @ shares)
        large = max(price.floor, float(counts @ [load.large(one.pod) for one in classes]) / float(counts.sum()))
        among = np.any([one.feasible for one in classes], axis=0)
        before = load.of(nodes)
        # As in LayerLocality: against the nodes that can take the pods, and not against much larger ones.
        large = max(large, float(np.mean([(load.of(nodes, one.pod) - before)[among].mean() for one in classes])))
        mean = max(
            load.mean() + total / max(nodes.total, 1), (float(before[among].sum()) + total) / np.count_nonzero(among)
        )
        amounts = [
            float(counts @ [dict(one.pod.scoring_requests).get(name, 0) for one in classes]) / float(counts.sum())
            for name in (CPU, MEMORY)
        ]

        def nth(number: int) -> Floats:
            asked = (round(number * amount) for amount in amounts)
            left = [nodes.headroom_with(name, amount) for name, amount in zip((CPU, MEMORY), asked, strict=True)]
            loads = 1.0 - np.minimum(*left) / 100
            return price.seconds * loads + barrier(price, (loads - mean) / large)

        return nth


def barrier(price: LoadPrice, excess: Floats) -> Floats:
    """Return the barrier in seconds for an excess load in large pods."""
    over = np.maximum(excess - price.begin, 0.0)
    left = np.maximum(price.width - over, 1e-9)
    return np.minimum(price.barrier * over / left, price.most)


class _LoadPrices:
    """Prices in milliseconds that never fall from pod to pod, whatever rounding does."""

    def __init__(self, seconds: Callable[[int], Floats]) -> None:
        self._seconds = seconds
        self._before: Ints | None = None

    def of(self, number: int) -> Ints:
        price = millis(self._seconds(number))
        if self._before is not None:
            price = np.maximum(price, self._before)
        self._before = price
        return price


class _Quincy:
    """Costs by bytes to transfer."""

    def __init__(self, context: PluginContext) -> None:
        self._cache = context.inventory.readiness_cache

    def costs(self, classes: Sequence[PodClass], nodes: NodeView) -> Costs:
        base = np.stack([millis(self._seconds(one, nodes)) for one in classes])
        # A millisecond for each pod of the batch, so that equal nodes share them.
        return Costs(
            base, np.zeros_like(base), np.zeros_like(base), lambda number: np.full(len(nodes), number, dtype=np.int64)
        )

    def _seconds(self, one: PodClass, nodes: NodeView) -> Floats:
        cache, images = self._cache, one.pod.images
        ready = cache.readiness(images) if images else None
        if ready is None:
            return np.zeros(len(nodes))
        cache.look(ready, nodes.height)
        missing, transfer = _of(ready.download, nodes), _of(ready.transfer, nodes)
        with np.errstate(invalid="ignore", divide="ignore"):
            whole = np.where(missing > 0, transfer / missing, 0.0)
        seconds = np.where(missing > PREFERRED, whole, transfer)
        unknown = np.isnan(_of(ready.seconds, nodes)) | ~np.isfinite(seconds)
        seconds[unknown] = float(whole[~unknown].max(initial=0.0))
        return seconds


def _count_pods(classes: Sequence[PodClass], nodes: NodeView) -> Costs:
    """Octopus."""
    base = np.zeros((len(classes), len(nodes)), dtype=np.int64)
    pods = nodes.requested(PODS).astype(np.float64)
    return Costs(base, base, base, lambda number: millis(POD_SECONDS * (pods + number)))


def _of(values: Floats, nodes: NodeView) -> Floats:
    found: Floats = values[: nodes.height][nodes.rows].copy()
    return found
