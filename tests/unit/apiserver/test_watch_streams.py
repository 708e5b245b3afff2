"""Open watches: how often they write to their connections."""

import asyncio
import json

import pytest

from lamina.apiserver.watch_streams import LONGEST_ROUND, MANY_WATCHES, WATCH_SECONDS, WatchStream, WatchStreams
from lamina.simulator.facade.api_messages import WatchResponse
from tests.unit.services.fakes import leaping
from tests.unit.simulator.facade.api_client import CONFIG_MAPS, NotedFacade, a_config_map


class NotedStream:
    """Stands for the connection of a watch; notes what is written, and when."""

    unsent = 0

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.times: list[float] = []

    def write(self, data: bytes) -> bool:
        self.written.append(data)
        self.times.append(asyncio.get_running_loop().time())
        return True

    @property
    def names(self) -> list[str]:
        """Names of the objects that arrived, in order."""
        lines = b"".join(self.written).splitlines()
        return [json.loads(line)["object"]["metadata"]["name"] for line in lines]


def open_watches(facade: NotedFacade, count: int) -> list[NotedStream]:
    """Open watches of all config maps."""
    streams, connections = WatchStreams(), [NotedStream() for _ in range(count)]
    for connection in connections:
        answer = facade.answer("GET", f"{CONFIG_MAPS}?watch=true")
        assert isinstance(answer, WatchResponse)
        WatchStream(answer, CONFIG_MAPS, streams).opened(connection)  # type: ignore[arg-type]
    return connections


@pytest.mark.parametrize("count", [1, MANY_WATCHES - 1, MANY_WATCHES, 100, 500])
def test_events_that_come_together_are_one_write_for_each_watch(count):
    async def story() -> list[NotedStream]:
        facade = NotedFacade()
        connections = open_watches(facade, count)
        for name in "abcde":
            facade.made(CONFIG_MAPS, a_config_map(name))
        await asyncio.sleep(1.0)
        facade.made(CONFIG_MAPS, a_config_map("f"))
        await asyncio.sleep(1.0)
        return connections

    for connection in leaping(story()):
        assert 2 == len(connection.written)
        assert list("abcdef") == connection.names


@pytest.mark.parametrize(
    ("count", "seconds"),
    [
        pytest.param(MANY_WATCHES - 1, 0.0, id="few watches are written at once"),
        pytest.param(MANY_WATCHES, MANY_WATCHES * WATCH_SECONDS, id="many wait"),
        pytest.param(100, 100 * WATCH_SECONDS, id="the more, the longer"),
        pytest.param(1_000, LONGEST_ROUND, id="but not beyond the limit"),
    ],
)
def test_a_round_of_writes_waits_in_proportion_to_the_number_of_watches(count, seconds):
    async def story() -> list[float]:
        facade = NotedFacade()
        connections = open_watches(facade, count)
        began = asyncio.get_running_loop().time()
        facade.made(CONFIG_MAPS, a_config_map("a"))
        await asyncio.sleep(1.0)
        return [time - began for one in connections for time in one.times]

    assert [pytest.approx(seconds, abs=1e-3)] * count == leaping(story())


def test_the_writes_do_not_grow_with_the_rate_of_events():
    """100 watchers and a second with 1,000 events: 40 rounds of 25 ms."""

    async def story() -> list[NotedStream]:
        facade = NotedFacade()
        connections = open_watches(facade, 100)
        for number in range(1_000):
            facade.made(CONFIG_MAPS, a_config_map(f"c{number}"))
            await asyncio.sleep(0.001)
        await asyncio.sleep(1.0)
        return connections

    for connection in leaping(story()):
        assert len(connection.written) <= 1.0 / (100 * WATCH_SECONDS) + 1
        assert [f"c{number}" for number in range(1_000)] == connection.names


def test_lines_that_are_sent_while_the_loop_stands_still_are_written_when_it_turns():
    """A run writes to the store between two turns of its loop."""
    loop, facade = asyncio.new_event_loop(), NotedFacade()
    try:
        connections = loop.run_until_complete(_opened(facade))
        facade.made(CONFIG_MAPS, a_config_map("a"))
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()

    assert [["a"]] == [one.names for one in connections]


async def _opened(facade: NotedFacade) -> list[NotedStream]:
    return open_watches(facade, 1)
