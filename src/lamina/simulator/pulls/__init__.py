"""How images get onto a node: what its runtime holds, and in which order and how fast the rest arrives."""

from lamina.simulator.pulls.puller import Pull, Puller, Watcher
from lamina.simulator.pulls.store import Store

__all__ = ["Pull", "Puller", "Store", "Watcher"]
