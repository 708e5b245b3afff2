"""
Encoder of what a node agent writes: the NodeLayers object once, and then its status after each change.

    encode_node_layers           the object to create; the node owns it, so it is deleted with the node
    encode_node_layers_status    its status, as a JSON merge patch
    encode_trouble               the conditions only, when the runtime cannot be queried and the last report stays
    decode_conditions            the stored conditions, whose transition times the next ones continue

The size of a status is bounded. Beyond the schema's limit, the smallest images are omitted, because they are worth
least, and the condition ``Truncated`` has their number.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec import Raw

from lamina.model.image import Platform
from lamina.model.layer_report import ActivePull, HeldImage, LayerReport
from lamina.model.plain import plural
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.wire.custom_resources.api_group import API_VERSION
from lamina.wire.custom_resources.node_layers import (
    IMAGE_LIMIT,
    KIND,
    NAME_LENGTH,
    NAME_LIMIT,
    PULL_LIMIT,
    REUSES,
    TEXT_LENGTH,
)
from lamina.wire.errors import WireError

IMAGES_WEIGHT: Final = 240_000
"""Largest weight of all images of a status; the schema has the same rule. It leaves room for the rest below 256 KiB."""
IMAGE_WEIGHT: Final = 128
"""Bytes of an image without its names, rounded up."""
NAME_WEIGHT: Final = 3
"""Bytes around each name."""
MESSAGE_LENGTH: Final = 256

_UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_REUSE_WORDS: Final = {reuse: word for word, reuse in REUSES.items()}
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class NodeLayersCondition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One of ``status.conditions``."""

    type: str
    status: str
    reason: str
    message: str = ""
    last_transition_time: str = ""


class ImageTotals(msgspec.Struct, frozen=True):
    """Totals for display; the node agent counts them while it reads the images."""

    layers: int = 0
    """Number of different layers."""
    size: int = 0
    """Bytes on the disk."""


class _StatusConditions(msgspec.Struct, frozen=True):
    conditions: tuple[NodeLayersCondition, ...] | None = None


class _StatusObject(msgspec.Struct, frozen=True):
    status: _StatusConditions | None = None


_OBJECT: Final = msgspec.json.Decoder(_StatusObject)


def encode_node_layers(node: str, uid: str) -> bytes:
    """Return the NodeLayers of a node, without a status. Garbage collection deletes it with the node."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return _ENCODER.encode(
        {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": node, "ownerReferences": [owner]}}
    )


def encode_owners(node: str, uid: str) -> bytes:
    """Return a merge patch that makes this node the only owner of a NodeLayers."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
    return _ENCODER.encode({"metadata": {"ownerReferences": [owner]}})


def decode_conditions(data: bytes) -> tuple[NodeLayersCondition, ...]:
    """Return the conditions of a NodeLayers that was read back. Raises WireError."""
    try:
        status = _OBJECT.decode(data).status
    except (ValueError, RecursionError) as error:
        raise WireError(KIND, f"{error}; check which client wrote it") from error
    return (status and status.conditions) or ()


def encode_node_layers_status(
    report: LayerReport,
    totals: ImageTotals | None = None,
    *,
    trouble: str = "",
    before: Iterable[NodeLayersCondition] = (),
) -> bytes:
    """
    Return a report as the merge patch of a status, with every field, so that no old value is left.

    *trouble* is the reason why the runtime could not be queried; the report is then the last one. *before* are the
    stored conditions. ``observedAt`` is the report's time, and the transition time of every condition that changes.
    """
    kept = keep(report.images)
    totals = totals or ImageTotals()
    conditions = _conditions(report, len(report.images) - len(kept), trouble, {one.type: one for one in before})
    status = {
        "nodeUID": report.node_uid[:TEXT_LENGTH],
        "runtime": {
            "name": report.runtime.name[:TEXT_LENGTH],
            "version": report.runtime.version[:TEXT_LENGTH],
        },
        "platform": _platform(report.platform),
        "reuse": _REUSE_WORDS[report.reuse],
        "sequence": report.sequence,
        "observedAt": written_time(report.observed_at),
        "renewSeconds": round(report.renews_within),
        "images": [_entry(image) for image in sorted(kept, key=lambda one: one.digest)],
        "pulling": [_pull(pull) for pull in report.pulling[:PULL_LIMIT]],
        "diskBytes": report.disk,
        "freeBytes": report.disk_free,
        "downloadRate": round(report.download_rate),
        "unpackRate": round(report.unpack_rate),
        "imageCount": len(report.images),
        "layerCount": totals.layers,
        "bytes": totals.size,
        "summary": {"size": short(totals.size), "free": short(report.disk_free)},
        "conditions": conditions,
    }
    return _ENCODER.encode({"status": status})


