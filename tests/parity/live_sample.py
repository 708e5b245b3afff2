"""
The sample of 300 recorded cases that a real API server plays once more.

Each family gives `PER_FAMILY` cases at equal distances, and the family about preemption `PREEMPTION`, because in only a
third of its cases kube-scheduler evicts pods. A case that an API server cannot store gives its place to the next one of
its family.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from tests.parity.case_files import RecordedCase, RecordingHeader, read_recording, recordings
from tests.parity.recording.sendable_objects import refused

PER_FAMILY: Final = 12
PREEMPTION: Final = 60


class FamilySample(msgspec.Struct, frozen=True):
    """The chosen cases of one family."""

    family: str
    header: RecordingHeader
    cases: list[RecordedCase]


def live_sample(families: Sequence[str] = ()) -> Iterator[FamilySample]:
    """Yield the sample, family by family: of these *families*, or of all if none is named."""
    for path in recordings():
        family = path.name.partition(".")[0]
        if not families or family in families:
            header, cases = read_recording(path)
            count = PREEMPTION if family == "preemption" else PER_FAMILY
            yield FamilySample(family, header, _spaced(list(cases), count))


def _spaced(cases: list[RecordedCase], count: int) -> list[RecordedCase]:
    """Return *count* cases at equal distances, or instead of one that an API server cannot store, the next one."""
    taken: dict[int, None] = {}
    for number in range(count):
        place = number * len(cases) // count
        following = (one % len(cases) for one in range(place, place + len(cases)))
        found = next((one for one in following if one not in taken and not refused(cases[one].case)), None)
        if found is not None:
            taken[found] = None
    return [cases[one] for one in taken]
