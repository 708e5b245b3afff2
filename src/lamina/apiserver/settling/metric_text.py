"""Metrics of a scheduler in Prometheus' text format, as far as settle methods read them."""

from collections.abc import Collection
from typing import Final

LARGEST: Final = 64 * 1024 * 1024
"""Largest exposition in bytes that is read."""


class MetricValues:
    """Values of some metrics of one scrape."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        """Read the series of the metrics *names*; other lines are skipped."""
        self._values: dict[str, dict[str, float]] = {}
        for line in text.splitlines():
            name = line[: _end_of_name(line)]
            if name in names:
                rest = line[len(name) :]
                labels, _, value = rest.rpartition(" ")
                self._add(name, labels, value)

    def _add(self, name: str, labels: str, value: str) -> None:
        try:
            number = float(value)
        except ValueError:
            return
        self._values.setdefault(name, {})[labels] = number

    def __contains__(self, name: str) -> bool:
        """Return whether the scrape has a series of this metric."""
        return name in self._values

    def total(self, name: str) -> float:
        """Return the sum of all series of a metric; 0 if there is none."""
        return sum(self._values.get(name, {}).values())

    def labelled(self, name: str, label: str) -> dict[str, float]:
        """Return the sums of the series of a metric, by the value of one label."""
        found: dict[str, float] = {}
        for labels, value in self._values.get(name, {}).items():
            key = _label(labels, label)
            if key is not None:
                found[key] = found.get(key, 0.0) + value
        return found


def _end_of_name(line: str) -> int:
    brace, space = line.find("{"), line.find(" ")
    if brace < 0:
        return max(space, 0)
    return brace if space < 0 else min(brace, space)


def _label(labels: str, name: str) -> str | None:
    begin = labels.find(f'{name}="')
    if begin < 0 or (begin > 0 and labels[begin - 1] not in "{,"):
        return None
    begin += len(name) + 2
    return labels[begin : labels.find('"', begin)]
