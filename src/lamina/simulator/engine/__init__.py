"""
A virtual-time engine: an environment that fires callbacks, and a link that shares its rate among flows.

Knows nothing of Kubernetes and imports nothing of Lamina, so that it could be extracted as a library.
"""

from lamina.simulator.engine.environment import EngineError, Environment, Timer
from lamina.simulator.engine.link import FairLink, Flow

__all__ = ["EngineError", "Environment", "FairLink", "Flow", "Timer"]
