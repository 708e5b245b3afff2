"""Whatever happens between scheduler and API server, each pod is bound once and no node is given too much."""

import pytest

from tests.integration.scheduler import faults

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed()]


@pytest.mark.parametrize(
    ("request_", "before"),
    [
        pytest.param("/binding ", False, id="answers to bindings"),
        pytest.param("/binding ", True, id="bindings themselves"),
        pytest.param(" HTTP", False, id="answers to everything but watches"),
    ],
)
def test_what_is_lost_on_the_way_is_neither_lost_nor_done_twice(bed, request_, before):
    figures = faults.answers_lost(bed, pods=80, share=0.5, request=request_, before=before)

    assert figures["lost"] > 20


def test_room_that_may_have_been_taken_is_not_given_away(bed):
    """A binding was done and nobody heard of it: not its answer, not the answer to a question, and no watch tells."""
    figures = faults.half_deaf(bed, room=80, pods=160, deaf_for=6.0, share=0.5)

    assert figures["lost"] > 20


def test_an_api_server_may_die_in_the_middle_of_a_burst(bed):
    figures = faults.outage(bed, pods=120, away=2.0)

    assert figures["bound_before"] < 120


def test_watches_may_be_cut_again_and_again(bed):
    figures = faults.cut_again_and_again(bed, pods=200, every=0.3, during=4.0)

    assert figures["cuts"] > 10


def test_conditions_that_were_lost_are_written_although_nothing_changes_any_more(bed):
    figures = faults.conditions_lost(bed, pods=12, lost=24)

    assert figures["lost"] >= 24
    assert 0 == figures["written_before"]
