"""
The pod in a body that kube-scheduler sent to an extender.

Used by the neighbouring modules only. Reading a pod takes much longer for each container than its JSON is long, so in a pod
that is large the containers are counted before anything is made of them.
"""

from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.pod import Pod
from lamina.wire.errors import WireError
from lamina.wire.extender.body import OBJECT, TALLY, check_size, unread
from lamina.wire.kube.codec import decode_pod

COUNTED_FROM: Final = 64 * 1024
"""Bytes of a pod; smaller ones cannot hold enough containers to be in anybody's way."""


class CountedContainer(msgspec.Struct, frozen=True, gc=False):
    """A container of which nothing is read."""

    def __post_init__(self) -> None:
        TALLY.container()


class CountedSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a pod, as far as it is counted."""

    containers: list[CountedContainer] | None = None
    init_containers: list[CountedContainer] | None = None


class CountedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod, as far as it is counted."""

    spec: CountedSpec | None = None


_COUNTED: Final = msgspec.json.Decoder(CountedPod)

# kube-scheduler places one pod after the other, and asks about it for each verb and of each extender.
_LAST: Final[list[tuple[bytes, Pod | None]]] = [(b"", None)]


def read_pod(kind: str, text: Raw | None) -> Pod:
    """Read the pod of a body of this *kind*. The one that was read last is not read again."""
    if text is None:
        raise WireError(kind, "there is no Pod in it; check that kube-scheduler sent it")
    size = memoryview(text).nbytes
    check_size(kind, size, OBJECT, "the Pod")
    copied = bytes(text)
    last_text, last = _LAST[0]
    if last is None or copied != last_text:
        if size > COUNTED_FROM:
            _count(kind, copied)
        last = decode_pod(copied)
        _LAST[0] = copied, last
    return last


def _count(kind: str, text: bytes) -> None:
    TALLY.start()
    try:
        _COUNTED.decode(text)
    except (ValueError, RecursionError) as error:
        raise unread(kind, f"Pod: {error}") from error
