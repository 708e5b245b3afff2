"""
Masking of annotations in recordings, because they may contain secrets.

Annotations of pods may contain whole manifests (``kubectl.kubernetes.io/last-applied-configuration``, with the values
of environment variables) and tokens. A recording keeps the annotations that Lamina reads: its own (``lamina.dev/``),
those of promises of availability (`lamina.qos.promise_sources`), and on nodes those that are a number or a time. For all others it has the key and a hash of the text, so that a change
is visible but the text is not. The hashes depend on a random key that is never written.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Final

import msgspec

from lamina.model import events
from lamina.model.events import Event
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.qos.promise_sources import ANNOTATIONS
from lamina.scheduling.loop.binding_cycle import BindingCycleSnapshot
from lamina.scheduling.loop.extender_waits import ExtenderWaitSnapshot
from lamina.scheduling.loop.loop_snapshot import LoopSnapshot
from lamina.scheduling.loop.queue_snapshot import QueuedPodSnapshot
from lamina.scheduling.state.node_annotations import moment, number

OURS: Final = "lamina.dev/"
MASKED: Final = "masked:"
CODE_BYTES: Final = 8


class AnnotationMask:
    """Replaces annotation texts with hashes, with one random key."""

    def __init__(self, key: bytes) -> None:
        """Use *key*, of 16 bytes or more."""
        self._key = key

    def event(self, event: Event) -> Event:
        """Return an event with masked annotations."""
        match event:
            case events.PodSeen(pod) if pod.annotations:
                return events.PodSeen(self.pod(pod))
            case events.NodeSeen(node) if node.annotations:
                return events.NodeSeen(self.node(node))
            case events.NamespaceSeen() if event.annotations:
                return msgspec.structs.replace(event, annotations=self._texts(event.annotations))
        return event

    def snapshot(self, snapshot: LoopSnapshot) -> LoopSnapshot:
        """Return a snapshot with masked annotations."""
        replace = msgspec.structs.replace
        cluster = snapshot.cluster
        nodes = tuple(None if node is None else self.node(node) for node in cluster.columns.nodes)
        return replace(
            snapshot,
            cluster=replace(
                cluster,
                columns=replace(cluster.columns, nodes=nodes),
                placed=tuple((self.pod(pod), node, assumed) for pod, node, assumed in cluster.placed),
                namespaces={name: self._texts(texts) for name, texts in cluster.namespaces.items()},
                nominated=tuple(replace(one, pod=self.pod(one.pod)) for one in cluster.nominated),
            ),
            queue=replace(snapshot.queue, pods=tuple(map(self._queued, snapshot.queue.pods))),
            underway=tuple(map(self._underway, snapshot.underway)),
            waits=tuple(map(self._wait, snapshot.waits)),
        )

    def pod(self, pod: Pod) -> Pod:
        """Return a pod with masked annotations."""
        if not pod.annotations:
            return pod
        return msgspec.structs.replace(pod, annotations=self._texts(pod.annotations))

    def node(self, node: Node) -> Node:
        """Return a node with masked annotations."""
        if not node.annotations:
            return node
        return msgspec.structs.replace(node, annotations=self._texts(node.annotations, figures=True))

    def _queued(self, queued: QueuedPodSnapshot) -> QueuedPodSnapshot:
        return msgspec.structs.replace(queued, pod=self.pod(queued.pod)) if queued.pod.annotations else queued

    def _underway(self, one: BindingCycleSnapshot) -> BindingCycleSnapshot:
        latest = None if one.latest is None else self.pod(one.latest)
        return msgspec.structs.replace(one, queued=self._queued(one.queued), latest=latest)

    def _wait(self, one: ExtenderWaitSnapshot) -> ExtenderWaitSnapshot:
        latest = None if one.latest is None else self.pod(one.latest)
        return msgspec.structs.replace(one, queued=self._queued(one.queued), latest=latest)

    def _texts(self, annotations: Mapping[str, str], *, figures: bool = False) -> dict[str, str]:
        return {
            key: text
            if key.startswith(OURS) or key in ANNOTATIONS or (figures and _is_figure(text))
            else self._code(text)
            for key, text in annotations.items()
        }

    def _code(self, text: str) -> str:
        return MASKED + hashlib.blake2b(text.encode(), key=self._key, digest_size=CODE_BYTES).hexdigest()


def _is_figure(text: str) -> bool:
    return not math.isnan(number(text)) or not math.isnan(moment(text))
