"""
How much an annotator says.

``-v 0`` says what somebody should know: starts, ends, troubles and their ends. 1 adds a line for every round.
"""

from typing import Final

from lamina.services.log_lines import set_up, verbose

__all__ = ["ROUNDS", "set_up", "verbose"]

ROUNDS: Final = 1
