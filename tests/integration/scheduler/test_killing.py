"""A scheduler that dies at any moment leaves nothing half done. The story `scheduler-killed` does it fifty times."""

import pytest

from tests.integration.scheduler.killing import killed

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed()]


def test_every_pod_is_bound_once_however_often_the_scheduler_is_killed(bed):
    figures = killed(bed, pods=120, kills=8, over=12.0, seed=1)

    assert 120 == figures["bound"]
