"""How images get onto a node and off it again: what it holds, how the rest arrives, what goes when the disk is full."""

from lamina.simulator.pulls.pull import Pull, Watcher, Why
from lamina.simulator.pulls.puller import NO_SPACE, TOO_MANY, Puller
from lamina.simulator.pulls.source import Source, Sources
from lamina.simulator.pulls.spec import CONTAINERD, DiskSpec, RuntimeSpec
from lamina.simulator.pulls.store import Store

__all__ = [
    "CONTAINERD",
    "NO_SPACE",
    "TOO_MANY",
    "DiskSpec",
    "Pull",
    "Puller",
    "RuntimeSpec",
    "Source",
    "Sources",
    "Store",
    "Watcher",
    "Why",
]
