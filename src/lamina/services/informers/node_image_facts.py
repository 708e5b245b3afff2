"""
Platforms of the nodes, and the registries that nodes have pulled from.

If some node pulls from a registry, the cluster already uses it, so querying it reveals nothing new. The registries come
from the names of images in the nodes' reports. A node may be compromised, so each node can name `MOST_OF_A_NODE`
registries at most. Of all registries, those that most nodes name are kept.
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
"""Most registries that one node can name."""
MOST_REGISTRIES: Final = 256


class NodeImageFacts:
    """The platforms and registries of all current nodes."""

    def __init__(self) -> None:
        """Start without nodes."""
        self.platforms: tuple[Platform, ...] = ()
        """Most common platform first."""
        self.version = 0
        """Increases whenever the registries change."""
        self._platform_of: dict[str, Platform] = {}
        self._platforms: Counter[Platform] = Counter()
        self._registries_of: dict[str, frozenset[str]] = {}
        self._registries: Counter[str] = Counter()

    @property
    def registries(self) -> tuple[str, ...]:
        """The registries that nodes have pulled from, most common first."""
        ranked = sorted(self._registries.items(), key=lambda one: (-one[1], one[0]))
        return tuple(host for host, _ in ranked[:MOST_REGISTRIES])

    def node(self, node: Node) -> None:
        """Record a node that appeared or changed."""
        before = self._platform_of.get(node.name)
        if before == node.platform:
            return
        self._platform_of[node.name] = node.platform
        _move(self._platforms, before, node.platform)
        self._rank_platforms()

    def gone(self, name: str) -> None:
        """Forget a node and its report."""
        before = self._platform_of.pop(name, None)
        if before is not None:
            _move(self._platforms, before, None)
            self._rank_platforms()
        self.withdrawn(name)

    def reported(self, report: LayerReport) -> None:
        """Record the registries that a node's report names."""
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
        """Forget a node's report."""
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
    """Return the registry of an image name; empty if the name is invalid."""
    try:
        return parse_reference(name).registry
    except ReferenceFormatError:
        return ""


def _move(counts: Counter[str] | Counter[Platform], before: object, after: object) -> None:
    """Move one count from *before* to *after*; drop entries that reach zero."""
    tallies: Counter[object] = counts  # type: ignore[assignment]  # one rule for both
    if before is not None:
        tallies[before] -= 1
        if not tallies[before]:
            del tallies[before]
    if after is not None:
        tallies[after] += 1
