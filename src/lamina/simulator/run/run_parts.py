"""Parts of a run that a decider may act on, and the factory that makes such a decider."""

from collections.abc import Callable

import msgspec

from lamina.model.pod import PodUid
from lamina.simulator.cluster import VirtualCluster
from lamina.simulator.controllers import ControllerManager
from lamina.simulator.decider import Decider
from lamina.simulator.engine import Environment


class RunParts(msgspec.Struct, frozen=True, eq=False):
    """What a decider needs to act on the cluster itself, as clients of an API do."""

    environment: Environment
    cluster: VirtualCluster
    controllers: Callable[[], ControllerManager]
    """Returns the controller manager of the run, which is created on the first call."""
    request_feed: Callable[[], None]
    """Asks for another feed of the decider at the current time, even if there is no event."""
    endings: list[Callable[[], None]] = []
    """Called once, when no event is left or the run's time is over. They may raise RunStoppedError."""


DeciderFactory = Callable[[RunParts], Decider]
"""Makes the decider of one run."""


class LazyControllers:
    """The controller manager of a run, created when the first controller is added: most runs have none."""

    def __init__(self, environment: Environment, cluster: VirtualCluster) -> None:
        """Manage controllers of *cluster*."""
        self._environment = environment
        self._cluster = cluster
        self._manager: ControllerManager | None = None
        self.scheduler = ""
        """Scheduler of pods whose template names none."""

    def scale_of(self, uid: PodUid) -> tuple[str, int] | None:
        """Return name and wanted number of pods of a pod's controller; None if it has no such number."""
        return None if self._manager is None else self._manager.scale_of(uid)

    def get(self) -> ControllerManager:
        """Return the manager."""
        if self._manager is None:
            self._manager = ControllerManager(self._environment, self._cluster, scheduler=self.scheduler)
        return self._manager
