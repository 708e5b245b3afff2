"""
Validation of values that no other part of admission looks at, in the words of the API server.

Owners and finalizers of any object; the content of leases, config maps and disruption budgets; the strategy of a
Deployment; and metadata that an update may not change.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_fields import mappings
from lamina.simulator.facade.resource_type import ResourceType

LONGEST_KEY: Final = 253
CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
KEY_WORDS: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
PERCENT: Final = re.compile(r"[0-9]+%", re.ASCII)
PERCENT_WORDS: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
STRATEGIES: Final = ("Recreate", "RollingUpdate")
OWN_FINALIZERS: Final = frozenset({"kubernetes", "foregroundDeletion", "orphan"})
ANY_FINALIZER: Final = frozenset({"leases", "poddisruptionbudgets"})
"""Resources whose finalizers a real server does not check."""
FINALIZERS_OF_UPDATES: Final = frozenset({"nodes", "priorityclasses"})
"""Resources whose finalizers a real server checks in updates, too."""
FINALIZER_WORDS: Final = "name is neither a standard finalizer name nor is it fully qualified"
FIGURES: Final = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas")
FIXED_METADATA: Final = ("deletionTimestamp", "deletionGracePeriodSeconds")


def validate_values(type_: ResourceType, found: KubeObject, *, new: bool) -> None:
    """Raise StatusError 422 if the API server would refuse a value of an object."""
    problems = FieldProblems()
    _validate_owners(part(found, "metadata"), problems)
    if (new or type_.resource in FINALIZERS_OF_UPDATES) and not type_.custom and type_.resource not in ANY_FINALIZER:
        for index, name in enumerate(part(found, "metadata").get("finalizers") or ()):
            if "/" not in name and name not in OWN_FINALIZERS:
                problems.invalid(f"metadata.finalizers[{index}]", name, FINALIZER_WORDS)
    if not type_.custom and type_.resource in _CONTENT:
        _CONTENT[type_.resource](found, problems)
    problems.raise_for(type_, text(part(found, "metadata"), "name"))


def validate_update(type_: ResourceType, before: KubeObject, after: KubeObject) -> None:
    """Raise StatusError 422 if an update changes what it may not change: metadata, or the addresses of a node's pods."""
    problems = FieldProblems()
    old, new = part(before, "metadata"), part(after, "metadata")
    if type_.resource == "nodes" and not type_.custom:
        known = part(before, "spec").get("podCIDRs")
        if known and part(after, "spec").get("podCIDRs") != known:
            problems.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if new.get("uid") and new["uid"] != old.get("uid"):
        problems.immutable("metadata.uid", new["uid"])
    if old.get("deletionTimestamp"):
        added = [name for name in new.get("finalizers") or () if name not in (old.get("finalizers") or ())]
        if added:
            listed = ", ".join(f'"{name}"' for name in added)
            words = "no new finalizers can be added if the object is being deleted, found new finalizers []string"
            problems.forbidden("metadata.finalizers", f"{words}{{{listed}}}")
    else:
        for name in FIXED_METADATA:
            if new.get(name) is not None:
                problems.immutable(f"metadata.{name}", new[name])
    problems.raise_for(type_, text(old, "name"))


def _validate_owners(metadata: KubeObject, problems: FieldProblems) -> None:
    controllers = 0
    for owner in mappings(metadata, "ownerReferences"):
        for name in ("apiVersion", "kind", "name", "uid"):
            if not text(owner, name):
                problems.invalid(f"metadata.ownerReferences.{name}", "", "must not be empty")
        controllers += owner.get("controller") is True
    if controllers > 1:
        problems.invalid("metadata.ownerReferences", controllers, "Only one reference can have Controller set to true")


def _validate_lease(found: KubeObject, problems: FieldProblems) -> None:
    spec = part(found, "spec")
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        problems.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        problems.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def _validate_config_map(found: KubeObject, problems: FieldProblems) -> None:
    data, binary = part(found, "data"), part(found, "binaryData")
    for name, values in (("data", data), ("binaryData", binary)):
        for key in values:
            field = f"{name}[{key}]"
            if len(key) > LONGEST_KEY:
                problems.invalid(field, key, f"must be no more than {LONGEST_KEY} characters")
            if not CONFIG_KEY.fullmatch(key) or key == "." or key.startswith(".."):
                problems.invalid(field, key, KEY_WORDS)
    for key in data:
        if key in binary:
            problems.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")


def _validate_budget(found: KubeObject, problems: FieldProblems) -> None:
    spec = part(found, "spec")
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        problems.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        value: Any = spec.get(name)
        if isinstance(value, str) and not PERCENT.fullmatch(value):
            problems.invalid(f"spec.{name}", value, PERCENT_WORDS)


def _validate_deployment(found: KubeObject, problems: FieldProblems) -> None:
    strategy = part(part(found, "spec"), "strategy")
    kind = text(strategy, "type") or STRATEGIES[1]
    rolling = strategy.get("rollingUpdate")
    if kind not in STRATEGIES:
        problems.unsupported("spec.strategy", {"Type": kind, "RollingUpdate": rolling}, STRATEGIES)
    elif kind == STRATEGIES[0] and rolling is not None:
        problems.forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")


def _validate_pod(found: KubeObject, problems: FieldProblems) -> None:
    spec = part(found, "spec")
    if spec.get("hostNetwork") is not True:
        return
    for index, container in enumerate(mappings(spec, "containers")):
        for number, port in enumerate(mappings(container, "ports")):
            if port.get("hostPort", port.get("containerPort")) != port.get("containerPort"):
                field = f"spec.containers[{index}].ports[{number}].hostPort"
                problems.invalid(field, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")


def _validate_node(found: KubeObject, problems: FieldProblems) -> None:
    for index, taint in enumerate(mappings(part(found, "spec"), "taints")):
        # The real server says "metadata" here too.
        problems.check_supported(f"metadata.taints[{index}].effect", text(taint, "effect"), EFFECTS)


def validate_status(type_: ResourceType, old: KubeObject, found: KubeObject) -> None:
    """Raise StatusError 422 if the API server would refuse a new version of an object whose status was written."""
    if type_.custom:
        return
    problems, status = FieldProblems(), part(found, "status")
    problems.check_labels("metadata.labels", part(part(found, "metadata"), "labels"))
    _validate_owners(part(found, "metadata"), problems)
    nominated = status.get("nominatedNodeName")
    bound = type_.kind == "Pod" and bool(part(found, "spec").get("nodeName"))
    if bound and nominated and nominated != part(old, "status").get("nominatedNodeName"):
        problems.forbidden("status.nominatedNodeName", "may not be set on pods that are already bound to a node")
    if type_.resource == "deployments":
        _validate_figures(status, problems)
    problems.raise_for(type_, text(part(found, "metadata"), "name"))


def _validate_figures(status: KubeObject, problems: FieldProblems) -> None:
    for name in FIGURES:
        problems.check_not_negative(f"status.{name}", status.get(name, 0))
    for name in FIGURES[1:4]:
        if status.get(name, 0) > status.get("replicas", 0):
            problems.invalid(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        words = "cannot be greater than readyReplicas"
        problems.invalid("status.availableReplicas", status["availableReplicas"], words)


_CONTENT: Final[dict[str, Callable[[KubeObject, FieldProblems], None]]] = {
    "pods": _validate_pod,
    "nodes": _validate_node,
    "leases": _validate_lease,
    "configmaps": _validate_config_map,
    "poddisruptionbudgets": _validate_budget,
    "deployments": _validate_deployment,
}
