"""
Both directions of the extender protocol for the side that calls: requests encoded, replies decoded.

The scheduler service uses it to call extenders of other vendors; the other modules of this package serve kube-scheduler.
Reading rules are kube-scheduler's: keys in any case, a null list of nodes means "none", a score is an integer of 64 bits.
Replies are untrusted: every fault raises a `WireError`. Here, trailing data is one, and a node without a name.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Raw

from lamina.model.pod import Pod
from lamina.wire.errors import WireError
from lamina.wire.extender.arguments import NodeNameEntry
from lamina.wire.extender.body import LARGE, SMALL, TALLY, AnyCaseObject
from lamina.wire.extender.preemption_arguments import ExtenderVictims

LONGEST_REASON: Final = 1024
"""Characters of a reason that are kept; it becomes part of the pod's condition."""
Score = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

_ENCODER: Final = msgspec.json.Encoder()
_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])
_LIST: Final = AnyCaseObject({"items": list[NodeNameEntry] | None})
_FILTER: Final = AnyCaseObject(
    {
        "Nodes": _LIST.type | None,
        "NodeNames": list[str] | None,
        "FailedNodes": dict[str, str] | None,
        "FailedAndUnresolvableNodes": dict[str, str] | None,
        "Error": str | None,
    }
)
_HOST: Final = AnyCaseObject({"Host": str | None, "Score": Score | None})
_HOSTS: Final = msgspec.json.Decoder(list[_HOST.type] | None)  # type: ignore[name-defined]  # made at run time
_META_POD: Final = AnyCaseObject({"UID": str | None}, TALLY.victim)
_META: Final = AnyCaseObject({"Pods": list[_META_POD.type] | None, "NumPDBViolations": Score | None}, TALLY.node)  # type: ignore[name-defined]  # made at run time
_PREEMPTION: Final = AnyCaseObject({"NodeNameToMetaVictims": dict[str, _META.type | None] | None})  # type: ignore[name-defined]  # made at run time
_BINDING: Final = AnyCaseObject({"Error": str | None})


class FilterReply(msgspec.Struct, frozen=True):
    """The reply to a filter request."""

    passed: tuple[str, ...]
    failed: dict[str, str]
    """Reason by node."""
    unresolvable: dict[str, str]
    """The same for nodes where evicting pods would not help."""
    error: str


def filter_limit(*, names: bool) -> int:
    """Return the largest filter reply in bytes, for node *names* or whole nodes."""
    return SMALL if names else LARGE


def without_managed_fields(pod: bytes) -> bytes:
    """Return a v1 Pod as received, without ``metadata.managedFields``, as kube-scheduler sends it. Raises WireError."""
    try:
        fields = _FIELDS.decode(pod)
        metadata = _FIELDS.decode(fields["metadata"])
        metadata.pop("managedFields", None)
        fields["metadata"] = Raw(_ENCODER.encode(metadata))
        return _ENCODER.encode(fields)
    except (KeyError, ValueError, RecursionError) as error:
        raise WireError("Pod", f"{error}") from None


def encode_arguments(pod: bytes, names: Sequence[str], nodes: Sequence[bytes] | None = None) -> bytes:
    """Return ExtenderArgs: the *pod* as JSON, and the *nodes* as JSON, or only their *names* if there are none."""
    if nodes is None:
        return b'{"Pod":%b,"Nodes":null,"NodeNames":%b}' % (pod, _ENCODER.encode(names))
    return b'{"Pod":%b,"Nodes":{"metadata":{},"items":[%b]},"NodeNames":null}' % (pod, b",".join(nodes))


def encode_binding_arguments(pod: Pod, node: str) -> bytes:
    """Return ExtenderBindingArgs."""
    return _ENCODER.encode({"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node})


def encode_preemption_arguments(
    pod: bytes, victims: Mapping[str, ExtenderVictims], whole: Mapping[str, bytes] | None = None
) -> bytes:
    """Return ExtenderPreemptionArgs: with *whole*, each victim as a v1 Pod in JSON by uid, otherwise only the uids."""
    nodes = []
    for node, those in victims.items():
        if whole is None:
            pods = [b'{"UID":%b}' % _ENCODER.encode(uid) for uid in those.uids]
        else:
            pods = [whole[uid] for uid in those.uids]
        text = b'%b:{"Pods":[%b],"NumPDBViolations":%d}'
        nodes.append(text % (_ENCODER.encode(node), b",".join(pods), those.violations))
    found = b"{%b}" % b",".join(nodes)
    plain, meta = (b"null", found) if whole is None else (found, b"null")
    return b'{"Pod":%b,"NodeNameToVictims":%b,"NodeNameToMetaVictims":%b}' % (pod, plain, meta)


def decode_filter_reply(body: bytes, *, names: bool, asked: Collection[str]) -> FilterReply:
    """
    Return an ExtenderFilterResult. Raises WireError, also if a passed node is not in *asked*.

    *names*: the request had only names, so that NodeNames is read first.
    """
    kind = "ExtenderFilterResult"
    TALLY.start()
    try:
        nodes, node_names, failed, unresolvable, error = _FILTER.read(body)
        passed = node_names if names else None
        if passed is None:
            items = None if nodes is None else _LIST.values(nodes)[0]
            passed = [entry.metadata.name for entry in items or ()]
    except (ValueError, RecursionError) as problem:
        raise WireError(kind, f"{problem}") from None
    if not error:
        strange = next((name for name in passed if name not in asked), None)
        if strange is not None:
            raise WireError(
                kind, f"it claims a filtered node {strange!r:.260} which is not found in the input node list"
            )
    return FilterReply(tuple(passed), _cut(failed), _cut(unresolvable), (error or "")[:LONGEST_REASON])


def decode_priority_list(body: bytes) -> dict[str, int]:
    """Return a HostPriorityList as scores by node; scores of the same node are added. Raises WireError."""
    scores: dict[str, int] = {}
    try:
        for entry in _HOSTS.decode(body) or ():
            host, score = _HOST.values(entry)
            scores[host or ""] = scores.get(host or "", 0) + (score or 0)
    except (ValueError, RecursionError) as error:
        raise WireError("HostPriorityList", f"{error}") from None
    return scores


def decode_preemption_reply(body: bytes) -> dict[str, ExtenderVictims]:
    """
    Return the victims of an ExtenderPreemptionResult by node; none if it names no nodes. Raises WireError.

    A node can have no victims, and a victim an empty uid; the caller decides what that means.
    """
    TALLY.start()
    try:
        found: dict[str, Any] = _PREEMPTION.read(body)[0] or {}
        victims = {}
        for node, entry in found.items():
            pods, violations = (None, None) if entry is None else _META.values(entry)
            uids = tuple([_META_POD.values(pod)[0] or "" for pod in pods or ()])
            victims[node] = ExtenderVictims(uids, violations or 0)
    except (ValueError, RecursionError) as error:
        raise WireError("ExtenderPreemptionResult", f"{error}") from None
    return victims


def decode_binding_error(body: bytes) -> str:
    """Return the error of an ExtenderBindingResult; empty if the extender bound the pod. Raises WireError."""
    try:
        found: list[Any] = _BINDING.read(body)
    except (ValueError, RecursionError) as error:
        raise WireError("ExtenderBindingResult", f"{error}") from None
    return (found[0] or "")[:LONGEST_REASON]


def _cut(reasons: Mapping[str, str] | None) -> dict[str, str]:
    return {node: reason[:LONGEST_REASON] for node, reason in (reasons or {}).items()}
