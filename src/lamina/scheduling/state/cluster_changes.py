"""
Changes in the cluster that can make a refused pod schedulable.

A plugin declares in `retry_on` which kinds of change can lift its refusals. The queue retries a refused pod when one of
them happens, or after five minutes in case an event was missed.
"""

import enum

import msgspec

from lamina.model.cluster_objects import ClusterObject
from lamina.model.node import Node
from lamina.model.pod import Pod


class ChangeKind(enum.Enum):
    """Kind of change in the cluster."""

    NODE_ADDED = "NodeAdd"
    NODE_REMOVED = "NodeDelete"
    NODE_ALLOCATABLE = "NodeAllocatableChange"
    NODE_TAINTS = "NodeTaintChange"
    NODE_LABELS = "NodeLabelChange"
    POD_PLACED = "AssignedPodAdd"
    POD_REMOVED = "AssignedPodDelete"
    POD_UPDATED = "PodUpdate"
    """The waiting pod itself changed."""
    LAYERS = "LayersReported"
    NODE_FEATURES = "NodeDeclaredFeatureChange"
    NODE_ANNOTATIONS = "NodeAnnotationChange"
    USAGE = "UsageReported"
    """New usage measurements of nodes arrived."""
    NAMESPACE_LABELS = "NamespaceLabelChange"
    """A namespace has other labels, so that affinity terms can mean other pods."""
    CLAIM = "PersistentVolumeClaimChange"
    VOLUME = "PersistentVolumeChange"
    STORAGE_CLASS = "StorageClassChange"
    CSI_NODE = "CSINodeChange"
    CSI_DRIVER = "CSIDriverChange"
    STORAGE_CAPACITY = "CSIStorageCapacityChange"
    ATTACHMENT = "VolumeAttachmentChange"
    POD_GROUP = "PodGroupChange"
    """A gang's PodGroup or Workload was added, changed or deleted."""
    QUEUE = "QueueChange"


class ClusterChange(msgspec.Struct, frozen=True):
    """One change, with its node and with the pod that was placed or removed."""

    kind: ChangeKind
    row: int = -1
    """The node's row, or -1 if the change concerns no node."""
    before: Node | None = None
    """The node before the change; the removed node for NODE_REMOVED."""
    pod: Pod | None = None
    found: ClusterObject | None = None
    """The object that changed, in its new state, or in its last state if it was deleted."""


ANY_CHANGE = frozenset(ChangeKind)
