"""Asked to stop, a scheduler ends what it has begun, within bounds."""

import pytest

from tests.integration.scheduler import stopping

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed()]


def test_what_was_begun_is_ended_and_the_next_one_goes_on(bed):
    figures = stopping.stopped(bed, pods=200, qps=60)

    assert 0 == figures["not_finished"]


def test_it_ends_although_the_server_is_gone(bed):
    assert 0 == stopping.stopped_without_a_server(bed, pods=100)["exit_code"]


def test_it_ends_although_much_is_left_to_send_and_says_so(bed):
    figures = stopping.stopped_with_a_queue(bed)

    assert figures["bound"] == figures["told"]


def test_asked_twice_it_ends_at_once_and_does_not_call_that_a_success(bed):
    assert 1 == stopping.stopped_twice(bed)["exit_code"]
