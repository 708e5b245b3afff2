"""
What the containers of a pod ask for, read from Kubernetes JSON.

There are few different sets of requests in a cluster and many pods, and adding a set up takes longer than reading the
rest of the pod. So the texts are compared, and what one pod was found to need holds for all that say the same.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from lamina.model import resources
from lamina.model.pod import Container, total_limits, total_requests
from lamina.model.resources import Amounts
from lamina.wire.repeats import remembered

Quantities = dict[str, str | int | float]


class Resources(msgspec.Struct, frozen=True, gc=False):
    """``resources`` of a container or of a pod."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Demand(NamedTuple):
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

_QUANTITIES: Final = msgspec.json.Decoder(Quantities | None)
_RESOURCES: Final = msgspec.json.Decoder(Resources | None)


def read_amounts(text: bytes) -> Amounts:
    """Read a resource list; null is none."""
    return resources.amounts(_QUANTITIES.decode(text) or {})


def demand_of(pod_level: Raw, overhead: Raw, containers: Iterable[Raw], init: Iterable[tuple[bytes, Raw]]) -> Demand:
    """
    Say what a pod asks for.

    *overhead* is a resource list, all others are ``resources`` as they stand in the pod; *init* also says of each init
    container whether it is an `INIT` or a `SIDECAR`. `ValueError` when one of them cannot be read.
    """
    parts: list[bytes] = [pod_level, overhead, *containers]
    for marked in init:
        parts.extend(marked)
    return _demand(SEPARATOR.join(parts))


def _work_out(text: bytes) -> Demand:
    pod_level, overhead, *parts = text.split(SEPARATOR)
    running: list[Container] = []
    init: list[Container] = []
    rest = iter(parts)
    for part in rest:
        if part in (INIT, SIDECAR):
            asked, most = _asked("initContainers[].resources", next(rest))
            init.append(Container("", asked, sidecar=part == SIDECAR, limits=most))
        else:
            asked, most = _asked("containers[].resources", part)
            running.append(Container("", asked, limits=most))
    whole, whole_most = _asked("resources", pod_level)
    extra = _overhead(overhead)
    requests, scoring_requests = total_requests(tuple(running), tuple(init), whole, extra)
    limited = whole_most or any(container.limits for container in (*running, *init))
    return Demand(
        tuple(container.requests for container in running),
        tuple(container.requests for container in init),
        requests,
        scoring_requests,
        total_limits(tuple(running), tuple(init), resources.at_least(whole, whole_most), extra) if limited else (),
        tuple(container.limits for container in running),
        tuple(container.limits for container in init),
    )


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


_demand = remembered("spec", _work_out)
