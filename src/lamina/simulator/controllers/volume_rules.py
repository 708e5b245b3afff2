"""
Rules of volume controllers: when a claim is bound, when a volume is made for it, and which nodes reach that volume.

The simulated controller (`claim_controller`) and the façade's (`lamina.simulator.facade.volume_controller`) follow them.
No CSI driver runs: a volume is only an object, of any size.
"""

from collections.abc import Mapping
from typing import Literal

from lamina.model.selectors import IN, NodeSelector, NodeSelectorTerm, Requirement
from lamina.model.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass

ClaimStep = Literal["bind", "make", "wait"]
"""Bind the claim and a volume; make a volume, then bind both; or do nothing yet."""


def next_step(
    claim: PersistentVolumeClaim, volume: PersistentVolume | None, of_class: StorageClass | None
) -> ClaimStep:
    """
    Return what to do for a claim; *volume* is the one that it names, or else the one that is reserved for it.

    A volume is made for a claim with a selected node, and for a claim whose class does not wait. A claim of a class that
    does not wait gets no existing volume unless one names it.
    """
    if claim.deleting or claim.bound:
        return "wait"
    if volume is not None and is_free_for(volume, claim):
        return "bind"
    if claim.volume_name or of_class is None or not of_class.provisions:
        return "wait"
    return "wait" if of_class.waits and claim.selected_node is None else "make"


def is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume names no claim, or this one."""
    return not volume.deleting and (volume.claim is None or volume.claim.means(claim))


def reach(driver: str, reported: CSINode | None, labels: Mapping[str, str]) -> NodeSelector | None:
    """
    Return the nodes that reach a volume which a driver makes on a node with these labels; None: all nodes.

    They have the same labels under the topology keys that the driver reports for the node.
    """
    drivers = () if reported is None else reported.drivers
    keys = [key for one in drivers if one.driver == driver for key in one.topology_keys]
    terms = tuple(Requirement(key, IN, (labels[key],)) for key in keys if key in labels)
    return NodeSelector((NodeSelectorTerm(terms),)) if terms else None
