"""
The JSON between kube-scheduler and an extender: the door that the rest of the house uses.

    decode_asked          filter and prioritize: a pod, and nodes by name or whole
    read_nodes            the whole nodes of such a call, for a host that watches none
    decode_preempting     preempt: a pod, and whom it would drive away on which node
    encode_filtered, encode_levels, encode_preempted, encode_failed, encode_bind_refused

Bytes come from outside: whatever is wrong with them is a `WireError` and nothing else.
"""

from lamina.wire.extender.arguments import ExtenderArgs, decode_extender_args, read_nodes
from lamina.wire.extender.body import LARGE, MOST_NODES, SMALL, Body
from lamina.wire.extender.preemption_arguments import ExtenderPreemptionArgs, ExtenderVictims, decode_preemption_args
from lamina.wire.extender.results import (
    Piece,
    encode_bind_error,
    encode_filter_error,
    encode_filter_result,
    encode_preemption_result,
    encode_priority_list,
)

__all__ = [
    "LARGE",
    "MOST_NODES",
    "SMALL",
    "Body",
    "ExtenderArgs",
    "ExtenderPreemptionArgs",
    "ExtenderVictims",
    "Piece",
    "decode_extender_args",
    "decode_preemption_args",
    "encode_bind_error",
    "encode_filter_error",
    "encode_filter_result",
    "encode_preemption_result",
    "encode_priority_list",
    "read_nodes",
]
