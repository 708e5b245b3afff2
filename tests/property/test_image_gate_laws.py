"""
Laws of the door: in whatever order pods come, change and go, and registries answer or do not, every pod comes in as it is
newest, in time, and never when it is gone.

A history is a list of things that happen, with pauses between them. A door that holds nobody is the oracle: at the end it
has let in the same pods in the same versions.
"""

import asyncio
from collections import defaultdict
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.events import PodGone, PodSeen
from lamina.model.pod import Pod, PodUid
from lamina.services.informers.image_gate import DEADLINE
from lamina.testing import a_pod
from tests.unit.services.fakes import leaping
from tests.unit.services.informers.asking import NOTHING, Answer, Entry, found

PODS = ("p1", "p2")
IMAGES = ("a:1", "b:1")
SOON = 1e-6

answers = st.dictionaries(
    st.sampled_from(IMAGES),
    st.tuples(st.sampled_from([0.0, 0.5, 1.9, 2.0, 2.1, 5.0]), st.sampled_from(["found", "not", "breaks"])),
)
seen = st.tuples(
    st.just("seen"),
    st.sampled_from(PODS),
    st.sampled_from([("a:1",), ("b:1",), ("a:1", "b:1")]),
    st.sampled_from(["waits", "waits", "waits", "bound", "gated", "deleting"]),
)
pause = st.tuples(st.just("pause"), st.sampled_from([0.1, 0.5, 1.0, 2.0, 3.0]))
gone = st.tuples(st.just("gone"), st.sampled_from(PODS))
leads = st.tuples(st.just("leads"), st.booleans())
# Much that is seen, and some time between: else most histories have nobody at the door.
histories = st.lists(st.one_of(seen, seen, seen, pause, pause, gone, leads), min_size=4, max_size=16)
led = st.lists(st.one_of(seen, seen, seen, pause, pause, gone), min_size=4, max_size=16)


def a_version(name: str, images: tuple[str, ...], state: str, version: int) -> Pod:
    pod = a_pod(name, images=images, labels={"version": str(version)}, on="n0" if state == "bound" else "")
    return msgspec.structs.replace(pod, gates=("wait",) if state == "gated" else (), deleting=state == "deleting")


def scripted(kinds: dict[str, tuple[float, str]]) -> dict[str, tuple[float, Answer]]:
    of: dict[str, Any] = {"found": found, "not": lambda _: NOTHING, "breaks": lambda _: OSError("broken")}
    return {name: (seconds, of[kind](name)) for name, (seconds, kind) in kinds.items()}


async def played(history: list[tuple[Any, ...]], kinds: dict[str, tuple[float, str]]) -> tuple[Entry, list[Any]]:
    """Play a history; also what was put in at the door, when, and whether we led."""
    loop = asyncio.get_running_loop()
    outside: list[tuple[float, bool, PodSeen | PodGone]] = []
    async with Entry(scripted(kinds)) as entry:
        for version, step in enumerate(history):
            match step:
                case ("seen", name, images, state):
                    outside.append((loop.time(), entry.leads, PodSeen(a_version(name, images, state, version))))
                    entry.door.put(outside[-1][-1])
                case ("gone", name):
                    outside.append((loop.time(), entry.leads, PodGone(PodUid(name))))
                    entry.door.put(outside[-1][-1])
                case ("pause", seconds):
                    await asyncio.sleep(seconds)
                case ("leads", answer):
                    entry.leads = answer
        entry.leads = True
        await asyncio.sleep(20.0)
    return entry, outside


def of_each(events: list[tuple[float, Any]]) -> dict[str, list[tuple[float, Any]]]:
    sorted_out: dict[str, list[tuple[float, Any]]] = defaultdict(list)
    for at, event in events:
        if isinstance(event, PodSeen | PodGone):
            sorted_out[event.pod.uid if isinstance(event, PodSeen) else event.uid].append((at, event))
    return sorted_out


@settings(max_examples=100)
@given(histories, answers)
def test_every_pod_comes_in_as_it_is_newest_and_never_after_it_is_gone(history, kinds):
    entry, outside = leaping(played(history, kinds))
    inside = of_each(entry.inside.events)
    for uid, events in of_each([(at, event) for at, _, event in outside]).items():
        put = [event for _, event in events]
        got = [event for _, event in inside[uid]]
        # What came in is what was put in, some versions left out: nothing twice, nothing made up, the order kept.
        rest = iter(put)
        assert all(any(one is other or one == other for other in rest) for one in got)
        assert put[-1] == got[-1]
        assert [one for one in put if isinstance(one, PodGone)] == [one for one in got if isinstance(one, PodGone)]


@settings(max_examples=100)
@given(led, answers)
def test_nobody_comes_in_later_than_the_deadline(history, kinds):
    """A version comes in, or a newer one does, before its time is up; or the pod is gone by then."""
    entry, outside = leaping(played(history, kinds))
    inside = of_each(entry.inside.events)
    for uid, events in of_each([(at, event) for at, _, event in outside]).items():
        for number, (at, event) in enumerate(events):
            later = [one for _, one in events[number:]]
            assert any(when <= at + DEADLINE + SOON and one in later for when, one in inside[uid] if when >= at), event


@settings(max_examples=100)
@given(histories, answers)
def test_nobody_is_held_twice_for_the_same_images(history, kinds):
    """Once a version has come in, the next one with the same images comes in at once."""
    entry, outside = leaping(played(history, kinds))
    inside = of_each(entry.inside.events)
    for uid, events in of_each([(at, event) for at, _, event in outside]).items():
        for (before, first), (at, second) in pairwise(events):
            came_in = any(one == first and before <= when < at for when, one in inside[uid])
            if came_in and waits(first) and waits(second) and first.pod.images == second.pod.images:
                assert (at, second) in inside[uid]


def waits(event: Any) -> bool:
    """Whether this is a pod that waits to be placed."""
    return isinstance(event, PodSeen) and not (event.pod.node_name or event.pod.gates or event.pod.deleting)
