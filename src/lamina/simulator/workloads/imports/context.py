"""What a reader is given besides its entry, and what it gives back."""

from typing import Protocol

import msgspec

from lamina.model.errors import Mistake
from lamina.model.image import Image
from lamina.simulator.cluster import NodeSpec
from lamina.simulator.controllers.spec import ControllerSpec
from lamina.simulator.workloads.scenario import Arrival

MOST_PODS = 1_000_000
"""Pods that one import may bring."""


class Says(Protocol):
    """Where an entry stands, for whoever has to be told what is wrong with it; an `Entry` of a scenario is one."""

    def mistake(self, message: str, *steps: str | int) -> Mistake:
        """Say what is wrong with the entry, or with what is *steps* inside it."""


class ImportContext(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario around an import."""

    entry: Says
    seed: int = 0
    images: tuple[Image, ...] = ()
    """What can be pulled, in the order of the catalogue."""
    nodes: tuple[NodeSpec, ...] = ()
    """Nodes the scenario has without this import; a pod that fits on none of all nodes is a mistake."""
    like: NodeSpec = NodeSpec(name="", allocatable=(), bandwidth=125_000_000.0)
    """What imported nodes are like where their file does not say: bandwidth, runtime, disk, uplink."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import brings into a scenario."""

    nodes: tuple[NodeSpec, ...] = ()
    arrivals: tuple[Arrival, ...] = ()
    """In the order they come."""
    controllers: tuple[ControllerSpec, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out or taken differently than the file says, for people."""
