"""
Event rate of the virtual-time engine, compared with SimPy's callbacks.

The hold model: a fixed number of pending events, each of which, when fired, schedules one more at a random distance.
Both engines get the same distances. Runs are interleaved, and the best of each counts, because noise only slows a run
down. Times are CPU seconds: neither engine waits, and other load on the machine must not count.

Also the cost of a transfer in a network, from start to end, three at a time on every node: with a registry below its
capacity, with a saturated one, and with saturated uplinks in between.
"""

import functools
import gc
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Final

from lamina.simulator.engine import Environment, Network

NAME: Final = "engine-hold"
SUMMARY: Final = "Events per second of the virtual-time engine against SimPy callbacks, 10,000 events pending"

PENDING: Final = 10_000
EVENTS: Final = 500_000
ROUNDS: Final = 3
SEED: Final = 20

TRANSFERS: Final = 50_000
NODE_RATE: Final = 125e6

Run = Callable[[], object]


def lamina_model(delays: Iterator[float]) -> Run:
    """Fill an environment; return a function that runs it until the delays are used up."""
    environment = Environment()
    after, draw = environment.after, delays.__next__

    def hold() -> None:
        after(draw(), hold)

    for _ in range(PENDING):
        hold()
    return environment.run


def simpy_model(delays: Iterator[float]) -> Run:
    """Fill SimPy's environment; each event is a timeout with one callback, which is faster than a process."""
    # Imported here, so that listing the benchmarks works without SimPy.
    import simpy

    environment = simpy.Environment()
    timeout, draw = environment.timeout, delays.__next__

    def hold(_: simpy.Event | None = None) -> None:
        timeout(draw()).callbacks.append(hold)

    for _ in range(PENDING):
        hold()
    return environment.run


def events_per_second(model: Callable[[Iterator[float]], Run], delays: list[float]) -> float:
    """Time one run of a filled model."""
    run = model(iter(delays))
    gc.collect()
    begin = time.process_time()
    try:
        run()
    except StopIteration:
        # The model is endless. Running out of delays ends it without a cost for earlier events.
        return EVENTS / (time.process_time() - begin)
    raise AssertionError("the hold model ended before its delays did")


def microseconds_per_transfer(nodes: int, registry: float, uplinks: int) -> float:
    """Time transfers, each of which starts the next; an uplink carries ten of the twenty nodes behind it."""
    source = random.Random(SEED)
    environment = Environment()
    network = Network(environment)
    top = network.link(registry)
    middle = [network.link(10 * NODE_RATE) for _ in range(uplinks)]
    sizes = iter([source.uniform(1e6, 1e8) for _ in range(TRANSFERS)])

    def send(start: Callable[..., object]) -> None:
        size = next(sizes, None)
        if size is not None:
            start(size, send, start)

    for number in range(nodes):
        between = (middle[number % uplinks],) if uplinks else ()
        start = functools.partial(network.start, (network.link(NODE_RATE), *between, top))
        for _ in range(3):
            environment.at(source.random(), send, start)
    gc.collect()
    begin = time.process_time()
    environment.run()
    return round((time.process_time() - begin) / TRANSFERS * 1e6, 2)


def network_costs() -> dict[str, float]:
    """Return the best of several rounds for each kind of network."""
    kinds: dict[str, tuple[int, float, int]] = {
        "1,000 nodes, registry not full": (1000, 1e6 * NODE_RATE, 0),
        "300 nodes, registry full": (300, 100 * NODE_RATE, 0),
        "1,000 nodes, uplinks full": (1000, 1000 * NODE_RATE, 50),
    }
    costs = {}
    for kind, shape in kinds.items():
        costs[kind] = min(microseconds_per_transfer(*shape) for _ in range(ROUNDS))
        print(f"{kind:<32}  {costs[kind]:>6.2f} us a transfer")
    return costs


def main() -> dict[str, object]:
    """Measure, print tables, and return the best of each engine, their ratio, and the cost of transfers."""
    source = random.Random(SEED)
    delays = [source.expovariate(1.0) for _ in range(PENDING + EVENTS)]
    print(f"{'round':>5}  {'lamina events/s':>15}  {'simpy events/s':>15}  {'ratio':>5}")
    pairs = []
    for number in range(1, ROUNDS + 1):
        pair = events_per_second(lamina_model, delays), events_per_second(simpy_model, delays)
        pairs.append(pair)
        print(row(str(number), *pair))
    ours, theirs = (max(column) for column in zip(*pairs, strict=True))
    print(row("best", ours, theirs))
    return {
        "events_per_second": round(ours),
        "simpy_events_per_second": round(theirs),
        "ratio": round(ours / theirs, 3),
        "microseconds_per_transfer": network_costs(),
    }


def row(label: str, ours: float, theirs: float) -> str:
    """Return one line of the table."""
    return f"{label:>5}  {ours:>15,.0f}  {theirs:>15,.0f}  {ours / theirs:>5.2f}"


if __name__ == "__main__":
    print(json.dumps(main()))
