"""The sample that is played on a real API server has different cases, all of which can be stored there."""

import pytest

from tests.parity.case_files import recordings
from tests.parity.live_sample import PER_FAMILY, PREEMPTION, live_sample
from tests.parity.recording.sendable_objects import refused

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("family", "count"),
    [
        pytest.param("preemption", PREEMPTION, id="a third preempts"),
        pytest.param("volume-zone", PER_FAMILY, id="many labels are invalid"),
    ],
)
def test_a_family_gives_different_cases_that_an_api_server_can_store(family, count):
    (found,) = live_sample([family])
    cases = [one.case for one in found.cases]

    assert [family] == sorted({one.family for one in cases})
    assert count == len({one.number for one in cases}) == len(cases)
    assert [] == [one for one in cases if refused(one)]


def test_all_families_together_give_300_cases():
    assert 300 == PER_FAMILY * (len(recordings()) - 1) + PREEMPTION
