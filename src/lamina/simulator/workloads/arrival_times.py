"""
Arrival times of the copies of an entry: one every so often, or in an order that several entries share.

    {name: gold, count: 2, at: 10s, every: 5s}                 gold1 at 10 s, gold2 at 15 s
    {name: gold, count: 2, at: 10s, every: 5s, mix: all}       both and all bronze, one every 5 s, in a drawn order
    {name: bronze, count: 9, at: 10s, every: 5s, mix: all}

The order of a mix depends on the seed of the run, on its name and on its entries. Copies of one entry keep their order.
"""

from collections.abc import Iterable
from random import Random
from typing import Final

from lamina.simulator.workloads.scenario_files import AssemblyState, ScenarioEntry

MOST_MIXED: Final = 1_000_000
"""Largest number of copies of one mix; more are a typing error, which is reported elsewhere."""

_DECIMALS: Final = 9
"""Rounds to nanoseconds: 3 times 50 ms is 0.15 s, not 0.15000000000000002."""


class ArrivalTimes:
    """The times of all copies of all entries."""

    def __init__(self, state: AssemblyState, entries: Iterable[ScenarioEntry], seed: int) -> None:
        """Draw the order of each mix from *seed*; report entries of a mix with different times to *state*."""
        mixes: dict[str, list[ScenarioEntry]] = {}
        for entry in entries:
            if entry.value.mix is not None:
                mixes.setdefault(entry.value.mix, []).append(entry)
        self._places: dict[tuple[str, tuple[str | int, ...]], list[int]] = {}
        for name, mixed in mixes.items():
            _check(state, name, mixed)
            if sum(entry.value.count for entry in mixed) <= MOST_MIXED:
                self._draw(mixed, Random(f"mix {name} {seed}"))

    def _draw(self, mixed: list[ScenarioEntry], rng: Random) -> None:
        order = [index for index, entry in enumerate(mixed) for _ in range(entry.value.count)]
        rng.shuffle(order)
        for place, index in enumerate(order):
            entry = mixed[index]
            self._places.setdefault((entry.document.source, entry.path), []).append(place)

    def of(self, entry: ScenarioEntry, number: int) -> float:
        """Return when a copy of an entry arrives, in seconds; the first copy has number 0."""
        places = self._places.get((entry.document.source, entry.path))
        place = number if places is None else places[number]
        return float(round(entry.value.at + place * entry.value.every, _DECIMALS))


def _check(state: AssemblyState, name: str, mixed: list[ScenarioEntry]) -> None:
    first = mixed[0]
    for entry in mixed[1:]:
        for field in ("at", "every"):
            here, there = getattr(entry.value, field), getattr(first.value, field)
            if here != there:
                message = f"the mix {name!r} has {there:g} s in {first.where}, and {here:g} s here; write the same time"
                state.wrong(entry, message, field)
