"""A scenario, ready to run: every name resolved, every time in seconds, every pod with its arrival."""

from typing import Literal

import msgspec

from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.pod import Pod
from lamina.simulator.cluster import Delays, NodeSpec

Kind = Literal["remove", "drop", "cordon"]


class Arrival(msgspec.Struct, frozen=True):
    """A pod that comes at a time."""

    at: float
    pod: Pod
    """Its ``scheduler_name`` is empty when any profile will do."""
    duration: float | None = None
    """How long it runs; None: until it is removed or the run ends."""


class Happening(msgspec.Struct, frozen=True):
    """Something that is done to the cluster from outside: *remove* a pod, *drop* or *cordon* a node."""

    at: float
    kind: Kind
    name: str


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What a run is made from, apart from the scheduler."""

    name: str
    about: str = ""
    images: tuple[Image, ...] = ()
    layer_names: dict[Digest, str] = {}
    """What the scenario calls its layers, for whoever shows them to people."""
    nodes: tuple[NodeSpec, ...] = ()
    arrivals: tuple[Arrival, ...] = ()
    """In the order they come."""
    happenings: tuple[Happening, ...] = ()
    """In the order they come."""
    delays: Delays = Delays()
    profile: str = ""
    """The profile it asks for; traces and summaries of a run are labelled with it."""
    until: float | None = None
    """When the run ends at the latest."""

    def under(self, profile: str) -> "Scenario":
        """Return the same scenario for a run under another profile."""
        return msgspec.structs.replace(self, profile=profile)
