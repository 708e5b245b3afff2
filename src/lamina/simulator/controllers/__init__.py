"""Simulated controllers: Deployments, StatefulSets, DaemonSets and Jobs, reduced to what affects scheduling."""

from lamina.simulator.controllers.controller_manager import ControllerManager
from lamina.simulator.controllers.controller_spec import ControllerKind, ControllerSpec

__all__ = ["ControllerKind", "ControllerManager", "ControllerSpec"]
