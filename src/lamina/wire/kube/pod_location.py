"""
Where a pod is: its identity and its node, and nothing else of it.

A scheduler looks a pod up to learn whether its binding arrived. That answer must not depend on the rest of the pod being
readable, so this decodes two fields only.
"""

from typing import Final

import msgspec

from lamina.wire.errors import WireError
from lamina.wire.kube.meta import ObjectMeta


class PodLocation(msgspec.Struct, frozen=True):
    """Which pod it is and where it is."""

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
    """Read which pod this is and where it is; raise `WireError` if the bytes do not say both."""
    try:
        pod = _POD.decode(data)
    except (ValueError, RecursionError) as error:
        raise WireError("Pod", f"{error}") from None
    if not pod.metadata.uid:
        raise WireError("Pod", "metadata.uid is missing")
    return PodLocation(pod.metadata.uid, pod.spec.node_name or "")
