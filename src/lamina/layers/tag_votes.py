"""
What nodes call the images they hold.

A tag on a node proves nothing: it may have moved since the image was pulled, and a node that was taken over may say what
it likes. So a name means, on each platform, the image that most nodes hold under it. One node alone can only name what
nobody else has named. Among equals the digests decide: that is arbitrary, but the same after every restart and in whichever
order reports come. Asked by the catalog for names that no file and no registry has explained.
"""

from collections.abc import Callable, Iterable, Sequence

from lamina.model.digest import Digest
from lamina.model.image import Platform
from lamina.model.layer_report import HeldImage

Counts = dict[Digest, int]


class TagVotes:
    """Platform and name → how many nodes hold which image under that name."""

    def __init__(self, spelled: Callable[[str], str]) -> None:
        """Nobody has said anything; *spelled* returns the one spelling of a name."""
        self._spelled = spelled
        self._counts: dict[Platform, dict[str, Counts]] = {}

    def __len__(self) -> int:
        """Count the names, on each platform."""
        return sum(map(len, self._counts.values()))

    def means(self, name: str, platform: Platform) -> Digest | None:
        """Return what most nodes of *platform* hold under *name*, which is spelled as everywhere."""
        return _most(self._counts.get(platform, {}).get(name))

    def change(
        self, platform: Platform, before: Sequence[HeldImage], after: Sequence[HeldImage]
    ) -> dict[str, Digest | None]:
        """A node of *platform* holds other images than before; return the names that moved, and what they meant."""
        old, new = self._differing(before, after)
        names = self._counts.setdefault(platform, {})
        meant: dict[str, Digest | None] = {}
        # A report names a hundred images and changes one; a scheduler that starts gets thousands of such reports.
        for name, digest in _without(new, old):
            counts = names.get(name)
            if counts is None:
                meant[name] = None
                names[name] = {digest: 1}
            elif len(counts) == 1 and digest in counts:
                counts[digest] += 1
            else:
                meant[name] = _most(counts)
                counts[digest] = counts.get(digest, 0) + 1
        for name, digest in _without(old, new):
            counts = names[name]
            if len(counts) != 1 or counts[digest] == 1:
                meant.setdefault(name, _most(counts))
            _take(names, name, digest)
        return {name: digest for name, digest in meant.items() if _most(names.get(name)) != digest}

    def _differing(
        self, before: Sequence[HeldImage], after: Sequence[HeldImage]
    ) -> tuple[dict[str, Digest], dict[str, Digest]]:
        """Return what names meant on one node and what they mean now; those that both lists begin with may be left out."""
        same = 0
        for one, other in zip(before, after, strict=False):
            if one is not other and one != other:
                break
            same += 1
        old, new = self._named(before[same:]), self._named(after[same:])
        if same:
            # A name may stand at both ends of a list; the last counts.
            spelled = self._spelled
            kept = {
                name: image.digest
                for image in before[:same]
                for name in map(spelled, image.names)
                if name in old or name in new
            }
            if kept:
                old, new = kept | old, kept | new
        return old, new

    def _named(self, images: Iterable[HeldImage]) -> dict[str, Digest]:
        """On one node a name means one image, however often it is listed: nobody counts twice."""
        spelled = self._spelled
        return {spelled(name): image.digest for image in images for name in image.names}


def _without(some: dict[str, Digest], others: dict[str, Digest]) -> Iterable[tuple[str, Digest]]:
    if not others:
        return some.items()
    return [(name, digest) for name, digest in some.items() if others.get(name) != digest]


def _most(counts: Counts | None) -> Digest | None:
    if not counts:
        return None
    # Nearly always all nodes agree.
    return next(iter(counts)) if len(counts) == 1 else max(counts, key=lambda digest: (counts[digest], digest))


def _take(names: dict[str, Counts], name: str, digest: Digest) -> None:
    """One node less; nothing is kept of a name that nobody holds."""
    counts = names[name]
    counts[digest] -= 1
    if not counts[digest]:
        del counts[digest]
        if not counts:
            del names[name]
