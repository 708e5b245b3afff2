"""
Encoder of extender responses, as kube-scheduler reads them.

The extender's handlers call it with their decisions. kube-scheduler's reading rules shape the encoding:

- A filter result without nodes means "none", so the form of the request is always present, even when it is empty.
- A score must be an integer and is multiplied as it is. It is added twice when a host is named twice, and is 0 for a
  host that is not named.

Only differences between hosts matter. So the lowest score is subtracted from all, and hosts with 0 are omitted: reading
the response costs kube-scheduler ten times what writing the request did.
"""

from array import array
from collections.abc import Mapping, Sequence
from itertools import compress, filterfalse
from typing import Final

import msgspec

from lamina.wire.extender.arguments import ExtenderArgs
from lamina.wire.extender.preemption_arguments import ExtenderVictims

Piece = bytes | memoryview

HIGHEST: Final = 10
"""Highest score. kube-scheduler multiplies it by ten and does not check it against the limit for its own plugins."""
LONGEST_ERROR: Final = 1024
"""Longest error in characters; kube-scheduler copies it into an event of the pod."""

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_NO_REASONS: Final = b'"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


def encode_filter_result(
    asked: ExtenderArgs, failed: Mapping[str, str], unresolvable: Mapping[str, str]
) -> list[Piece]:
    """
    Return an ExtenderFilterResult: all candidate nodes except the *failed* ones, with the reasons.

    Nodes in *unresolvable* are those where evicting pods would not help. Whole nodes are repeated byte for byte. Send
    the pieces in order, before the request body is modified.
    """
    refused = {*failed, *unresolvable}
    reasons = _reasons(failed, unresolvable)
    if asked.items is None:
        kept = list(filterfalse(refused.__contains__, asked.names)) if refused else asked.names
        return [b'{"Nodes":null,"NodeNames":', _ENCODER.encode(kept), b",", reasons]
    return [b'{"Nodes":{"metadata":{},"items":', *_items(asked, refused), b'},"NodeNames":null,', reasons]


def _reasons(failed: Mapping[str, str], unresolvable: Mapping[str, str]) -> bytes:
    if not failed and not unresolvable:
        return _NO_REASONS
    return b'"FailedNodes":%b,"FailedAndUnresolvableNodes":%b,"Error":""}' % (
        _ENCODER.encode(dict(failed)),
        _ENCODER.encode(dict(unresolvable)),
    )


def _items(asked: ExtenderArgs, refused: set[str]) -> list[Piece]:
    """Repeat the array when all nodes stay; otherwise copy the nodes that stay."""
    assert asked.items is not None
    if refused.isdisjoint(asked.names):
        return [memoryview(asked.items)]
    wanted = [name not in refused for name in asked.names]
    return [b"[", b",".join(compress(asked.nodes or (), wanted)), b"]"]


def encode_priority_list(
    names: Sequence[str], levels: Sequence[int], *, sparse: bool = True, most: int = 0, turn: int = 0
) -> bytes:
    """
    Return a HostPriorityList: a level for each of *names*, clamped to 0 to 10.

    A negative level means unknown. Such a host gets the mean of the others, which is neutral. *sparse* subtracts the
    lowest level from all and omits hosts with 0. If more than *most* remain (0: no limit), only the best are named.
    Among equals, those after place *turn* are chosen, so that they are not always the same.
    """
    steps = _steps(levels)
    if len(steps) != len(names):
        raise ValueError(f"{len(names)} names and {len(steps)} levels; pass one level per name")
    hosts: Sequence[str] = names
    if sparse and steps:
        least = next(level for level in range(HIGHEST + 1) if level in steps)
        hosts = list(compress(names, steps.translate(_LESS[least])))
        steps = steps.translate(_LESS[least], bytes([least]))
    if len(set(hosts)) < len(hosts):
        # kube-scheduler would add the score of a repeated host twice.
        once = dict(zip(hosts, steps, strict=True))
        hosts, steps = list(once), bytes(once.values())
    if 0 < most < len(hosts):
        chosen = _best(steps, most, turn)
        hosts, steps = [hosts[place] for place in chosen], bytes([steps[place] for place in chosen])
    if "".join(hosts).encode().translate(None, _PLAIN):
        return _ENCODER.encode([{"Host": host, "Score": step} for host, step in zip(hosts, steps, strict=True)])
    text = ',{"Host":"'.join([host + _SCORES[step] for host, step in zip(hosts, steps, strict=True)])
    return f'[{{"Host":"{text}]'.encode() if hosts else b"[]"


