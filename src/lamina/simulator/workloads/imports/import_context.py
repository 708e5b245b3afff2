"""What a reader is given besides its entry, and what it gives back."""

from typing import Protocol

import msgspec

from lamina.model.errors import Mistake
from lamina.model.image import Image
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.workloads.scenario import PodArrival

MOST_PODS = 1_000_000
"""Pods that one import may bring."""


class MistakeLocation(Protocol):
    """Where an entry stands, for whoever has to be told what is wrong with it; an `Entry` of a scenario is one."""

    def mistake(self, message: str, *steps: str | int) -> Mistake:
        """Say what is wrong with the entry, or with what is *steps* inside it."""


class ImportContext(msgspec.Struct, frozen=True, kw_only=True):
    """The scenario around an import."""

    entry: MistakeLocation
    seed: int = 0
    images: tuple[Image, ...] = ()
    """What can be pulled, in the order of the catalog."""
    nodes: tuple[VirtualNodeSpec, ...] = ()
    """Nodes the scenario has without this import; a pod that fits on none of all nodes is a mistake."""
    like: VirtualNodeSpec = VirtualNodeSpec(name="", allocatable=(), bandwidth=125_000_000.0)
    """What imported nodes are like where their file does not say: bandwidth, runtime, disk, uplink."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import brings into a scenario."""

    nodes: tuple[VirtualNodeSpec, ...] = ()
    arrivals: tuple[PodArrival, ...] = ()
    """In the order they come."""
    controllers: tuple[ControllerSpec, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out or taken differently than the file says, for people."""
