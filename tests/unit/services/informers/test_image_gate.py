"""Who is held at the door, for how long, and what comes in when."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from lamina.clients.oci.lookup_results import BUSY, ImageNotFound
from lamina.model.events import NodeSeen, PodGone, PodSeen
from lamina.model.image import Platform
from lamina.model.pod import Pod
from lamina.services.informers import image_gate
from lamina.testing import a_node, a_pod
from tests.unit.services.fakes import leaping
from tests.unit.services.informers.asking import DOWN, NOTHING, Answer, Entry, found

ARM = Platform("linux", "arm64", "")


def story(
    play: Callable[[Entry], Coroutine[Any, Any, None]],
    answers: dict[str, tuple[float, Answer]] | None = None,
    **more: Any,
) -> Entry:
    """Play at a door on which waiting takes no time."""

    async def whole() -> Entry:
        async with Entry(answers, **more) as entry:
            await play(entry)
        return entry

    return leaping(whole())


def seen(entry: Entry, *pods: Pod) -> None:
    for pod in pods:
        entry.door.put(PodSeen(pod))


# ---------------------------------------------------------------------------------------------------------- who is held


def test_a_pod_whose_images_are_known_comes_in_at_once():
    async def play(entry):
        entry.know("app:1")
        seen(entry, a_pod())

    entry = story(play)
    assert ([(0.0, "p1")], []) == (entry.told, entry.finder.asked)


def test_a_pod_is_held_until_its_image_is_known_and_the_image_comes_in_first():
    async def play(entry):
        seen(entry, a_pod())
        await asyncio.sleep(1.0)

    entry = story(play, {"app:1": (0.3, found("app:1"))})
    assert [(0.3, "learned app:1"), (0.3, "p1")] == entry.told
    assert [0.3] == entry.seconds


def test_a_pod_waits_for_all_its_images():
    async def play(entry):
        entry.know("c:1")
        seen(entry, a_pod(images=["a:1", "b:1", "c:1"]))
        await asyncio.sleep(2.0)

    entry = story(play, {"a:1": (0.5, found("a:1")), "b:1": (0.2, NOTHING)})
    assert [(0.5, "p1")] == entry.told[1:]
    assert ["a:1", "b:1"] == sorted(entry.finder.asked)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(a_pod(on="n0"), id="bound"),
        pytest.param(msgspec.structs.replace(a_pod(), gates=("wait",)), id="gated"),
        pytest.param(msgspec.structs.replace(a_pod(), deleting=True), id="being deleted"),
        pytest.param(msgspec.structs.replace(a_pod(), finished=True), id="finished"),
        pytest.param(msgspec.structs.replace(a_pod(), unmet=("a volume",)), id="asks for what nobody can give"),
        pytest.param(a_pod(scheduler="another"), id="another scheduler's"),
        pytest.param(a_pod(image=""), id="no image name"),
        pytest.param(a_pod(image="http://x/y"), id="no reference"),
        pytest.param(a_pod(image="x" * 5000), id="a reference without end"),
    ],
)
def test_a_pod_that_has_nothing_to_gain_is_not_held(pod):
    async def play(entry):
        seen(entry, pod)

    entry = story(play)
    assert (1, []) == (len(entry.told), entry.finder.asked)


@pytest.mark.parametrize("answer", [NOTHING, DOWN], ids=["no such image", "registry down"])
def test_what_is_remembered_to_be_unknown_holds_nobody(answer):
    async def play(entry):
        entry.finder.remembered["app:1"] = answer
        seen(entry, a_pod())

    entry = story(play)
    assert ([(0.0, "p1")], []) == (entry.told, entry.finder.asked)


def test_what_is_remembered_of_an_image_comes_in_before_the_pod():
    async def play(entry):
        entry.finder.remembered["app:1"] = found("app:1")
        seen(entry, a_pod())

    entry = story(play)
    assert ([(0.0, "learned app:1"), (0.0, "p1")], []) == (entry.told, entry.finder.asked)


def test_an_image_that_exists_for_some_platforms_only_is_told_once():
    async def play(entry):
        entry.door.put(NodeSeen(msgspec.structs.replace(a_node("arm"), platform=ARM)))
        seen(entry, a_pod("p1"))
        await asyncio.sleep(1.0)
        entry.finder.remembered["app:1"] = found("app:1")
        seen(entry, a_pod("p2"))

    entry = story(play, {"app:1": (0.1, found("app:1"))})
    assert [(0.1, "learned app:1"), (0.1, "p1"), (1.0, "p2")] == entry.told
    assert [(Platform(), ARM)] == [tuple(sorted(one, key=str)) for one in entry.finder.platforms]


def test_without_nodes_there_is_nothing_to_choose_and_nobody_is_asked():
    async def play(entry):
        seen(entry, a_pod())

    entry = story(play, nodes=0)
    assert ([(0.0, "p1")], []) == (entry.told, entry.finder.asked)


# ---------------------------------------------------------------------------------------------------------------- time


def test_a_slow_registry_delays_nobody_past_the_deadline_and_its_answer_still_helps_the_next():
    async def play(entry):
        seen(entry, a_pod("p1"))
        await asyncio.sleep(6.0)
        seen(entry, a_pod("p2"))

    entry = story(play, {"app:1": (5.0, found("app:1"))})
    assert [(2.0, "p1"), (5.0, "learned app:1"), (6.0, "p2")] == entry.told


def test_each_pod_has_a_deadline_of_its_own():
    async def play(entry):
        seen(entry, a_pod("p1"))
        await asyncio.sleep(1.5)
        seen(entry, a_pod("p2"))
        await asyncio.sleep(5.0)
        seen(entry, a_pod("p3"))
        await asyncio.sleep(5.0)

    entry = story(play)
    assert [(2.0, "p1"), (3.5, "p2"), (8.5, "p3")] == entry.told
    assert ["app:1"] == entry.finder.asked


def test_a_deadline_of_nothing_holds_nobody_and_asks_all_the_same():
    async def play(entry):
        seen(entry, a_pod())
        await asyncio.sleep(1.0)

    entry = story(play, {"app:1": (0.1, found("app:1"))}, deadline=0.0)
    assert [(0.0, "p1"), (0.1, "learned app:1")] == entry.told


def test_a_pod_that_was_let_in_without_an_answer_is_not_held_again():
    async def play(entry):
        seen(entry, a_pod())
        await asyncio.sleep(2.5)
        seen(entry, a_pod(labels={"told": "twice"}))

    entry = story(play)
    assert [(2.0, "p1"), (2.5, "p1")] == entry.told


def test_a_pod_that_changes_its_image_inside_is_held_for_the_new_one():
    async def play(entry):
        seen(entry, a_pod())
        await asyncio.sleep(2.5)
        seen(entry, a_pod(image="app:2"))
        await asyncio.sleep(1.0)

    entry = story(play, {"app:2": (0.4, found("app:2"))})
    assert [(2.0, "p1"), (2.9, "learned app:2"), (2.9, "p1")] == entry.told


# ------------------------------------------------------------------------------------------------------- while it waits


def test_the_newest_version_comes_in():
    async def play(entry):
        seen(entry, a_pod(labels={"v": "1"}))
        await asyncio.sleep(0.1)
        seen(entry, a_pod(labels={"v": "2"}))
        await asyncio.sleep(3.0)

    entry = story(play)
    assert [(2.0, "p1")] == entry.told
    assert [{"v": "2"}] == [event.pod.labels for _, event in entry.inside.events if isinstance(event, PodSeen)]


def test_a_pod_that_changes_its_image_at_the_door_gets_no_more_time():
    async def play(entry):
        for number in range(20):
            seen(entry, a_pod(image=f"app:{number}"))
            await asyncio.sleep(0.5)

    entry = story(play)
    assert (2.0, "p1") == entry.told[0]


def test_a_pod_that_changes_to_a_known_image_comes_in_at_once():
    async def play(entry):
        entry.know("app:2")
        seen(entry, a_pod())
        await asyncio.sleep(0.5)
        seen(entry, a_pod(image="app:2"))

    assert [(0.5, "p1")] == story(play).told


def test_a_pod_that_is_gone_never_comes_in():
    async def play(entry):
        seen(entry, a_pod())
        await asyncio.sleep(0.1)
        entry.door.put(PodGone(a_pod().uid))
        await asyncio.sleep(5.0)

    entry = story(play, {"app:1": (0.5, found("app:1"))})
    assert [(0.1, "no p1"), (0.5, "learned app:1")] == entry.told


def test_a_pod_that_somebody_else_bound_comes_in_bound_and_only_so():
    async def play(entry):
        seen(entry, a_pod())
        await asyncio.sleep(0.1)
        seen(entry, a_pod(on="n0"))
        await asyncio.sleep(5.0)

    assert [(0.1, "p1 on n0")] == story(play).told


def test_others_pass_by_those_who_are_held():
    async def play(entry):
        entry.know("known:1")
        seen(entry, a_pod("p1"), a_pod("p2", image="known:1"), a_pod("p3", on="n0"))
        await asyncio.sleep(5.0)

    assert [(0.0, "p2"), (0.0, "p3 on n0"), (2.0, "p1")] == story(play).told


def test_an_image_that_many_pods_want_is_asked_for_once():
    async def play(entry):
        seen(entry, *(a_pod(f"p{number}") for number in range(500)))
        await asyncio.sleep(1.0)

    entry = story(play, {"app:1": (0.2, found("app:1"))})
    assert (["app:1"], 501) == (entry.finder.asked, len(entry.told))
    assert [f"p{number}" for number in range(500)] == [what for _, what in entry.told[1:]]


def test_each_namespace_asks_for_itself():
    """One that has asked too often must not answer for the others."""

    async def play(entry):
        seen(entry, a_pod("p1", namespace="loud"), a_pod("p2", namespace="quiet"))
        await asyncio.sleep(1.0)

    assert ["loud", "quiet"] == story(play, {"app:1": (0.1, ImageNotFound(BUSY, ""))}).finder.namespaces


def test_beyond_the_most_that_may_be_held_pods_come_in_at_once(monkeypatch):
    monkeypatch.setattr(image_gate, "MOST_HELD", 3)

    async def play(entry):
        seen(entry, *(a_pod(f"p{number}") for number in range(5)))
        await asyncio.sleep(5.0)

    assert [(0.0, "p3"), (0.0, "p4"), (2.0, "p0"), (2.0, "p1"), (2.0, "p2")] == story(play).told


def test_a_registry_client_that_breaks_costs_nothing_but_the_answer(caplog):
    async def play(entry):
        seen(entry, a_pod())
        await asyncio.sleep(1.0)

    entry = story(play, {"app:1": (0.1, ValueError("hunter2"))})
    assert [(0.1, "p1")] == entry.told
    assert "ValueError" in caplog.text
    assert "hunter2" not in caplog.text


# -------------------------------------------------------------------------------------------- before and without leading


def test_before_everything_was_seen_nobody_is_asked_and_then_time_begins():
    ready: list[bool] = []

    async def play(entry):
        seen(entry, a_pod("p1"), a_pod("p2", image="known:1"), a_pod("p3", on="n0"))
        await asyncio.sleep(30.0)
        entry.know("known:1")
        ready.append(True)
        await asyncio.sleep(5.0)

    entry = story(play, may_open=lambda: bool(ready))
    # Looked at every 20 ms.
    assert [(0.0, "p3 on n0"), (30.0, "p2"), (32.0, "p1")] == [(round(at, 1), what) for at, what in entry.told]


def test_who_does_not_lead_asks_nobody_and_looks_at_who_waits_when_it_does():
    async def play(entry):
        entry.leads = False
        entry.know("known:1")
        seen(entry, a_pod("p1"), a_pod("p2", image="known:1"), a_pod("p3"))
        await asyncio.sleep(100.0)
        seen(entry, a_pod("p3", on="n0"))
        entry.leads = True
        await asyncio.sleep(5.0)

    entry = story(play, {"app:1": (0.5, found("app:1"))})
    assert [(0.0, "p2"), (100.0, "p3 on n0"), (100.5, "learned app:1"), (100.5, "p1")] == [
        (round(at, 1), what) for at, what in entry.told
    ]
    assert [0.5] == entry.seconds, "time without leading is not counted"


def test_leadership_that_ends_leaves_those_who_are_held_their_time():
    async def play(entry):
        seen(entry, a_pod("p1"))
        entry.leads = False
        await asyncio.sleep(5.0)

    assert [(2.0, "p1")] == story(play).told


def test_whoever_waits_inside_is_woken():
    async def play(entry):
        entry.door.wake()

    assert 1 == story(play).inside.rung
