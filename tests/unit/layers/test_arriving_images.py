"""Arrivals: images on their way to nodes, and when they will be there."""

from typing import Any

import numpy as np
import pytest

from lamina.layers.arriving_images import DEDUCED_FOR, NEVER, PATIENCE_AT_LEAST, TICK, ArrivingImages
from lamina.layers.bit_matrix import FIRST_ROWS
from lamina.layers.layer_index import LayerIndex
from lamina.layers.pull_rates import PullRates
from lamina.model.image import Image
from tests.unit.layers.shelf import APP, APP_ON_OS, BIG, COLD_APP, COLD_BIG, COLD_TOOL, OS, TOOL, TOOL_ON_OS


class Dock:
    """Arrivals with their index and rates."""

    def __init__(self) -> None:
        self.index = LayerIndex()
        self.rates = PullRates(FIRST_ROWS)
        self.arrivals = ArrivingImages(self.index, self.rates)

    def at(self, now: float) -> list[int]:
        return self.arrivals.pass_time(now)

    def plan(self, row: int = 0) -> dict[str, Any]:
        """Tell the images on their way and when they should be there."""
        found = {image.names[0]: pytest.approx(eta) for image, eta in self.arrivals.on(row)}
        assert found.keys() == {image.names[0] for image in IMAGES if image.digest in self.index.expected(row)}
        etas = {image: rows[row] for image, rows in self.arrivals.etas.items() if row in rows}
        assert {image.digest: eta for image, eta in self.arrivals.on(row)} == etas
        return found

    def hold(self, *images: Image, observed_at: float | None = None, anew: bool = False) -> None:
        """Row 0 reports."""
        self.index.hold(0, images)
        seen = self.arrivals.now if observed_at is None else observed_at
        self.arrivals.reported(0, seen, anew=anew)


IMAGES = [OS, APP, TOOL, BIG]


@pytest.fixture
def dock():
    return Dock()


# -------------------------------------------------------------------------------------------------------------- planning


def test_a_bound_pod_brings_its_images(dock):
    """Pulled one after the other, and what they share once: the base comes with the first."""
    assert dock.arrivals.expect("p", 0, [APP, TOOL])
    assert {"app:1": COLD_APP, "tool:1": COLD_APP + TOOL_ON_OS} == dock.plan()
    assert COLD_APP + TOOL_ON_OS == pytest.approx(dock.arrivals.queue_end[0])


def test_only_what_is_missing_is_on_its_way(dock):
    """APP is there, and with it the base of TOOL."""
    dock.hold(APP)

    assert dock.arrivals.expect("p", 0, [APP, TOOL])
    assert {"tool:1": TOOL_ON_OS} == dock.plan()
    assert not dock.arrivals.expect("q", 0, [APP])


def test_pods_that_need_the_same_image_wait_for_one_pull(dock):
    """The second changes nothing about it."""
    dock.arrivals.expect("p", 0, [APP])
    dock.at(1.0)

    assert dock.arrivals.expect("q", 0, [APP])
    assert {"app:1": COLD_APP} == dock.plan()


def test_pulls_queue_in_the_order_the_pods_came(dock):
    """Each begins when the one before it should end."""
    dock.arrivals.expect("p", 0, [BIG])
    dock.at(10.0)
    dock.arrivals.expect("q", 0, [TOOL])
    dock.at(20.0)
    dock.arrivals.expect("r", 0, [APP])

    expected = {"big:1": COLD_BIG, "tool:1": COLD_BIG + COLD_TOOL, "app:1": COLD_BIG + COLD_TOOL + APP_ON_OS}
    assert expected == dock.plan()


def test_each_row_pulls_by_itself_and_at_its_own_rate(dock):
    """Row 9 downloads at 12.5 MB/s: 30 s instead of 3."""
    dock.rates.observe(9, 12.5e6, 0.0, 0, 0)
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 9, [APP])

    assert ({"app:1": COLD_APP}, {"app:1": 30 + 0.15 * 5 + 0.04}) == (dock.plan(0), dock.plan(9))
    assert {0: pytest.approx(COLD_APP), 9: pytest.approx(30.79)} == dock.arrivals.etas[APP.digest]


