"""The selector of a workload against the labels of its pod template."""

from typing import Any

from lamina.simulator.facade.field_problems import FieldProblems
from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.object_fields import labels_of, mappings, texts

MISMATCH = "`selector` does not match template `labels`"


def check_selector(spec: KubeObject, problems: FieldProblems, *, may_be_missing: bool = False) -> None:
    """Report a workload's selector that is missing or does not select the pods of its template."""
    selector = spec.get("selector")
    labels = labels_of(part(spec, "template"))
    if not isinstance(selector, dict):
        if not may_be_missing:
            problems.required("spec.selector")
    elif not selector_rules(selector):
        words = "empty selector is invalid for workloads"
        problems.invalid("spec.selector", selector, words)
    if not isinstance(selector, dict) or not selector_matches(selector, labels):
        problems.invalid("spec.template.metadata.labels", labels or None, MISMATCH)


def selector_rules(selector: KubeObject) -> int:
    """Return the number of conditions of a label selector."""
    return len(part(selector, "matchLabels")) + len(mappings(selector, "matchExpressions"))


def selector_matches(selector: KubeObject, labels: KubeObject) -> bool:
    """Return whether a label selector object selects these labels; without conditions it selects all."""
    if any(labels.get(key) != value for key, value in part(selector, "matchLabels").items()):
        return False
    return all(_holds(rule, labels) for rule in mappings(selector, "matchExpressions"))


def _holds(rule: KubeObject, labels: KubeObject) -> bool:
    key, values = text(rule, "key"), texts(rule, "values")
    present: Any = labels.get(key)
    match rule.get("operator"):
        case "In":
            return present in values
        case "NotIn":
            return present not in values
        case "Exists":
            return present is not None
        case "DoesNotExist":
            return present is None
    return False
