"""
What images have to fit, and where they come from: the platforms of nodes, and the registries nodes have pulled from.

A registry that some node pulls from is one that this cluster uses, so asking it about an image is no news to anybody.
Nodes say which those are by the names of the images they hold. One node may be broken or taken over, so it can name only
so many; and if there are too many in all, those that most nodes name are kept.
"""

import functools
from collections import Counter
from typing import Final

from lamina.model.image import Platform
from lamina.model.layer_report import LayerReport
from lamina.model.node import Node
from lamina.model.reference import ReferenceFormatError, parse_reference

MOST_PLATFORMS: Final = 8
MOST_OF_A_NODE: Final = 32
"""Registries that one node can name."""
MOST_REGISTRIES: Final = 256


class NodeImageFacts:
    """The platforms and registries of the nodes that are there."""

    def __init__(self) -> None:
        """Start without nodes."""
        self.platforms: tuple[Platform, ...] = ()
        """Those of most nodes first."""
        self.version = 0
        """Grows whenever the registries change."""
        self._platform_of: dict[str, Platform] = {}
        self._platforms: Counter[Platform] = Counter()
        self._registries_of: dict[str, frozenset[str]] = {}
        self._registries: Counter[str] = Counter()

    @property
    def registries(self) -> tuple[str, ...]:
        """The registries that nodes have pulled from, those of most nodes first."""
        ranked = sorted(self._registries.items(), key=lambda one: (-one[1], one[0]))
        return tuple(host for host, _ in ranked[:MOST_REGISTRIES])

    def node(self, node: Node) -> None:
        """A node appeared or changed."""
        before = self._platform_of.get(node.name)
        if before == node.platform:
            return
        self._platform_of[node.name] = node.platform
        _move(self._platforms, before, node.platform)
        self._rank_platforms()

    def gone(self, name: str) -> None:
        """A node is gone, and what it said with it."""
        before = self._platform_of.pop(name, None)
        if before is not None:
            _move(self._platforms, before, None)
            self._rank_platforms()
        self.withdrawn(name)

    def reported(self, report: LayerReport) -> None:
        """A node told what it holds."""
        found: set[str] = set()
        for image in report.images:
            for name in image.names:
                host = registry_of(name)
                if host:
                    found.add(host)
            if len(found) > MOST_OF_A_NODE:
                break
        self._name(report.node, frozenset(sorted(found)[:MOST_OF_A_NODE]))

    def withdrawn(self, node: str) -> None:
        """A node's report is gone."""
        self._name(node, frozenset())

    def _name(self, node: str, registries: frozenset[str]) -> None:
        before = self._registries_of.get(node, frozenset())
        if before == registries:
            return
        for host in before - registries:
            _move(self._registries, host, None)
        for host in registries - before:
            _move(self._registries, None, host)
        if registries:
            self._registries_of[node] = registries
        else:
            del self._registries_of[node]
        self.version += 1

    def _rank_platforms(self) -> None:
        parts = ((-count, one.os, one.architecture, one.variant, one) for one, count in self._platforms.items())
        self.platforms = tuple(ranked[-1] for ranked in sorted(parts, key=lambda one: one[:-1])[:MOST_PLATFORMS])


@functools.lru_cache(maxsize=65_536)
def registry_of(name: str) -> str:
    """Return the registry that a name means; empty when it is the name of no image."""
    try:
        return parse_reference(name).registry
    except ReferenceFormatError:
        return ""


def _move(counts: Counter[str] | Counter[Platform], before: object, after: object) -> None:
    """Count one less there and one more here; nothing is kept of what nobody has."""
    tallies: Counter[object] = counts  # type: ignore[assignment]  # one rule for both
    if before is not None:
        tallies[before] -= 1
        if not tallies[before]:
            del tallies[before]
    if after is not None:
        tallies[after] += 1
