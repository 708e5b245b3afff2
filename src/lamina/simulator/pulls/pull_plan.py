"""
Plan of a pull that has the node to itself: what it downloads, and after how many bytes each layer is complete.

The download slots share the pull's rate equally. So a layer is complete after a fixed number of bytes of the whole
pull, whatever the rate. These numbers are computed before the pull begins.
"""

from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate

from lamina.model.digest import Digest
from lamina.model.image import Layer


class PullPlan:
    """Download plan from the first layer that is not unpacked. Immutable; shared by pulls that miss the same layers."""

    __slots__ = ("_ends", "first", "marks", "missing", "room", "size", "unpacked")

    def __init__(
        self, layers: Sequence[Layer], unpacked: Sequence[int], first: int, blobs: Collection[Digest], slots: int
    ) -> None:
        """Plan for a node that has unpacked *first* layers and holds *blobs*; 0 *slots* means no limit."""
        self.first = first
        wanted = {layer.digest: layer for layer in layers[first:]}
        self.missing = tuple([layer for digest, layer in wanted.items() if digest not in blobs])
        """The layers to download, each blob once."""
        self.size = sum([layer.size for layer in self.missing])
        """Bytes to download."""
        self.unpacked = sum(unpacked[first:])
        """Bytes of the layers once they are unpacked."""
        self.room = self.size + self.unpacked
        ends = _ends(layers[first:], self.missing, slots)
        # If a layer is listed twice, the first occurrence wins.
        self._ends = {layers[first + number].digest: ends[number] for number in reversed(range(len(ends)))}
        self.marks = list(accumulate(ends, max))
        """For each layer: the bytes moved when it and all layers below are complete, so that it can be unpacked."""

    def arrived(self, moved: float) -> tuple[Layer, ...]:
        """Return the layers that are complete after *moved* bytes."""
        return tuple([layer for layer in self.missing if self._ends[layer.digest] <= moved])


def _ends(layers: Sequence[Layer], missing: Iterable[Layer], slots: int) -> list[int]:
    """
    Return, for each layer, the bytes that the pull has moved when the layer is complete.

    A layer waits for a free slot. A layer that the node holds needs none. A duplicate of a layer that is being
    downloaded waits in a slot of its own. Running downloads share the rate equally.
    """
    ends = [0] * len(layers)
    missing_digests = {layer.digest for layer in missing}
    # Bytes that one download running since the start would have moved, and bytes moved by all.
    each = moved = busy = turn = 0
    under_way: list[tuple[int, int]] = []
    waiting: dict[Digest, list[int]] = {}
    while turn < len(layers) or under_way:
        if turn < len(layers) and (busy < slots or not slots):
            layer = layers[turn]
            if layer.digest not in missing_digests:
                ends[turn] = moved
            else:
                busy += 1
                if layer.digest not in waiting:
                    waiting[layer.digest] = []
                    heappush(under_way, (each + layer.size, turn))
                waiting[layer.digest].append(turn)
            turn += 1
            continue
        end, first = heappop(under_way)
        moved += (end - each) * (len(under_way) + 1)
        each = end
        missing_digests.discard(layers[first].digest)
        for number in waiting.pop(layers[first].digest):
            ends[number] = moved
            busy -= 1
    return ends
