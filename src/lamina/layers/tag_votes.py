"""
Votes of nodes on which image a tag names.

A tag on a node proves nothing: it may have moved since the node pulled the image, and a compromised node may report any
tag. So on each platform a name refers to the image that most nodes hold under it. A single node can only decide names
that no other node has. Ties are broken by digest: arbitrary, but independent of restarts and of the order of reports.
The catalog uses the votes for names that no file and no registry has explained.
"""

from collections.abc import Callable, Iterable, Sequence

from lamina.model.digest import Digest
from lamina.model.image import Platform
from lamina.model.layer_report import HeldImage

Counts = dict[Digest, int]


class TagVotes:
    """Platform and name → number of nodes per image that hold it under that name."""

    def __init__(self, spelled: Callable[[str], str]) -> None:
        """Start without votes. *spelled* normalises an image name."""
        self._spelled = spelled
        self._counts: dict[Platform, dict[str, Counts]] = {}

    def __len__(self) -> int:
        """Return the number of names, summed over platforms."""
        return sum(map(len, self._counts.values()))

    def means(self, name: str, platform: Platform) -> Digest | None:
        """Return the image that most nodes of *platform* hold under *name*, or None. *name* must be normalised."""
        return _most(self._counts.get(platform, {}).get(name))

    def change(
        self, platform: Platform, before: Sequence[HeldImage], after: Sequence[HeldImage]
    ) -> dict[str, Digest | None]:
        """Replace one node's votes; return each name whose winner changed, with its previous winner."""
        old, new = self._differing(before, after)
        names = self._counts.setdefault(platform, {})
        meant: dict[str, Digest | None] = {}
        # A report lists a hundred images and changes one, and a starting scheduler receives thousands of reports.
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
        """Return one node's old and new votes. Names of images in the common beginning of both lists may be omitted."""
        same = 0
        for one, other in zip(before, after, strict=False):
            if one is not other and one != other:
                break
            same += 1
        old, new = self._named(before[same:]), self._named(after[same:])
        if same:
            # A name may appear at both ends of a list; the last entry wins.
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
        """Return one vote per name; on one node the last image listed under a name wins."""
        spelled = self._spelled
        return {spelled(name): image.digest for image in images for name in image.names}


def _without(some: dict[str, Digest], others: dict[str, Digest]) -> Iterable[tuple[str, Digest]]:
    if not others:
        return some.items()
    return [(name, digest) for name, digest in some.items() if others.get(name) != digest]


def _most(counts: Counts | None) -> Digest | None:
    if not counts:
        return None
    # Fast path: nearly always all nodes agree.
    return next(iter(counts)) if len(counts) == 1 else max(counts, key=lambda digest: (counts[digest], digest))


def _take(names: dict[str, Counts], name: str, digest: Digest) -> None:
    """Remove one vote, and the name when no vote is left."""
    counts = names[name]
    counts[digest] -= 1
    if not counts[digest]:
        del counts[digest]
        if not counts:
            del names[name]
