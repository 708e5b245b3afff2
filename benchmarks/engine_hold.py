"""
How fast the engine schedules and fires, beside SimPy doing the same with callbacks.

The hold model: a fixed number of pending events, each of which, when fired, schedules one more at a random distance.
Both engines get the same distances; runs are interleaved, and the best of each counts, because noise only ever slows.
Seconds are those of the processor: neither engine ever waits, and what else the machine does is not their affair.
"""

import gc
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Final

from lamina.simulator.engine import Environment

NAME: Final = "engine-hold"
SUMMARY: Final = "Events per second of the virtual-time engine against SimPy callbacks, 10,000 events pending"

PENDING: Final = 10_000
EVENTS: Final = 500_000
ROUNDS: Final = 3
SEED: Final = 20

Run = Callable[[], object]


def lamina_model(delays: Iterator[float]) -> Run:
    """Fill an environment; the answer runs it until the delays are used up."""
    environment = Environment()
    after, draw = environment.after, delays.__next__

    def hold() -> None:
        after(draw(), hold)

    for _ in range(PENDING):
        hold()
    return environment.run


def simpy_model(delays: Iterator[float]) -> Run:
    """Fill SimPy's environment, each event a timeout with one callback: its quickest way, as processes cost more."""
    # Here, so that listing the benchmarks works without it.
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
        # The model is endless. Running out of delays ends it, at no cost to the events before.
        return EVENTS / (time.process_time() - begin)
    raise AssertionError("the hold model ended before its delays did")


def main() -> dict[str, object]:
    """Measure, print a table, return the best of each engine and their ratio."""
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
    }


def row(label: str, ours: float, theirs: float) -> str:
    """One line of the table."""
    return f"{label:>5}  {ours:>15,.0f}  {theirs:>15,.0f}  {ours / theirs:>5.2f}"


if __name__ == "__main__":
    print(json.dumps(main()))
