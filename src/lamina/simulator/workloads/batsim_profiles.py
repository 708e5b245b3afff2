"""
Batsim's profiles: how long a job runs, whether it fails, and what its pods request.

    delay                                    seconds
    parallel, parallel_homogeneous(_total)   operations of the busiest host, divided by the speed of a host
    composed                                 its parts in order, repeated; ends with the first part that fails

The names of version 5 and the older ``msg_par`` names are read too. Communication is not simulated and takes no time.
Other profile types are rejected by name, because a wrong duration is worse than none.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Final, Protocol, TypeVar

import msgspec

from lamina.model import resources
from lamina.model.conversion import suggest
from lamina.model.duration import LONGEST
from lamina.model.errors import InputError, Mistake
from lamina.model.plain import shown
from lamina.model.resources import CPU, MEMORY, Amounts

T = TypeVar("T")

DEEPEST: Final = 50
"""Largest depth of nested profiles."""

KINDS: Final = {
    "delay": "delay",
    "DelayProfile": "delay",
    "parallel": "parallel",
    "msg_par": "parallel",
    "ParallelTaskProfile": "parallel",
    "parallel_homogeneous": "homogeneous",
    "msg_par_hg": "homogeneous",
    "ParallelTaskHomogeneousProfile": "homogeneous",
    "parallel_homogeneous_total": "total",
    "msg_par_hg_tot": "total",
    "composed": "composed",
    "SequentialCompositionProfile": "composed",
}
"""Names of profile types in all versions, and how their duration is calculated."""

BatsimAmount = Annotated[float, msgspec.Meta(ge=0)]


class BatsimProfile(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a profile that are used here; Batsim allows others."""

    type: str
    delay: BatsimAmount | None = None
    cpu: BatsimAmount | str | tuple[BatsimAmount, ...] | None = None
    """Operations; in a delay profile of batkube, the cores that a pod requests."""
    com: BatsimAmount | tuple[BatsimAmount, ...] | None = None
    memory: BatsimAmount | str | None = None
    seq: tuple[str, ...] | None = None
    repeat: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    nb: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    """Older name of `repeat`."""
    generation_strategy: str = ""
    ret: int = 0
    """The exit code."""


class ProfileRun(msgspec.Struct, frozen=True):
    """Duration and outcome of a profile."""

    seconds: float
    fails: bool = False
    talks: bool = False
    """Whether it has communication, which is not simulated."""


class ProfileText(Protocol):
    """The text that profiles are written in: a workload file, or a message."""

    def decode(self, kind: type[T], part: bytes | msgspec.Raw | None = None, start: int = 0, path: str = "") -> T:
        """Return a *part* that begins at *start* or later as a *kind*. Raises InputError located at *path*."""
        ...

    def mistake(self, message: str, part: bytes | msgspec.Raw, start: int = 0, path: str = "") -> Mistake:
        """Return a mistake located at a *part*."""
        ...


