"""Events: what they say, what becomes of repeats, and that nothing is ever held up by them."""

import asyncio
import contextlib
import random

import pytest

from lamina.clients.kube.backoff import TimeSource
from lamina.clients.kube.errors import UnreachableError
from lamina.clients.kube.event import NAME_LIMIT, ObjectReference, event_name
from lamina.clients.kube.event_recorder import NORMAL, WARNING, EventRecorder, RecorderLimits
from tests.unit.clients.kube.scripted_client import Instant, ScriptedClient, refusal

POD = ObjectReference("Pod", "web-1", "ns", "u1", "v1", "77")
OTHER = ObjectReference("Pod", "web-2", "ns", "u2", "v1", "78")
EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"
NANOS = 1_772_368_205_250_000_000  # 2026-03-01T12:30:05.25Z
NAME = f"web-1.{NANOS:x}"


class Story:
    """A recorder with time of its own."""

    def __init__(self, limits=RecorderLimits()):  # noqa: B008  frozen
        self.client = ScriptedClient()
        self.time = Instant()
        timing = TimeSource(self.time.clock, self.sleep, random.Random(1))
        self.recorder = EventRecorder(
            self.client, "lamina-scheduler", "lamina-scheduler-host", limits=limits, timing=timing, wall=self.wall
        )
        self.work = asyncio.create_task(self.recorder.run())

    def wall(self) -> int:
        return NANOS + int((self.time.now - 1000.0) * 1e9)

    async def sleep(self, seconds: float) -> None:
        """A sweep waits for the test; a pause lasts no time but its own."""
        if seconds == 60.0:
            await asyncio.Event().wait()
        await self.time.sleep(seconds)

    def fails(self, pod=POD, note="0/3 nodes are available"):
        self.recorder.record(pod, WARNING, "FailedScheduling", "Scheduling", note)

    async def told(self) -> list[str]:
        """Let the recorder work; the requests it made."""
        await asyncio.wait_for(self.recorder._queue.join(), 10)
        return [request.method for request in self.client.asked]

    async def end(self):
        self.work.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.work


@pytest.fixture
async def story():
    made = []

    def make(**limits) -> Story:
        made.append(Story(RecorderLimits(**limits)))
        return made[-1]

    yield make
    for one in made:
        await one.end()


# ----------------------------------------------------------------------------------------------------- what it says


async def test_an_event_is_in_kube_schedulers_words(story):
    tale = story()
    tale.recorder.record(POD, NORMAL, "Scheduled", "Binding", "Successfully assigned ns/web-1 to n1")
    await tale.told()

    (request,) = tale.client.asked
    assert ("POST", EVENTS) == (request.method, request.path)
    assert {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": NAME, "namespace": "ns"},
        "eventTime": "2026-03-01T12:30:05.250000Z",
        "reportingController": "lamina-scheduler",
        "reportingInstance": "lamina-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {
            "kind": "Pod",
            "name": "web-1",
            "namespace": "ns",
            "uid": "u1",
            "apiVersion": "v1",
            "resourceVersion": "77",
        },
        "note": "Successfully assigned ns/web-1 to n1",
        "type": "Normal",
    } == request.body


async def test_an_event_may_name_who_else_has_to_do_with_it(story):
    tale = story()
    tale.recorder.record(POD, NORMAL, "Preempted", "Preempting", "Preempted by pod u2 on node n1", related=OTHER)
    await tale.told()

    assert "u2" == tale.client.asked[0].body["related"]["uid"]


async def test_a_note_is_cut_to_what_the_server_takes(story):
    tale = story()
    tale.fails(note="é" * 1000)
    await tale.told()

    note = tale.client.asked[0].body["note"]
    assert (1024, " ...") == (len(note.encode()), note[-4:])


async def test_an_object_without_a_namespace_has_its_events_in_the_default_one(story):
    tale = story()
    tale.recorder.record(ObjectReference("Node", "n1"), NORMAL, "Reason", "Action", "note")
    await tale.told()

    assert "/apis/events.k8s.io/v1/namespaces/default/events" == tale.client.asked[0].path


