"""
Verbosity of a node agent.

``-v 0`` logs what an operator should know: starts, stops, problems and recoveries. 1 adds a line for every report, 2
for every ImageLayers object, 3 for every inventory of the runtime.
"""

from typing import Final

from lamina.services.log_lines import set_up, verbose

__all__ = ["IMAGES", "LOOKS", "REPORTS", "set_up", "verbose"]

REPORTS: Final = 1
IMAGES: Final = 2
LOOKS: Final = 3
