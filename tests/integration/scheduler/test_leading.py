"""Of two schedulers one binds. The story `scheduler-leaders` has kube-scheduler's times; here they are shorter."""

import pytest

from tests.integration.scheduler.leading import Terms, led

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed()]


def test_a_leader_that_was_paused_binds_nothing_until_it_leads_again(bed):
    figures = led(bed, Terms(lease=4, renew=3, retry=1), paused_for=8.0, per_second=5.0)

    assert 0 == figures["bound_without_leading"]
