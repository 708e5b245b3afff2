"""
QosAware: the controller that breaks its promise of availability soonest is served first.

It measures pods in every profile that enables it at any point, because it follows all pods. What it does besides depends
on the points that are enabled: `queueSort` orders the queue by time to violation; `reserve`, `preBind` and `postBind`
measure how long bindings take; `postFilter` preempts. docs/qos.md has the formulas and the arguments.
"""

from collections.abc import Hashable
from typing import ClassVar, Final

import msgspec

from lamina.model.disruption_budget import PodDisruptionBudget
from lamina.model.duration import seconds
from lamina.model.errors import WiringError
from lamina.model.pod import Pod, PodUid
from lamina.qos.engine import QosEngine
from lamina.qos.qos_summary import decoded
from lamina.scheduling.contract.cycle_state import CycleState
from lamina.scheduling.contract.points import PostFilterResult, QueuedPod
from lamina.scheduling.contract.status import Status
from lamina.scheduling.plugins.qos_aware.args import QosAwareArgs
from lamina.scheduling.plugins.qos_aware.object_owners import OWNERS, ObjectOwners
from lamina.scheduling.plugins.qos_aware.pod_tracker import PodTracker, TrackerSnapshot
from lamina.scheduling.plugins.qos_aware.preemption import QosPreemption
from lamina.scheduling.runtime.disruption_budgets import DisruptionBudgets
from lamina.scheduling.runtime.dry_run import DRY_RUN
from lamina.scheduling.state.cluster_changes import ChangeKind
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.plugin_context import PluginContext
from lamina.scheduling.state.view import NodeView

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
    group_parts: ClassVar = 3
    objects: ClassVar = OWNERS | {PodDisruptionBudget}
    retry_on: ClassVar[frozenset[ChangeKind]] = frozenset()

    def __init__(self, context: PluginContext, args: QosAwareArgs) -> None:
        """Share the measurements with the other profiles of *context*."""
        owners = ObjectOwners(context.objects)
        self.tracker = context.shared(NAME, lambda: PodTracker(args, owners, context.namespaces))
        if self.tracker.args != args:
            raise WiringError(OTHER_ARGS)
        self._by_arrival = args.mode == "lamina"
        self._preemption = QosPreemption(
            context.placed_pods(),
            DisruptionBudgets(context.objects),
            seconds(args.minimum_running_time),
            seconds(args.cycle) if args.mode == "lamina" else None,
        )

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

    def sort_group(self, uid: PodUid) -> Hashable:
        """Return a pod's controller, or the pod if its replicas are measured one by one."""
        return self.qos.order_group(uid)

    def sort_key(self, queued: QueuedPod, now: float) -> tuple[float, ...]:
        """Return a key by which the pod that is served first comes first."""
        return (*self.qos.order_key(queued.pod.uid, now), queued.arrived_at if self._by_arrival else 0.0)

    def goes_first(self, nominated: Pod, pod: Pod) -> bool:
        """Return whether room is kept for a nominated pod: unless the other one clearly precedes it."""
        return not self.qos.precedes(pod.uid, nominated.uid, self.qos.time)

    # ------------------------------------------------------------------------------------------------ preemption

    def post_filter(self, state: CycleState, pod: Pod, nodes: NodeView, resolvable: Bools) -> Status | PostFilterResult:
        """Return a node and its victims, or why there are none."""
        return self._preemption.make_room(self.qos, state[DRY_RUN], pod, resolvable, state.now)

    def retry_at(self, pod: Pod, now: float) -> float | None:
        """Return when to try a pod again for which there were no victims: the order changes with time."""
        retry = self._preemption.retry
        return None if retry is None or retry[0] != pod.uid else retry[1]

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
