"""What keeps pods coming: Deployments, StatefulSets, DaemonSets and Jobs, as far as scheduling feels them."""

from lamina.simulator.controllers.controller_manager import ControllerManager
from lamina.simulator.controllers.controller_spec import ControllerKind, ControllerSpec

__all__ = ["ControllerKind", "ControllerManager", "ControllerSpec"]