def test_a_queue_that_should_be_empty_by_now_delays_no_pull(dock):
    """The first pull is overdue; the next begins now."""
    dock.arrivals.expect("p", 0, [APP])
    dock.at(30.0)
    dock.arrivals.expect("q", 0, [TOOL])

    assert {"app:1": COLD_APP, "tool:1": 30 + TOOL_ON_OS} == dock.plan()


@pytest.mark.parametrize("row", [FIRST_ROWS - 1, FIRST_ROWS, 5 * FIRST_ROWS])
def test_images_may_arrive_on_a_row_beyond_the_capacity(dock, row):
    """Pods are bound to nodes that have not reported yet, however many nodes there are."""
    assert dock.arrivals.expect("p", row, [APP])
    assert {"app:1": COLD_APP} == dock.plan(row)
    assert len(dock.arrivals.queue_end) > row


def test_who_is_told_again_of_the_same_pod_plans_nothing_anew(dock):
    """Its images keep their places, and what they share with others stays counted once."""
    for pod, image in (("p", BIG), ("q", APP), ("r", TOOL)):
        dock.arrivals.expect(pod, 0, [image])
    before = dock.plan()

    assert [False] * 3 == [
        dock.arrivals.expect(pod, 0, [image]) for pod, image in (("q", APP), ("r", TOOL), ("q", APP))
    ]
    assert before == dock.plan()


def test_an_image_that_became_known_later_queues_behind_the_others(dock):
    """The pod needs two images, and of one it was not known what it consists of."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 0, [BIG])

    assert dock.arrivals.expect("p", 0, [APP, TOOL])
    assert {"app:1": COLD_APP, "big:1": COLD_APP + COLD_BIG, "tool:1": COLD_APP + COLD_BIG + TOOL_ON_OS} == dock.plan()


def test_a_pod_that_turns_up_elsewhere_is_expected_there_alone(dock):
    """It cannot be in two places."""
    dock.arrivals.expect("p", 0, [APP])

    assert dock.arrivals.expect("p", 1, [APP])
    assert ({}, {"app:1": COLD_APP}) == (dock.plan(0), dock.plan(1))


# ------------------------------------------------------------------------------------------------------------ pods that run


def test_when_a_pod_runs_its_images_are_there(dock):
    """The remaining time is zero at once, also before the next tick, and the rest of the queue moves up."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 0, [BIG])
    dock.at(2 * TICK)
    dock.at(2.5 * TICK)

    assert 0 == dock.arrivals.ran("p")
    assert {"app:1": 2 * TICK, "big:1": 2.5 * TICK + COLD_BIG} == dock.plan()
    assert 2.5 * TICK + COLD_BIG == pytest.approx(dock.arrivals.queue_end[0])


def test_what_has_begun_goes_on_when_a_pod_runs(dock):
    """The first image came when it should; the second has been pulled since then."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 0, [BIG])
    dock.at(20.0)
    dock.arrivals.ran("p")

    assert COLD_APP + COLD_BIG == dock.plan()["big:1"]


def test_a_pod_that_waited_for_nothing_changes_nothing(dock):
    dock.arrivals.expect("p", 0, [APP])

    assert (None, None) == (dock.arrivals.ran("stranger"), dock.arrivals.gone("stranger"))
    dock.arrivals.ran("p")
    assert dock.arrivals.ran("p") is None


def test_of_two_pods_that_wait_for_the_same_image_the_first_proves_that_it_is_there(dock):
    """The second proves nothing new."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 0, [APP])

    assert (0, None) == (dock.arrivals.ran("p"), dock.arrivals.ran("q"))


