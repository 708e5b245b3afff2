"""The parts of what is known about nodes, each with a journal of the rows that changed (`lamina.rows.row_journal`)."""

import enum


class Facet(enum.IntEnum):
    """A part of what is known about nodes. Facts that plugins bring have numbers of their own beyond these (`facts`)."""

    RESOURCES = 0
    """Allocatable and free amounts."""
    TAINTS = 1
    """Taints and the unschedulable flag."""
    LABELS = 2
    """Labels and name."""
    IMAGES = 3
    """Images the kubelet lists in the node's status."""
    LAYERS = 4
    """Layers an agent reported."""
    PODS = 5
    """Which pods are on the node."""
    CATALOG = 6
    """What images consist of: known for all nodes or for none."""
    PULLS = 7
    """Images on their way to the node, and when they will be there."""
    REPULSION = 9
    """Pods on the node that keep others away."""
    USAGE = 10
    """What the node is really used for."""
    ANNOTATIONS = 11
    """Annotations."""
