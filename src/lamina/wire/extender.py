"""
The JSON between kube-scheduler and an extender: the door that the rest of the house uses.

    decode_asked          filter and prioritize: a pod, and nodes by name or whole
    read_nodes            the whole nodes of such a call, for a host that watches none
    decode_preempting     preempt: a pod, and whom it would drive away on which node
    encode_filtered, encode_levels, encode_preempted, encode_failed, encode_bind_refused

Bytes come from outside: whatever is wrong with them is a `WireError` and nothing else.
"""

from lamina.wire.extender_answers import (
    Piece,
    encode_bind_refused,
    encode_failed,
    encode_filtered,
    encode_levels,
    encode_preempted,
)
from lamina.wire.extender_asked import Asked, decode_asked, read_nodes
from lamina.wire.extender_bodies import LARGE, MOST_NODES, SMALL, Body
from lamina.wire.extender_preempting import Preempting, Victims, decode_preempting

__all__ = [
    "LARGE",
    "MOST_NODES",
    "SMALL",
    "Asked",
    "Body",
    "Piece",
    "Preempting",
    "Victims",
    "decode_asked",
    "decode_preempting",
    "encode_bind_refused",
    "encode_failed",
    "encode_filtered",
    "encode_levels",
    "encode_preempted",
    "read_nodes",
]
