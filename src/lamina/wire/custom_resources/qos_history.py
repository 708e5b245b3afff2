"""
The custom resource QosHistory: what the QoS engine of a scheduler cannot rebuild from the API after a restart.

    decode_qos_history    the object, as read at the start of a scheduler and when a scheduler becomes the leader
    encode_qos_history    the object, as the leader writes it

Any client with permission can write the object, and it may be old, cut or damaged. So every value is checked, and an
object with a wrong value is rejected as a whole: a scheduler without history is better than one with a false one.
"""

import math
from datetime import UTC, datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from lamina.wire import timestamps
from lamina.wire.custom_resources.api_group import API_VERSION, METADATA_LIMIT, CustomResourceReader
from lamina.wire.kube.meta import ObjectMeta

KIND: Final = "QosHistory"
PLURAL: Final = "qoshistories"
SPEC_LIMIT: Final = 768 * 1024
"""Largest spec in bytes; etcd's own limit is 1.5 MiB for a request."""
MOST_CONTROLLERS: Final = 2000
MOST_PODS: Final = 5000
"""Existing pods in one object, over all controllers."""
LONGEST: Final = 1e10
"""Longest sum of time in seconds: 10,000 pods for 11 days, or one for 300 years."""

State = Literal["effective", "discarded", "waiting", "binding"]
Approach = Literal["independent", "average", "concurrent", "aggregate"]
Name = Annotated[str, Meta(max_length=253)]
Uid = Annotated[str, Meta(min_length=1, max_length=128)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Seconds = Annotated[float, Meta(ge=0.0, le=LONGEST)]
Count = Annotated[int, Meta(ge=0, le=10**12)]


class StoredTimes(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Four sums of time in seconds."""

    effective: Seconds = 0.0
    discarded: Seconds = 0.0
    waiting: Seconds = 0.0
    binding: Seconds = 0.0


class StoredSlot(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """History of one replica that is measured on its own."""

    times: StoredTimes = StoredTimes()
    incarnations: Count = 0
    members: Annotated[tuple[Uid, ...], Meta(max_length=100)] = ()


class StoredPod(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One existing pod."""

    uid: Uid
    state: State
    times: StoredTimes = StoredTimes()
    ended: bool = False
    succeeded: bool = False


class StoredController(msgspec.Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """History of one controller."""

    namespace: Annotated[str, Meta(min_length=1, max_length=63)]
    name: Name
    slo: Share
    importance: Annotated[float, Meta(ge=-1e12, le=1e12)]
    approach: Approach
    overhead_limit: Share
    kind: Annotated[str, Meta(max_length=63)] = ""
    replicas: Annotated[int, Meta(ge=0, le=2**31)] | None = None
    times: StoredTimes = StoredTimes()
    incarnations: Count = 0
    succeeded: Count = 0
    slots: Annotated[tuple[StoredSlot, ...], Meta(max_length=MOST_PODS)] = ()
    pods: Annotated[tuple[StoredPod, ...], Meta(max_length=MOST_PODS)] = ()


class QosHistorySpec(msgspec.Struct, frozen=True, rename="camel"):
    """``spec``."""

    observed_at: str = ""
    controllers: Annotated[tuple[StoredController, ...], Meta(max_length=MOST_CONTROLLERS)] = ()


class QosHistory(msgspec.Struct, frozen=True):
    """The content of an object."""

    observed_at: float
    """Seconds since 1970."""
    controllers: tuple[StoredController, ...]


class QosHistoryObject(msgspec.Struct, frozen=True):
    """A QosHistory object."""

    kind: str | None = None
    metadata: ObjectMeta = ObjectMeta()
    spec: QosHistorySpec | None = None


def storable(one: StoredController) -> bool:
    """Return whether a reader accepts a controller; one that it rejects would make it reject the whole object."""
    try:
        msgspec.convert(msgspec.to_builtins(one), StoredController)
    except msgspec.ValidationError:
        return False
    return True


_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def decode_qos_history(data: bytes) -> QosHistory:
    """Return the content of an object. Raises WireError."""
    return _READER.one(data)


def encode_qos_history(name: str, history: QosHistory, version: str = "") -> bytes | None:
    """
    Return the object; None if it would be too large.

    With *version*, a write fails if the object was changed since it had this resource version.
    """
    moment = datetime.fromtimestamp(history.observed_at, UTC).isoformat(timespec="microseconds")
    spec = _ENCODER.encode(QosHistorySpec(moment.replace("+00:00", "Z"), history.controllers))
    if len(spec) > SPEC_LIMIT:
        return None
    metadata = {"name": name, **({"resourceVersion": version} if version else {})}
    return _ENCODER.encode({"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": msgspec.Raw(spec)})


def _content(found: QosHistoryObject) -> QosHistory:
    spec = found.spec
    if spec is None or not spec.observed_at:
        raise ValueError("spec.observedAt is missing")
    observed_at = timestamps.seconds(spec.observed_at)
    if not math.isfinite(observed_at) or observed_at <= 0:
        raise ValueError(f"spec.observedAt {spec.observed_at:.40} is not a time after 1970")
    keys = {(one.namespace, one.kind, one.name) for one in spec.controllers}
    if len(keys) != len(spec.controllers):
        raise ValueError("spec.controllers has a controller twice")
    uids = [pod.uid for one in spec.controllers for pod in one.pods]
    if len(uids) > MOST_PODS or len(set(uids)) != len(uids):
        raise ValueError(f"spec.controllers has a pod twice, or more than {MOST_PODS} pods")
    return QosHistory(observed_at, spec.controllers)


_READER: Final = CustomResourceReader[QosHistoryObject, QosHistory](
    KIND, msgspec.json.Decoder(QosHistoryObject), SPEC_LIMIT + METADATA_LIMIT, _content
)
