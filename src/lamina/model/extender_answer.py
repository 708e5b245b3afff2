"""
What the extenders of other vendors answered about one pod, as data.

The host that calls them fills these structs; the loop combines them with its own results. Recordings contain them.
"""

import msgspec

from lamina.model.pod import PodUid


class ExtenderRefusal(msgspec.Struct, frozen=True):
    """Nodes that an extender refused for the same reason."""

    nodes: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    """Empty for nodes that the extender left out without a reason."""
    final: bool = False
    """Whether evicting pods would not help: the extender named the nodes as unresolvable, or gave no reason."""


class ExtenderScores(msgspec.Struct, frozen=True):
    """The scores that one extender gave."""

    extender: str
    weight: int
    """Weight of the extender, with the factor between its scale and that of the plugins."""
    scores: dict[str, int]
    """Score by node; nodes that are not named have 0."""


class AllowedVictims(msgspec.Struct, frozen=True):
    """Pods of one node that the extenders allow to evict."""

    node: str
    uids: tuple[PodUid, ...]
    violations: int = 0
    """Number of them whose disruption budget would be violated, as the last extender stated it."""


class ExtenderAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The combined answer of all extenders that are interested in a pod."""

    refusals: tuple[ExtenderRefusal, ...] = ()
    """Each node at most once; the other requested nodes passed."""
    scores: tuple[ExtenderScores, ...] = ()
    victims: tuple[AllowedVictims, ...] = ()
    """For a question about victims: one entry for each node that the extenders left."""
    error: str = ""
    """If not empty, an extender failed that must not be ignored, and the pod's attempt fails."""
