"""What a pod remembers of the Batsim job it came from, so that results can be told in Batsim's words."""

from typing import Final

import msgspec

ANNOTATION: Final = "lamina.dev/batsim-job"


class BatsimJob(msgspec.Struct, frozen=True):
    """One job, as its workload has it."""

    workload: str
    job: str
    profile: str
    res: int
    walltime: float = -1.0
    """Seconds; -1: none."""

    def written(self) -> dict[str, str]:
        """Return the annotations of its pods."""
        return {ANNOTATION: msgspec.json.encode(self).decode()}


_DECODER: Final = msgspec.json.Decoder(BatsimJob)


def job_of(annotations: dict[str, str]) -> BatsimJob | None:
    """Return the job a pod came from; None when it came from elsewhere, or somebody wrote something else there."""
    text = annotations.get(ANNOTATION)
    if text is None:
        return None
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError):
        return None
