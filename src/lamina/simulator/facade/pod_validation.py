"""
Validation of a pod's spec: what users and schedulers rely on, in the words of the API server.

The spec has its defaults already and the shape `object_shapes.POD_SPEC`. Parts that no scheduler reads, such as
security contexts and volume sources, are not validated.
"""

from collections.abc import Iterator
from typing import Final

from lamina.simulator.facade.canonical_quantities import exact_quantity
from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.name_rules import dns_label_problems, dns_subdomain_problems
from lamina.simulator.facade.object_fields import mappings
from lamina.simulator.facade.pod_placement_validation import validate_placement

LARGEST_PORT: Final = 65535
LARGEST_SECONDS: Final = 2**31 - 1

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_STANDARD_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})


def validate_pod_spec(spec: KubeObject, path: str, problems: FieldProblems) -> None:
    """Report what the API server would refuse in a spec; *path* is where it stands, such as ``spec.template.spec``."""
    volumes = {text(volume, "name") for volume in mappings(spec, "volumes")}
    if not mappings(spec, "containers"):
        problems.required(f"{path}.containers")
    seen: set[str] = set()
    ports: set[str] = set()
    for container, field in _containers(spec, path):
        _validate_container(container, field, volumes, problems)
        name = text(container, "name")
        if name and name in seen:
            problems.duplicate(f"{field}.name", name)
        seen.add(name)
        _validate_ports(container, field, ports, problems)
    problems.check_supported(f"{path}.restartPolicy", text(spec, "restartPolicy"), _RESTART_POLICIES)
    problems.check_supported(f"{path}.dnsPolicy", text(spec, "dnsPolicy"), _DNS_POLICIES)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= LARGEST_SECONDS:
        words = f"must be between 1 and {LARGEST_SECONDS}, inclusive"
        problems.invalid(f"{path}.activeDeadlineSeconds", deadline, words)
    if text(spec, "nodeName"):
        for problem in dns_subdomain_problems(spec["nodeName"]):
            problems.invalid(f"{path}.nodeName", spec["nodeName"], problem)
    # The real server names the list "limits" here too.
    validate_amounts(part(spec, "overhead"), f"{path}.overhead.limits", problems)
    if "resources" in spec:
        _validate_resources(spec["resources"], f"{path}.resources", problems)
    validate_placement(spec, path, problems)


def _containers(spec: KubeObject, path: str) -> Iterator[tuple[KubeObject, str]]:
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(mappings(spec, kind)):
            yield container, f"{path}.{kind}[{index}]"


def _validate_container(container: KubeObject, field: str, volumes: set[str], problems: FieldProblems) -> None:
    name, image = text(container, "name"), text(container, "image")
    if not name:
        problems.required(f"{field}.name")
    else:
        for problem in dns_label_problems(name):
            problems.invalid(f"{field}.name", name, problem)
    if not image:
        problems.required(f"{field}.image")
    elif image != image.strip():
        problems.invalid(f"{field}.image", image, "must not have leading or trailing whitespace")
    for index, mount in enumerate(mappings(container, "volumeMounts")):
        if text(mount, "name") not in volumes:
            problems.not_found(f"{field}.volumeMounts[{index}].name", text(mount, "name"))
    problems.check_supported(f"{field}.imagePullPolicy", text(container, "imagePullPolicy"), _PULL_POLICIES)
    _validate_resources(part(container, "resources"), f"{field}.resources", problems)


def _validate_ports(container: KubeObject, field: str, taken: set[str], problems: FieldProblems) -> None:
    """Report ports that are out of range; *taken* are the host ports of containers before this one."""
    for index, port in enumerate(mappings(container, "ports")):
        inner = f"{field}.ports[{index}]"
        for name in ("containerPort", "hostPort"):
            number = port.get(name, 0)
            if number == 0 and name == "containerPort":
                problems.required(f"{inner}.containerPort")
            elif number and not 1 <= number <= LARGEST_PORT:
                words = f"must be between 1 and {LARGEST_PORT}, inclusive"
                problems.invalid(f"{inner}.{name}", number, words)
        problems.check_supported(f"{inner}.protocol", text(port, "protocol"), _PROTOCOLS)
        if port.get("hostPort"):
            key = f"{text(port, 'protocol')}/{text(port, 'hostIP')}/{port['hostPort']}"
            if key in taken:
                problems.duplicate(f"{inner}.hostPort", key)
            taken.add(key)


def _validate_resources(resources: KubeObject, field: str, problems: FieldProblems) -> None:
    limits, requests = part(resources, "limits"), part(resources, "requests")
    validate_amounts(limits, f"{field}.limits", problems)
    validate_amounts(requests, f"{field}.requests", problems)
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            if _is_extended(name) or name.startswith("hugepages-"):
                problems.required(f"{field}.limits", "Limit must be set for non overcommitable resources")
        elif _is_extended(name) and exact_quantity(amount) != exact_quantity(limit):
            problems.invalid(f"{field}.requests", amount, f"must be equal to {name} limit of {limit}")
        elif exact_quantity(amount) > exact_quantity(limit):
            problems.invalid(f"{field}.requests", amount, f"must be less than or equal to {name} limit of {limit}")


def validate_amounts(amounts: KubeObject, field: str, problems: FieldProblems) -> None:
    """Report amounts that are negative, fractions of a device, or of no known resource."""
    for name, amount in amounts.items():
        inner = f"{field}[{name}]"
        if "/" not in name and name not in _STANDARD_RESOURCES and not name.startswith("hugepages-"):
            problems.invalid(inner, name, "must be a standard resource type or fully qualified")
            problems.invalid(inner, name, "must be a standard resource for containers")
        exact = exact_quantity(amount)
        if exact < 0:
            problems.invalid(inner, amount, "must be greater than or equal to 0")
        if _is_extended(name) and exact.denominator != 1:
            problems.invalid(inner, amount, "must be an integer")


def _is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name
