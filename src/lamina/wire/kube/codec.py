"""
Kubernetes JSON codec for pods, nodes and bindings.

    decode_pod, decode_node              one object, as received from a watch or an extender request
    decode_pod_list, decode_node_list    one page of a list
    encode_binding                       the Binding that is posted to bind a pod to a node

The bytes are untrusted: every fault raises a `WireError` and nothing else. In a list, an unreadable object is skipped.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Generic, TypeVar

import msgspec

from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ListMeta
from lamina.wire.kube.node_object import NodeObject, node_from
from lamina.wire.kube.pod_object import PodObject, pod_from

E = TypeVar("E")
M = TypeVar("M", Pod, Node)
W = TypeVar("W", PodObject, NodeObject)


class ListPage(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """One page of a list."""

    items: tuple[M, ...]
    resource_version: str = ""
    """Resource version from which a watch continues this list."""
    continue_token: str = ""
    """Token for the next page; empty on the last page."""
    refused: tuple[WireError, ...] = ()
    """One error for each object that could not be read and is therefore missing from *items*."""


PodList = ListPage[Pod]
NodeList = ListPage[Node]


class ListObject(msgspec.Struct, Generic[W], frozen=True, gc=False):
    """A list with decoded objects."""

    kind: str | None = None
    metadata: ListMeta = ListMeta()
    items: list[W] | None = None


class UnreadList(msgspec.Struct, frozen=True, gc=False):
    """A list whose objects are not decoded yet."""

    kind: str | None = None
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] | None = None


_UNREAD_LIST: Final = msgspec.json.Decoder(UnreadList)
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class ObjectReader(Generic[W, M]):
    """Decodes objects of one kind, alone and in lists."""

    def __init__(
        self,
        kind: str,
        alone: msgspec.json.Decoder[W],
        listed: msgspec.json.Decoder[ListObject[W]],
        convert: Callable[[W], M],
    ) -> None:
        self.kind = kind
        self._alone: msgspec.json.Decoder[W] = alone
        self._listed: msgspec.json.Decoder[ListObject[W]] = listed
        self._convert: Callable[[W], M] = convert

    def one(self, data: bytes | msgspec.Raw) -> M:
        """Return one object. Raises WireError."""
        try:
            found = self._alone.decode(data)
        except (ValueError, RecursionError) as error:
            raise WireError(self.kind, f"{error}; check that a Kubernetes API server sent it") from error
        return self._checked(found)

    def many(self, data: bytes) -> ListPage[M]:
        """Return a list page: decoded at once, and object by object only when that fails. Raises WireError."""
        refused: list[WireError] = []
        try:
            page = self._listed.decode(data)
        except (ValueError, RecursionError):
            unread = self._unread(data)
            items = _read_all(self.one, unread.items or (), refused)
            return self._listing(unread.kind, unread.metadata, items, refused)
        items = _read_all(self._checked, page.items or (), refused)
        return self._listing(page.kind, page.metadata, items, refused)

    def _checked(self, found: W) -> M:
        """Convert a decoded object, unless its kind is another one."""
        if found.kind and found.kind != self.kind:
            raise WireError(self.kind, f"this is a {found.kind:.80}; ask for {self.kind.lower()}s")
        return self._convert(found)

    def _unread(self, data: bytes) -> UnreadList:
        try:
            return _UNREAD_LIST.decode(data)
        except (ValueError, RecursionError) as error:
            raise WireError(f"{self.kind}List", f"{error}; check that a Kubernetes API server sent it") from error

    def _listing(self, kind: str | None, metadata: ListMeta, items: list[M], refused: list[WireError]) -> ListPage[M]:
        if kind and kind not in (f"{self.kind}List", "List"):
            raise WireError(f"{self.kind}List", f"this is a {kind:.80}; ask for a list of {self.kind.lower()}s")
        return ListPage(
            items=tuple(items),
            resource_version=metadata.resource_version,
            continue_token=metadata.continue_token or "",
            refused=tuple(refused),
        )


def _read_all(read: Callable[[E], M], entries: Iterable[E], refused: list[WireError]) -> list[M]:
    """Return the readable entries; the errors of the others are appended to *refused*."""
    items: list[M] = []
    for entry in entries:
        try:
            items.append(read(entry))
        except WireError as error:
            # A new error, because the raised one keeps the received bytes alive.
            refused.append(WireError(*error.args))
    return items


_PODS: Final = ObjectReader(
    "Pod", msgspec.json.Decoder(PodObject), msgspec.json.Decoder(ListObject[PodObject]), pod_from
)
_NODES: Final = ObjectReader(
    "Node", msgspec.json.Decoder(NodeObject), msgspec.json.Decoder(ListObject[NodeObject]), node_from
)


def decode_pod(data: bytes) -> Pod:
    """Return a decoded v1 Pod. Raises WireError."""
    return _PODS.one(data)


def decode_node(data: bytes) -> Node:
    """Return a decoded v1 Node. Raises WireError."""
    return _NODES.one(data)


def decode_pod_list(data: bytes) -> PodList:
    """Return a decoded v1 PodList. Raises WireError."""
    return _PODS.many(data)


def decode_node_list(data: bytes) -> NodeList:
    """Return a decoded v1 NodeList. Raises WireError."""
    return _NODES.many(data)


def encode_binding(pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> bytes:
    """
    Return the v1 Binding of *pod* to *node*; the API server copies *annotations* to the pod.

    With the uid, the API server rejects the request if another pod of the same name has replaced the pod.
    """
    metadata: dict[str, object] = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return _ENCODER.encode(
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
    )
