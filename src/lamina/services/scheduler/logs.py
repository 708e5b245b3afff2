"""
How much the scheduler says.

``-v N`` means what it means to kube-scheduler: 0 what somebody should know, 2 every binding and every pod that fits
nowhere, 3 every attempt, 4 and more for who looks for a mistake, 10 every score of every node.
"""

from typing import Final

from lamina.services.log_lines import set_up, verbose

__all__ = ["ATTEMPTS", "BINDINGS", "SCORES", "set_up", "verbose"]

BINDINGS: Final = 2
ATTEMPTS: Final = 3
SCORES: Final = 10
"""The verbosity from which on scores are told, node by node."""
