"""
Virtual-time engine: an environment that fires callbacks, and a network whose links are shared by transfers.

It does not depend on Kubernetes or on the rest of Lamina, so it can be extracted as a library.
"""

from lamina.simulator.engine.environment import EngineError, Environment, Timer
from lamina.simulator.engine.link import Link, Transfer
from lamina.simulator.engine.network import Network

__all__ = ["EngineError", "Environment", "Link", "Network", "Timer", "Transfer"]
