"""Plugins of the loop machine: a gate, an order that changes with time, a permit that waits, and work before binding."""

from typing import ClassVar

from lamina.model.pod import Pod
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.plugin_registry import NoArgs
from lamina.scheduling.contract.points import QueuedPod, Wait, Work
from lamina.scheduling.contract.status import Status, unschedulable
from lamina.scheduling.contract.waiting_pods import WaitingPods
from lamina.scheduling.state.plugin_context import PluginContext


class Gate:
    """Keeps pods out that carry the label gate=closed."""

    name: ClassVar = "Gate"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("closed") if pod.labels.get("gate") == "closed" else None


class Ageing:
    """Puts pods first whose priority plus age is largest: an order that changes with time alone."""

    name: ClassVar = "Ageing"
    changes_with_time: ClassVar = True

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        return (-(queued.pod.priority + (now - queued.arrived_at) * (1 + queued.pod.priority)),)


class Patience:
    """Holds pods that carry the label wait until somebody allows them, for at most 30 seconds."""

    name: ClassVar = "Patience"

    def __init__(self, context: PluginContext, args: NoArgs) -> None: ...

    def permit(self, state: CycleState, pod: Pod, node: str, waiting: WaitingPods) -> Wait | None:
        return Wait(30.0) if "wait" in pod.labels else None


class Volume:
    """Needs work done before pods are bound that carry the label work; keeps books of what is reserved."""

    name: ClassVar = "Volume"

    def __init__(self, context: PluginContext, args: NoArgs) -> None:
        self.reserved: dict[str, str] = {}

    def reserve(self, state: CycleState, pod: Pod, node: str) -> None:
        assert pod.uid not in self.reserved, "a pod is reserved once at a time"
        self.reserved[pod.uid] = node

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        assert self.reserved.pop(pod.uid) == node

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> Work | None:
        return Work("attach") if "work" in pod.labels else None

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        assert self.reserved.pop(pod.uid) == node


PLUGINS = [
    Ageing,
    Gate,
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeResourcesFit",
    "PodTopologySpread",
    "ImageLocality",
    "LayerLocality",
    Patience,
    Volume,
    "DefaultBinder",
]
