"""
Known differences between Lamina and kube-scheduler 1.36.3: which cases may differ, in which plugin, and why.

docs/parity.md lists the same differences. `make parity` counts them by reason; any other difference fails the tests.
"""

from typing import Final

from tests.parity.case_files import ParityCase
from tests.parity.case_objects import PREFERRED, REQUIRED, KubeJson

POD_LEVEL: Final = "kube-scheduler's NodeResourcesFit scores a pod without its pod-level requests"
NO_CLAIM_STATE: Final = (
    "kube-scheduler does not attempt preemption for a pod that a plugin refused before filtering, because "
    'DynamicResources then fails with "not found"; Lamina reports that preemption does not help'
)
ONE_POD: Final = (
    "kube-scheduler counts a ReadWriteOncePod claim that several running pods use as used once, and expects that one "
    "eviction frees it; Lamina evicts all users, or none if they are on several nodes"
)
NEGATIVE: Final = (
    "kube-scheduler 1.36 lets a negative namespaceSelector (NotIn, DoesNotExist) of the pod's own affinity terms match "
    "every namespace; 1.33 and 1.37 do not"
)


def known_case(case: ParityCase) -> str:
    """Return why any answer to this case may differ; empty if all must be equal."""
    if _users_of_one_pod_claims(case) > 1:
        return ONE_POD
    selectors = (term.get("namespaceSelector") or {} for term in _own_terms(case.pod["spec"].get("affinity") or {}))
    operators = {one["operator"] for selector in selectors for one in selector.get("matchExpressions", ())}
    return NEGATIVE if operators & {"NotIn", "DoesNotExist"} else ""


def _users_of_one_pod_claims(case: ParityCase) -> int:
    """Return how many running pods use a claim of the pod that is for one pod only."""
    claims = {
        one["metadata"]["name"]
        for one in case.objects.get("persistentvolumeclaims", ())
        if "ReadWriteOncePod" in one["spec"]["accessModes"]
    }
    wanted = claims & _claims(case.pod)
    return sum(one["metadata"]["namespace"] == "default" and bool(wanted & _claims(one)) for one in case.placed)


def _claims(pod: KubeJson) -> set[str]:
    volumes = pod["spec"].get("volumes", ())
    return {one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one}


def _own_terms(affinity: KubeJson) -> list[KubeJson]:
    kinds = [affinity.get(kind, {}) for kind in ("podAffinity", "podAntiAffinity")]
    required = [term for kind in kinds for term in kind.get(REQUIRED, ())]
    return [*required, *(one["podAffinityTerm"] for kind in kinds for one in kind.get(PREFERRED, ()))]


def known_difference(case: ParityCase, plugin: str) -> str:
    """Return why the scores of *plugin* may differ in this case; empty if they must be equal."""
    spec = case.pod["spec"]
    if plugin == "NodeResourcesFit":
        return POD_LEVEL if spec.get("resources", {}).get("requests") else ""
    return ""
