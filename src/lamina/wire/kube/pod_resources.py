"""
Decoder of the resources of a pod's containers.

A cluster has few different sets of requests and many pods, and adding up a set takes longer than decoding the rest of
the pod. So the texts of all parts are joined to one cache key, and the result is shared by all pods with the same key.
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
    """Requests and limits of each container, and the pod's totals."""

    containers: tuple[Amounts, ...]
    init_containers: tuple[Amounts, ...]
    requests: Amounts
    scoring_requests: Amounts
    limits: Amounts
    container_limits: tuple[Amounts, ...]
    init_container_limits: tuple[Amounts, ...]


# Separator between the parts of a cache key; no JSON contains it.
SEPARATOR: Final = b"\0"
# Marks before an init container and before a sidecar; neither is valid JSON.
INIT: Final = b"init"
SIDECAR: Final = b"sidecar"
# Marks before a container's position and the resources in its status, and for a resize that the node cannot do; neither
# is valid JSON.
HELD: Final = b"held"
INFEASIBLE: Final = b"infeasible"
WHOLE: Final = -1
"""Position that stands for the whole pod."""

_QUANTITIES: Final = msgspec.json.Decoder(Quantities | None)
_RESOURCES: Final = msgspec.json.Decoder(Resources | None)


def read_amounts(text: bytes) -> Amounts:
    """Return a decoded resource list; null is empty."""
    return resources.amounts(_QUANTITIES.decode(text) or {})


def pod_resources_of(
    pod_level: Raw,
    overhead: Raw,
    containers: Iterable[Raw],
    init: Iterable[tuple[bytes, Raw]],
    held: Iterable[bytes] = (),
) -> PodResources:
    """
    Return the resources of a pod. Raises ValueError when a part cannot be decoded.

    *overhead* is a resource list, all others are ``resources`` as in the pod. *init* has a mark for each init
    container: `INIT` or `SIDECAR`. *held* are the resources in the pod's status that differ from its spec.
    """
    parts: list[bytes] = [pod_level, overhead, *containers]
    for marked in init:
        parts.extend(marked)
    parts.extend(held)
    return _demand(SEPARATOR.join(parts))


class ReportedResources(NamedTuple):
    """Resources of a container or of the whole pod, as reported in the pod's status."""

    running: tuple[Amounts, Amounts]
    """Requests and limits that are in force."""
    allocated: Amounts

    def effective(self, asked: Amounts, most: Amounts, *, infeasible: bool) -> tuple[Amounts, Amounts]:
        """Return the effective requests and limits for a spec with requests *asked* and limits *most*."""
        requests = resources.at_least(self.running[0], self.allocated)
        limits = self.running[1]
        return (
            (requests, limits)
            if infeasible
            else (resources.at_least(asked, requests), resources.at_least(most, limits))
        )


class ResourceKeyParts:
    """The decoded parts of a cache key."""

    def __init__(self, text: bytes) -> None:
        """Decode every part of *text*. Raises ValueError."""
        self.running: list[Container] = []
        self.init: list[Container] = []
        self.held: dict[int, ReportedResources] = {}
        """By position: containers, then init containers; -1 is the whole pod."""
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
        """Return the effective containers, init containers and resources of the whole pod."""
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
        """Return the effective resources of the whole pod, restricted to those in its spec."""
        asked, most = self.whole
        held = self.held.get(WHOLE)
        if held is None or not asked:
            return self.whole
        requests, limits = (dict(one) for one in held.effective(asked, most, infeasible=self.infeasible))
        return (
            tuple([(name, requests.get(name, 0)) for name, _ in asked]),
            tuple([(name, limits.get(name, 0)) for name, _ in most]),
        )


def _pod_resources(text: bytes) -> PodResources:
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
    """Return decoded requests and limits. Raises ValueError."""
    try:
        found = _RESOURCES.decode(text)
        return (resources.amounts(found.requests or {}), resources.amounts(found.limits or {})) if found else ((), ())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{field}: {error}") from error


def _overhead(text: bytes) -> Amounts:
    try:
        return read_amounts(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"overhead: {error}") from error


_demand = memoized("spec", _pod_resources)
