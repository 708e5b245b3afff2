"""
Decoder of filter and prioritize requests: a pod, and nodes by name or as whole objects.

The administrator chooses one of the two forms (``nodeCacheCapable``); kube-scheduler never sends both. A body with both
is rejected: the response must have one of the two forms, and the caller may read only the other one, which would have
no node. Whole nodes are not decoded: only their names are read, and the response repeats their bytes as received.
"""

from functools import cached_property
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.wire.errors import WireError
from lamina.wire.extender.body import (
    LARGE,
    MOST_NODES,
    OBJECT,
    SMALL,
    TALLY,
    AnyCaseObject,
    Body,
    check_size,
    too_many,
    unread,
)
from lamina.wire.extender.pod_argument import read_pod
from lamina.wire.kube.codec import decode_node

KIND: Final = "ExtenderArgs"
NEITHER: Final = "neither Nodes nor NodeNames is set; send one of them, possibly an empty list"
BOTH: Final = "Nodes and NodeNames are both set; send one of them, according to nodeCacheCapable"


class ExtenderArgs(msgspec.Struct, frozen=True, dict=True):
    """A filter or prioritize request: a pod and candidate nodes."""

    pod: Pod
    names: list[str]
    """The candidate nodes as received; a node that was sent twice is listed twice."""
    items: Raw | None = None
    """The JSON array of whole nodes, in the order of *names*; None when only names were sent. A view of the body."""

    @cached_property
    def nodes(self) -> list[Raw] | None:
        """Each node as received, in the order of *names*; None when only names were sent. Costs another pass."""
        return None if self.items is None else _RAWS.decode(self.items)


class NodeNameMeta(msgspec.Struct, frozen=True, gc=False):
    """``metadata`` of a node, restricted to the name."""

    name: str = ""


class NodeNameEntry(msgspec.Struct, frozen=True, gc=False):
    """A node of which only the name is read."""

    metadata: NodeNameMeta = NodeNameMeta()

    def __post_init__(self) -> None:
        if not self.metadata.name:
            raise ValueError("a node without metadata.name")
        TALLY.node()


_NODE_LIST: Final = AnyCaseObject({"items": Raw})
_SMALL: Final = AnyCaseObject({"Pod": Raw, "Nodes": _NODE_LIST.type | None, "NodeNames": list[str] | None})
# A large body could make the decoder build millions of names before the size limit for names is checked.
_LARGE: Final = AnyCaseObject({"Pod": Raw, "Nodes": _NODE_LIST.type | None, "NodeNames": Raw})
_ENTRIES: Final = msgspec.json.Decoder(list[NodeNameEntry])
_RAWS: Final = msgspec.json.Decoder(list[Raw])


def decode_extender_args(body: Body) -> ExtenderArgs:
    """
    Return the decoded ExtenderArgs. Raises WireError.

    If no node was rejected, the next request for the same pod has the same bytes. The same objects are then returned
    again; callers must not modify them.
    """
    size = len(body)
    check_size(KIND, size, LARGE, "the body")
    if size > SMALL:
        return _read(body, size)
    text = bytes(body)
    last_text, last = _LAST_REQUEST[0]
    if last is None or text != last_text:
        last = _read(text, size)
        _LAST_REQUEST[0] = text, last
    return last


_LAST_REQUEST: Final[list[tuple[bytes, ExtenderArgs | None]]] = [(b"", None)]
"""The last request and its result; only small bodies are kept, which bounds the memory."""


def _read(body: Body, size: int) -> ExtenderArgs:
    try:
        pod, nodes, names = (_SMALL if size <= SMALL else _LARGE).read(body)
        items: Raw | None = _NODE_LIST.values(nodes)[0] if nodes is not None else None
    except (ValueError, RecursionError) as error:
        raise unread(KIND, error) from error
    if (names is None) is (nodes is None):
        raise WireError(KIND, NEITHER if nodes is None else BOTH)
    if names is None:
        if items is None:
            raise WireError(KIND, "Nodes has no items; send a list, possibly an empty one")
        return ExtenderArgs(read_pod(KIND, pod), _names(items), items)
    check_size(KIND, size, SMALL, "a body with NodeNames")
    if len(names) > MOST_NODES:
        raise WireError(KIND, too_many(MOST_NODES, "nodes"))
    return ExtenderArgs(read_pod(KIND, pod), names)


def read_nodes(asked: ExtenderArgs, refused: list[WireError] | None = None) -> list[Node]:
    """Return the decoded whole nodes. Unreadable nodes are omitted; their errors are appended to *refused*."""
    nodes: list[Node] = []
    for text in asked.nodes or ():
        try:
            check_size("Node", memoryview(text).nbytes, OBJECT, "it")
            nodes.append(decode_node(bytes(text)))
        except WireError as error:
            if refused is not None:
                # A new error, because the raised one keeps the received bytes alive.
                refused.append(WireError(*error.args))
    return nodes


def _names(items: Raw) -> list[str]:
    TALLY.start()
    try:
        return [entry.metadata.name for entry in _ENTRIES.decode(items)]
    except (ValueError, RecursionError) as error:
        raise unread(KIND, f"Nodes.items: {error}") from error
