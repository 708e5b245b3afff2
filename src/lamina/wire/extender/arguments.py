"""
What kube-scheduler asks when nodes are to be filtered or ranked: a pod, and nodes by name or as whole objects.

The extender's host decodes every call with this. Which of the two forms comes is the administrator's choice
(``nodeCacheCapable``); kube-scheduler never sends both. A body with both is refused rather than half believed, because
the answer has to come in one of the two forms and the caller may read only the other, in which there would be no node.
Whole nodes are not built: only their names are read, and what is kept of them is echoed as it came.
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
NEITHER: Final = "neither Nodes nor NodeNames is there; send one of them, if need be an empty list"
BOTH: Final = "Nodes and NodeNames are both there; send one of them, as nodeCacheCapable says"


class ExtenderArgs(msgspec.Struct, frozen=True, dict=True):
    """A question: which of these nodes will do for this pod, or are best."""

    pod: Pod
    names: list[str]
    """The nodes in question, as they were sent; one that was sent twice is here twice."""
    items: Raw | None = None
    """The JSON array of whole nodes, in the order of *names*; None when only names were sent. A view of the body."""

    @cached_property
    def nodes(self) -> list[Raw] | None:
        """Each node as it was sent, in the order of *names*; None when only names were sent. Costs another pass."""
        return None if self.items is None else _RAWS.decode(self.items)


class NodeNameMeta(msgspec.Struct, frozen=True, gc=False):
    """``metadata`` of a node, as far as it matters here."""

    name: str = ""


class NodeNameEntry(msgspec.Struct, frozen=True, gc=False):
    """A node of which only the name is read."""

    metadata: NodeNameMeta = NodeNameMeta()

    def __post_init__(self) -> None:
        if not self.metadata.name:
            raise ValueError("a node without a name: metadata.name is needed")
        TALLY.node()


_NODE_LIST: Final = AnyCaseObject({"items": Raw})
_SMALL: Final = AnyCaseObject({"Pod": Raw, "Nodes": _NODE_LIST.type | None, "NodeNames": list[str] | None})
# A large body must not make us build millions of names before we know that it should not have any.
_LARGE: Final = AnyCaseObject({"Pod": Raw, "Nodes": _NODE_LIST.type | None, "NodeNames": Raw})
_ENTRIES: Final = msgspec.json.Decoder(list[NodeNameEntry])
_RAWS: Final = msgspec.json.Decoder(list[Raw])


def decode_extender_args(body: Body) -> ExtenderArgs:
    """
    Read an ExtenderArgs; `WireError` says what is wrong with it.

    Where no node was refused, a pod's next question says the same as the one before, byte for byte; then what was read is
    returned again, the very same objects. Nobody may change them.
    """
    size = len(body)
    check_size(KIND, size, LARGE, "the body")
    if size > SMALL:
        return _read(body, size)
    text = bytes(body)
    last_text, last = _LAST_ASKED[0]
    if last is None or text != last_text:
        last = _read(text, size)
        _LAST_ASKED[0] = text, last
    return last


_LAST_ASKED: Final[list[tuple[bytes, ExtenderArgs | None]]] = [(b"", None)]
"""What was read last; of small bodies only, which bounds it."""


def _read(body: Body, size: int) -> ExtenderArgs:
    try:
        pod, nodes, names = (_SMALL if size <= SMALL else _LARGE).read(body)
        items: Raw | None = _NODE_LIST.said(nodes)[0] if nodes is not None else None
    except (ValueError, RecursionError) as error:
        raise unread(KIND, error) from error
    if (names is None) is (nodes is None):
        raise WireError(KIND, NEITHER if nodes is None else BOTH)
    if names is None:
        if items is None:
            raise WireError(KIND, "Nodes has no items; send a list, if need be an empty one")
        return ExtenderArgs(read_pod(KIND, pod), _names(items), items)
    check_size(KIND, size, SMALL, "a body with NodeNames")
    if len(names) > MOST_NODES:
        raise WireError(KIND, too_many(MOST_NODES, "nodes"))
    return ExtenderArgs(read_pod(KIND, pod), names)


def read_nodes(asked: ExtenderArgs, refused: list[WireError] | None = None) -> list[Node]:
    """Read the whole nodes that were sent. One that cannot be read is left out, and told in *refused*."""
    nodes: list[Node] = []
    for text in asked.nodes or ():
        try:
            check_size("Node", memoryview(text).nbytes, OBJECT, "it")
            nodes.append(decode_node(bytes(text)))
        except WireError as error:
            if refused is not None:
                # A new one, because the one that was raised remembers all that was received.
                refused.append(WireError(*error.args))
    return nodes


def _names(items: Raw) -> list[str]:
    TALLY.start()
    try:
        return [entry.metadata.name for entry in _ENTRIES.decode(items)]
    except (ValueError, RecursionError) as error:
        raise unread(KIND, f"Nodes.items: {error}") from error
