"""The shape of what a scenario file says about pulls: runtimes, disks and the registry."""

from typing import Annotated, Final, Literal

import msgspec

from lamina.simulator.workloads.field_types import Duration, Fraction, Period, Rate, Size

MOST_AT_ONCE: Final = 10_000

ParallelCount = Annotated[int, msgspec.Meta(ge=0, le=MOST_AT_ONCE)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=MOST_AT_ONCE)]


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What all parts have in common."""


class ScenarioRuntimeEntry(_Part, frozen=True, kw_only=True):
    """How images get onto a node: a preset, and what is different. The fields are those of `RuntimeSpec`."""

    preset: str = "containerd"
    parallel_pulls: ParallelCount | None = None
    pull_qps: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    pull_burst: AtLeastOne | None = None
    slots: ParallelCount | None = None
    slots_per: Literal["image", "node"] | None = None
    connection_rate: Rate | None = None
    resolve: Duration | None = None
    unpack_rate: Rate | None = None
    unpack_threads: AtLeastOne | None = None
    disk_rate: Rate | None = None
    write_cache: Size | None = None
    layer_overhead: Duration | None = None
    ratio: Annotated[float, msgspec.Meta(gt=0, le=1000)] | None = None
    reuse: Literal["prefix", "set"] | None = None
    lazy: Fraction | None = None
    peers: bool | None = None


class DiskEntry(_Part, frozen=True, kw_only=True):
    """A file system for images, and when it is cleared. The fields are those of `DiskSpec`."""

    size: Size | None = None
    """Unset: that of the defaults."""
    high: Fraction | None = None
    low: Fraction | None = None
    every: Period | None = None
    min_age: Duration | None = None
    evict_below: Annotated[float, msgspec.Meta(ge=0, lt=1)] | None = None
    evict_every: Period | None = None
    accounting: Literal["reported", "real"] | None = None


class RegistryEntry(_Part, frozen=True, kw_only=True):
    """What all nodes pull from together."""

    rate: Rate
