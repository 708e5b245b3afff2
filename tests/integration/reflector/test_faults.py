"""
Every fault that a watch is known to meet, against a server on the loopback.

The clock's hands are moved by whoever waits: minutes of back-off take milliseconds, and the figures are the real ones.
"""

import asyncio

import pytest

from lamina.clients.kube import reflector as reflector_module
from lamina.clients.kube import time_slice
from lamina.clients.kube.watch_lines import LINE_LIMIT
from tests.integration.reflector.fault_server import Stage
from tests.unit.clients.kube.mirrored import until

pytestmark = pytest.mark.realtime


@pytest.fixture
async def stage():
    async with Stage() as made:
        yield made


async def followed(stage: Stage) -> None:
    """Start, and wait until everything is there and a watch stands."""
    stage.start()
    await until(lambda: stage.true and stage.reflector.stale_since is None)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        pytest.param("410", "expired", id="410 as the answer"),
        pytest.param("410 event", "expired", id="410 in an ERROR event"),
        pytest.param("410 bare", "expired", id="410 in a bare Status"),
        pytest.param("silent close", "silent", id="closed at once without a word"),
        pytest.param("504 answer", "restored", id="version too large as the answer"),
        pytest.param("504 event", "restored", id="version too large in an ERROR event"),
    ],
)
async def test_one_list_follows_when_what_we_go_on_from_is_gone(stage, fault, reason):
    await followed(stage)
    stage.server.faults = [fault]
    stage.cluster.delete("p1")
    stage.server.hang_up("close")
    await until(lambda: stage.true and stage.reflector.stale_since is None)

    assert {reason: 1} == stage.reflector.counts.relists
    assert 2 == stage.server.lists
    assert 10 >= stage.most_in_ten_seconds
    assert "remove default/p1" in stage.keeper.log


ENDLESS = [
    pytest.param("410", id="410 as the answer"),
    pytest.param("410 event", id="410 in an ERROR event"),
    pytest.param("410 bare", id="410 in a bare Status"),
    pytest.param("silent close", id="closed at once without a word"),
    pytest.param("close", id="closed after each event"),
    pytest.param("500", id="500"),
    pytest.param("404", id="404"),
    pytest.param("429 retry 7", id="429 for seven seconds"),
    pytest.param("503 retry 3600", id="503 for an hour"),
    pytest.param("reset", id="reset"),
    pytest.param("garbage", id="no event"),
    pytest.param("truncated", id="half a line"),
    pytest.param("cut 30", id="cut in a line"),
]


@pytest.mark.parametrize("fault", ENDLESS)
async def test_no_fault_gets_more_than_ten_requests_in_ten_seconds_however_long_it_lasts(stage, fault):
    await followed(stage)
    stage.server.always = fault
    stage.cluster.put("p1", "changed")
    stage.server.hang_up("reset")
    began, asked = stage.hands.now, len(stage.server.asked_at)
    await until(lambda: stage.hands.now > began + 900)

    assert 10 >= stage.most_in_ten_seconds
    assert asked < len(stage.server.asked_at)


@pytest.mark.parametrize("fault", ENDLESS)
async def test_when_a_fault_is_over_everything_is_as_it_should_be(stage, fault):
    stage.server.always = fault
    stage.start()
    began = stage.hands.now
    await until(lambda: stage.hands.now > began + 200)
    stage.cluster.delete("p2")
    stage.cluster.put("new", 1)
    stage.server.always = ""
    await until(lambda: stage.true and stage.reflector.stale_since is None)

    assert stage.reflector.synced
    assert "" == stage.reflector.problem


@pytest.mark.parametrize(
    ("fault", "least", "most"),
    [
        pytest.param("429 retry 7", 7, 30, id="429 for seven seconds"),
        pytest.param("503 retry 50", 50, 50, id="503 for fifty"),
        pytest.param("503 retry 3600", 60, 60, id="503 for an hour: a minute"),
    ],
)
async def test_the_time_that_a_server_asks_for_passes_before_the_next_request(stage, fault, least, most):
    await followed(stage)
    stage.cluster.put("p1", 7)
    stage.server.faults = [fault, fault, fault]
    stage.server.hang_up("close")
    await until(lambda: not stage.server.faults)
    await until(lambda: stage.true and stage.reflector.stale_since is None)

    asked = [wait for wait in stage.hands.waits if wait >= least]
    assert 3 == len(asked)
    assert most >= max(asked)
    assert {} == stage.reflector.counts.relists