def test_events_of_one_moment_have_different_names():
    recorder = EventRecorder(ScriptedClient(), "c", "i", wall=lambda: NANOS)
    for number in range(3):
        recorder.record(POD, NORMAL, "Scheduled", "Binding", str(number))

    names = [entry.event.metadata.name for entry in recorder._entries.values()]
    assert [NAME, f"web-1.{NANOS + 1:x}", f"web-1.{NANOS + 2:x}"] == names


@pytest.mark.parametrize("name", ["system:node", "x" * (NAME_LIMIT + 1), ""])
def test_an_object_whose_name_would_spoil_the_events_gets_another(name):
    assert 36 == len(event_name(name, NANOS))


# ---------------------------------------------------------------------------------------------------------- repeats


async def test_a_repeat_makes_a_series_and_more_of_them_only_count(story):
    """Five times the same: one event, one patch that says two, and at the end one that says five."""
    tale = story()
    for _ in range(5):
        tale.fails()
        await tale.told()
        tale.time.now += 10

    assert ["POST", "PATCH"] == await tale.told()
    patch = tale.client.asked[1]
    assert (f"{EVENTS}/{NAME}", "application/strategic-merge-patch+json") == (patch.path, patch.content_type)
    assert {"series": {"count": 2, "lastObservedTime": "2026-03-01T12:30:15.250000Z"}} == patch.body

    assert await tale.recorder.drain(1.0)
    assert {"count": 5, "lastObservedTime": "2026-03-01T12:30:45.250000Z"} == tale.client.asked[2].body["series"]
    assert (1, 2, 4) == (tale.recorder.counts.posted, tale.recorder.counts.patched, tale.recorder.counts.repeats)


async def test_repeats_before_the_event_was_sent_are_told_with_it(story):
    tale = story()
    for _ in range(3):
        tale.fails()

    assert ["POST"] == await tale.told()
    assert 3 == tale.client.asked[0].body["series"]["count"]


async def test_a_repeat_while_the_event_is_under_way_is_told_after_it(story):
    tale = story()
    tale.client.answer = lambda request: tale.fails() or b"{}" if len(tale.client.asked) == 1 else b"{}"
    tale.fails()

    assert ["POST", "PATCH"] == await tale.told()


async def test_the_last_count_is_told_even_if_it_comes_while_an_earlier_one_is_under_way(story):
    tale = story()
    tale.fails()
    await tale.told()

    def busy(request):
        if request.method == "PATCH" and len(tale.client.asked) == 2:
            tale.fails()
            tale.recorder._finish(next(iter(tale.recorder._entries.values())))
        return b"{}"

    tale.client.answer = busy
    tale.fails()

    assert ["POST", "PATCH", "PATCH"] == await tale.told()
    assert 3 == tale.client.asked[-1].body["series"]["count"]


async def test_other_words_or_another_pod_are_another_event(story):
    tale = story()
    tale.fails()
    tale.fails(note="1/3 nodes are available")
    tale.fails(OTHER)

    assert ["POST"] * 3 == await tale.told()


async def test_after_six_quiet_minutes_it_is_a_new_event(story):
    tale = story()
    tale.fails()
    await tale.told()
    tale.time.now += 360
    tale.fails()

    assert ["POST", "POST"] == await tale.told()


async def test_a_series_that_has_ended_is_written_and_forgotten(story):
    tale = story()
    for _ in range(3):
        tale.fails()
        await tale.told()
    tale.fails(OTHER)
    tale.time.now += 360
    tale.recorder._sweep()

    assert ["POST", "PATCH", "POST", "PATCH"] == await tale.told()
    assert 3 == tale.client.asked[-1].body["series"]["count"]
    assert {} == tale.recorder._entries


async def test_a_series_that_goes_on_is_written_every_half_hour(story):
    """Once a minute for an hour: one event, the first repeat, and after 30 min each one more."""
    tale = story()
    for _ in range(62):
        tale.fails()
        await tale.told()
        tale.time.now += 60

    assert ["POST", "PATCH", "PATCH", "PATCH"] == await tale.told()


