"""
What the containers of a pod ask for, read from Kubernetes JSON.

There are few different sets of requests in a cluster and many pods, and adding a set up takes longer than reading the
rest of the pod. So the texts are compared, and what one pod was found to need holds for all that say the same.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from lamina.model import resources
from lamina.model.pod import Container, total_limits, total_requests
from lamina.model.resources import Amounts
from lamina.wire.decode_cache import memoized

Quantities = dict[str, str | int | float]


class Resources(msgspec.Struct, frozen=True, gc=False):
    """``resources`` of a container or of a pod."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class PodResources(NamedTuple):
    """What each container asks for, and what all of them together need."""

    containers: tuple[Amounts, ...]
    init_containers: tuple[Amounts, ...]
    requests: Amounts
    scoring_requests: Amounts
    limits: Amounts
    container_limits: tuple[Amounts, ...]
    init_container_limits: tuple[Amounts, ...]


# What stands between the parts of a text that is looked up; no JSON contains it.
SEPARATOR: Final = b"\0"
# What stands before an init container, and before one that keeps running; neither is JSON.
INIT: Final = b"init"
SIDECAR: Final = b"sidecar"
# What stands before a place among the containers and what its node says of it, and for a resize that the node cannot do;
# neither is JSON.
HELD: Final = b"held"
INFEASIBLE: Final = b"infeasible"
WHOLE: Final = -1
"""The place of the pod as a whole."""

_QUANTITIES: Final = msgspec.json.Decoder(Quantities | None)
_RESOURCES: Final = msgspec.json.Decoder(Resources | None)


def read_amounts(text: bytes) -> Amounts:
    """Read a resource list; null is none."""
    return resources.amounts(_QUANTITIES.decode(text) or {})


def pod_resources_of(
    pod_level: Raw,
    overhead: Raw,
    containers: Iterable[Raw],
    init: Iterable[tuple[bytes, Raw]],
    held: Iterable[bytes] = (),
) -> PodResources:
    """
    Say what a pod asks for.

    *overhead* is a resource list, all others are ``resources`` as they stand in the pod; *init* also says of each init
    container whether it is an `INIT` or a `SIDECAR`. *held* is what the node says, where that is not what the pod asks for
    (`held_parts`). `ValueError` when one of them cannot be read.
    """
    parts: list[bytes] = [pod_level, overhead, *containers]
    for marked in init:
        parts.extend(marked)
    parts.extend(held)
    return _demand(SEPARATOR.join(parts))


class ReportedResources(NamedTuple):
    """What a node says that a container, or a pod as a whole, has."""

    running: tuple[Amounts, Amounts]
    """Requests and limits that are in force."""
    allocated: Amounts

    def effective(self, asked: Amounts, most: Amounts, *, infeasible: bool) -> tuple[Amounts, Amounts]:
        """Return the requests and limits that count for one that asks for *asked*, and *most* at most."""
        requests = resources.at_least(self.running[0], self.allocated)
        limits = self.running[1]
        return (
            (requests, limits)
            if infeasible
            else (resources.at_least(asked, requests), resources.at_least(most, limits))
        )


class ResourceKeyParts:
    """A text that is looked up, taken apart."""

    def __init__(self, text: bytes) -> None:
        """Read every part of *text*."""
        self.running: list[Container] = []
        self.init: list[Container] = []
        self.held: dict[int, ReportedResources] = {}
        """By place among the containers, init containers after all others; -1 is the pod as a whole."""
        self.infeasible = False
        pod_level, overhead, *parts = text.split(SEPARATOR)
        self.whole = _asked("resources", pod_level)
        self.overhead = _overhead(overhead)
        rest = iter(parts)
        for part in rest:
            if part == INFEASIBLE:
                self.infeasible = True
            elif part == HELD:
                place = int(next(rest))
                self.held[place] = _held("status" if place == WHOLE else "containerStatuses[]", rest)
            elif part in (INIT, SIDECAR):
                asked, most = _asked("initContainers[].resources", next(rest))
                self.init.append(Container("", asked, sidecar=part == SIDECAR, limits=most))
            else:
                asked, most = _asked("containers[].resources", part)
                self.running.append(Container("", asked, limits=most))

    def effective(self) -> tuple[tuple[Container, ...], tuple[Container, ...], tuple[Amounts, Amounts]]:
        """Return containers, init containers and amounts of the pod as a whole, as they count."""
        if not self.held:
            return tuple(self.running), tuple(self.init), self.whole
        places = [*self.running, *self.init]
        for place, held in self.held.items():
            if place == WHOLE:
                continue
            one = places[place]
            requests, limits = held.effective(one.requests, one.limits, infeasible=self.infeasible)
            places[place] = Container("", requests, sidecar=one.sidecar, limits=limits)
        count = len(self.running)
        return tuple(places[:count]), tuple(places[count:]), self._whole()

    def _whole(self) -> tuple[Amounts, Amounts]:
        """Return what counts for the pod as a whole: only resources that it asks for as a whole."""
        asked, most = self.whole
        held = self.held.get(WHOLE)
        if held is None or not asked:
            return self.whole
        requests, limits = (dict(one) for one in held.effective(asked, most, infeasible=self.infeasible))
        return (
            tuple([(name, requests.get(name, 0)) for name, _ in asked]),
            tuple([(name, limits.get(name, 0)) for name, _ in most]),
        )


def _work_out(text: bytes) -> PodResources:
    parts = ResourceKeyParts(text)
    running, init, (whole, whole_most) = parts.effective()
    requests, scoring_requests = total_requests(running, init, whole, parts.overhead)
    limited = whole_most or any(container.limits for container in (*running, *init))
    return PodResources(
        tuple(container.requests for container in parts.running),
        tuple(container.requests for container in parts.init),
        requests,
        scoring_requests,
        total_limits(running, init, resources.at_least(whole, whole_most), parts.overhead) if limited else (),
        tuple(container.limits for container in parts.running),
        tuple(container.limits for container in parts.init),
    )


def _held(field: str, rest: Iterator[bytes]) -> ReportedResources:
    running = _asked(f"{field}.resources", next(rest))
    try:
        return ReportedResources(running, read_amounts(next(rest)))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{field}.allocatedResources: {error}") from error


def _asked(field: str, text: bytes) -> tuple[Amounts, Amounts]:
    """Read what is asked for and what may be used at most."""
    try:
        said = _RESOURCES.decode(text)
        return (resources.amounts(said.requests or {}), resources.amounts(said.limits or {})) if said else ((), ())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{field}: {error}") from error


def _overhead(text: bytes) -> Amounts:
    try:
        return read_amounts(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"overhead: {error}") from error


_demand = memoized("spec", _work_out)
