"""What was seen and not taken in yet: all of it, in order, in portions, with a bell that is never lost."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.events import Event, ImagesLearned, NodeGone, PodGone
from lamina.services.informers.event_queue import EventQueue
from lamina.testing import an_image
from tests.unit.services.fakes import leaping

IMAGES = [an_image(f"app:{number}", {"base": 10}) for number in range(4)]
EVENTS = st.one_of(
    st.builds(PodGone, st.sampled_from("abc")),
    st.builds(NodeGone, st.sampled_from("xyz")),
    st.builds(ImagesLearned, st.lists(st.sampled_from(IMAGES), max_size=2).map(tuple), st.sampled_from([0.0, 60.0])),
)


def pieces(events: list[Event]) -> list[object]:
    """What is told, one by one: images that are learned for good may come joined."""
    told: list[object] = []
    for event in events:
        if isinstance(event, ImagesLearned) and event.good_for == 0:
            told.extend(event.images)
        else:
            told.append(event)
    return told


@given(st.lists(EVENTS, max_size=25), st.integers(1, 7))
@settings(max_examples=40)
def test_everything_comes_out_in_the_order_it_went_in(events, portion):
    inbox = EventQueue()
    for event in events:
        inbox.put(event)
    assert len(events) == len(inbox)

    taken: list[Event] = []
    for _ in range(len(events)):
        got = inbox.take(portion)
        assert portion >= len(got)
        taken += got
    assert 0 == len(inbox)
    assert pieces(events) == pieces(taken)


def test_images_learned_one_after_the_other_are_taken_in_at_once():
    inbox = EventQueue()
    for image in IMAGES:
        inbox.put(ImagesLearned((image,)))

    assert [ImagesLearned(tuple(IMAGES))] == inbox.take(10)


def test_images_that_are_good_for_a_while_only_keep_to_themselves():
    inbox = EventQueue()
    events = [ImagesLearned((IMAGES[0],)), ImagesLearned((IMAGES[1],), 60.0), ImagesLearned((IMAGES[2],))]
    for event in events:
        inbox.put(event)

    assert events == inbox.take(10)


def test_the_bell_rings_until_everything_is_taken():
    async def story() -> list[float]:
        inbox, loop = EventQueue(), asyncio.get_running_loop()
        inbox.put(PodGone("a"))
        inbox.put(PodGone("b"))
        times = []
        for _ in range(3):
            await inbox.wait(10.0)
            times.append(loop.time() - 1000.0)
            inbox.take(1)
        return times

    assert [0.0, 0.0, 10.0] == pytest.approx(leaping(story()))


@pytest.mark.parametrize("timeout", [0.0, -5.0])
def test_without_patience_nobody_waits(timeout):
    async def story() -> float:
        await EventQueue().wait(timeout)
        return asyncio.get_running_loop().time()

    assert 1000.0 == leaping(story())


def test_a_ring_that_came_before_the_wait_counts():
    async def story() -> float:
        inbox = EventQueue()
        inbox.wake()
        await inbox.wait(None)
        return asyncio.get_running_loop().time()

    assert 1000.0 == leaping(story())


def test_who_waits_without_end_is_woken_by_the_next_event():
    async def story() -> float:
        inbox = EventQueue()
        asyncio.get_running_loop().call_later(7.0, inbox.put, PodGone("a"))
        await inbox.wait(None)
        return asyncio.get_running_loop().time()

    assert 1007.0 == pytest.approx(leaping(story()))
