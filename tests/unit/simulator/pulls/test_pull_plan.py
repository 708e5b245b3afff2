"""How far a pull has come when each layer is there, worked out before it begins."""

import pytest

from lamina.model.digest import Digest
from lamina.model.image import Layer
from lamina.simulator.pulls.pull_plan import PullPlan


def layers(*sizes: int) -> list[Layer]:
    return [Layer(Digest(f"layer {number}"), size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "slots", "marks"),
    [
        pytest.param((100, 100, 100), 1, [100, 200, 300], id="one after the other"),
        pytest.param((100, 100, 100), 3, [300, 300, 300], id="all together"),
        # The small one has its 100 when both have moved 200; then the next shares with the large one.
        pytest.param((300, 100, 100), 2, [500, 500, 500], id="the large one at the bottom is there last"),
        pytest.param((100, 300, 100), 2, [200, 500, 500], id="what is above is needed later"),
        pytest.param((100, 200, 300), 0, [300, 500, 600], id="any number at once"),
        pytest.param((0, 100), 1, [0, 100], id="an empty layer is there at once"),
        pytest.param((), 3, [], id="no layers"),
    ],
)
def test_a_layer_can_be_unpacked_when_it_and_all_below_it_are_there(sizes, slots, marks):
    assert marks == PullPlan(layers(*sizes), sizes, 0, (), slots).marks


def test_nothing_is_planned_for_what_is_unpacked_and_nothing_downloaded_that_is_there():
    stack = layers(100, 200, 300, 400)
    plan = PullPlan(stack, (1, 2, 3, 4), 1, {stack[2].digest}, 1)

    assert (1, (stack[1], stack[3])) == (plan.first, plan.missing)
    assert (600, 9, 609) == (plan.size, plan.unpacked, plan.room)
    assert [200, 200, 600] == plan.marks


def test_a_layer_that_is_listed_twice_is_downloaded_once_and_its_second_turn_takes_a_slot():
    one, two, three = layers(100, 200, 300)
    plan = PullPlan([one, one, two, three], (0, 0, 0, 0), 0, (), 2)

    assert (one, two, three) == plan.missing
    assert [100, 100, 500, 600] == plan.marks


@pytest.mark.parametrize(
    ("moved", "there"),
    [
        pytest.param(0.0, [], id="nothing yet"),
        pytest.param(199.9, [], id="both half there"),
        pytest.param(200.0, [1], id="the small one"),
        pytest.param(400.0, [0, 1], id="both"),
    ],
)
def test_what_has_arrived_follows_from_the_bytes(moved, there):
    stack = layers(300, 100)

    assert [stack[number] for number in there] == list(PullPlan(stack, (0, 0), 0, (), 2).arrived(moved))
