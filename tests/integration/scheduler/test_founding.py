"""The founding scenario, live."""

import pytest

from tests.e2e.founding_api import play

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed("kubectl")]


def test_pods_go_where_they_go_in_simulation_and_are_told_so_in_the_usual_words():
    """The story raises when it does not hold."""
    assert play()["as_simulated"]