async def test_a_series_whose_event_the_server_has_forgotten_is_told_anew(story):
    tale = story()

    def forgets(request):
        if request.method == "PATCH":
            raise refusal(404)
        return b"{}"

    tale.client.answer = forgets
    tale.fails()
    await tale.told()
    tale.fails()

    assert ["POST", "PATCH", "POST"] == await tale.told()
    assert 2 == tale.client.asked[-1].body["series"]["count"]


# ------------------------------------------------------------------------------------------------------------ limits


async def test_one_object_cannot_have_more_than_its_share(story):
    tale = story()
    for number in range(100):
        tale.fails(note=str(number))

    assert 25 == len(await tale.told())
    assert 75 == tale.recorder.counts.limited


async def test_what_does_not_fit_into_the_queue_is_dropped_and_counted(story):
    tale = story(queued=10, burst=1000)
    for number in range(100):
        tale.fails(note=str(number))

    assert 90 == tale.recorder.counts.overflowed
    assert 10 == len(await tale.told())


async def test_only_so_many_events_are_remembered_and_the_oldest_is_written_before_it_is_forgotten(story):
    tale = story(remembered=10)
    for _ in range(3):
        tale.fails()
        await tale.told()
    for number in range(100):
        tale.fails(ObjectReference("Pod", "p", "ns", f"uid-{number}"))
        await tale.told()

    assert 10 == len(tale.recorder._entries)
    assert [2, 3] == [request.body["series"]["count"] for request in tale.client.asked if request.method == "PATCH"]


# ----------------------------------------------------------------------------------------------------------- trouble


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(refusal(429, "too many requests", 5.0), id="429"),
        pytest.param(refusal(500), id="500"),
        pytest.param(UnreachableError("POST", "connection refused"), id="unreachable"),
    ],
)
async def test_a_server_in_trouble_is_left_alone_and_asked_again(story, error):
    tale = story(workers=1)

    def recovers(request):
        if len(tale.client.asked) == 1:
            raise error
        return b"{}"

    tale.client.answer = recovers
    tale.fails()

    assert ["POST", "POST"] == await tale.told()
    assert 1 == len(tale.time.slept)
    assert (1, 0) == (tale.recorder.counts.posted, tale.recorder.counts.failed)


async def test_a_server_that_names_a_time_gets_it(story):
    tale = story(workers=1)

    def busy(request):
        raise refusal(429, "later", 7.0)

    tale.client.answer = busy
    tale.fails()
    await tale.told()

    assert [True, True] == [pause >= 7.0 for pause in tale.time.slept]


async def test_an_event_that_fails_three_times_is_dropped_and_a_later_one_is_told(story):
    tale = story(workers=1)

    def down(request):
        raise UnreachableError("POST", "connection refused")

    tale.client.answer = down
    tale.fails()
    assert ["POST"] * 3 == await tale.told()
    assert 1 == tale.recorder.counts.failed

    tale.client.answer = lambda request: b"{}"
    tale.fails()
    assert ["POST"] * 4 == await tale.told()
    assert 1 == tale.recorder.counts.posted


async def test_an_event_that_arrived_though_its_answer_did_not_is_no_failure(story):
    tale = story(workers=1)

    def lost(request):
        raise UnreachableError("POST", "reset") if len(tale.client.asked) == 1 else refusal(409, "already exists")

    tale.client.answer = lost
    tale.fails()
    await tale.told()

    assert (1, 0) == (tale.recorder.counts.posted, tale.recorder.counts.failed)


@pytest.mark.parametrize("status", [400, 403, 404, 409, 422])
async def test_what_the_server_does_not_want_is_dropped_at_once(story, status):
    tale = story()

    def refuses(request):
        raise refusal(status)

    tale.client.answer = refuses
    tale.fails()

    assert ["POST"] == await tale.told()
    assert (1, []) == (tale.recorder.counts.failed, tale.time.slept)


async def test_draining_gives_up_in_time(story):
    tale = story()

    def hangs(request):
        raise UnreachableError("POST", "connection refused")

    tale.client.answer = hangs
    tale.recorder._timing.sleep = lambda seconds: asyncio.sleep(3600)
    tale.fails()

    assert not await tale.recorder.drain(0.05)
