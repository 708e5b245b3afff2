"""
Controller manager of a run: routes cluster events to controllers and schedules their syncs.

    cluster --pod started, pod ended, node joined, node left--> ControllerManager --owner of the pod--> controller
       ^                                                                                                   |
       +---------------submit, remove <-- sync, once per time step <---------------------------------------+

A controller syncs once per time step: after all cluster events of that time and before the schedulers. So it reacts to
simultaneous events together. Real controllers take some milliseconds more, which the simulator leaves out. Controllers
use the public methods of the cluster only.
"""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

from lamina.model.cluster_objects import ClusterObject, ObjectKey, key_of
from lamina.model.errors import WiringError
from lamina.model.pod import Pod, PodUid
from lamina.simulator.cluster import VirtualCluster, VirtualNode, VirtualPod
from lamina.simulator.cluster.cluster_object_table import SYNC
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.daemon_set import DaemonSetController
from lamina.simulator.controllers.deployment import DeploymentController
from lamina.simulator.controllers.job import JobController
from lamina.simulator.controllers.pod_factory import OwnedPodFactory
from lamina.simulator.controllers.stateful_set import StatefulSetController
from lamina.simulator.engine import Environment, Timer


class Controller(Protocol):
    """Interface of every controller."""

    @property
    def selecting(self) -> Sequence[ClusterObject]:
        """The objects by which default spread constraints find its pods."""
        ...

    @property
    def wanted(self) -> int | None:
        """Number of pods that a disruption budget expects; None if the kind of controller has none."""
        ...

    def scale(self, count: int) -> None:
        """Change the number of pods."""
        ...

    def update(self, image: str) -> None:
        """Change the image of the first container."""
        ...

    def pod_started(self, pod: VirtualPod) -> None:
        """Called when one of its pods runs."""
        ...

    def pod_ended(self, pod: VirtualPod) -> None:
        """Called when one of its pods has ended."""
        ...

    def sync(self) -> float:
        """Create and remove pods; return the time of the next sync, or infinity to wait for an event."""
        ...


class _SyncSlot:
    """A controller and its next sync."""

    __slots__ = ("again", "begun", "controller", "due", "name", "published")

    def __init__(self, name: str, controller: Controller) -> None:
        self.name = name
        self.controller = controller
        self.published: dict[ObjectKey, None] = {}
        self.begun = False
        self.due = False
        self.again: Timer | None = None


