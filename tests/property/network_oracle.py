"""
A network in which every transfer is recomputed at every change: slow, exact, and too simple to be wrong.

It calculates in fractions, so it has no rounding of its own. The shares are found by filling, as max-min fairness is
defined: all rates rise together, and whoever crosses a link that is full stays where it is.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

# A rate; the only float is infinity.
Rate = Fraction | float


class Fluid:
    """Links and transfers by their numbers."""

    def __init__(self, rates: Sequence[Rate]) -> None:
        self.now = Fraction(0)
        self.rates = list(rates)
        self.paths: list[tuple[int, ...]] = []
        self.left: dict[int, Fraction] = {}
        self.moved = [Fraction(0) for _ in rates]
        self.done: list[tuple[int, Fraction]] = []
        # For each transfer, when it had moved how much, wherever its rate may have changed.
        self.trails: list[list[tuple[Fraction, Fraction]]] = []

    def start(self, path: tuple[int, ...], size: Fraction) -> None:
        self.paths.append(path)
        self.left[len(self.paths) - 1] = size
        self.trails.append([(self.now, Fraction(0))])

    def cancel(self, number: int) -> None:
        self.left.pop(number, None)

    def shares(self) -> dict[int, Rate]:
        """The rate of every transfer, the slowest first."""
        room = dict(enumerate(self.rates))
        rising = list(self.left)
        shares: dict[int, Rate] = {}
        while rising:
            crossing = {link: [one for one in rising if link in self.paths[one]] for link in room}
            levels = {link: room[link] / len(crossing[link]) for link in room if crossing[link]}
            full = min(levels, key=levels.__getitem__, default=None)
            level = math.inf if full is None else levels[full]
            if level == math.inf:
                return shares | dict.fromkeys(rising, math.inf)
            for one in crossing[full]:
                shares[one] = level
                rising.remove(one)
                for link in self.paths[one]:
                    room[link] -= level
        return shares

    def run(self, until: Fraction | None = None) -> None:
        """Let time pass up to *until*, or until nothing moves any more."""
        while True:
            self.end(one for one, share in self.shares().items() if share == math.inf)
            self.end(one for one, left in self.left.items() if not left)
            shares = self.shares()
            waits = [self.left[one] / share for one, share in shares.items() if share]
            wait = min(waits, default=None)
            if until is not None and (wait is None or self.now + wait > until):
                wait = until - self.now
            if not wait:
                return
            self.now += Fraction(wait)
            for one, share in shares.items():
                self.move(one, Fraction(wait * share))

    def move(self, one: int, size: Fraction) -> None:
        self.left[one] -= size
        self.trails[one].append((self.now, self.trails[one][-1][1] + size))
        for link in self.paths[one]:
            self.moved[link] += size

    def end(self, ending: Iterable[int]) -> None:
        for one in sorted(ending):
            self.move(one, self.left[one])
            del self.left[one]
            self.done.append((one, self.now))

    def when(self, one: int, mark: Fraction) -> Fraction | None:
        """The first time at which a transfer had moved so many bytes; None if it never had."""
        last = self.trails[one][0]
        for time, moved in self.trails[one]:
            if moved >= mark:
                return (
                    last[0] if moved == last[1] else last[0] + (time - last[0]) * (mark - last[1]) / (moved - last[1])
                )
            last = time, moved
        return None
