"""Whom is asked about which image, how many at a time, and what is counted."""

import asyncio

import pytest

from lamina.clients.oci.lookup_results import BUSY, ImageNotFound
from lamina.model.events import ImagesLearned, LayersReported, PodSeen
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.services.informers import pod_image_resolver
from lamina.services.informers.pod_image_resolver import (
    CACHE,
    CATALOG,
    FAILED,
    FOUND,
    MOST_IMAGES,
    NO_REFERENCE,
    REGISTRY,
)
from lamina.testing import a_digest, a_pod
from tests.unit.services.fakes import leaping
from tests.unit.services.informers.asking import DOWN, Entry, found


def played(play, answers=None, **more):
    async def story():
        async with Entry(answers, **more) as entry:
            await play(entry)
            await asyncio.sleep(30.0)
        return entry

    return leaping(story())


def test_registries_of_nodes_are_told_before_anybody_is_asked():
    async def play(entry):
        report = LayerReport(node="n0", images=(HeldImage(a_digest("x"), 0, ("quay.io/a:1",)),))
        entry.door.put(LayersReported(report))
        entry.door.put(PodSeen(a_pod(image="quay.io/b:1")))
        assert ("quay.io",) == entry.finder.hosts

    played(play)


def test_everything_that_is_looked_at_is_counted_once():
    async def play(entry):
        entry.know("known:1")
        entry.finder.remembered |= {"cached:1": found("cached:1"), "down:1": DOWN}
        images = ["known:1", "cached:1", "down:1", "", "asked:1", "busy:1", "breaks:1"]
        entry.door.put(PodSeen(a_pod(images=images)))
        entry.door.put(PodSeen(a_pod("p2", image="known:1")))

    answers = {
        "asked:1": (0.1, found("asked:1")),
        "busy:1": (0.1, ImageNotFound(BUSY, "")),
        "breaks:1": (0.1, OSError("broken")),
    }
    assert {
        (CATALOG, FOUND): 2,
        (CATALOG, NO_REFERENCE): 1,
        (CACHE, FOUND): 1,
        (CACHE, DOWN.reason): 1,
        (REGISTRY, FOUND): 1,
        (REGISTRY, BUSY): 1,
        (REGISTRY, FAILED): 1,
    } == dict(played(play, answers).resolving.counts)


@pytest.mark.parametrize(
    ("good_for", "inside"),
    [
        pytest.param(300.0, 300.0, id="minutes"),
        pytest.param(float("inf"), 86_400.0, id="for ever: a day, then it is asked for again"),
        pytest.param(0.0, 1.0, id="no longer good is not for ever"),
    ],
)
def test_an_answer_counts_for_as_long_as_it_is_good(good_for, inside):
    async def play(entry):
        entry.door.put(PodSeen(a_pod()))

    entry = played(play, {"app:1": (0.1, found("app:1", good_for))})
    assert [inside] == [event.good_for for _, event in entry.inside.events if isinstance(event, ImagesLearned)]


def test_of_a_pod_with_very_many_images_the_first_are_looked_at():
    async def play(entry):
        entry.door.put(PodSeen(a_pod(images=[f"app:{number}" for number in range(500)])))

    assert MOST_IMAGES == len(played(play).finder.asked)


def test_when_very_many_are_asked_for_others_come_in_at_once(monkeypatch):
    monkeypatch.setattr(pod_image_resolver, "MOST_ASKED", 3)

    async def play(entry):
        for number in range(5):
            entry.door.put(PodSeen(a_pod(f"p{number}", image=f"app:{number}")))

    entry = played(play)
    assert ["app:0", "app:1", "app:2"] == entry.finder.asked
    assert [(0.0, "p3"), (0.0, "p4")] == entry.told[:2]


def test_what_became_known_meanwhile_is_not_asked():
    async def play(entry):
        entry.door.put(PodSeen(a_pod()))
        entry.know("app:1")

    entry = played(play)
    assert ([], [(0.0, "p1")]) == (entry.finder.asked, entry.told)


def test_a_pod_about_which_even_memory_breaks_goes_its_way(caplog):
    """It comes from a watch, and whatever gets out there ends the scheduler."""

    async def play(entry):
        def broken(*_):
            raise RuntimeError("hunter2")

        entry.finder.known = broken
        entry.door.put(PodSeen(a_pod()))

    entry = played(play)
    assert [(0.0, "p1")] == entry.told
    assert 1 == entry.resolving.counts[REGISTRY, FAILED]
    assert "hunter2" not in caplog.text