class ControllerManager:
    """All controllers of a run. It watches the cluster from its creation on."""

    def __init__(self, environment: Environment, cluster: VirtualCluster, *, scheduler: str = "") -> None:
        """Manage *cluster*; *scheduler* is the scheduler of pods whose template names none."""
        self._environment = environment
        self._cluster = cluster
        self._scheduler = scheduler
        self._slots: dict[str, _SyncSlot] = {}
        self._daemons: list[tuple[_SyncSlot, DaemonSetController]] = []
        self._owners: dict[PodUid, _SyncSlot] = {}
        cluster.watchers.append(self)

    def add(self, spec: ControllerSpec) -> None:
        """Add a controller, which starts at its time `at`."""
        if spec.name in self._slots:
            raise WiringError(f"a second controller {spec.name!r} cannot be added")
        factory = OwnedPodFactory(self._environment, self._cluster, spec.name, self._claim(spec.name), self._scheduler)
        slot = self._slots[spec.name] = _SyncSlot(spec.name, _controller(spec, factory))
        self._environment.at(max(spec.at, self._environment.now), self._begin, slot)

    def scale(self, name: str, count: int) -> None:
        """Scale a controller: the number of pods, or of parallel pods for a Job."""
        slot = self._slot(name)
        slot.controller.scale(count)
        self._mark(slot)

    def update(self, name: str, image: str) -> None:
        """Change the image of a controller's template."""
        slot = self._slot(name)
        slot.controller.update(image)
        self._mark(slot)

    def replace(self, name: str, template: Pod, version: str) -> None:
        """Change the template of a Deployment. Raises WiringError for another controller."""
        slot = self._slot(name)
        if not isinstance(slot.controller, DeploymentController):
            raise WiringError(f"the controller {name!r} is no Deployment, so its template has no versions")
        slot.controller.replace(template, version)
        self._mark(slot)

    def remove(self, name: str) -> None:
        """Remove a controller and its pods, with their grace periods; do nothing if it does not exist."""
        slot = self._slots.pop(name, None)
        if slot is None:
            return
        self._daemons = [(one, daemon) for one, daemon in self._daemons if one is not slot]
        if slot.again is not None:
            self._environment.cancel(slot.again)
            slot.again = None
        slot.begun = False
        for key in slot.published:
            self._cluster.objects.remove(key)
        for uid in [uid for uid, owner in self._owners.items() if owner is slot]:
            self._cluster.remove(uid, None)

    def __contains__(self, name: str) -> bool:
        """Return whether a controller exists."""
        return name in self._slots

    def scale_of(self, uid: PodUid) -> tuple[str, int] | None:
        """Return name and wanted number of pods of a pod's controller; None if it has no such number."""
        slot = self._owners.get(uid)
        wanted = None if slot is None else slot.controller.wanted
        return None if slot is None or wanted is None else (slot.name, wanted)

    # -- cluster events ----------------------------------------------------------------------------------------------

    def pod_started(self, pod: VirtualPod) -> None:
        """Pass the event to the pod's controller."""
        slot = self._owners.get(pod.pod.uid)
        if slot is not None:
            slot.controller.pod_started(pod)
            self._mark(slot)

    def pod_ended(self, pod: VirtualPod) -> None:
        """Pass the event to the pod's controller, for the last time."""
        slot = self._owners.pop(pod.pod.uid, None)
        if slot is not None:
            slot.controller.pod_ended(pod)
            self._mark(slot)

    def node_joined(self, node: VirtualNode) -> None:
        """Pass the event to all DaemonSets."""
        for slot, daemon in self._daemons:
            daemon.node_joined(node)
            self._mark(slot)

    def node_left(self, node: VirtualNode) -> None:
        """Pass the event to all DaemonSets."""
        for slot, daemon in self._daemons:
            daemon.node_left(node)
            self._mark(slot)

    # -- syncs -------------------------------------------------------------------------------------------------------

    def _begin(self, slot: _SyncSlot) -> None:
        slot.begun = True
        if isinstance(slot.controller, DaemonSetController):
            self._daemons.append((slot, slot.controller))
            for node in self._cluster.nodes.values():
                slot.controller.node_joined(node)
        self._publish_selecting(slot)
        self._mark(slot)

    def _publish_selecting(self, slot: _SyncSlot) -> None:
        """Show the objects of a controller that select pods, and remove those that it has no longer."""
        objects = self._cluster.objects
        shown = {key_of(one): None for one in slot.controller.selecting}
        for one in slot.controller.selecting:
            objects.put(one)
        for key in slot.published:
            if key not in shown:
                objects.remove(key)
        slot.published = shown

    def _mark(self, slot: _SyncSlot) -> None:
        if slot.begun and not slot.due:
            slot.due = True
            self._environment.after(0.0, self._sync, slot, priority=SYNC)

    def _sync(self, slot: _SyncSlot) -> None:
        slot.due = False
        if not slot.begun:
            # It was removed at this time.
            return
        if slot.again is not None:
            self._environment.cancel(slot.again)
            slot.again = None
        self._publish_selecting(slot)
        again = slot.controller.sync()
        if again < math.inf:
            slot.again = self._environment.at(again, self._wake, slot)

    def _wake(self, slot: _SyncSlot) -> None:
        slot.again = None
        self._mark(slot)

    def _slot(self, name: str) -> _SyncSlot:
        slot = self._slots.get(name)
        if slot is None:
            raise WiringError(f"there is no controller {name!r}")
        return slot

    def _claim(self, name: str) -> Callable[[PodUid], object]:
        return lambda uid: self._owners.__setitem__(uid, self._slots[name])


def _controller(spec: ControllerSpec, factory: OwnedPodFactory) -> Controller:
    match spec.kind:
        case "Deployment":
            return DeploymentController(spec, factory)
        case "StatefulSet":
            return StatefulSetController(spec, factory)
        case "DaemonSet":
            return DaemonSetController(spec, factory)
        case "Job":
            return JobController(spec, factory)
