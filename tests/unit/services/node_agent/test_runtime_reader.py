"""The reader: looks again when something changed, keeps the last good look, and leaves a runtime in trouble in peace."""

import asyncio
import logging
import random

import pytest

from lamina.clients.cri.runtime_source import RuntimeSourceError
from lamina.model.holdings import Holdings
from lamina.services.node_agent.runtime_reader import ANEW, LOOK_LIMIT, RuntimeReader, describe_problem
from tests.unit.services.fakes import leaping
from tests.unit.services.node_agent.scripted import AWAY, ScriptedSource, an_image, holding


class Heard:
    """Writes down what a reader tells."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.at: list[float] = []

    def send(self, look, images) -> None:
        self.told.append(len(images))
        self.at.append(asyncio.get_running_loop().time())

    def send_problem(self, problem: str) -> None:
        self.told.append(problem)
        self.at.append(asyncio.get_running_loop().time())


def read(source: ScriptedSource, seconds: float, opened: list[object] | None = None) -> Heard:
    """Let a reader run for some time."""
    heard = Heard()
    doors = opened if opened is not None else [source]

    async def open_source():
        found = doors.pop(0) if len(doors) > 1 else doors[0]
        if isinstance(found, BaseException):
            raise found
        return found

    async def story() -> None:
        reader = asyncio.create_task(RuntimeReader(open_source, heard, random.Random(1)).run())
        await asyncio.sleep(seconds)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)

    leaping(story())
    return heard


ONE, TWO = holding(an_image(1)), holding(an_image(1), an_image(2))


def test_every_look_is_told():
    assert [1, 2, 2] == read(ScriptedSource(ONE, TWO, TWO, every=5.0), 12.0).told


def test_a_look_begins_at_most_once_a_second():
    source = ScriptedSource(ONE, every=0.0)
    read(source, 10.5)

    assert 11 == len(source.looked)
    assert all(later - earlier >= 1.0 for earlier, later in zip(source.looked, source.looked[1:], strict=False))


def test_a_runtime_that_never_changes_is_looked_at_all_the_same():
    source = ScriptedSource(ONE, every=1e9)
    read(source, 1300.0)

    assert 3 == len(source.looked)


def test_a_trouble_is_told_and_so_is_its_end():
    assert [1, str(AWAY), str(AWAY), 2] == read(ScriptedSource(ONE, AWAY, AWAY, TWO, every=2.0), 7.0).told


def test_a_runtime_in_trouble_is_asked_less_and_less_and_at_last_once_a_minute():
    source = ScriptedSource(AWAY)
    read(source, 600.0)
    gaps = [later - earlier for earlier, later in zip(source.looked, source.looked[1:], strict=False)]

    assert all(min(2.0**step, 60.0) <= gap <= 62.0 for step, gap in enumerate(gaps))
    assert 10 < len(gaps) < 20


def test_a_runtime_that_stays_away_is_looked_for_anew():
    gone, other = ScriptedSource(AWAY), ScriptedSource(TWO, every=1000.0)
    heard = read(gone, 300.0, [gone, RuntimeSourceError("auto", "no runtime found"), other])

    assert [*[str(AWAY)] * ANEW, "auto: no runtime found", 2] == heard.told
    assert (ANEW, 1) == (len(gone.looked), gone.closed)


def test_a_runtime_that_is_not_there_yet_is_waited_for():
    source = ScriptedSource(ONE, every=1000.0)

    assert ["auto: none", "auto: none", 1] == read(
        source, 20.0, [*[RuntimeSourceError("auto", "none")] * 2, source]
    ).told


def test_a_look_that_hangs_is_given_up():
    async def hang() -> Holdings:
        await asyncio.sleep(1e9)
        raise AssertionError

    heard = read(ScriptedSource(ONE, hang, TWO, every=1.0), LOOK_LIMIT + 10)

    assert [1, f"no answer within {LOOK_LIMIT:g} seconds; check whether the runtime is overloaded", 2] == heard.told[:3]


def test_a_trouble_while_waiting_counts_as_any_other():
    source = ScriptedSource(ONE, TWO, every=3.0)
    source.changing = [AWAY]

    assert [1, str(AWAY), 2] == read(source, 6.5).told


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(ValueError("hunter2"), "unexpected: ValueError", id="a mistake of ours"),
        pytest.param(MemoryError(), "not enough memory to read all images", id="memory"),
        pytest.param(PermissionError(13, "Permission denied"), "Permission denied", id="permission"),
    ],
)
def test_whatever_goes_wrong_the_reader_goes_on(error, words, caplog):
    logging.getLogger("lamina").propagate = True
    heard = read(ScriptedSource(ONE, error, TWO), 8.0)

    assert [1, 2] == [heard.told[0], heard.told[2]]
    assert words in str(heard.told[1])


def test_a_trouble_is_one_line():
    assert "x: a b" == describe_problem(RuntimeSourceError("x", "a\n  b"))


def test_the_runtime_is_let_go_of_at_the_end():
    source = ScriptedSource(ONE)
    read(source, 3.0)

    assert 1 == source.closed


def test_the_end_does_not_wait_for_a_runtime_that_does_not_let_go():
    class Clinging(ScriptedSource):
        async def close(self) -> None:
            await asyncio.sleep(1e9)

    assert [1] == read(Clinging(ONE, every=1000.0), 3.0).told
