"""
How much an agent says.

``-v 0`` says what somebody should know: starts, ends, troubles and their ends. 1 adds a line for every report that was
written, 2 for every image that was described, 3 for every look at the runtime.
"""

from typing import Final

from lamina.services.log_lines import set_up, verbose

__all__ = ["IMAGES", "LOOKS", "REPORTS", "set_up", "verbose"]

REPORTS: Final = 1
IMAGES: Final = 2
LOOKS: Final = 3
