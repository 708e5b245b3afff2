"""
Verbosity of the scheduler.

``-v N`` is the same as for kube-scheduler: 0 what an operator should know, 2 every binding and every unschedulable pod,
3 every attempt, 4 and more for debugging, 10 every score of every node.
"""

from typing import Final

from lamina.services.log_lines import set_up, verbose

__all__ = ["ATTEMPTS", "BINDINGS", "SCORES", "set_up", "verbose"]

BINDINGS: Final = 2
ATTEMPTS: Final = 3
SCORES: Final = 10
"""Verbosity from which on the score of every node is logged."""