async def test_a_watch_that_is_closed_after_events_goes_on_from_the_last_of_them(stage):
    await followed(stage)
    for number in range(3):
        stage.cluster.put("p1", number)
        stage.server.faults = ["close"]
        stage.server.hang_up("close")
        await until(lambda: stage.true and not stage.server.faults)

    assert {} == stage.reflector.counts.relists
    assert 1 == stage.server.lists
    versions = [int(query.get("resourceVersion", "0")) for query in stage.server.queries]
    assert sorted(versions) == versions
    assert not any("limit" in query for query in stage.server.queries), "and asks nothing else"


async def test_a_bookmark_moves_the_version_on(stage):
    await followed(stage)
    stage.cluster.version += 500
    stage.server.change()
    await until(lambda: stage.reflector.counts.bookmarks >= 3)
    stage.server.hang_up("close")
    await until(lambda: stage.server.queries[-1].get("resourceVersion") == "605")

    assert {} == stage.reflector.counts.relists


# --------------------------------------------------------------------------------------------------------------- lists


@pytest.mark.parametrize("refusal", ["422", "400", "no progress", "plain bookmark"])
async def test_a_server_that_does_not_stream_lists_is_listed_by_pages(refusal):
    async with Stage(objects=1600) as stage:  # three pages
        stage.server.listing = refusal
        await followed(stage)
        stage.server.faults = ["410"]
        stage.server.hang_up("close")
        await until(lambda: stage.keeper.log.count("synced") == 2)

        streamed = [query for query in stage.server.queries if "sendInitialEvents" in query]
        pages = [query for query in stage.server.queries if "limit" in query]
        assert 1 == len(streamed), "it is remembered"
        assert 8 == len(pages), "four pages of five hundred, twice"
        assert not any("resourceVersion" in query for query in pages)
        assert 1600 == sum(entry.startswith("put") for entry in stage.keeper.log), "and nothing is put again"


async def test_a_list_whose_moment_is_forgotten_between_two_pages_begins_anew():
    async with Stage(objects=1200) as stage:
        stage.server.listing = "422"
        page, calls = stage.cluster.page, []

        def forgetful(limit: int, token: str = "") -> dict[str, object]:
            calls.append(token)
            if len(calls) == 2:
                stage.cluster.delete("p3")
                stage.cluster.compact()
            return page(limit, token)

        stage.cluster.page = forgetful  # type: ignore[method-assign]
        await followed(stage)

        assert ["", "1300:500", "", "1301:500", "1301:1000"] == calls
        assert {} == stage.reflector.counts.relists, "it is still the first"


async def test_silence_instead_of_a_streamed_list_leads_to_pages(stage, monkeypatch):
    monkeypatch.setattr(reflector_module, "IDLE", 0.1)
    stage.server.listing = "silence"
    await followed(stage)

    assert stage.true


# ---------------------------------------------------------------------------------------------- when it breaks off


async def test_nothing_is_lost_when_a_burst_is_cut_anywhere():
    async with Stage(objects=0) as stage:
        await followed(stage)
        for number in range(5_000):
            stage.cluster.put(f"p{number % 700}", number)
            if number % 5 == 0:
                stage.cluster.delete(f"p{(number * 7) % 700}")
        stage.server.faults = [f"cut {where}" for where in (0, 1, 25, 147, 148, 149, 4_096, 99_999, 262_144, 300_001)]
        stage.server.hang_up("reset")
        await until(lambda: stage.true)

        assert {} == stage.reflector.counts.relists
        assert 1 == stage.server.lists
        assert [] == stage.server.faults
        assert 10 >= stage.most_in_ten_seconds


