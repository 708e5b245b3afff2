"""
What may make a waiting pod schedulable.

A plugin that refused a pod names the kinds of change that could alter its answer (`retry_on`); the queue tries the pod
again when one of them happens, and not before (or after a long time, in case something was missed).
"""

import enum

import msgspec

from lamina.model.node import Node
from lamina.model.pod import Pod


class ChangeKind(enum.Enum):
    """A kind of change in the cluster."""

    NODE_ADDED = "NodeAdd"
    NODE_REMOVED = "NodeDelete"
    NODE_ALLOCATABLE = "NodeAllocatableChange"
    NODE_TAINTS = "NodeTaintChange"
    NODE_LABELS = "NodeLabelChange"
    POD_PLACED = "AssignedPodAdd"
    POD_REMOVED = "AssignedPodDelete"
    POD_UPDATED = "PodUpdate"
    """The waiting pod itself was changed."""
    LAYERS = "LayersReported"
    NODE_ANNOTATIONS = "NodeAnnotationChange"
    USAGE = "UsageReported"
    """What nodes are really used for was measured again."""


class ClusterChange(msgspec.Struct, frozen=True):
    """One change: where, and which pod was placed or removed."""

    kind: ChangeKind
    row: int = -1
    """The node's row, or -1 when the change concerns no node."""
    before: Node | None = None
    """How the node was before; of a node that left, the node."""
    pod: Pod | None = None


ANY_CHANGE = frozenset(ChangeKind)