def _best(steps: bytes, most: int, turn: int) -> list[int]:
    """Return the places of the *most* highest levels, in order."""
    level, left = HIGHEST, most
    while (count := steps.count(level)) <= left:
        level, left = level - 1, left - count
    equals = [place for place, step in enumerate(steps) if step == level]
    first = turn % len(equals)
    chosen = set((equals + equals)[first : first + left])
    return [place for place, step in enumerate(steps) if step > level or place in chosen]


_PLAIN: Final = bytes([letter for letter in range(0x20, 0x7F) if letter not in b'"\\'])
"""Characters that need no escape in JSON: all that a valid node name has."""
_SCORES: Final = [f'","Score":{level}}}' for level in range(HIGHEST + 1)]
_LESS: Final = [bytes([max(value - least, 0) for value in range(256)]) for least in range(HIGHEST + 1)]
"""For each lowest level, a table that subtracts it."""


def _steps(levels: Sequence[int]) -> bytes:
    """Return the levels as bytes, clamped, with a neutral level where it is unknown."""
    # ``bytes(array)`` would copy the array's memory instead of its values.
    levels = levels if isinstance(levels, list) else list(levels)
    try:
        return bytes(levels).translate(_BOUNDED)
    except ValueError:  # one of them is negative, or above 255
        return _with_unknown(levels)


UNKNOWN: Final = 255
_BOUNDED: Final = bytes([min(value, HIGHEST) for value in range(256)])


def _with_unknown(levels: list[int]) -> bytes:
    """Return the levels as bytes, with the mean of the known levels where a level is unknown."""
    try:
        signed = array("b", levels).tobytes()
    except OverflowError:
        signed = array("b", [max(-1, min(level, HIGHEST)) for level in levels]).tobytes()
    bounded = signed.translate(_BOUNDED[:128] + bytes([UNKNOWN]) * 128)
    counts = [bounded.count(level) for level in range(HIGHEST + 1)]
    known, total = sum(counts), sum(level * count for level, count in enumerate(counts))
    # Rounded half up, in integers.
    mean = (2 * total + known) // (2 * known) if known else 0
    return bounded.replace(bytes([UNKNOWN]), bytes([mean]))


def encode_preemption_result(victims: Mapping[str, ExtenderVictims]) -> bytes:
    """Return an ExtenderPreemptionResult: the nodes on which pods may be evicted, and their victims."""
    return _ENCODER.encode(
        {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": uid} for uid in those.uids], "NumPDBViolations": those.violations}
                for node, those in victims.items()
            }
        }
    )


def encode_filter_error(words: str) -> bytes:
    """Return an ExtenderFilterResult with only an error."""
    reasons = {"FailedNodes": None, "FailedAndUnresolvableNodes": None, "Error": _error_text(words)}
    return _ENCODER.encode({"Nodes": None, "NodeNames": None, **reasons})


def encode_bind_error(words: str) -> bytes:
    """Return an ExtenderBindingResult with an error: the pod was not bound."""
    return _ENCODER.encode({"Error": _error_text(words)})


def _error_text(words: str) -> str:
    """Return the text of an error; kube-scheduler reads an empty one as success."""
    return words[:LONGEST_ERROR].encode("utf-8", "replace").decode() or "failed without a message"
