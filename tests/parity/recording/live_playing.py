"""Plays recorded cases once more with a real kube-scheduler on the real API server of a testbed, and compares."""

from collections.abc import AsyncIterator, Iterable

from testbed import Testbed, building
from tests.parity.comparison import compare
from tests.parity.live_comparison import LiveComparison, compare_live
from tests.parity.live_sample import FamilySample
from tests.parity.recording.live_api import LiveApi
from tests.parity.recording.recorder import CaseRecorder
from tests.parity.replay import lamina_answer


async def play_live(bed: Testbed, sample: Iterable[FamilySample]) -> AsyncIterator[LiveComparison]:
    """Yield the comparison of each case; each family gets a kube-scheduler of its own, as in the recording."""
    program = str(building.ensure("kube-scheduler", bed.version))
    for chosen in sample:
        recorder = CaseRecorder(lambda writes: LiveApi(bed, writes))
        cases = [one.case for one in chosen.cases]
        async with recorder.running(program, chosen.header.fixtures, cases=cases):
            answers = recorder.record(cases)
            for recorded in chosen.cases:
                live = (await anext(answers)).answer
                active = compare(recorded, lamina_answer(recorded.case, chosen.header.fixtures)).active
                yield compare_live(recorded, live, active)
