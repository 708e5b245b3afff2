"""
Which nodes are worth a write.

A Node object is watched by every kubelet's neighbour and every controller, so it is written seldom: when a number is a
step away from the one that stands there, when what stands there is older than the refresh time, and when nothing has
been known of the node for so long that an old number would mislead. Then all of a node's numbers are written together.
What carries no stamp of ours was written by somebody else, and is taken off only when asked to.

Pure.
"""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from lamina.clients.kube.stamps import whole_time
from lamina.model.node import Node
from lamina.services.annotator.values import Wanted
from lamina.services.intake.usage.source import SKEW
from lamina.wire.timestamps import seconds

REFRESH: Final = 600.0
FORGET: Final = 1800.0

# Why a node is written.
MOVED: Final = "moved"
OLD: Final = "old"
UNKNOWN: Final = "unknown"
ASKED: Final = "asked"


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """When a node is worth a write."""

    keys: tuple[str, ...]
    """Every annotation that may be ours."""
    stamp: str
    """The one that says when."""
    refresh: float = REFRESH
    """Seconds after which numbers that have not moved are written again, so that everybody sees they are still so."""
    forget: float = FORGET
    """Seconds after which the numbers of a node of which nothing is known are taken off."""


class Change(msgspec.Struct, frozen=True):
    """One write."""

    node: str
    uid: str
    annotations: dict[str, str | None]
    """None takes one off."""
    why: str
    moved: float = 0.0
    """In steps, of the number that moved most."""


def plan(nodes: Mapping[str, Node], wanted: Mapping[str, Wanted], now: float, rules: Rules) -> list[Change]:
    """List the writes that are worth it, the most urgent first."""
    changes: list[tuple[float, float, Change]] = []
    for name in sorted(nodes):
        node = nodes[name]
        found = node.annotations
        age = age_of(found.get(rules.stamp), now)
        new = wanted.get(name)
        if new is None:
            if rules.stamp in found and age > rules.forget:
                changes.append((0.0, age, Change(name, node.uid, _off(found, rules), UNKNOWN)))
            continue
        moved = distance(found, new, rules)
        if moved >= 1 or age >= rules.refresh:
            written = {**_off(found, rules), **{key: str(one.value) for key, one in new.numbers.items()}}
            written[rules.stamp] = whole_time(new.observed_at)
            changes.append((moved, age, Change(name, node.uid, written, MOVED if moved >= 1 else OLD, moved)))
    changes.sort(key=lambda one: (-one[0], -one[1], one[2].node))
    return [change for _, _, change in changes]


def removals(nodes: Mapping[str, Node], rules: Rules) -> list[Change]:
    """List the writes that take everything off again."""
    found = ((node, _off(node.annotations, rules)) for _, node in sorted(nodes.items()))
    return [Change(node.name, node.uid, off, ASKED) for node, off in found if off]


def distance(found: Mapping[str, str], wanted: Wanted, rules: Rules) -> float:
    """Say how far the farthest number is from what should stand there, in steps; one too many or too few is infinitely far."""
    farthest = 0.0
    for key in rules.keys:
        number, there = wanted.numbers.get(key), found.get(key)
        if number is None:
            if there is not None:
                return math.inf
            continue
        before = number_in(there)
        if before is None:
            return math.inf
        farthest = max(farthest, abs(number.value - before) / number.step)
    return farthest


def number_in(text: str | None) -> float | None:
    """Read an annotation; None when there is none, or no number in it."""
    try:
        value = float(text) if text is not None and len(text) <= 64 else math.nan
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def age_of(stamp: str | None, now: float) -> float:
    """Say how old a stamp is; infinitely old when there is none, or one that cannot be."""
    try:
        at = seconds(stamp)
    except ValueError:
        return math.inf
    return max(now - at, 0.0) if stamp and at - now <= SKEW else math.inf


def _off(found: Mapping[str, str], rules: Rules) -> dict[str, str | None]:
    return {key: None for key in (*rules.keys, rules.stamp) if key in found}
