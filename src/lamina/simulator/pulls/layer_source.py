"""
Sources of layers: the registry, or another node that holds them, and the links to each.

One `LayerSources` serves a cluster. A node has one link for all its downloads, and perhaps an uplink that it shares
with other nodes of its site. With peers, a node also serves the blobs it holds. Its uploads have a link of the same
rate and do not slow down its downloads.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from lamina.model.digest import Digest
from lamina.model.errors import WiringError
from lamina.model.image import Layer
from lamina.simulator.engine import Link, Network
from lamina.simulator.pulls.runtime_spec import RuntimeSpec

ASKED: Final = 8
"""How many holders `nearest` compares: peer-to-peer trackers return a few addresses, not all."""


class NodeLinkSpec(Protocol):
    """The properties of a node that its links depend on."""

    @property
    def name(self) -> str:
        """The node's name."""
        ...

    @property
    def bandwidth(self) -> float:
        """Download rate in bytes per second."""
        ...

    @property
    def uplink(self) -> str:
        """Name of the shared link between the node and the registry; empty: none."""
        ...

    @property
    def runtime(self) -> RuntimeSpec:
        """How the node pulls images."""
        ...


class LayerSource:
    """Source of one node's layers. It also advertises the node's blobs to its peers."""

    __slots__ = ("_cluster", "_peers", "_registry", "link", "name", "site", "upload")

    def __init__(
        self, cluster: "LayerSources", node: NodeLinkSpec, link: Link, upload: Link, way: tuple[Link, ...]
    ) -> None:
        """Connect *node*; *way* is the links between its own link and the registry."""
        self._cluster = cluster
        self._peers = node.runtime.peers
        self._registry = (link, *way)
        self.name = node.name
        self.site = node.uplink
        """Name of its uplink. Transfers between nodes of one site do not cross it."""
        self.link = link
        """Link of all downloads of the node."""
        self.upload = upload
        """Link of all uploads to peers."""

    def path(self, layer: Layer) -> tuple[Link, ...]:
        """Return the links for a download of *layer* that starts now."""
        if not self._peers:
            return self._registry
        peer = self._cluster.nearest(self, layer.digest)
        if peer is None:
            return self._registry
        if peer.site == self.site:
            return (self.link, peer.upload)
        return (self.link, *self._cluster.between(self.site, peer.site), peer.upload)

    def offer(self, digests: Iterable[Digest]) -> None:
        """Serve these blobs to peers from now on."""
        for digest in digests:
            self.gained(digest)

    def withdraw(self, digests: Iterable[Digest]) -> None:
        """Stop serving these blobs."""
        for digest in digests:
            self.lost(digest)

    def gained(self, digest: Digest) -> None:
        """Start serving a blob."""
        self._cluster.holders.setdefault(digest, []).append(self)

    def lost(self, digest: Digest) -> None:
        """Stop serving a blob."""
        holders = self._cluster.holders[digest]
        holders.remove(self)
        if not holders:
            del self._cluster.holders[digest]


class LayerSources:
    """The registry, the uplinks and the nodes of one cluster."""

    def __init__(self, network: Network, registry: float = 0.0, uplinks: Mapping[str, float] | None = None) -> None:
        """Create links with these rates in bytes per second; a registry rate of 0 means no limit."""
        self._network = network
        self._registry = (network.link(registry),) if registry else ()
        self._uplinks = {name: network.link(rate) for name, rate in (uplinks or {}).items()}
        self._asked = 0
        self.holders: dict[Digest, list[LayerSource]] = {}
        """The nodes that serve each blob, in the order in which they received it."""

    def for_node(self, node: NodeLinkSpec) -> LayerSource:
        """Create the source of one node; raise WiringError if its uplink is not defined."""
        if node.uplink and node.uplink not in self._uplinks:
            raise WiringError(f"node {node.name!r}: there is no uplink {node.uplink!r}; add it to `uplinks`")
        way = self.between(node.uplink) + self._registry
        return LayerSource(self, node, self._network.link(node.bandwidth), self._network.link(node.bandwidth), way)

    def between(self, *sites: str) -> tuple[Link, ...]:
        """Return the uplinks of these sites; an empty site has none."""
        return tuple(self._uplinks[site] for site in sites if site)

    def nearest(self, node: LayerSource, digest: Digest) -> LayerSource | None:
        """Return the holder of a blob with the fewest uploads, among a few; on a tie, one of the same site."""
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
