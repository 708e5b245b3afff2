"""
What an extender answers, as kube-scheduler reads it.

Called by the extender's host with what was decided; nothing is decided here. Rules of the reader that shape the writing:

- a filter's answer without nodes means "none", so the form that was asked in is always there, even when it is empty;
- a score must be an integer, is multiplied as it is, counts twice when a host is named twice, and is 0 for a host that is
  not named. Only differences between hosts matter, so the least score is taken off all of them and hosts that are left
  with nothing are not named: reading the answer costs kube-scheduler ten times what writing the question did.
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
"""kube-scheduler multiplies by ten and never looks whether the result is more than a plugin of its own may give."""
LONGEST_ERROR: Final = 1024
"""Characters of an error, which ends up in an event of the pod."""

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
_NO_REASONS: Final = b'"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


def encode_filter_result(
    asked: ExtenderArgs, failed: Mapping[str, str], unresolvable: Mapping[str, str]
) -> list[Piece]:
    """
    Write an ExtenderFilterResult: all nodes that were asked about, but for those that *failed* and why.

    Nodes are named in *unresolvable* when evicting pods from them would not help. What is kept of whole nodes comes
    byte for byte as it was sent; send the pieces in their order, before the body they were read from is changed.
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
    """Echo the array when all of it stays; otherwise copy what stays, once."""
    assert asked.items is not None
    if refused.isdisjoint(asked.names):
        return [memoryview(asked.items)]
    wanted = [name not in refused for name in asked.names]
    return [b"[", b",".join(compress(asked.nodes or (), wanted)), b"]"]


def encode_priority_list(
    names: Sequence[str], levels: Sequence[int], *, sparse: bool = True, most: int = 0, turn: int = 0
) -> bytes:
    """
    Write a HostPriorityList: a level for each of *names*, brought into 0 to 10.

    A negative level is that of a host about which nothing is known. It gets the mean of the others, which neither helps nor
    harms it. *sparse* takes the least level off all of them and leaves out those that have nothing left. Of these no more
    than *most* are named (0: all), the best; of equals those that come after place *turn*, so that not always the same are.
    """
    steps = _steps(levels)
    if len(steps) != len(names):
        raise ValueError(f"{len(names)} names and {len(steps)} levels: each name needs one")
    hosts: Sequence[str] = names
    if sparse and steps:
        least = next(level for level in range(HIGHEST + 1) if level in steps)
        hosts = list(compress(names, steps.translate(_LESS[least])))
        steps = steps.translate(_LESS[least], bytes([least]))
    if len(set(hosts)) < len(hosts):
        # What is named twice counts twice.
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
"""Letters that stand for themselves in JSON: all that a node's name has, wherever the API server checked it."""
_SCORES: Final = [f'","Score":{level}}}' for level in range(HIGHEST + 1)]
_LESS: Final = [bytes([max(value - least, 0) for value in range(256)]) for least in range(HIGHEST + 1)]
"""For each least level, what is left of a level."""


def _steps(levels: Sequence[int]) -> bytes:
    """Return the levels as bytes, within bounds and with a neutral one where nothing is known."""
    # Of what is already an array of some kind, the bytes are not the levels.
    levels = levels if isinstance(levels, list) else list(levels)
    try:
        return bytes(levels).translate(_BOUNDED)
    except ValueError:  # one of them is negative, or above 255
        return _with_unknown(levels)


UNKNOWN: Final = 255
_BOUNDED: Final = bytes([min(value, HIGHEST) for value in range(256)])


def _with_unknown(levels: list[int]) -> bytes:
    """Return the levels as bytes, with the mean of those that are known where there is none."""
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
    """Write an ExtenderPreemptionResult: the nodes on which pods may be evicted, and which pods."""
    return _ENCODER.encode(
        {
            "NodeNameToMetaVictims": {
                node: {"Pods": [{"UID": uid} for uid in those.uids], "NumPDBViolations": those.violations}
                for node, those in victims.items()
            }
        }
    )


def encode_filter_error(words: str) -> bytes:
    """Write an ExtenderFilterResult that only says why there is none."""
    reasons = {"FailedNodes": None, "FailedAndUnresolvableNodes": None, "Error": _told(words)}
    return _ENCODER.encode({"Nodes": None, "NodeNames": None, **reasons})


def encode_bind_error(words: str) -> bytes:
    """Write an ExtenderBindingResult: the pod was not bound."""
    return _ENCODER.encode({"Error": _told(words)})


def _told(words: str) -> str:
    """Return what can be said of an error; an empty one would mean that all went well."""
    return words[:LONGEST_ERROR].encode("utf-8", "replace").decode() or "failed without a word"
