"""Names of the files of a run, apart from the code that writes them: help texts need the names, and load quickly."""

from typing import Final

TRACE: Final = "trace.jsonl.zst"
SUMMARY: Final = "summary.json"
JOBS: Final = "jobs.csv"
SCHEDULE: Final = "schedule.csv"
MACHINES: Final = "machine_states.csv"