def encode_trouble(
    before: Iterable[NodeLayersCondition], problem: str, moment: float, sequence: int, renews_within: float
) -> bytes:
    """
    Return a merge patch that reports that the runtime cannot be queried.

    Everything else stays as reported last, especially ``observedAt``, so that readers see the age of the report.
    """
    known = {condition.type: condition for condition in before}
    for name in ("Ready", "RuntimeReachable"):
        old = known.get(name)
        since = old.last_transition_time if old is not None and old.status == "False" else ""
        known[name] = NodeLayersCondition(
            name, "False", "RuntimeUnreachable", problem[:MESSAGE_LENGTH], since or written_time(moment)
        )
    status = {"sequence": sequence, "renewSeconds": round(renews_within), "conditions": list(known.values())}
    return _ENCODER.encode({"status": status})


def keep(images: Iterable[HeldImage]) -> list[HeldImage]:
    """Return the images that fit into a status, largest first, without names that only repeat the digest."""
    kept: list[HeldImage] = []
    weight = 0
    for image in sorted(images, key=lambda one: (-one.size, one.digest)):
        if not image.digest.startswith("sha256:"):
            continue
        image = msgspec.structs.replace(image, names=_useful_names(image))
        weight += IMAGE_WEIGHT + sum(NAME_WEIGHT + len(name.encode()) for name in image.names)
        if weight > IMAGES_WEIGHT or len(kept) == IMAGE_LIMIT:
            break
        kept.append(image)
    return kept


def written_time(moment: float) -> str:
    """Return a point in time as Kubernetes writes it, with a fraction only if there is one."""
    when = datetime.fromtimestamp(moment, UTC).replace(tzinfo=None)
    return f"{when.isoformat(timespec='microseconds' if when.microsecond else 'seconds')}Z"


def short(size: int) -> str:
    """Return a number of bytes in at most five characters: ``830Mi``, ``1.5Ti``."""
    shown, unit = float(size), 0
    # 999.5 would be rounded to 1000.
    while shown >= 999.5 and unit < len(_UNITS) - 1:
        shown, unit = shown / 1024, unit + 1
    digits = 1 if unit and shown < 9.95 else 0
    return f"{shown:.{digits}f}{_UNITS[unit]}"


def _useful_names(image: HeldImage) -> tuple[str, ...]:
    """Return the names without those that only repeat the digest and without invalid ones."""
    names = (
        name for name in dict.fromkeys(image.names) if 0 < len(name) <= NAME_LENGTH and _adds_to_digest(name, image)
    )
    return tuple(names)[:NAME_LIMIT]


def _adds_to_digest(name: str, image: HeldImage) -> bool:
    try:
        return parse_reference(name).digest != image.digest
    except ReferenceFormatError:
        return False


def _entry(image: HeldImage) -> Raw:
    entry: dict[str, object] = {"digest": image.digest, "size": image.size}
    if image.names:
        entry["names"] = image.names
    if image.lazy:
        entry["lazy"] = True
    return Raw(msgspec.json.encode(entry))


def _pull(pull: ActivePull) -> dict[str, object]:
    entry: dict[str, object] = {"name": pull.name[:NAME_LENGTH], "done": pull.done, "total": pull.total}
    return entry if pull.digest is None else {"digest": pull.digest, **entry}


def _platform(platform: Platform | None) -> dict[str, str] | None:
    if platform is None:
        return None
    parts = {"os": platform.os, "architecture": platform.architecture, "variant": platform.variant}
    return {name: part[:TEXT_LENGTH] for name, part in parts.items()}


def _conditions(
    report: LayerReport, dropped: int, trouble: str, before: dict[str, NodeLayersCondition]
) -> list[NodeLayersCondition]:
    held = len(report.images)
    truncated = (
        ("True", "TooManyImages", f"{dropped} of {held} images are left out, the smallest ones")
        if dropped
        else ("False", "Complete", f"{plural(held, 'image is', 'images are')} listed")
    )
    reached = ("False", "RuntimeUnreachable", trouble) if trouble else ("True", "Answering", "")
    ready = reached if trouble else ("True", "Truncated" if dropped else "Complete", truncated[2])
    current = {"Ready": ready, "RuntimeReachable": reached, "Truncated": truncated}
    now = written_time(report.observed_at)
    return [_since(NodeLayersCondition(name, *words), before.get(name), now) for name, words in current.items()]


def _since(condition: NodeLayersCondition, before: NodeLayersCondition | None, now: str) -> NodeLayersCondition:
    unchanged = before is not None and before.status == condition.status and before.last_transition_time
    return msgspec.structs.replace(
        condition,
        message=condition.message[:MESSAGE_LENGTH],
        last_transition_time=before.last_transition_time if before is not None and unchanged else now,
    )
