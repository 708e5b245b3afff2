"""
How long the jobs of a Batsim profile run, and whether they fail.

    delay                                seconds
    parallel, parallel_homogeneous(_total)   operations of the busiest host, divided by the speed of a host
    composed                             its parts one after the other, repeated; ends with the first part that fails

The names of version 5 and the older ``msg_par`` ones are read as well. Communication is not simulated and takes no time.
Other kinds are refused by name: a wrong time is worse than none.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Final

import msgspec

from lamina.model.conversion import suggest
from lamina.model.errors import InputError
from lamina.model.plain import shown
from lamina.simulator.workloads.imports.json_file import JsonFile
from lamina.simulator.workloads.units import LONGEST

DEEPEST: Final = 50
"""Levels of profiles inside profiles."""

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
"""What each name of a type stands for."""

BatsimAmount = Annotated[float, msgspec.Meta(ge=0)]


class BatsimProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One profile, as far as it matters; other fields are the users' own."""

    type: str
    delay: BatsimAmount | None = None
    cpu: BatsimAmount | str | tuple[BatsimAmount, ...] | None = None
    """Operations; beside a delay, what batkube has there: the cores a pod asks for."""
    com: BatsimAmount | tuple[BatsimAmount, ...] | None = None
    memory: BatsimAmount | str | None = None
    seq: tuple[str, ...] | None = None
    repeat: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    nb: Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)] | None = None
    """What `repeat` was once called."""
    generation_strategy: str = ""
    ret: int = 0
    """The exit code."""


class ProfileRun(msgspec.Struct, frozen=True):
    """How a run of a profile goes."""

    seconds: float
    fails: bool = False
    talks: bool = False
    """Whether it has communication, which takes no time here."""


class BatsimProfiles:
    """The profiles of one workload."""

    def __init__(self, file: JsonFile, written: Mapping[str, msgspec.Raw], speed: float | None) -> None:
        """Keep what is *written*; it is looked at when a job needs it."""
        self._file, self._written, self._speed = file, written, speed
        self._start = max(file.data.find(b'"profiles"'), 0)
        self._read: dict[str, BatsimProfile] = {}
        self._courses: dict[tuple[str, int], ProfileRun] = {}

    def get(self, name: str) -> BatsimProfile:
        """Read one profile."""
        if name not in self._read:
            self._read[name] = self._file.decode(BatsimProfile, self._written[name], self._start, f"profiles.{name}")
        return self._read[name]

    def course(self, name: str, res: int, above: tuple[str, ...] = ()) -> ProfileRun:
        """Say how a job with *res* resources runs; *above* are the profiles it is part of."""
        if (name, res) not in self._courses:
            self._courses[name, res] = self._work_out(name, res, above)
        return self._courses[name, res]

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
            course = self._composed(name, profile, res, above)
        elif kind == "delay":
            if profile.delay is None:
                raise self._wrong(name, "a delay says how many seconds; add the field delay")
            course = ProfileRun(profile.delay)
        else:
            course = self._computing(name, profile, res, kind)
        if not course.seconds <= LONGEST:
            raise self._wrong(name, f"{course.seconds:g} seconds are too long; at most ten years are simulated")
        return msgspec.structs.replace(course, fails=course.fails or profile.ret != 0)

    def _composed(self, name: str, profile: BatsimProfile, res: int, above: tuple[str, ...]) -> ProfileRun:
        if not profile.seq:
            raise self._wrong(name, "has no parts; list profiles under seq")
        once, talks = 0.0, False
        for part in profile.seq:
            if part not in self._written:
                raise self._wrong(name, f"there is no profile {shown(part)}; {suggest(part, self._written)}")
            course = self.course(part, res, (*above, name))
            once, talks = once + course.seconds, talks or course.talks
            if course.fails:
                return ProfileRun(once, True, talks)
        return ProfileRun(once * (profile.repeat or profile.nb or 1), False, talks)

    def _computing(self, name: str, profile: BatsimProfile, res: int, kind: str) -> ProfileRun:
        work, talks = profile.cpu, bool(profile.com) and profile.com != (0.0,) * len(_listed(profile.com))
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