def test_an_image_a_pod_ran_with_is_not_pulled_again(dock):
    """Although no report has it yet."""
    dock.arrivals.expect("p", 0, [APP])
    dock.at(9.0)
    dock.arrivals.ran("p")
    dock.arrivals.expect("q", 0, [APP, TOOL])

    assert {"app:1": 9.0, "tool:1": 9 + TOOL_ON_OS} == dock.plan()


@pytest.mark.parametrize(
    ("observed_at", "stays"),
    [
        pytest.param(8.9, True, id="made before the pod ran"),
        pytest.param(9.0, False, id="made when it ran"),
        pytest.param(9.1, False, id="made later"),
    ],
)
def test_a_report_ends_deductions_and_may_contradict_them(dock, observed_at, stays):
    """The report does not list the image: it knows better, unless it is older than the proof."""
    dock.arrivals.expect("p", 0, [APP])
    dock.at(9.0)
    dock.arrivals.ran("p")
    dock.hold(observed_at=observed_at)

    assert ({"app:1": 9.0} if stays else {}) == dock.plan()


def test_a_deduction_that_no_report_confirms_expires(dock):
    dock.arrivals.expect("p", 0, [APP])
    dock.at(9.0)
    dock.arrivals.ran("p")
    dock.at(9.0 + DEDUCED_FOR)
    assert {"app:1": 9.0} == dock.plan()

    assert [0] == dock.at(9.5 + DEDUCED_FOR)
    assert {} == dock.plan()


# --------------------------------------------------------------------------------------------------------- pods that vanish


def test_what_only_a_pod_that_is_gone_waited_for_is_not_pulled(dock):
    """Unless it has begun, which runtimes carry through. The rest moves up."""
    dock.arrivals.expect("p", 0, [BIG])
    dock.arrivals.expect("q", 0, [APP])
    dock.arrivals.expect("r", 0, [TOOL])
    dock.at(1.0)

    assert 0 == dock.arrivals.gone("q")
    assert {"big:1": COLD_BIG, "tool:1": COLD_BIG + COLD_TOOL} == dock.plan()
    assert 0 == dock.arrivals.gone("p")
    assert {"big:1": COLD_BIG, "tool:1": COLD_BIG + COLD_TOOL} == dock.plan()


def test_a_pod_that_was_not_bound_after_all_leaves_nothing(dock):
    """Its pull has not begun: no time has passed."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.gone("p")

    assert ({}, {}, NEVER) == (dock.plan(), dock.arrivals.etas, dock.arrivals.queue_end[0])
    assert 0 == len(dock.index)


def test_the_base_that_would_have_come_with_an_image_is_pulled_with_the_next(dock):
    """The one that would have brought it is not pulled."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 0, [TOOL])
    dock.arrivals.gone("p")

    assert {"tool:1": COLD_TOOL} == dock.plan()


def test_an_image_that_another_pod_waits_for_stays(dock):
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 0, [APP])
    dock.arrivals.gone("p")

    assert {"app:1": COLD_APP} == dock.plan()


def test_what_a_pod_ran_with_stays_when_it_is_gone(dock):
    """Kubelets remove images later, if at all, and report it."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.ran("p")
    dock.arrivals.gone("p")

    assert {"app:1": 0.0} == dock.plan()


# ------------------------------------------------------------------------------------------------------------------ reports


def test_an_image_that_is_reported_has_arrived(dock):
    """The others go on."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 0, [TOOL])
    dock.at(6.0)
    dock.hold(APP)

    assert {"tool:1": COLD_APP + TOOL_ON_OS} == dock.plan()
    assert not dock.arrivals.reported(1, 0.0)


def test_pulls_that_wait_are_planned_anew_after_a_surprise(dock):
    """The row has the base already: what follows the pull that has begun takes less."""
    dock.arrivals.expect("p", 0, [BIG])
    dock.arrivals.expect("q", 0, [APP])
    dock.at(1.0)
    dock.hold(OS, anew=True)

    assert {"big:1": COLD_BIG, "app:1": COLD_BIG + APP_ON_OS} == dock.plan()


