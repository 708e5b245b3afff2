"""A store with pods and nodes, without a simulation, and log lines as kube-scheduler writes them."""

from typing import Any

from lamina.apiserver.settling.metric_text import MetricValues
from lamina.apiserver.settling.metrics_settling import NAMES
from lamina.apiserver.settling.pending_pods import PendingPods
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.kube_object import NamespacedName
from lamina.simulator.facade.resource_types import ResourceTypes

SCHEDULER = "default-scheduler"


class SettleStage:
    """A store whose pods wait for one scheduler."""

    def __init__(self, *names: str) -> None:
        self.state = ApiState(ResourceTypes(), lambda: 0.0, None)  # type: ignore[arg-type]  # no cluster reacts
        self.pods = PendingPods(self.state, names or (SCHEDULER,))

    @property
    def store(self):
        return self.state.store

    def pod(self, name: str, namespace: str = "default", **changes: Any) -> None:
        """Create or replace a pod; keyword arguments are fields of its spec."""
        status = changes.pop("status", {"phase": "Pending"})
        metadata = {"name": name, "namespace": namespace, "uid": name, **changes.pop("metadata", {})}
        spec = {"schedulerName": SCHEDULER, "containers": [{"name": "c"}], **changes}
        found = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
        self.store.put(self.store.table("", "pods"), NamespacedName(namespace, name), found)

    def remove_pod(self, name: str, namespace: str = "default") -> None:
        self.store.delete(self.store.table("", "pods"), NamespacedName(namespace, name))

    def node(self, name: str, **changes: Any) -> None:
        """Create or replace a node; keyword arguments are parts of it."""
        found = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, **changes.get("metadata", {})},
            "spec": changes.get("spec", {}),
            "status": {"conditions": [{"type": "Ready", "status": "True"}], **changes.get("status", {})},
        }
        self.store.put(self.store.table("", "nodes"), NamespacedName("", name), found)


def line(message: str, **values: object) -> str:
    """Return a line in klog's text format."""
    shown = "".join(f' {name}="{value}"' for name, value in values.items())
    return f'I1118 14:05:03.787300   22928 file.go:214] "{message}"{shown}'


def added(pod: str) -> str:
    return line("Add event for unscheduled pod", pod=pod)


def moved(pod: str, queue: str, event: str = "AssignedPodDelete") -> str:
    return line("Pod moved to an internal scheduling queue", pod=pod, event=event, queue=queue)


def attempt(pod: str) -> str:
    return line("Attempting to schedule pod", pod=pod)


def refused(pod: str, **values: object) -> str:
    message = "Updating pod condition and nominated node name"
    return line(message, pod=pod, conditionType="PodScheduled", conditionStatus="False", **values)


def metric_values(text: str) -> MetricValues:
    return MetricValues(text, NAMES)
