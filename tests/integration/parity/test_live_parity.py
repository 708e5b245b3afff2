"""
kube-scheduler gives the recorded answers on a real API server, too; the recordings were made with the façade.

Four cases here: two that preempt, one whose volumes are made for it, and one with spreading. `make e2e NAME=parity-live`
plays 300.
"""

import asyncio

import pytest

from testbed import Testbed
from tests.parity.case_files import DATA, read_recording
from tests.parity.live_comparison import LiveComparison, LiveReport
from tests.parity.live_sample import FamilySample
from tests.parity.recording.live_api import FLAGS
from tests.parity.recording.live_playing import play_live

pytestmark = pytest.mark.realtime


def picked(family: str, *numbers: int) -> FamilySample:
    header, cases = read_recording(DATA / f"{family}.jsonl.zst")
    return FamilySample(family, header, [one for one in cases if one.case.number in numbers])


async def played(bed: Testbed, sample: list[FamilySample]) -> list[LiveComparison]:
    return [one async for one in play_live(bed, sample)]


@pytest.mark.slow
@pytest.mark.testbed("kube-scheduler")
def test_kube_scheduler_gives_the_recorded_answers_on_a_real_api_server(bed_factory):
    sample = [picked("volume-binding", 131), picked("preemption", 32, 109), picked("topology-spread", 0)]

    found = asyncio.run(played(bed_factory(flags=FLAGS), sample))

    assert [] == [(one.family, one.number, one.differences) for one in found if one.differences]
    figures = LiveReport(found=found).figures()
    assert (4, 4, 2) == (figures["cases"], figures["feasible_equal"], figures["victims_equal"])
    assert 0 < figures["score_triples"] == figures["score_triples_equal"]
