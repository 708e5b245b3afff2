"""Inventory and pods on their way: what they bring, and what becomes known before or after them."""

import pytest

from lamina.layers.inventory import Inventory
from lamina.testing import held
from tests.unit.layers.shelf import (
    APP,
    APP_ON_OS,
    COLD_APP,
    COLD_BIG,
    NEW,
    OS,
    TOOL_ON_OS,
    but,
    seconds,
)


def test_a_bound_pod_brings_its_images(inventory):
    """A pod with the same images waits for them; a pod with other images queues."""
    inventory.report(held("n1"))

    assert [4] == inventory.expect("p", "n1", ("app:1", "os:1", "app:1"))
    assert {OS.digest, APP.digest} == inventory.index.expected(4)
    inventory.expect("p", "n1", ("app:1",))
    assert COLD_APP == pytest.approx(seconds(inventory, "app:1"))
    assert COLD_APP + TOOL_ON_OS == pytest.approx(seconds(inventory, "tool:1"))
    assert (False, [4]) == inventory.pass_time(3.0)
    assert COLD_APP - 3 == pytest.approx(seconds(inventory, "app:1"))


def test_a_pod_that_lacks_nothing_changes_nothing(inventory):
    inventory.report(held("n1", APP))

    assert ([], []) == (inventory.expect("p", "n1", ("app:1",)), inventory.gone("p"))


def test_a_pod_that_runs_has_its_images(inventory):
    """Before its node reports them; and then the report counts, whatever it says."""
    inventory.report(held("n1"))
    inventory.expect("p", "n1", ("app:1",))
    inventory.pass_time(7.0)

    assert [4] == inventory.ran("p")
    assert 0 == seconds(inventory, "app:1")
    inventory.report(but(held("n1", sequence=2), observed_at=6.0))
    assert 0 == seconds(inventory, "app:1")
    inventory.report(but(held("n1", sequence=3), observed_at=7.0))
    assert COLD_APP == pytest.approx(seconds(inventory, "app:1"))
    assert ([], []) == (inventory.ran("p"), inventory.ran("stranger"))


def test_a_node_whose_clock_is_ahead_ends_no_deductions_of_the_future(inventory):
    """Its report is looked at again when an image becomes known, long after the pod ran."""
    inventory.report(but(held("n1", NEW), observed_at=1e9))
    inventory.expect("p", "n1", ("app:1",))
    inventory.pass_time(7.0)
    inventory.ran("p")
    inventory.learn([NEW])

    assert 0 == seconds(inventory, "app:1")


def test_a_pod_that_was_not_bound_after_all_takes_its_images_back(inventory):
    inventory.report(held("n1"))
    inventory.expect("p", "n1", ("big:1",))

    assert [4] == inventory.gone("p")
    assert COLD_APP == pytest.approx(seconds(inventory, "app:1"))


def test_a_pod_that_turns_up_elsewhere_is_expected_there(inventory):
    """Both rows are told of."""
    inventory.join("n2", "", 1)
    inventory.expect("p", "n1", ("app:1",))

    assert [4, 1] == inventory.expect("p", "n2", ("app:1",))
    assert (frozenset(), {APP.digest}) == (inventory.index.expected(4), inventory.index.expected(1))


def test_a_pod_may_come_before_its_node():
    """And the node's report before both: only what is missing is on its way."""
    made = Inventory()
    made.learn([OS, APP])
    made.report(but(held("n1", OS), download_rate=12.5e6))

    assert [] == made.expect("p", "n1", ("app:1", "os:1"))
    assert made.join("n1", "", 0)
    assert {APP.digest} == made.index.expected(0)
    # 125 MB at 12.5 MB/s, 100 MB unpacked.
    assert 10 + 0.15 * 1 + 0.04 == pytest.approx(seconds(made, "app:1", row=0))


def test_a_pod_may_come_before_its_nodes_report(inventory):
    """What was planned without knowing what is there and how fast it goes is planned anew."""
    inventory.expect("p", "n1", ("app:1",))
    inventory.report(but(held("n1", OS), download_rate=12.5e6))

    assert 10 + 0.15 * 1 + 0.04 == pytest.approx(seconds(inventory, "app:1"))


def test_a_pod_may_come_before_its_image_is_known(inventory):
    """It is expected from then on, behind what was planned in the meantime."""
    inventory.report(held("n1"))
    inventory.expect("p", "n1", ("new:1",))
    inventory.expect("q", "n1", ("app:1",))

    assert (True, [4]) == inventory.learn([NEW])
    assert COLD_APP + APP_ON_OS == pytest.approx(seconds(inventory, "new:1"))


def test_learning_something_else_leaves_plans_alone(inventory):
    """No pull loses its place, and layers that pulls share are remembered."""
    inventory.report(held("n1"))
    for pod, name in (("p", "big:1"), ("q", "app:1"), ("r", "tool:1")):
        inventory.expect(pod, "n1", (name,))
    before = inventory.arrivals.queue_end[4]

    assert (True, []) == inventory.learn([NEW])
    assert before == inventory.arrivals.queue_end[4] == pytest.approx(COLD_BIG + COLD_APP + TOOL_ON_OS)


def test_an_image_in_a_report_that_becomes_known_may_bring_a_base(inventory):
    """What waits in the queue then takes less."""
    inventory.report(held("n1", NEW))
    inventory.expect("p", "n1", ("app:1",))
    inventory.learn([NEW])

    assert APP_ON_OS == pytest.approx(seconds(inventory, "app:1"))


def test_pods_of_a_node_that_left_say_nothing_about_the_next_in_its_row(inventory):
    """A late word that one of them runs, while another pod waits for the same image there."""
    inventory.expect("old", "n1", ("app:1",))
    inventory.leave("n1")
    inventory.join("n2", "", 4)
    inventory.report(held("n2"))
    inventory.expect("new", "n2", ("app:1",))

    assert [] == inventory.ran("old")
    assert COLD_APP == pytest.approx(seconds(inventory, "app:1"))


def test_pods_of_a_node_that_comes_back_are_expected_again(inventory):
    """In whichever row."""
    inventory.expect("p", "n1", ("app:1",))
    inventory.leave("n1")
    assert frozenset() == inventory.index.expected(4)
    inventory.join("n1", "uid-1", 2)

    assert {APP.digest} == inventory.index.expected(2)
