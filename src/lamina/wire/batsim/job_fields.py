"""Jobs and profiles inside messages; all their other fields belong to the user and are passed on unread."""

from typing import Annotated, Final

import msgspec

SEPARATOR: Final = "!"
"""Between workload and job in the identifier of a job."""
NO_WALLTIME: Final = -1.0

V4_TYPES: Final = {
    "DelayProfile": "delay",
    "ParallelTaskProfile": "parallel",
    "ParallelTaskHomogeneousProfile": "parallel_homogeneous",
    "SequentialCompositionProfile": "composed",
    "msg_par": "parallel",
    "msg_par_hg": "parallel_homogeneous",
    "msg_par_hg_tot": "parallel_homogeneous_total",
}
"""Names of profile types in other versions of Batsim, and their names in version 4."""
SPREADS: Final = "DefinedAmountsSpreadUniformly"
"""Strategy of version 5 that version 4 has as a profile type of its own."""


class JobFields(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a job that Batsim defines."""

    id: str
    profile: str
    res: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    subtime: float | None = None
    walltime: float | None = None
    """Seconds; -1 or absent: no limit."""


class RenamedProfile(msgspec.Struct, frozen=True):
    """The fields of a profile that have other names in other versions."""

    type: str = ""
    generation_strategy: str = ""


def job_name(identifier: str) -> str:
    """Return a job's name without its workload."""
    return identifier.rpartition(SEPARATOR)[2]


def workload_name(identifier: str) -> str:
    """Return the workload of a job; empty if the identifier names none."""
    return identifier.rpartition(SEPARATOR)[0]


def v4_profile(profile: msgspec.Raw) -> msgspec.Raw:
    """Return a profile on one line, with the type name of version 4; all other fields stay."""
    known = msgspec.json.decode(profile, type=RenamedProfile)
    kind = V4_TYPES.get(known.type)
    if kind is None:
        return msgspec.Raw(msgspec.json.format(bytes(profile), indent=-1))
    if kind == "parallel_homogeneous" and known.generation_strategy == SPREADS:
        kind = "parallel_homogeneous_total"
    return msgspec.Raw(msgspec.json.encode({**msgspec.json.decode(profile), "type": kind}))
