"""
Where layers come from: the registry, through what lies between it and a node, or another node that holds them.

One `LayerSources` serves a cluster. A node has one link for all that it downloads, and perhaps an uplink that it shares with
the nodes beside it. With peers a node also serves others what it holds, at its own rate and not at the expense of what
it downloads itself.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from lamina.model.digest import Digest
from lamina.model.errors import WiringError
from lamina.model.image import Layer
from lamina.simulator.engine import Link, Network
from lamina.simulator.pulls.runtime_spec import RuntimeSpec

ASKED: Final = 8
"""How many holders are compared; registries of peers answer with a few addresses, not with all."""


class NodeLinkSpec(Protocol):
    """What has to be known of a node to connect it."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def bandwidth(self) -> float:
        """Bytes per second it can download."""
        ...

    @property
    def uplink(self) -> str:
        """Which shared link lies between it and the registry; empty: none."""
        ...

    @property
    def runtime(self) -> RuntimeSpec:
        """How it pulls."""
        ...


class LayerSource:
    """Where one node's layers come from. Also the board on which it says what it has for others."""

    __slots__ = ("_cluster", "_peers", "_registry", "link", "name", "site", "upload")

    def __init__(
        self, cluster: "LayerSources", node: NodeLinkSpec, link: Link, upload: Link, way: tuple[Link, ...]
    ) -> None:
        """Connect *node*; *way* leads from its link to the registry."""
        self._cluster = cluster
        self._peers = node.runtime.peers
        self._registry = (link, *way)
        self.name = node.name
        self.site = node.uplink
        """The uplink it is behind; between nodes of one site there is none."""
        self.link = link
        """Everything that the node downloads goes over it."""
        self.upload = upload
        """Everything that it serves to others goes over it."""

    def path(self, layer: Layer) -> tuple[Link, ...]:
        """Choose which way a layer takes that is wanted now."""
        if not self._peers:
            return self._registry
        peer = self._cluster.nearest(self, layer.digest)
        if peer is None:
            return self._registry
        if peer.site == self.site:
            return (self.link, peer.upload)
        return (self.link, *self._cluster.between(self.site, peer.site), peer.upload)

    def offer(self, digests: Iterable[Digest]) -> None:
        """Serve these blobs to others from now on."""
        for digest in digests:
            self.gained(digest)

    def withdraw(self, digests: Iterable[Digest]) -> None:
        """Serve these blobs no more."""
        for digest in digests:
            self.lost(digest)

    def gained(self, digest: Digest) -> None:
        """Serve a blob from now on."""
        self._cluster.holders.setdefault(digest, []).append(self)

    def lost(self, digest: Digest) -> None:
        """Serve a blob no more."""
        holders = self._cluster.holders[digest]
        holders.remove(self)
        if not holders:
            del self._cluster.holders[digest]


class LayerSources:
    """The registry, the uplinks and the nodes of one cluster."""

    def __init__(self, network: Network, registry: float = 0.0, uplinks: Mapping[str, float] | None = None) -> None:
        """Open links of these rates, in bytes per second; a registry of rate 0 sends as fast as anybody can take."""
        self._network = network
        self._registry = (network.link(registry),) if registry else ()
        self._uplinks = {name: network.link(rate) for name, rate in (uplinks or {}).items()}
        self._asked = 0
        self.holders: dict[Digest, list[LayerSource]] = {}
        """The nodes that serve each blob, in the order they got it."""

    def for_node(self, node: NodeLinkSpec) -> LayerSource:
        """Connect a node."""
        if node.uplink and node.uplink not in self._uplinks:
            raise WiringError(f"node {node.name!r} is behind an uplink {node.uplink!r} that nobody described")
        way = self.between(node.uplink) + self._registry
        return LayerSource(self, node, self._network.link(node.bandwidth), self._network.link(node.bandwidth), way)

    def between(self, *sites: str) -> tuple[Link, ...]:
        """List the uplinks of these sites; a node without one has an empty site."""
        return tuple(self._uplinks[site] for site in sites if site)

    def nearest(self, node: LayerSource, digest: Digest) -> LayerSource | None:
        """Find who serves a blob: of a few holders the one that serves fewest now, on a par one beside the node."""
        holders = self.holders.get(digest)
        if not holders:
            return None
        self._asked += 1
        best, best_key = None, (0, False)
        for step in range(min(ASKED, len(holders))):
            holder = holders[(self._asked + step) % len(holders)]
            key = holder.upload.active, holder.site != node.site
            if holder is not node and (best is None or key < best_key):
                best, best_key = holder, key
        return best
