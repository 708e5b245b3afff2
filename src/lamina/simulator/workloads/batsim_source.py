"""
What an imported Batsim workload says beyond pods and nodes, for runs with a decision process of Batsim's.

A decision process sees jobs and profiles as they are written, with the fields that their authors added. It can also
register jobs of its own, which get images and requests by the rules of the import.
"""

import msgspec

from lamina.simulator.workloads.batsim_profiles import ResourceRequests


class BatsimNotice(msgspec.Struct, frozen=True):
    """An external event that only the decision process understands."""

    at: float
    data: msgspec.Raw


class HostAvailability(msgspec.Struct, frozen=True):
    """Hosts that become available or unavailable, by their numbers in the run."""

    at: float
    hosts: tuple[int, ...]
    available: bool
    line: int = 0


class BatsimSource(msgspec.Struct, frozen=True, kw_only=True):
    """One imported workload."""

    name: str
    file: str
    jobs: dict[str, msgspec.Raw] = {}
    """Jobs as written, by identifier."""
    profiles: dict[str, msgspec.Raw] = {}
    """Profiles as written, by name."""
    images: dict[str, str] = {}
    """The image of each profile that a job uses."""
    requests: ResourceRequests = ResourceRequests()
    speed: float | None = None
    """Operations per second of a host."""
    notices: tuple[BatsimNotice, ...] = ()
    """In order of time."""
    last_event: float | None = None
    """Time of the last external event; None: there is no file of events."""
