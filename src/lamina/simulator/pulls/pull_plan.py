"""
What a pull that is alone on its node downloads, and how far it has come when each layer is there.

Its slots share what it gets in equal parts. So a layer is there when the pull as a whole has moved so many bytes, at
whatever rate, and these numbers can be worked out before it begins.
"""

from collections.abc import Collection, Iterable, Sequence
from heapq import heappop, heappush
from itertools import accumulate

from lamina.model.digest import Digest
from lamina.model.image import Layer


class PullPlan:
    """What to do from the first layer on that is not unpacked. Shared by pulls that lack the same, and never changed."""

    __slots__ = ("_ends", "first", "marks", "missing", "room", "size", "unpacked")

    def __init__(
        self, layers: Sequence[Layer], unpacked: Sequence[int], first: int, blobs: Collection[Digest], slots: int
    ) -> None:
        """Plan for an image of which *first* layers are there, and these *blobs*; *slots* of 0 means any number."""
        self.first = first
        wanted = {layer.digest: layer for layer in layers[first:]}
        self.missing = tuple([layer for digest, layer in wanted.items() if digest not in blobs])
        """What has to be downloaded, each blob once."""
        self.size = sum([layer.size for layer in self.missing])
        """Bytes of it."""
        self.unpacked = sum(unpacked[first:])
        """Bytes of what will be unpacked."""
        self.room = self.size + self.unpacked
        ends = _ends(layers[first:], self.missing, slots)
        # Of a layer that is listed twice the first counts.
        self._ends = {layers[first + number].digest: ends[number] for number in reversed(range(len(ends)))}
        self.marks = list(accumulate(ends, max))
        """For each layer the bytes that were moved when it and all below it were there, so that it can be unpacked."""

    def arrived(self, moved: float) -> tuple[Layer, ...]:
        """List what is there when so many bytes were moved."""
        return tuple([layer for layer in self.missing if self._ends[layer.digest] <= moved])


def _ends(layers: Sequence[Layer], missing: Iterable[Layer], slots: int) -> list[int]:
    """
    Say for each layer how many bytes were moved when it was there.

    A layer has its turn when a slot is free; one that is there needs none; one that is under way for a layer below is
    waited for, in a slot. What is under way at once shares in equal parts.
    """
    ends = [0] * len(layers)
    lacking = {layer.digest for layer in missing}
    # What each download under way would have moved since the beginning, and what all together have.
    each = moved = busy = turn = 0
    under_way: list[tuple[int, int]] = []
    waiting: dict[Digest, list[int]] = {}
    while turn < len(layers) or under_way:
        if turn < len(layers) and (busy < slots or not slots):
            layer = layers[turn]
            if layer.digest not in lacking:
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
        lacking.discard(layers[first].digest)
        for number in waiting.pop(layers[first].digest):
            ends[number] = moved
            busy -= 1
    return ends
