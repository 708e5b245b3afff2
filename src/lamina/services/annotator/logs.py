"""
Verbosity of an annotator.

``-v 0`` logs what an operator should know: starts, stops, problems and recoveries. 1 adds a line for every round.
"""

from typing import Final

from lamina.services.log_lines import set_up, verbose

__all__ = ["ROUNDS", "set_up", "verbose"]

ROUNDS: Final = 1
