"""
Estimated memory of events: the event ring is bounded in bytes with it.

Texts count with their length, because annotations have up to 256 KiB and one pod can change every second. Fields that
most pods use little (labels, containers, placement rules) are traversed; everything else is a fixed number.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from lamina.model import events
from lamina.model.events import Event
from lamina.model.layer_report import LayerReport
from lamina.model.node import Node
from lamina.model.pod import Pod

PLAIN_BYTES: Final = 300
POD_BYTES: Final = 1000
"""Bytes of a pod or node without the fields that are counted separately."""
IMAGE_BYTES: Final = 150
TEXT_BYTES: Final = 50
"""Bytes of a text or small object, without its characters."""


def size_of(event: Event) -> int:  # noqa: PLR0911 - one return for each kind of event
    """Return the estimated bytes of an event."""
    match event:
        case events.PodSeen(pod):
            return _pod(pod)
        case events.NodeSeen(node):
            return _node(node)
        case events.NamespaceSeen(name, annotations, labels):
            return PLAIN_BYTES + len(name) + _texts(annotations) + _texts(labels)
        case events.ObjectSeen(found):
            return PLAIN_BYTES + _deep(found)
        case events.LayersReported(report):
            return _report(report)
        case events.ImagesLearned(images):
            layers = sum(len(image.layers) for image in images)
            return PLAIN_BYTES + IMAGE_BYTES * (len(images) + layers) + sum(_names(image.names) for image in images)
        case events.PluginHistoryLoaded(plugin, history):
            return PLAIN_BYTES + len(plugin) + len(history)
        case events.UsageReported(usages):
            return PLAIN_BYTES * (1 + len(usages))
        case events.ExtendersAnswered(answer=answer):
            named = sum(_names(one.nodes) + _names(one.reasons) for one in answer.refusals)
            scored = sum(TEXT_BYTES * len(one.scores) + _names(one.scores) for one in answer.scores)
            allowed = sum(TEXT_BYTES * len(one.uids) + _names(one.uids) + len(one.node) for one in answer.victims)
            return PLAIN_BYTES + named + scored + allowed + len(answer.error)
        case (
            events.BindFailed(reason=reason)
            | events.EvictFailed(reason=reason)
            | events.WorkFailed(reason=reason)
            | events.PermitRefused(reason=reason)
        ):
            return PLAIN_BYTES + len(reason)
    return PLAIN_BYTES


def _pod(pod: Pod) -> int:
    size = POD_BYTES + _texts(pod.labels) + _texts(pod.annotations)
    for container in pod.containers:
        size += PLAIN_BYTES + len(container.image) + TEXT_BYTES * (len(container.requests) + len(container.limits))
    for part in (
        pod.init_containers,
        pod.image_volumes,
        pod.volumes,
        pod.node_selector,
        pod.required_nodes,
        pod.preferred_nodes,
        pod.required_pods,
        pod.repels,
        pod.preferred_pods,
        pod.avoided_pods,
        pod.host_ports,
        pod.tolerations,
        pod.spread,
        pod.gates,
        pod.pull_secrets,
        pod.unmet,
        pod.ignored,
    ):
        if part:
            size += _deep(part)
    return size


def _node(node: Node) -> int:
    size = POD_BYTES + _texts(node.labels) + _texts(node.annotations)
    size += _deep(node.taints) + _names(node.addresses + node.declared_features) + TEXT_BYTES * len(node.allocatable)
    return size + sum(IMAGE_BYTES + _names(image.names) for image in node.images)


def _report(report: LayerReport) -> int:
    size = PLAIN_BYTES + sum(IMAGE_BYTES + _names(image.names) for image in report.images)
    return size + sum(IMAGE_BYTES + len(pull.name) for pull in report.pulling)


def _texts(texts: dict[str, str]) -> int:
    return 2 * TEXT_BYTES * len(texts) + sum(map(len, texts)) + sum(map(len, texts.values()))


def _names(names: Iterable[str]) -> int:
    return sum(map(len, names))


def _deep(part: object) -> int:
    """Return the estimated bytes of nested tuples and structs, as in selectors."""
    if isinstance(part, str):
        return TEXT_BYTES + len(part)
    if isinstance(part, tuple):
        return TEXT_BYTES + sum(map(_deep, part))
    if isinstance(part, dict):
        return _texts(part)
    if isinstance(part, msgspec.Struct):
        return TEXT_BYTES + sum(_deep(getattr(part, name)) for name in part.__struct_fields__)
    return 0
