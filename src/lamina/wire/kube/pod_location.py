"""
Decoder of a pod's identity and node, and nothing else.

A scheduler looks up a pod to find out whether its binding succeeded. The result must not depend on other fields being
readable, so only two are decoded.
"""

from typing import Final

import msgspec

from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta


class PodLocation(msgspec.Struct, frozen=True):
    """A pod's uid and node."""

    uid: str
    node: str
    """Empty while the pod is not bound."""


class _LocationSpec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node_name: str | None = None


class _LocationPod(msgspec.Struct, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: _LocationSpec


_POD: Final = msgspec.json.Decoder(_LocationPod)


def decode_pod_location(data: bytes | msgspec.Raw) -> PodLocation:
    """Return a pod's uid and node. Raises WireError if the uid or the spec is missing."""
    try:
        pod = _POD.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("Pod", f"{error}") from None
    if not pod.metadata.uid:
        raise WireError("Pod", "metadata.uid is missing")
    return PodLocation(pod.metadata.uid, pod.spec.node_name or "")
