"""Facets of node state, each with a journal of changed rows (`lamina.rows.row_journal`)."""

import enum


class Facet(enum.IntEnum):
    """A part of the state of nodes. Facts that plugins register get facet numbers above these (`node_facts`)."""

    RESOURCES = 0
    """Allocatable and free amounts."""
    TAINTS = 1
    """Taints and the unschedulable flag."""
    LABELS = 2
    """Labels and name."""
    IMAGES = 3
    """Images the kubelet lists in the node's status."""
    LAYERS = 4
    """Layers that the node agent reported."""
    PODS = 5
    """The pods on the node."""
    CATALOG = 6
    """Layers of images; a change concerns all nodes."""
    PULLS = 7
    """Images that the node is pulling, and when they will be complete."""
    POD_AFFINITY = 9
    """Affinity terms of pods on the node, and pods on the node that such terms of other pods match."""
    USAGE = 10
    """Measured usage of the node."""
    ANNOTATIONS = 11
    """Annotations."""
    VOLUMES = 12
    """Claims, volumes, storage classes and what CSI drivers report; a change concerns all nodes."""
