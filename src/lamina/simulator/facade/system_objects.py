"""Objects that every API server creates when it starts: namespaces, and the priority classes of system pods."""

from typing import Final

from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import KubeObject, NamespacedName
from lamina.simulator.facade.pod_admission import PREEMPT_LOWER, SYSTEM_PRIORITIES

DESCRIPTIONS: Final = {
    "system-cluster-critical": (
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."
    ),
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
}


def ensure_namespace(state: ApiState, name: str) -> None:
    """Create a namespace, if it does not exist."""
    _ensure(
        state,
        "",
        "namespaces",
        {
            "kind": "Namespace",
            "apiVersion": "v1",
            "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        },
    )


def ensure_priority_classes(state: ApiState) -> None:
    """Create the priority classes of system pods, if they do not exist."""
    for name, value in SYSTEM_PRIORITIES.items():
        _ensure(
            state,
            "scheduling.k8s.io",
            "priorityclasses",
            {
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "metadata": {"name": name, "generation": 1},
                "value": value,
                "description": DESCRIPTIONS[name],
                "preemptionPolicy": PREEMPT_LOWER,
            },
        )


def _ensure(state: ApiState, group: str, resource: str, found: KubeObject) -> None:
    table, key = state.store.table(group, resource), NamespacedName("", found["metadata"]["name"])
    if table.get(key) is None:
        metadata = {**found["metadata"], "uid": state.uid(), "creationTimestamp": state.timestamp()}
        state.store.put(table, key, {**found, "metadata": metadata})
