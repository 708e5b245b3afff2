"""LayerLocality's part of a decision: layers of the chosen node, and seconds and bytes saved."""

from typing import Final

import numpy as np

from lamina.layers.inventory import Inventory
from lamina.layers.layer_index import COMING, HELD
from lamina.layers.layer_set import LayerSet
from lamina.layers.not_held import not_held_at
from lamina.layers.readiness_estimator import Readiness
from lamina.model.locality_explanation import LayerState, LocalityExplanation, Savings
from lamina.scheduling.state.columns import Bools, Floats
from lamina.scheduling.state.view import NodeView

OUT: Final = -1
"""Crowding penalty in `facts` of a node that scores 0."""


def facts(
    inventory: Inventory, ready: Readiness, nodes: NodeView, guard: Floats | None, out: Bools | None
) -> list[dict[str, int]]:
    """Return each node's present, arriving and missing bytes and times in ms; empty if its layers are unknown."""
    found: list[dict[str, int]] = []
    for position in range(len(nodes)):
        row = nodes.row(position)
        wanted = _wanted(inventory, ready, row)
        if wanted is None or np.isnan(ready.seconds[row]):
            found.append({})
            continue
        at = np.array([row], dtype=np.intp)
        not_held, missing = (not_held_at(inventory.index, wanted, at, coming=one)[0] for one in (False, True))
        price = 0 if guard is None else round(1000 * float(guard[position]))
        # By prefix, a blob that two images have on top of different layers is downloaded twice.
        total = int((wanted.chains if inventory.index.by_prefix[row] else wanted.blobs).total)
        found.append(
            {
                "present": total - int(not_held[0]),
                "arriving": int(not_held[0] - missing[0]),
                "missing": int(missing[0]),
                "total": total,
                "ready_ms": round(1000 * float(ready.seconds[row])),
                "crowding_ms": OUT if out is not None and out[position] else price,
            }
        )
    return found


def explanation(
    inventory: Inventory, ready: Readiness, nodes: NodeView, best: tuple[int, int], feasible: Bools, *, layers: bool
) -> LocalityExplanation | None:
    """Return the chosen row's layers and its savings against the mean and the runner-up (-1 if there is none)."""
    chosen, runner_up = best
    wanted = _wanted(inventory, ready, chosen)
    if wanted is None or np.isnan(ready.seconds[chosen]):
        return None
    seconds = ready.seconds[: nodes.height]
    download = ready.download[: nodes.height] * wanted.blobs.total
    known = feasible & ~np.isnan(seconds)
    against_mean = Savings(
        float(seconds[known].mean() - seconds[chosen]), round(float(download[known].mean() - download[chosen]))
    )
    against_runner_up = None
    if runner_up >= 0 and known[runner_up]:
        against_runner_up = Savings(
            float(seconds[runner_up] - seconds[chosen]), round(float(download[runner_up] - download[chosen]))
        )
    return LocalityExplanation(
        layers=_layers(inventory, wanted, chosen) if layers else (),
        seconds=float(seconds[chosen]),
        download=round(float(download[chosen])),
        against_mean=against_mean,
        against_runner_up=against_runner_up,
    )


def _wanted(inventory: Inventory, ready: Readiness, row: int) -> LayerSet | None:
    return ready.everywhere or ready.on(inventory.readiness_cache.platform(row))


def _layers(inventory: Inventory, wanted: LayerSet, row: int) -> tuple[LayerState, ...]:
    index, arrivals = inventory.index, inventory.arrivals
    by_prefix = bool(index.by_prefix[row])
    etas = arrivals.on(row)
    found: dict[str, LayerState] = {}
    for image in wanted.images:
        states = index.states(image, row, by_prefix=by_prefix)
        for layer, state in zip(image.layers, states, strict=True):
            if layer.digest in found:
                continue
            if state == HELD:
                found[layer.digest] = LayerState(layer.digest, layer.size, "present")
            elif state == COMING:
                waits = [eta for coming, eta in etas if any(one.digest == layer.digest for one in coming.layers)]
                wait = max(min(waits, default=arrivals.clock) - arrivals.clock, 0.0)
                found[layer.digest] = LayerState(layer.digest, layer.size, "arriving", wait)
            else:
                found[layer.digest] = LayerState(layer.digest, layer.size, "missing")
    return tuple(found.values())
