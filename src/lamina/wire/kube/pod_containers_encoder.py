"""
Encoder of a pod's containers and resources.

Thousands of pods have the same containers, so each distinct set is encoded once and shared. The model keeps a pod's
totals and neither its overhead nor its pod-level resources. Totals that do not follow from the containers are written
as overhead, or as pod-level resources where no overhead gives them.
"""

from functools import lru_cache
from typing import Any, Final, NamedTuple

from lamina.model import resources
from lamina.model.pod import ANY_IP, Container, HostPort, Pod, total_limits, total_requests
from lamina.model.reference import DEFAULT_TAG, locality_name
from lamina.model.resources import Amounts
from lamina.wire.kube.encoded_values import ENTRIES, encode_amounts

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

_QOS_RESOURCES: Final = (resources.CPU, resources.MEMORY)

EncodedObject = dict[str, Any]


class EncodedContainers(NamedTuple):
    """The containers of a pod as JSON, and what follows from them; all pods with the same containers share it."""

    containers: list[EncodedObject]
    init_containers: list[EncodedObject]
    names: tuple[str, ...]
    """Names of the containers, without init containers."""
    requests: Amounts
    scoring_requests: Amounts
    limits: Amounts
    """Empty if no container has limits."""
    qos_class: str


@lru_cache(ENTRIES)
def encode_containers(containers: tuple[Container, ...], init: tuple[Container, ...]) -> EncodedContainers:
    """Return the containers of a pod; callers share the result and must not change it."""
    written = [_container(one, f"container-{number}") for number, one in enumerate(containers, 1)]
    requests, scoring_requests = total_requests(containers, init)
    return EncodedContainers(
        written,
        [_container(one, f"init-{number}") for number, one in enumerate(init, 1)],
        tuple([one["name"] for one in written]),
        requests,
        scoring_requests,
        total_limits(containers, init) if any(one.limits for one in (*containers, *init)) else (),
        _qos_class((*containers, *init)),
    )


def _container(container: Container, name: str) -> EncodedObject:
    """Return a container; *name* is for one that has none, because the API requires a name."""
    asked: EncodedObject = {}
    if container.limits:
        asked["limits"] = encode_amounts(container.limits)
    if container.requests:
        asked["requests"] = encode_amounts(container.requests)
    written: EncodedObject = {
        "name": container.name or name,
        "image": container.image,
        "resources": asked,
        "imagePullPolicy": pull_policy(container.image),
    }
    if container.sidecar:
        written["restartPolicy"] = "Always"
    return written


def pull_policy(image: str) -> str:
    """Return the pull policy that the API server sets for an image without one."""
    latest = "@" not in image and locality_name(image).endswith(f":{DEFAULT_TAG}")
    return "Always" if latest else "IfNotPresent"


def _qos_class(containers: tuple[Container, ...]) -> str:
    """Return the quality-of-service class, which follows from cpu and memory only; zero counts as missing."""
    pairs = [(_of_qos(container.requests), _of_qos(container.limits)) for container in containers]
    if not any(requests or limits for requests, limits in pairs):
        return BEST_EFFORT
    # A missing request is the limit.
    whole = all(len(limits) == len(_QOS_RESOURCES) and {**limits, **requests} == limits for requests, limits in pairs)
    return GUARANTEED if whole else BURSTABLE


def _of_qos(amounts: Amounts) -> dict[str, int]:
    return {name: amount for name, amount in amounts if amount and name in _QOS_RESOURCES}


def with_host_ports(containers: list[EncodedObject], ports: tuple[HostPort, ...]) -> list[EncodedObject]:
    """Return the containers with the pod's host ports at the first one; the model does not keep whose they are."""
    if not containers:
        return containers
    written = [_port(one) for one in ports]
    return [{**containers[0], "ports": written}, *containers[1:]]


def _port(port: HostPort) -> EncodedObject:
    written: EncodedObject = {"containerPort": port.port, "hostPort": port.port, "protocol": port.protocol}
    return written if port.ip == ANY_IP else {**written, "hostIP": port.ip}


def encode_other_resources(pod: Pod, encoded: EncodedContainers) -> EncodedObject:
    """
    Return ``overhead`` and ``resources`` of the spec of a pod with totals that its containers do not explain.

    Overhead raises requests and scoring requests alike; pod-level resources replace both. Totals that neither can give
    are lost.
    """
    scored = dict(pod.scoring_requests)
    listed, assumed = dict(encoded.requests), dict(encoded.scoring_requests)
    overhead: dict[str, int] = {}
    level: dict[str, int] = {}
    for name, amount in pod.requests:
        more = amount - listed.get(name, 0)
        if more >= 0 and scored.get(name, 0) - assumed.get(name, 0) == more:
            if more or name not in listed:
                overhead[name] = more
        elif _replaceable(name):
            level[name] = amount
    return _written(pod, tuple(sorted(level.items())), tuple(sorted(overhead.items())))


def _written(pod: Pod, level: Amounts, overhead: Amounts) -> EncodedObject:
    limits: dict[str, int] = {}
    if pod.limits:
        following = dict(total_limits(pod.containers, pod.init_containers, level, overhead))
        added = dict(overhead)
        limits = {
            name: amount - added.get(name, 0)
            for name, amount in pod.limits
            if _replaceable(name) and following.get(name) != amount
        }
    written: EncodedObject = {"overhead": encode_amounts(overhead)} if overhead else {}
    whole: EncodedObject = {"requests": encode_amounts(level)} if level else {}
    if limits:
        whole["limits"] = encode_amounts(tuple(sorted(limits.items())))
    return {**written, "resources": whole} if whole else written


def _replaceable(name: str) -> bool:
    """Return whether the API allows this resource for a whole pod."""
    return name in _QOS_RESOURCES or name.startswith(resources.HUGE_PAGES)
