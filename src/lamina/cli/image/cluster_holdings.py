"""
What the nodes of a real cluster hold of one image, computed from the reports of their node agents.

A node need not pull a layer that its runtime can reuse: any blob it has (`reuse: set`), or only a blob on top of the
same lower layers (`reuse: prefix`). `lamina.layers` applies the same rule when the scheduler scores nodes.
"""

from collections.abc import Iterable, Sequence

from lamina.cli.catalog.cluster_images import NodeInCluster
from lamina.cli.image.layers_text import NodeHolding, most_first
from lamina.layers.catalog import folded, usual
from lamina.layers.layer_keys import LayerKeys, keys_of
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.layer_report import LayerReport

Places = frozenset[int]


def holdings(nodes: Iterable[NodeInCluster], images: Iterable[Image], image: Image) -> tuple[list[NodeHolding], int]:
    """
    Return what each node of the image's platform holds, the most first, and the number of nodes of other platforms.

    *images* are all images with known layers; an image on a node that is not among them adds no layers.
    """
    known = {one.digest: one for one in images}
    match = _Match(image, known)
    platform = usual(image.platform)
    ours, others = [], 0
    for node in nodes:
        if usual(node.platform) == platform:
            ours.append(match.held_by(node))
        else:
            others += 1
    return most_first(ours), others


def undescribed(ref: str, nodes: Iterable[NodeInCluster], images: Iterable[Image]) -> int:
    """Count the nodes that hold an image named *ref* whose layers are unknown."""
    known = {one.digest for one in images}
    name = folded(ref)
    return sum(
        any(held.digest not in known and name in map(folded, held.names) for held in node.report.images)
        for node in nodes
        if node.report is not None
    )


class _Match:
    """One image compared with the others; each pair is compared once, on however many nodes the other image is."""

    def __init__(self, image: Image, known: dict[Digest, Image]) -> None:
        self._image = image
        self._keys = keys_of(image)
        self._known = known
        self._seen: dict[tuple[Digest, bool], Places] = {}
        """At most two entries for each known image."""

    def held_by(self, node: NodeInCluster) -> NodeHolding:
        report = node.report
        if report is None:
            return NodeHolding(node.name, False, 0, self._image.size, (), reported=False)
        places = sorted(frozenset().union(*self._brought(report)))
        # A blob that the image lists twice is downloaded once.
        missing = sum(one.size for place, one in enumerate(self._keys) if place not in places and not one.repeats)
        whole = any(held.digest == self._image.digest for held in report.images)
        return NodeHolding(node.name, whole, self._image.size - missing, missing, tuple(places))

    def _brought(self, report: LayerReport) -> Iterable[Places]:
        by_prefix = report.reuse == "prefix"
        for held in report.images:
            if held.digest == self._image.digest:
                yield frozenset(range(len(self._keys)))
            elif held.digest in self._known:
                yield self._in_common(self._known[held.digest], by_prefix)

    def _in_common(self, other: Image, by_prefix: bool) -> Places:
        found = self._seen.get((other.digest, by_prefix))
        if found is None:
            theirs = {key for one in keys_of(other) for key in _keys(one, by_prefix)}
            found = frozenset(
                place for place, one in enumerate(self._keys) if not theirs.isdisjoint(_keys(one, by_prefix))
            )
            self._seen[other.digest, by_prefix] = found
        return found


def _keys(one: LayerKeys, by_prefix: bool) -> Sequence[str]:
    keys = (one.chain, one.unpacked_chain) if by_prefix else (one.blob, one.diff)
    return [key for key in keys if key]
