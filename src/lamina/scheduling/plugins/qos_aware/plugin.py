"""
QosAware: the controller that breaks its promise of availability soonest is served first.

It measures pods in every profile that enables it at any point, because it follows all pods. What it does besides depends
on the points that are enabled: `queueSort` orders the queue by time to violation; `reserve`, `preBind` and `postBind`
measure how long bindings take. docs/qos.md has the formulas and the arguments.
"""

from typing import ClassVar, Final

import msgspec

from lamina.model.errors import WiringError
from lamina.model.pod import Pod, PodUid
from lamina.qos.engine import QosEngine
from lamina.qos.qos_summary import decoded
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import QueuedPod
from lamina.scheduling.plugins.qos_aware.args import QosAwareArgs
from lamina.scheduling.plugins.qos_aware.object_owners import OWNERS, ObjectOwners
from lamina.scheduling.plugins.qos_aware.pod_tracker import PodTracker, TrackerSnapshot
from lamina.scheduling.state.plugin_context import PluginContext

NAME: Final = "QosAware"
OTHER_ARGS: Final = (
    "the profiles give QosAware different arguments, but all profiles of a process share a queue and one measurement; "
    "give it the same pluginConfig in each profile"
)


class QosAware:
    """Measures controllers, and orders waiting pods by the promises of their controllers."""

    name: ClassVar = NAME
    Args: ClassVar = QosAwareArgs
    changes_with_time: ClassVar = True
    objects: ClassVar = OWNERS

    def __init__(self, context: PluginContext, args: QosAwareArgs) -> None:
        """Share the measurements with the other profiles of *context*."""
        owners = ObjectOwners(context.objects)
        self.tracker = context.shared(NAME, lambda: PodTracker(args, owners, context.namespaces))
        if self.tracker.args != args:
            raise WiringError(OTHER_ARGS)

    @property
    def qos(self) -> QosEngine:
        """The measurements. The object changes when a history is loaded."""
        return self.tracker.engine

    # ---------------------------------------------------------------------------------------------- measurements

    def pod_seen(self, pod: Pod, now: float) -> None:
        """Take the state of a pod."""
        self.tracker.seen(pod, now)

    def pod_gone(self, uid: PodUid, now: float) -> None:
        """Take the end of a pod."""
        self.tracker.gone(uid, now)

    def reserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Note that the pod has a node."""
        self.tracker.reserve(pod.uid, state.now)

    def unreserve(self, state: CycleState, pod: Pod, node: str) -> None:
        """Note that the pod lost its node."""
        self.tracker.unreserve(pod.uid, state.now)

    def pre_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        """Note when the binding begins."""
        self.tracker.begin_binding(pod.uid, state.now)

    def post_bind(self, state: CycleState, pod: Pod, node: str) -> None:
        """Note when the binding ends."""
        self.tracker.bound(pod.uid, state.now)

    def notes(self, pod: Pod) -> str:
        """Return what is wrong with the pod's promise."""
        resolved, _ = self.tracker.resolved(pod)
        return "; ".join(resolved.problems)

    # ----------------------------------------------------------------------------------------------------- order

    @property
    def order_edition(self) -> int:
        """Increases whenever a fact may have changed the order."""
        return self.tracker.edition

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        """Return a key by which the pod that is served first comes first."""
        return self.qos.order_key(queued.pod.uid, now)

    # --------------------------------------------------------------------------------------------------- history

    def adopt(self, history: bytes, now: float) -> None:
        """Begin with the history of an earlier process (`lamina.qos.qos_summary.encoded`)."""
        self.tracker.adopt(decoded(history), now)

    def save(self) -> bytes:
        """Return all measurements as data."""
        return msgspec.msgpack.encode(self.tracker.snapshot())

    def load(self, saved: bytes) -> None:
        """Restore measurements."""
        self.tracker.restore(msgspec.msgpack.decode(saved, type=TrackerSnapshot))