class BatsimProfiles:
    """Profiles of one workload."""

    def __init__(
        self, text: ProfileText, written: Mapping[str, msgspec.Raw], speed: float | None, start: int = 0
    ) -> None:
        """Keep the *written* profiles, which begin at *start* of the text; each is read when a job needs it."""
        self._file, self._written, self._speed, self._start = text, written, speed, start
        self._read: dict[str, BatsimProfile] = {}
        self._runs: dict[tuple[str, int], ProfileRun] = {}

    def get(self, name: str) -> BatsimProfile:
        """Return one profile."""
        if name not in self._read:
            self._read[name] = self._file.decode(BatsimProfile, self._written[name], self._start, f"profiles.{name}")
        return self._read[name]

    def run_of(self, name: str, res: int, above: tuple[str, ...] = ()) -> ProfileRun:
        """Return how a job with *res* resources runs; *above* are the profiles that contain it."""
        if (name, res) not in self._runs:
            self._runs[name, res] = self._work_out(name, res, above)
        return self._runs[name, res]

    def _work_out(self, name: str, res: int, above: tuple[str, ...]) -> ProfileRun:
        if name in above:
            raise self._wrong(above[-1], f"the profiles contain each other: {' → '.join((*above, name))}")
        if len(above) > DEEPEST:
            raise self._wrong(above[-1], f"profiles inside profiles; at most {DEEPEST} levels are read")
        profile = self.get(name)
        kind = KINDS.get(profile.type)
        if kind is None:
            message = f"profile type {shown(profile.type)} is not simulated; {_instead(profile.type)}"
            raise self._wrong(name, message)
        if kind == "composed":
            run = self._composed(name, profile, res, above)
        elif kind == "delay":
            if profile.delay is None:
                raise self._wrong(name, "a delay says how many seconds; add the field delay")
            run = ProfileRun(profile.delay)
        else:
            run = self._computing(name, profile, res, kind)
        if not run.seconds <= LONGEST:
            raise self._wrong(name, f"{run.seconds:g} seconds are too long; at most ten years are simulated")
        return msgspec.structs.replace(run, fails=run.fails or profile.ret != 0)

    def _composed(self, name: str, profile: BatsimProfile, res: int, above: tuple[str, ...]) -> ProfileRun:
        if not profile.seq:
            raise self._wrong(name, "has no parts; list profiles under seq")
        once, talks = 0.0, False
        for part in profile.seq:
            if part not in self._written:
                raise self._wrong(name, f"there is no profile {shown(part)}; {suggest(part, self._written)}")
            run = self.run_of(part, res, (*above, name))
            once, talks = once + run.seconds, talks or run.talks
            if run.fails:
                return ProfileRun(once, True, talks)
        return ProfileRun(once * (profile.repeat or profile.nb or 1), False, talks)

    def _computing(self, name: str, profile: BatsimProfile, res: int, kind: str) -> ProfileRun:
        # Version 5 allows a task that only communicates.
        work = 0.0 if profile.cpu is None and profile.com is not None and kind != "parallel" else profile.cpu
        if work is None and profile.com is not None:
            work = (0.0,) * res
        talks = bool(profile.com) and profile.com != (0.0,) * len(_listed(profile.com))
        if kind == "parallel":
            if not isinstance(work, tuple) or len(work) != res:
                raise self._wrong(name, f"cpu must list operations for each of the {res} resources of the job")
            most = max(work, default=0.0)
        elif isinstance(work, int | float):
            spread = kind == "total" or "spread" in profile.generation_strategy.lower()
            most = work / res if spread else float(work)
        else:
            raise self._wrong(name, "cpu must be a number of operations")
        if self._speed is None:
            raise self._wrong(name, "counts in operations; say speed, or name a platform, whose hosts have one")
        seconds = most / self._speed
        return ProfileRun(seconds if math.isfinite(seconds) else math.inf, talks=talks)

    def _wrong(self, name: str, message: str) -> InputError:
        return InputError([self._file.mistake(message, self._written[name], self._start, f"profiles.{name}")])


def _listed(value: float | tuple[float, ...] | None) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else ()


def _instead(kind: str) -> str:
    known = suggest(kind, KINDS)
    return known if known.startswith("did you mean") else "write a delay with the seconds it took"


class ResourceRequests(msgspec.Struct, frozen=True):
    """What one resource of a job requests; the profile decides what is unset here."""

    cpu: str | float | None = None
    memory: str | float | None = None

    def of(self, profile: BatsimProfile) -> Amounts:
        """Return the requests of a pod: the fields here, or of a batkube delay profile, or one cpu. Raises ValueError."""
        cpu, memory = self.cpu, self.memory
        if KINDS.get(profile.type) == "delay":
            if cpu is None and isinstance(profile.cpu, str | int | float):
                cpu = profile.cpu
            memory = profile.memory if memory is None else memory
        wanted: dict[str, str | float] = {CPU: 1 if cpu is None else cpu}
        if memory is not None:
            wanted[MEMORY] = memory
        asked = resources.amounts(wanted)
        if any(amount < 0 for _, amount in asked):
            raise ValueError("its profile asks for less than nothing; write cpu and memory of 0 or more")
        return asked
