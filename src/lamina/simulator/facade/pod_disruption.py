"""
PodDisruptionBudgets: whether a pod may be evicted.

A budget protects the pods of its namespace that its selector matches. Pods that are not ready may be evicted: they do
not count as healthy. The allowed disruptions are healthy pods minus desired healthy pods:

    minAvailable      desired = the number, or the share of all matched pods, rounded up
    maxUnavailable    desired = matched pods - the number or share (rounded up)
"""

import math
from collections.abc import Iterable

from lamina.simulator.facade.kube_object import KubeObject, part, text
from lamina.simulator.facade.selectors import LabelQuery, SelectorError, parse_label_selector


def blocking_budget(pod: KubeObject, budgets: Iterable[KubeObject], pods: Iterable[KubeObject]) -> str:
    """Return the name of a budget that forbids the eviction of *pod*; empty if none does."""
    if not is_healthy(pod):
        return ""
    matching = [budget for budget in budgets if _query(budget).matches(pod)]
    if not matching:
        return ""
    listed = list(pods)
    for budget in matching:
        if allowed_disruptions(budget, listed) <= 0:
            return text(part(budget, "metadata"), "name")
    return ""


def allowed_disruptions(budget: KubeObject, pods: Iterable[KubeObject]) -> int:
    """Return how many pods of a budget may be evicted now."""
    query = _query(budget)
    matched = [pod for pod in pods if query.matches(pod) and _lives(pod)]
    healthy = sum(map(is_healthy, matched))
    spec = part(budget, "spec")
    if spec.get("minAvailable") is not None:
        desired = _amount(spec["minAvailable"], len(matched))
    elif spec.get("maxUnavailable") is not None:
        desired = len(matched) - _amount(spec["maxUnavailable"], len(matched))
    else:
        desired = len(matched)
    return max(0, healthy - max(0, desired))


def is_healthy(pod: KubeObject) -> bool:
    """Return whether a pod is ready and not being deleted."""
    if part(pod, "metadata").get("deletionTimestamp"):
        return False
    conditions = part(pod, "status").get("conditions") or ()
    return any(
        isinstance(one, dict) and one.get("type") == "Ready" and one.get("status") == "True" for one in conditions
    )


def _lives(pod: KubeObject) -> bool:
    return part(pod, "status").get("phase") not in {"Succeeded", "Failed"}


def _amount(value: object, total: int) -> int:
    if isinstance(value, int):
        return value
    share = str(value).removesuffix("%")
    return math.ceil(int(share) * total / 100) if share.isdigit() else 0


def _query(budget: KubeObject) -> LabelQuery:
    """Return the label selector of a budget as a query; one that cannot be read matches nothing."""
    try:
        return parse_label_selector(selector_text(part(part(budget, "spec"), "selector")))
    except SelectorError:
        return parse_label_selector("lamina.dev/none,!lamina.dev/none")


def selector_text(selector: KubeObject) -> str:
    """Return a label selector object in text form."""
    words = [f"{key}={value}" for key, value in part(selector, "matchLabels").items()]
    for rule in selector.get("matchExpressions") or ():
        if not isinstance(rule, dict):
            continue
        key, operator = text(rule, "key"), rule.get("operator")
        values = ",".join(map(str, rule.get("values") or ()))
        forms = {
            "Exists": key,
            "DoesNotExist": f"!{key}",
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
        }
        words.append(forms.get(str(operator), "="))
    return ",".join(words)
