"""
All controllers of a run: told what happens in the cluster, they keep true what they are told to keep true.

    cluster --pod started, pod ended, node joined, node left--> Controllers --the one concerned--> controller
       ^                                                                                              |
       +---------------submit, remove <-- sync, once at the end of the instant <----------------------+

A controller looks once at an instant, when the cluster has done all it does at that time and before schedulers decide:
so it never acts in the middle of something, and what happens together is answered together. That real controllers need
some milliseconds more is left out. Uses what anybody may use of the cluster and nothing else.
"""

import math
from collections.abc import Callable
from typing import Final, Protocol

from lamina.model.errors import WiringError
from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualCluster, VirtualNode, VirtualPod
from lamina.simulator.controllers.controller_spec import ControllerSpec
from lamina.simulator.controllers.daemon_set import DaemonSetController
from lamina.simulator.controllers.deployment import DeploymentController
from lamina.simulator.controllers.job import JobController
from lamina.simulator.controllers.pod_factory import OwnedPodFactory
from lamina.simulator.controllers.stateful_set import StatefulSetController
from lamina.simulator.engine import Environment, Timer

LOOK: Final = 5
"""Priority of controllers among what is due at one instant: after the cluster's own 0, before schedulers."""


class Controller(Protocol):
    """What every kind of controller can do."""

    def scale(self, count: int) -> None:
        """Take another number."""
        ...

    def update(self, image: str) -> None:
        """Take another image."""
        ...

    def pod_started(self, pod: VirtualPod) -> None:
        """One of its pods is ready."""
        ...

    def pod_ended(self, pod: VirtualPod) -> None:
        """One of its pods is no more."""
        ...

    def sync(self) -> float:
        """Do what is to be done now; return when to look again by itself, infinity: when something happens."""
        ...


class _SyncSlot:
    """A controller and when it looks next."""

    __slots__ = ("again", "begun", "controller", "due")

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.begun = False
        self.due = False
        self.again: Timer | None = None


class ControllerManager:
    """Every controller there is. Watches the cluster from the moment it is made."""

    def __init__(self, environment: Environment, cluster: VirtualCluster, *, scheduler: str = "") -> None:
        """Work on *cluster*; *scheduler* places the pods of templates that name none."""
        self._environment = environment
        self._cluster = cluster
        self._scheduler = scheduler
        self._posts: dict[str, _SyncSlot] = {}
        self._daemons: list[tuple[_SyncSlot, DaemonSetController]] = []
        self._whose: dict[PodUid, _SyncSlot] = {}
        cluster.watchers.append(self)

    def add(self, spec: ControllerSpec) -> None:
        """Let a controller begin when its time comes."""
        if spec.name in self._posts:
            raise WiringError(f"a second controller {spec.name!r} cannot be added")
        maker = OwnedPodFactory(self._environment, self._cluster, spec.name, self._claim(spec.name), self._scheduler)
        post = self._posts[spec.name] = _SyncSlot(_controller(spec, maker))
        self._environment.at(max(spec.at, self._environment.now), self._begin, post)

    def scale(self, name: str, count: int) -> None:
        """Tell a controller another number: of pods, or for a Job of pods at once."""
        post = self._post(name)
        post.controller.scale(count)
        self._mark(post)

    def update(self, name: str, image: str) -> None:
        """Tell a controller another image."""
        post = self._post(name)
        post.controller.update(image)
        self._mark(post)

    # -- what the cluster says ---------------------------------------------------------------------------------------

    def pod_started(self, pod: VirtualPod) -> None:
        """Tell whose pod it is."""
        post = self._whose.get(pod.pod.uid)
        if post is not None:
            post.controller.pod_started(pod)
            self._mark(post)

    def pod_ended(self, pod: VirtualPod) -> None:
        """Tell whose pod it was."""
        post = self._whose.pop(pod.pod.uid, None)
        if post is not None:
            post.controller.pod_ended(pod)
            self._mark(post)

    def node_joined(self, node: VirtualNode) -> None:
        """Tell those who want a pod on every node."""
        for post, daemon in self._daemons:
            daemon.node_joined(node)
            self._mark(post)

    def node_left(self, node: VirtualNode) -> None:
        """Tell those who have a pod on every node."""
        for post, daemon in self._daemons:
            daemon.node_left(node)
            self._mark(post)

    # -- who looks when ----------------------------------------------------------------------------------------------

    def _begin(self, post: _SyncSlot) -> None:
        post.begun = True
        if isinstance(post.controller, DaemonSetController):
            self._daemons.append((post, post.controller))
            for node in self._cluster.nodes.values():
                post.controller.node_joined(node)
        self._mark(post)

    def _mark(self, post: _SyncSlot) -> None:
        if post.begun and not post.due:
            post.due = True
            self._environment.after(0.0, self._look, post, priority=LOOK)

    def _look(self, post: _SyncSlot) -> None:
        post.due = False
        if post.again is not None:
            self._environment.cancel(post.again)
            post.again = None
        again = post.controller.sync()
        if again < math.inf:
            post.again = self._environment.at(again, self._wake, post)

    def _wake(self, post: _SyncSlot) -> None:
        post.again = None
        self._mark(post)

    def _post(self, name: str) -> _SyncSlot:
        post = self._posts.get(name)
        if post is None:
            raise WiringError(f"there is no controller {name!r}")
        return post

    def _claim(self, name: str) -> Callable[[PodUid], object]:
        return lambda uid: self._whose.__setitem__(uid, self._posts[name])


def _controller(spec: ControllerSpec, maker: OwnedPodFactory) -> Controller:
    match spec.kind:
        case "Deployment":
            return DeploymentController(spec, maker)
        case "StatefulSet":
            return StatefulSetController(spec, maker)
        case "DaemonSet":
            return DaemonSetController(spec, maker)
        case "Job":
            return JobController(spec, maker)
