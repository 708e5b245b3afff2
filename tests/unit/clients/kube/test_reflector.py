"""What a reflector asks for, and how it stands; faults are in tests/integration/reflector and tests/property."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from lamina.clients.kube.backoff import TimeSource
from lamina.clients.kube.errors import SilenceError, UnreachableError
from lamina.clients.kube.reflector import ReflectedResource, Reflector
from lamina.clients.kube.watch_lines import LINE_LIMIT
from tests.unit.clients.kube.mirrored import Hands, Keeper, Thing, decode, reflector, stop, until
from tests.unit.clients.kube.model_client import Connection, ModelClient
from tests.unit.clients.kube.model_cluster import Cluster, bookmark, line, status


class Scripted:
    """A client whose streams are lists of chunks, pauses and errors; the last one stands for good."""

    def __init__(self, *streams: list[bytes | float | Exception], hands: Hands | None = None) -> None:
        self.streams = list(streams)
        self.hands = hands if hands is not None else Hands()
        self.asked: list[tuple[str, dict[str, str], float]] = []

    async def request(self, method: str, path: str, *, query: Mapping[str, str] | None = None, **_: Any) -> bytes:
        self.asked.append((path, dict(query or {}), 0.0))
        return b'{"kind":"List","metadata":{"resourceVersion":"999"},"items":[]}'

    def stream(
        self, path: str, *, query: Mapping[str, str] | None = None, read_timeout: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        self.asked.append((path, dict(query or {}), read_timeout))
        return self._stream()

    @asynccontextmanager
    async def _stream(self) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._chunks(self.streams.pop(0))

    async def _chunks(self, chunks: list[bytes | float | Exception]) -> AsyncIterator[bytes]:
        for chunk in chunks:
            if isinstance(chunk, Exception):
                raise chunk
            if isinstance(chunk, float):
                self.hands.now += chunk
            else:
                yield chunk
        if not self.streams:
            await asyncio.Event().wait()


def pod(name: str, version: int, value: object = 0) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "d", "resourceVersion": str(version)}, "value": value}


WHOLE = line("ADDED", pod("a", 3)) + bookmark(7, ends_list=True)


async def run(client: Scripted, mirror: Reflector[Any]) -> None:
    """Run until every stream has been opened and the last has been read."""
    task = asyncio.create_task(mirror.run())
    await until(lambda: not client.streams)
    for _ in range(100):
        await asyncio.sleep(0)
    await stop(task)


async def test_a_list_is_asked_for_as_a_watch_that_begins_with_everything():
    client, hands = Scripted([WHOLE]), Hands()
    resource = ReflectedResource(
        path="/api/v1/pods", kind="Pod", field_selector="status.phase!=Failed", label_selector="a=b"
    )
    mirror = Reflector(client, resource, decode, lambda thing: thing.key, Keeper(), timing=hands.timing())
    await run(client, mirror)
    [(path, query, read_timeout)] = client.asked

    assert "/api/v1/pods" == path
    assert 300 <= int(query.pop("timeoutSeconds")) <= 600
    assert {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "fieldSelector": "status.phase!=Failed",
        "labelSelector": "a=b",
    } == query
    assert 75 == read_timeout, "more than the minute between two bookmarks, less than the 90 that are allowed"


async def test_a_watch_is_asked_for_from_the_last_version_on():
    client, hands = Scripted([WHOLE, line("MODIFIED", pod("a", 9, 1))], [bookmark(12)], []), Hands()
    keeper = Keeper()
    await run(client, reflector(client, keeper, hands.timing()))

    assert [None, "9", "12"] == [query.get("resourceVersion") for _, query, _ in client.asked]
    assert not any("sendInitialEvents" in query for _, query, _ in client.asked[1:])
    assert ["put d/a=0", "synced", "put d/a=1"] == keeper.log


async def test_watches_end_after_five_to_ten_minutes_and_not_all_at_once():
    client, hands = Scripted([WHOLE], *([[bookmark(7)]] * 200), []), Hands()
    await run(client, reflector(client, Keeper(), hands.timing()))
    asked = [int(query["timeoutSeconds"]) for _, query, _ in client.asked]

    assert 300 == pytest.approx(min(asked), abs=10)
    assert 600 == pytest.approx(max(asked), abs=10)
    assert 100 < len(set(asked))


async def test_before_the_first_list_is_complete_nothing_is_synced():
    client, hands = Scripted([line("ADDED", pod("a", 3))]), Hands()
    mirror = reflector(client, Keeper(), hands.timing())
    started = hands.now
    await run(client, mirror)

    assert not mirror.synced
    assert started == mirror.stale_since
    assert 1 == len(mirror.store)


async def test_a_sink_that_asks_when_it_is_told_hears_that_all_is_there():
    client, hands, keeper = Scripted([WHOLE]), Hands(), Keeper()
    mirror = reflector(client, keeper, hands.timing())
    told: list[bool] = []
    keeper.synced = lambda: told.append(mirror.synced)  # type: ignore[method-assign]
    await run(client, mirror)

    assert [True] == told


async def test_staleness_counts_from_the_last_byte():
    broke, hands = UnreachableError("watch", "it broke"), Hands()
    client = Scripted([WHOLE, 50.0, bookmark(8), 7.0, broke], [3.0, broke], [], hands=hands)
    stale: list[float | None] = []

    async def noting(seconds: float) -> None:
        stale.append(mirror.stale_since)
        await hands.sleep(seconds)

    mirror = reflector(client, Keeper(), TimeSource(hands.clock, noting, random.Random(1)))
    await run(client, mirror)

    # The second watch stands at 1057, brings nothing, and breaks three seconds later.
    assert [1057.0] == stale
    assert mirror.stale_since is None, "and no longer when the next watch stands"


async def test_a_break_is_stale_from_the_last_byte_before_it_on():
    hands, keeper = Hands(), Keeper()
    client = Scripted([WHOLE, 50.0, bookmark(8), 7.0, UnreachableError("watch", "it broke")], [], hands=hands)
    mirror = reflector(client, keeper, hands.timing())
    request, stale = client.request, []

    async def noting(*words: Any, **more: Any) -> bytes:
        stale.append(mirror.stale_since)
        return await request(*words, **more)

    client.request = noting  # type: ignore[method-assign]
    await run(client, mirror)

    assert [1050.0] == stale, "while histories are compared"
    assert 1057.0 == mirror.last_seen


async def test_after_a_break_one_question_is_asked_before_the_watch_goes_on():
    client, hands = Scripted([WHOLE, UnreachableError("watch", "it broke")], []), Hands()
    await run(client, reflector(client, Keeper(), hands.timing()))

    assert ["watch", "limit", "resourceVersion"] == [
        next(word for word in ("limit", "resourceVersion", "watch") if word in query) for _, query, _ in client.asked
    ]
    assert {"limit": "1"} == client.asked[1][1]


async def test_a_silent_connection_is_counted_and_replaced():
    client, hands = Scripted([WHOLE, SilenceError("watch", "nothing came")], []), Hands()
    mirror = reflector(client, Keeper(), hands.timing())
    await run(client, mirror)

    assert (1, {}) == (mirror.counts.idle, mirror.counts.relists)
    assert [] == hands.waits


@pytest.mark.parametrize(
    ("streams", "expected"),
    [
        pytest.param(
            [[UnreachableError("watch", "it broke")], [WHOLE]], logging.WARNING, id="before anything was seen"
        ),
        pytest.param(
            [[WHOLE, UnreachableError("watch", "it broke")], []], logging.INFO, id="after everything was seen"
        ),
    ],
)
async def test_who_cannot_begin_says_so_louder_than_who_is_interrupted(streams, expected, caplog):
    client = Scripted(*streams)
    with caplog.at_level(logging.INFO):
        await run(client, reflector(client, Keeper(), Hands().timing()))

    assert [expected] == [record.levelno for record in caplog.records]


async def test_silence_is_no_news_to_whoever_reads_the_log(caplog):
    silence, broke = SilenceError("watch", "nothing came"), UnreachableError("watch", "it broke")
    client = Scripted([WHOLE, silence], [bookmark(8), silence], [bookmark(9), broke], [])
    with caplog.at_level(logging.INFO):
        await run(client, reflector(client, Keeper(), Hands().timing()))

    assert ["watch: it broke"] == [record.__dict__["problem"] for record in caplog.records]


async def test_a_watch_that_takes_long_to_open_may_still_be_closed_at_once():
    hands = Hands()
    client = Scripted([WHOLE], [], [WHOLE])
    opening = client._stream

    @asynccontextmanager
    async def slowly() -> AsyncIterator[AsyncIterator[bytes]]:
        hands.now += 5.0
        async with opening() as chunks:
            yield chunks

    client._stream = slowly  # type: ignore[method-assign]
    mirror = reflector(client, Keeper(), hands.timing())
    await run(client, mirror)

    assert {"silent": 1} == mirror.counts.relists


async def test_half_a_line_at_the_end_is_a_broken_watch_and_no_unreadable_object():
    client, hands = Scripted([WHOLE, line("ADDED", pod("b", 8))[:-20]], []), Hands()
    mirror = reflector(client, Keeper(), hands.timing())
    await run(client, mirror)

    assert (1, 0) == (mirror.counts.broken, mirror.counts.undecodable)
    assert "7" == client.asked[-1][1]["resourceVersion"], "it will be sent again"


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(line("CELEBRATED", pod("b", 8)), id="a kind of event nobody knows"),
        pytest.param(line("ADDED", {"metadata": {}}), id="no name"),
        pytest.param(line("ADDED", {"metadata": None}), id="no metadata"),
        pytest.param(line("BOOKMARK", {"metadata": {}}), id="a bookmark without a version"),
        pytest.param(
            line("ADDED", {"metadata": {"name": "b", "resourceVersion": "8"}, "value": "unreadable"}), id="bad"
        ),
    ],
)
async def test_an_event_that_makes_no_sense_is_counted_and_the_next_is_taken(odd):
    client, hands = Scripted([WHOLE, odd, line("MODIFIED", pod("a", 9, 1))]), Hands()
    keeper = Keeper()
    mirror = reflector(client, keeper, hands.timing())
    await run(client, mirror)

    assert (1, 0) == (mirror.counts.undecodable, mirror.counts.broken)
    assert {"d/a": 1} == keeper.things


async def test_an_unreadable_object_moves_the_version_on():
    bad = line("ADDED", {"metadata": {"name": "b", "resourceVersion": "8"}, "value": "unreadable"})
    client, hands = Scripted([WHOLE, bad], []), Hands()
    await run(client, reflector(client, Keeper(), hands.timing()))

    assert "8" == client.asked[-1][1]["resourceVersion"]


async def test_a_streamed_list_puts_nothing_again_that_has_not_changed():
    again = line("ADDED", pod("a", 3)) + line("ADDED", pod("b", 8)) + bookmark(9, ends_list=True)
    client, keeper = Scripted([WHOLE], [line("ERROR", status(410, "Expired"))], [again]), Keeper()
    await run(client, reflector(client, keeper, Hands().timing()))

    assert ["put d/a=0", "synced", "put d/b=0", "synced"] == keeper.log


async def test_an_event_that_is_too_long_is_counted():
    huge = line("ADDED", pod("b", 8, "x" * LINE_LIMIT))
    client, keeper = Scripted([WHOLE, huge[:LINE_LIMIT], huge[LINE_LIMIT:]], []), Keeper()
    mirror = reflector(client, keeper, Hands().timing())
    await run(client, mirror)

    assert (1, 0, 0) == (mirror.counts.oversized, mirror.counts.undecodable, mirror.counts.broken)
    assert ["d/a"] == list(keeper.things)


async def test_a_bookmark_that_does_not_end_a_list_shows_that_nobody_streams_one():
    client, keeper = Scripted([line("ADDED", pod("a", 3)) + bookmark(7)], []), Keeper()
    await run(client, reflector(client, keeper, Hands().timing()))

    assert ["sendInitialEvents", "limit", "resourceVersion"] == [
        next(word for word in ("limit", "resourceVersion", "sendInitialEvents") if word in query)
        for _, query, _ in client.asked
    ]
    assert ["put d/a=0", "remove d/a", "synced"] == keeper.log, "the pages are empty"


async def test_what_the_sink_raises_ends_the_reflector():
    client, keeper = Scripted([WHOLE]), Keeper()

    def refuse(item: Thing) -> None:
        raise ZeroDivisionError

    keeper.put = refuse  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        await reflector(client, keeper, Hands().timing()).run()


async def test_two_runs_with_the_same_dice_ask_the_same_at_the_same_time():
    async def play() -> tuple[list[float], list[float]]:
        cluster, hands = Cluster(), Hands()
        cluster.put("a")
        script = [Connection(fault) for fault in ("error answer", "cut", "garbage", "expired event", "unavailable")]
        client = ModelClient(cluster, script, hands)
        task = asyncio.create_task(reflector(client, Keeper(), hands.timing(7)).run())
        await client.settled.wait()
        await stop(task)
        return client.opened_at, hands.waits

    assert await play() == await play()
