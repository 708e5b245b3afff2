"""
Decoder of the pod in an extender request.

Only the neighbouring modules use it. Decoding a pod takes much time per container compared with the length of the JSON.
So the containers of a large pod are counted before the pod is decoded.
"""

from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.pod import Pod
from lamina.wire.errors import WireError
from lamina.wire.extender.body import OBJECT, TALLY, check_size, unread
from lamina.wire.kube.codec import decode_pod

COUNTED_FROM: Final = 64 * 1024
"""Size in bytes from which containers are counted; smaller pods cannot have too many."""


class CountedContainer(msgspec.Struct, frozen=True, gc=False):
    """A container that is counted and not decoded."""

    def __post_init__(self) -> None:
        TALLY.container()


class CountedSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """``spec`` of a pod, restricted to what is counted."""

    containers: list[CountedContainer] | None = None
    init_containers: list[CountedContainer] | None = None


class CountedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod, restricted to what is counted."""

    spec: CountedSpec | None = None


_COUNTED: Final = msgspec.json.Decoder(CountedPod)

# kube-scheduler places one pod after the other, and sends it for each verb and to each extender.
_LAST: Final[list[tuple[bytes, Pod | None]]] = [(b"", None)]


def read_pod(kind: str, text: Raw | None) -> Pod:
    """Return the pod of a body of this *kind*. Raises WireError. The last pod is cached."""
    if text is None:
        raise WireError(kind, "it has no Pod; check that kube-scheduler sent it")
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