async def test_a_connection_on_which_nothing_comes_is_given_up_without_a_list(stage, monkeypatch):
    monkeypatch.setattr(reflector_module, "IDLE", 0.1)
    await followed(stage)
    stage.server.faults = ["silence"]
    stage.server.hang_up("close")
    await until(lambda: not stage.server.faults)
    await until(lambda: stage.reflector.counts.idle)
    stage.cluster.put("p1", "news")
    await until(lambda: stage.true)

    assert {} == stage.reflector.counts.relists


async def test_a_server_restored_from_a_backup_is_noticed_though_it_says_nothing(stage):
    """It would let us watch from a version that it has yet to reach, and keep everything until then to itself."""
    stage.cluster.back_up()
    await followed(stage)
    for number in range(20):
        stage.cluster.put("p0", f"lost {number}")
    stage.cluster.put("doomed", 1)
    stage.server.change()
    await until(lambda: stage.true)

    stage.cluster.restore()
    stage.cluster.put("p1", "after the restore")  # under a version that stood for something else before
    stage.server.hang_up("reset")
    await until(lambda: stage.true)

    assert {"restored": 1} == stage.reflector.counts.relists
    assert "remove default/doomed" in stage.keeper.log


async def test_until_the_first_list_is_complete_nothing_is_synced(stage):
    stage.server.faults = ["cut 300", "cut 400", "500"]
    stage.start()
    await until(lambda: not stage.server.faults)
    assert not stage.reflector.synced or stage.true
    await until(lambda: stage.reflector.synced)

    assert 1 == stage.keeper.log.count("synced")
    assert stage.true


async def test_a_list_that_fails_leaves_what_we_had_and_says_since_when(stage):
    await followed(stage)
    known = dict(stage.keeper.things)
    seen = stage.hands.now
    stage.server.always = "500"
    stage.server.hang_up("close")
    stage.cluster.delete("p0")
    stage.cluster.compact()
    await until(lambda: stage.hands.now > seen + 100)

    assert known == stage.keeper.things
    assert stage.reflector.synced
    assert seen == stage.reflector.stale_since
    assert "500" in stage.reflector.problem

    stage.server.always = ""
    await until(lambda: stage.true and stage.reflector.stale_since is None)
    assert {"expired": 1} == stage.reflector.counts.relists


# ------------------------------------------------------------------------------------------------------------- objects


async def test_an_object_of_two_and_a_half_megabytes_passes(stage):
    await followed(stage)
    stage.cluster.put("big", "x" * 2_500_000)
    stage.server.change()
    await until(lambda: stage.true)

    assert 0 == stage.reflector.counts.oversized


async def test_an_event_that_is_too_long_is_passed_over_and_counted(stage):
    await followed(stage)
    stage.cluster.put("huge", "x" * LINE_LIMIT)
    stage.cluster.put("p1", "news")
    stage.server.change()
    await until(lambda: stage.keeper.things.get("default/p1") == "news")

    assert 1 == stage.reflector.counts.oversized
    assert "default/huge" not in stage.keeper.things
    assert {} == stage.reflector.counts.relists


async def test_an_object_that_cannot_be_read_does_not_stop_the_watch_and_is_not_sent_again(stage):
    await followed(stage)
    stage.cluster.put("p1", "unreadable")
    stage.server.change()
    await until(lambda: stage.reflector.counts.undecodable)
    version = str(stage.cluster.version)
    stage.server.hang_up("close")
    await until(lambda: stage.server.queries[-1].get("resourceVersion") == version)

    assert 1 == stage.reflector.counts.undecodable
    assert 1 == stage.keeper.things["default/p1"], "as it was last understood"


@pytest.mark.parametrize("listing", ["", "422"], ids=["streamed", "by pages"])
async def test_a_long_list_lets_others_run(monkeypatch, listing):
    """With slices of no length others have a turn after every object."""
    monkeypatch.setattr(time_slice, "SLICE", -1.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    async with Stage(objects=2_000) as stage:
        stage.server.listing = listing
        await followed(stage)
    running.cancel()

    assert 2_000 < turns
