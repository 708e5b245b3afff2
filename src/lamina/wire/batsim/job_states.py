"""States of a job in Batsim's messages and tables."""

from typing import Final

SUBMITTED: Final = "SUBMITTED"
RUNNING: Final = "RUNNING"
SUCCESS: Final = "COMPLETED_SUCCESSFULLY"
FAILED: Final = "COMPLETED_FAILED"
WALLTIME: Final = "COMPLETED_WALLTIME_REACHED"
KILLED: Final = "COMPLETED_KILLED"
REJECTED: Final = "REJECTED"
