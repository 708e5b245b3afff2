"""Validation of a pod's placement rules: tolerations, affinity, spreading, node selectors and scheduling gates."""

from typing import Any, Final

from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.label_rules import label_key_problems
from lamina.simulator.facade.object_fields import mappings

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LARGEST_WEIGHT: Final = 100


def validate_placement(spec: KubeObject, path: str, problems: FieldProblems) -> None:
    """Report what the API server would refuse in the placement rules of a pod's spec at *path*."""
    problems.check_labels(f"{path}.nodeSelector", part(spec, "nodeSelector"))
    affinity = part(spec, "affinity")
    _validate_node_affinity(part(affinity, "nodeAffinity"), f"{path}.affinity.nodeAffinity", problems)
    for name in ("podAffinity", "podAntiAffinity"):
        _validate_pod_affinity(part(affinity, name), f"{path}.affinity.{name}", problems)
    for index, toleration in enumerate(mappings(spec, "tolerations")):
        _validate_toleration(toleration, f"{path}.tolerations[{index}]", problems)
    for index, constraint in enumerate(mappings(spec, "topologySpreadConstraints")):
        _validate_spreading(constraint, f"{path}.topologySpreadConstraints[{index}]", problems)
    _validate_gates(spec, path, problems)


def _validate_gates(spec: KubeObject, path: str, problems: FieldProblems) -> None:
    seen: set[str] = set()
    for index, gate in enumerate(mappings(spec, "schedulingGates")):
        name, field = text(gate, "name"), f"{path}.schedulingGates[{index}]"
        for problem in label_key_problems(name):
            problems.invalid(field, name, problem)
        if name in seen:
            problems.duplicate(field, name)
        seen.add(name)
    if seen and spec.get("nodeName"):
        problems.forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")


def _validate_toleration(toleration: KubeObject, field: str, problems: FieldProblems) -> None:
    key, operator, effect = (text(toleration, name) for name in ("key", "operator", "effect"))
    if key:
        for problem in label_key_problems(key):
            problems.invalid(f"{field}.key", key, problem)
    elif operator != "Exists":
        words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        problems.invalid(f"{field}.operator", operator, words)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        problems.invalid(f"{field}.effect", effect, words)
    if operator == "Exists" and text(toleration, "value"):
        words = "value must be empty when `operator` is 'Exists'"
        problems.invalid(f"{field}.operator", toleration["value"], words)
    problems.check_supported(f"{field}.operator", operator or None, ("Equal", "Exists"))
    problems.check_supported(f"{field}.effect", effect or None, EFFECTS)


def _validate_spreading(constraint: KubeObject, field: str, problems: FieldProblems) -> None:
    skew = constraint.get("maxSkew", 0)
    if skew <= 0:
        problems.invalid(f"{field}.maxSkew", skew, "must be greater than zero")
    if not text(constraint, "topologyKey"):
        problems.required(f"{field}.topologyKey", "can not be empty")
    supported = ("DoNotSchedule", "ScheduleAnyway")
    problems.check_supported(f"{field}.whenUnsatisfiable", text(constraint, "whenUnsatisfiable"), supported)


def _validate_node_affinity(affinity: KubeObject, field: str, problems: FieldProblems) -> None:
    if _REQUIRED in affinity:
        terms = mappings(affinity[_REQUIRED], "nodeSelectorTerms")
        if not terms:
            field_ = f"{field}.{_REQUIRED}.nodeSelectorTerms"
            problems.required(field_, "must have at least one node selector term")
        for index, term in enumerate(terms):
            _validate_node_term(term, f"{field}.{_REQUIRED}.nodeSelectorTerms[{index}]", problems)
    for index, preferred in enumerate(mappings(affinity, _PREFERRED)):
        inner = f"{field}.{_PREFERRED}[{index}]"
        _validate_weight(preferred, inner, problems)
        _validate_node_term(part(preferred, "preference"), f"{inner}.preference", problems)


def _validate_node_term(term: KubeObject, field: str, problems: FieldProblems) -> None:
    for index, rule in enumerate(mappings(term, "matchExpressions")):
        inner = f"{field}.matchExpressions[{index}]"
        key, operator, values = text(rule, "key"), text(rule, "operator"), rule.get("values") or []
        if operator in ("In", "NotIn") and not values:
            problems.required(f"{inner}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist") and values:
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.forbidden(f"{inner}.values", words)
        elif operator in ("Gt", "Lt") and len(values) != 1:
            problems.required(f"{inner}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        elif operator not in _OPERATORS:
            problems.invalid(f"{inner}.operator", operator, "not a valid selector operator")
        for problem in label_key_problems(key):
            problems.invalid(f"{inner}.key", key, problem)


def _validate_pod_affinity(affinity: KubeObject, field: str, problems: FieldProblems) -> None:
    for index, term in enumerate(mappings(affinity, _REQUIRED)):
        _validate_pod_term(term, f"{field}.{_REQUIRED}[{index}]", problems)
    for index, preferred in enumerate(mappings(affinity, _PREFERRED)):
        inner = f"{field}.{_PREFERRED}[{index}]"
        _validate_weight(preferred, inner, problems)
        _validate_pod_term(part(preferred, "podAffinityTerm"), f"{inner}.podAffinityTerm", problems)


def _validate_pod_term(term: KubeObject, field: str, problems: FieldProblems) -> None:
    key = text(term, "topologyKey")
    if not key:
        problems.required(f"{field}.topologyKey", "can not be empty")
    for problem in label_key_problems(key):
        problems.invalid(f"{field}.topologyKey", key, problem)


def _validate_weight(preferred: KubeObject, field: str, problems: FieldProblems) -> None:
    weight: Any = preferred.get("weight", 0)
    if not 1 <= weight <= _LARGEST_WEIGHT:
        problems.invalid(f"{field}.weight", weight, f"must be in the range 1-{_LARGEST_WEIGHT}")
