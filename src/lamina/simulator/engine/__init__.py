"""
A virtual-time engine: an environment that fires callbacks, and a network whose links are shared by transfers.

Knows nothing of Kubernetes and imports nothing of Lamina, so that it could be extracted as a library.
"""

from lamina.simulator.engine.environment import EngineError, Environment, Timer
from lamina.simulator.engine.link import Link, Transfer
from lamina.simulator.engine.network import Network

__all__ = ["EngineError", "Environment", "Link", "Network", "Timer", "Transfer"]
