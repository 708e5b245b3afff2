"""
The batch job of a pod, as an annotation: which job of which workload it belongs to.

Imports of Batsim and SWF workloads write it. Results in Batsim's format and the runs of Batsim's decision processes
read it, because the pods of a job are one row there, and one job.
"""

from typing import Final

import msgspec

JOB_ANNOTATION: Final = "lamina.dev/batsim-job"


class BatsimJob(msgspec.Struct, frozen=True):
    """The Batsim job of a pod, kept as an annotation so that results can be written in Batsim's format."""

    workload: str
    job: str
    profile: str
    res: int
    walltime: float = -1.0
    """Seconds; -1: no limit."""

    def written(self) -> dict[str, str]:
        """Return the annotations for its pods."""
        return {JOB_ANNOTATION: msgspec.json.encode(self).decode()}


_DECODER: Final = msgspec.json.Decoder(BatsimJob)


def job_of(annotations: dict[str, str]) -> BatsimJob | None:
    """Return the job of a pod from its annotations; None without a readable one."""
    text = annotations.get(JOB_ANNOTATION)
    if text is None:
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
