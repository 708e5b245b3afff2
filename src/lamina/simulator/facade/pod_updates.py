"""
Updates of a pod's spec: which fields may change after the pod was created.

Images, the active deadline (downwards) and additional tolerations may change, and scheduling gates may be removed. As
long as a pod is gated, its node selector and required node affinity may become narrower. Bindings are not updates:
they set the node by their own rules.
"""

from typing import Any, Final

from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_fields import mappings
from lamina.simulator.facade.object_shapes import POD_SPEC, checked_shape
from lamina.simulator.facade.pod_admission import add_default_tolerations
from lamina.simulator.facade.pod_defaults import default_pod_spec
from lamina.simulator.facade.pod_validation import validate_pod_spec

ONLY_THESE_CHANGE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
# Admission set these; a client that sends the pod without them does not change them.
_KEPT: Final = ("priority", "preemptionPolicy", "priorityClassName", "serviceAccountName", "serviceAccount")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def updated_pod_spec(old: KubeObject, new: KubeObject, problems: FieldProblems) -> KubeObject:
    """Return the spec of the pod *new*, with defaults; report changes against *old* that the server refuses."""
    before = part(old, "spec")
    spec: KubeObject = checked_shape(new.get("spec") or {}, POD_SPEC, "Pod", "v1")
    for name in _KEPT:
        if name in before:
            spec.setdefault(name, before[name])
    default_pod_spec(spec)
    add_default_tolerations(spec)
    if significant(before) == significant(spec):
        return spec
    validate_pod_spec(spec, "spec", problems)
    _check_containers(before, spec, problems)
    _check_deadline(before, spec, problems)
    _check_tolerations(before, spec, problems)
    _check_gates(before, spec, problems)
    gated = bool(mappings(before, "schedulingGates"))
    if gated:
        _check_gated_selection(before, spec, problems)
    if not problems:
        changed = _other_changes(before, spec, gated=gated)
        if changed:
            listed = ", ".join(f"spec.{name}" for name in changed)
            problems.forbidden("spec", f"{ONLY_THESE_CHANGE}\nchanged: {listed}")
    return spec


def significant(value: Any) -> Any:
    """Return a value without fields that mean the same as missing ones: null, false, empty texts, lists and objects."""
    if isinstance(value, dict):
        kept = {name: significant(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner is not False and inner not in (None, "", [], {})}
    if isinstance(value, list):
        return [significant(inner) for inner in value]
    return value


def _check_containers(before: KubeObject, spec: KubeObject, problems: FieldProblems) -> None:
    for kind in ("containers", "initContainers"):
        if len(mappings(before, kind)) != len(mappings(spec, kind)):
            problems.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")


def _check_deadline(before: KubeObject, spec: KubeObject, problems: FieldProblems) -> None:
    old, new = before.get("activeDeadlineSeconds"), spec.get("activeDeadlineSeconds")
    if old is None:
        return
    if new is None:
        words = "must not update from a positive integer to nil value"
        problems.invalid("spec.activeDeadlineSeconds", None, words)
    elif new > old:
        problems.invalid("spec.activeDeadlineSeconds", new, "must be less than or equal to previous value")


def _check_tolerations(before: KubeObject, spec: KubeObject, problems: FieldProblems) -> None:
    kept = [_without(each, "tolerationSeconds") for each in mappings(spec, "tolerations")]
    if any(_without(each, "tolerationSeconds") not in kept for each in mappings(before, "tolerations")):
        words = "existing toleration can not be modified except its tolerationSeconds"
        problems.forbidden("spec.tolerations", words)


def _without(found: KubeObject, name: str) -> KubeObject:
    return {key: value for key, value in found.items() if key != name}


def _check_gates(before: KubeObject, spec: KubeObject, problems: FieldProblems) -> None:
    known = {text(gate, "name") for gate in mappings(before, "schedulingGates")}
    for index, gate in enumerate(mappings(spec, "schedulingGates")):
        if text(gate, "name") not in known:
            words = f"only deletion is allowed, but found new scheduling gate '{text(gate, 'name')}'"
            problems.forbidden(f"spec.schedulingGates[{index}].name", words)


def _check_gated_selection(before: KubeObject, spec: KubeObject, problems: FieldProblems) -> None:
    selector = part(spec, "nodeSelector")
    if any(selector.get(key) != value for key, value in part(before, "nodeSelector").items()):
        words = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        problems.invalid("spec.nodeSelector", selector, words)
    old, new = _required_terms(before), _required_terms(spec)
    field = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    if old and len(old) != len(new):
        words = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        problems.invalid(field, new, words)
        return
    for index, (old_term, new_term) in enumerate(zip(old, new, strict=False)):
        for name in ("matchExpressions", "matchFields"):
            if any(rule not in mappings(new_term, name) for rule in mappings(old_term, name)):
                words = "only additions are allowed (no mutations or deletions)"
                problems.invalid(f"{field}[{index}]", new_term, words)


def _required_terms(spec: KubeObject) -> list[KubeObject]:
    required = part(part(part(spec, "affinity"), "nodeAffinity"), _REQUIRED)
    return mappings(required, "nodeSelectorTerms")


def _other_changes(before: KubeObject, spec: KubeObject, *, gated: bool) -> list[str]:
    """Return the names of the changed fields that may not change."""
    old, new = _with_allowed(before, spec, gated=gated), significant(spec)
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        old["terminationGracePeriodSeconds"] = 1
    return sorted(name for name in {*old, *new} if old.get(name) != new.get(name))


def _with_allowed(before: KubeObject, spec: KubeObject, *, gated: bool) -> KubeObject:
    """Return the old spec with the allowed changes of the new one."""
    allowed = ["activeDeadlineSeconds", "tolerations", "schedulingGates"]
    found = {name: value for name, value in before.items() if name not in allowed}
    if gated:
        allowed.append("nodeSelector")
        affinity = {**part(before, "affinity"), "nodeAffinity": part(spec, "affinity").get("nodeAffinity")}
        found["affinity"] = affinity
    found.update((name, spec[name]) for name in allowed if name in spec)
    for kind in ("containers", "initContainers"):
        if kind in found:
            pairs = zip(mappings(before, kind), mappings(spec, kind), strict=False)
            found[kind] = [{**old, "image": new.get("image")} for old, new in pairs]
    cleaned: KubeObject = significant(found)
    return cleaned
