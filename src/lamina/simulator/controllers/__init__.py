"""What keeps pods coming: Deployments, StatefulSets, DaemonSets and Jobs, as far as scheduling feels them."""

from lamina.simulator.controllers.controllers import Controllers
from lamina.simulator.controllers.spec import ControllerKind, ControllerSpec

__all__ = ["ControllerKind", "ControllerSpec", "Controllers"]
