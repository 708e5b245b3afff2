"""
Known differences between Lamina and kube-scheduler 1.36.3: which cases may differ, in which plugin, and why.

docs/parity.md lists the same differences. `make parity` counts them by reason; any other difference fails the tests.
"""

from typing import Final

from tests.parity.case_files import ParityCase
from tests.parity.case_objects import PREFERRED, REQUIRED, KubeJson

POD_LEVEL: Final = "kube-scheduler's NodeResourcesFit scores a pod without its pod-level requests"
NEGATIVE: Final = (
    "kube-scheduler 1.36 lets a negative namespaceSelector (NotIn, DoesNotExist) of the pod's own affinity terms match "
    "every namespace; 1.33 and 1.37 do not"
)


def known_case(case: ParityCase) -> str:
    """Return why any answer to this case may differ; empty if all must be equal."""
    selectors = (term.get("namespaceSelector") or {} for term in _own_terms(case.pod["spec"].get("affinity") or {}))
    operators = {one["operator"] for selector in selectors for one in selector.get("matchExpressions", ())}
    return NEGATIVE if operators & {"NotIn", "DoesNotExist"} else ""


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
