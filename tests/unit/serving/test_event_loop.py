"""Which event loop turns."""

import asyncio
import sys

import pytest

from lamina.serving.event_loop import new_loop
from tests.unit.serving.visiting import PAGE, PIECE, get, post, serving


async def story() -> str:
    async with serving() as server, server.call() as caller:
        assert PAGE == (await caller.ask(get())).body
        assert PIECE * 8 == (await caller.ask(post("/echo", PIECE * 8))).body
        assert 400 == (await caller.ask(b"hello\r\n\r\n")).status
        assert b"" == await caller.rest()
    return type(asyncio.get_running_loop()).__module__


def test_asyncio_turns_where_there_is_nothing_else(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert "asyncio.unix_events" == runner.run(story())


@pytest.mark.needs("uvloop", ci=False)
def test_uvloop_turns_where_it_is_installed():
    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert "uvloop" == runner.run(story())