# ---------------------------------------------------------------------------------------------------------------- overdue


@pytest.mark.parametrize(
    ("image", "seconds", "patience"),
    [
        pytest.param(APP, COLD_APP, PATIENCE_AT_LEAST, id="a short pull: a minute more"),
        pytest.param(BIG, COLD_BIG, 3 * COLD_BIG, id="a long one: three times as long"),
    ],
)
@pytest.mark.parametrize("reports", [0, 20], ids=["no reports", "reports that do not list it"])
def test_an_image_that_does_not_come_is_not_expected_for_ever(dock, image, seconds, patience, reports):
    """Something is wrong with it; that the node goes on reporting other things is no excuse."""
    dock.arrivals.expect("p", 0, [image])
    for number in range(1, reports):
        dock.at(number * (seconds + patience) / reports)
        dock.hold()
    dock.at(seconds + patience - 0.5)
    assert [image.names[0]] == list(dock.plan())

    assert [0] == dock.at(seconds + patience + 0.5)
    assert ({}, NEVER) == (dock.plan(), dock.arrivals.queue_end[0])


def test_an_image_that_was_given_up_is_not_expected_again_for_the_same_pod(dock):
    """Also if it is told of once more; another pod may try."""
    dock.arrivals.expect("p", 0, [APP])
    dock.at(1000.0)

    assert not dock.arrivals.expect("p", 0, [APP])
    assert dock.arrivals.expect("q", 0, [APP])
    assert {"app:1": 1000 + COLD_APP} == dock.plan()


def test_what_would_have_come_with_an_image_that_was_given_up_is_pulled_later(dock):
    """APP is given up while BIG is being pulled; TOOL, which waits, now has to bring the base itself."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 0, [BIG])
    dock.arrivals.expect("r", 0, [TOOL])
    dock.at(COLD_APP + PATIENCE_AT_LEAST + 1)

    assert {"big:1": COLD_APP + COLD_BIG, "tool:1": COLD_APP + COLD_BIG + COLD_TOOL} == dock.plan()


# -------------------------------------------------------------------------------------------------------------------- time


def test_time_alone_changes_something_where_images_are_being_pulled(dock):
    """Every quarter of a second; not where a pod has run with them."""
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 4, [APP])
    dock.arrivals.ran("q")
    position, moves = dock.index.position, dock.arrivals.moves

    assert ([], [0], [], [0]) == (dock.at(0.2), dock.at(0.25), dock.at(0.4), dock.at(0.6))
    assert (position, moves + 2) == (dock.index.position, dock.arrivals.moves)
    assert (0.6, 0.6) == (dock.arrivals.now, dock.arrivals.clock)


# --------------------------------------------------------------------------------------------------------------- used rows


def test_a_row_that_is_forgotten_expects_nothing(dock):
    dock.arrivals.expect("p", 0, [APP])
    dock.arrivals.expect("q", 1, [APP])
    dock.arrivals.forget(0)
    dock.arrivals.forget(7)

    assert ({}, {"app:1": COLD_APP}) == (dock.plan(0), dock.plan(1))
    assert [1] == np.flatnonzero(~np.isneginf(dock.arrivals.queue_end)).tolist()


@pytest.mark.parametrize("given_up", [False, True], ids=["while it was pulled", "after it had come"])
@pytest.mark.parametrize("deed", ["ran", "gone"])
def test_pods_of_a_node_that_left_say_nothing_about_the_next_in_its_row(dock, deed, given_up):
    """Another node has the row, and its own pod waits for the same image."""
    dock.arrivals.expect("old", 0, [APP])
    if given_up:
        dock.hold(APP)
        dock.index.forget(0)
    dock.arrivals.forget(0)
    dock.arrivals.expect("new", 0, [APP])

    assert getattr(dock.arrivals, deed)("old") is None
    assert {"app:1": COLD_APP} == dock.plan()
