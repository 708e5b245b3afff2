"""
Recorded cases of the parity suite once more, with the real kube-scheduler on a real API server.

The recordings are made with the façade. This story shows that a real API server leads to the same answers: in 300 cases of
all families (`tests.parity.live_sample`). FAMILIES names some of them, such as "preemption mixed".
"""

import asyncio
import os
import time
from typing import Any, Final

from testbed import Testbed
from tests.parity.live_comparison import LiveReport
from tests.parity.live_sample import FamilySample, live_sample
from tests.parity.recording.live_api import FLAGS
from tests.parity.recording.live_playing import play_live

NAME = "parity-live"
SUMMARY = (
    "300 recorded cases once more, with kube-scheduler on a real API server: the same answers; FAMILIES selects some."
)
NEEDS = ()

PROGRESS: Final = 20


def main() -> dict[str, Any]:
    """Play the sample; raise if an answer differs."""
    sample = list(live_sample(os.environ.get("FAMILIES", "").split()))
    report = LiveReport()
    with Testbed.start(flags=FLAGS) as bed:
        began = time.monotonic()
        asyncio.run(played(bed, sample, report))
        seconds = time.monotonic() - began
    found = {**report.figures(), "seconds": round(seconds, 1)}
    different = [one for one in report.found if one.differences]
    assert not different, f"{len(different)} of {found['cases']} cases have another answer: {found}"
    return found


async def played(bed: Testbed, sample: list[FamilySample], report: LiveReport) -> None:
    """Play all cases, and print differences and progress."""
    async for one in play_live(bed, sample):
        report.found.append(one)
        for words in one.differences:
            print(f"  {one.family} {one.number}: {words}", flush=True)
        if not len(report.found) % PROGRESS:
            print(f"  {len(report.found)} cases", flush=True)
