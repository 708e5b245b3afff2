"""What layers had to do with a decision, told layer by layer and in seconds and bytes saved."""

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
"""What crowding costs a node that is out of the question, in `facts`."""


def facts(
    inventory: Inventory, ready: Readiness, nodes: NodeView, guard: Floats | None, out: Bools | None
) -> list[dict[str, int]]:
    """Tell of each node what is there, coming and missing in bytes, and how long it takes; nothing where nobody knows."""
    told: list[dict[str, int]] = []
    for position in range(len(nodes)):
        row = nodes.row(position)
        wanted = _wanted(inventory, ready, row)
        if wanted is None or np.isnan(ready.seconds[row]):
            told.append({})
            continue
        at = np.array([row], dtype=np.intp)
        lacking, missing = (not_held_at(inventory.index, wanted, at, coming=one)[0] for one in (False, True))
        price = 0 if guard is None else round(1000 * float(guard[position]))
        # By prefix, a blob that two images have on top of different layers is downloaded twice.
        total = int((wanted.chains if inventory.index.by_prefix[row] else wanted.blobs).total)
        told.append(
            {
                "present": total - int(lacking[0]),
                "arriving": int(lacking[0] - missing[0]),
                "missing": int(missing[0]),
                "total": total,
                "ready_ms": round(1000 * float(ready.seconds[row])),
                "crowding_ms": OUT if out is not None and out[position] else price,
            }
        )
    return told


def story(
    inventory: Inventory, ready: Readiness, nodes: NodeView, best: tuple[int, int], feasible: Bools, *, layers: bool
) -> LocalityExplanation | None:
    """Tell what the chosen row of *best* has, and what that saves against the mean and the second (-1: none)."""
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
    return ready.everywhere or ready.on(inventory.wants.platform(row))


def _layers(inventory: Inventory, wanted: LayerSet, row: int) -> tuple[LayerState, ...]:
    index, arrivals = inventory.index, inventory.arrivals
    by_prefix = bool(index.by_prefix[row])
    etas = arrivals.on(row)
    told: dict[str, LayerState] = {}
    for image in wanted.images:
        states = index.states(image, row, by_prefix=by_prefix)
        for layer, state in zip(image.layers, states, strict=True):
            if layer.digest in told:
                continue
            if state == HELD:
                told[layer.digest] = LayerState(layer.digest, layer.size, "present")
            elif state == COMING:
                waits = [eta for coming, eta in etas if any(one.digest == layer.digest for one in coming.layers)]
                wait = max(min(waits, default=arrivals.clock) - arrivals.clock, 0.0)
                told[layer.digest] = LayerState(layer.digest, layer.size, "arriving", wait)
            else:
                told[layer.digest] = LayerState(layer.digest, layer.size, "missing")
    return tuple(told.values())
