"""Events: what they say is asked for, and where they break off everything is."""

import asyncio
import time

import grpc
import pytest

from lamina.clients.cri.containerd import event_stream, poll_schedule
from lamina.clients.cri.runtime_source import RuntimeSourceError
from testbed import made
from tests.unit.clients.cri.containerd.fake_containerd import commit
from tests.unit.clients.cri.containerd.patience import answered, settle

WEB = made.image([made.layer({name: name.encode() * 100}) for name in ("base", "app")], architecture="amd64")


async def test_where_events_do_not_say_which_snapshotter_they_are_listed(fake, source):
    await source.look()
    await settle(fake)
    fake.pulled("web:1", WEB)
    fake.happen("/snapshot/commit", commit(next(iter(fake.snapshots["overlayfs"])), ""))
    fake.happen("/images/create")
    await source.changed()

    assert 1 == len((await source.look()).images)
    assert 2 == fake.asked["Snapshots/List"]


async def test_events_that_are_no_message_break_the_stream(fake, source):
    await source.look()
    await settle(fake)
    fake.garbled.add("Events/Subscribe")
    fake.happen("/images/create")
    await source.changed()

    assert source._listener.deaf


@pytest.mark.realtime
async def test_events_that_break_off_are_made_up_for_by_looking(fake, source):
    await source.look()
    await settle(fake)
    fake.pulled("web:1", WEB)
    fake.faults["Events/Subscribe"] = lambda context: context.abort(grpc.StatusCode.UNAVAILABLE, "still down")
    fake.break_streams()
    await source.changed()

    assert 1 == len((await source.look()).images)
    assert source._listener.deaf
    pause = source._schedule.due() - time.monotonic()
    assert poll_schedule.QUIET < pause <= poll_schedule.DEAF


async def test_events_are_listened_to_again(fake, source):
    await source.look()
    await settle(fake)
    fake.break_streams()
    await source.changed()
    await source.look()
    async with asyncio.timeout(10):
        while not fake.listeners:
            await asyncio.sleep(0.05)
    fake.happen("/images/create")
    await source.changed()

    assert not source._listener.deaf


async def test_after_a_long_absence_events_are_listened_to_at_once(fake, source):
    """The next stream would not have been opened for half a minute."""
    source._listener._pause = event_stream.LATEST
    await source.look()
    await settle(fake)
    await fake.stop()
    with pytest.raises(RuntimeSourceError, match="no response"):
        await source.look()
    await fake.start()
    fake.listeners.clear()
    await answered(source)
    async with asyncio.timeout(60):
        while not fake.listeners:
            await asyncio.sleep(0.05)


@pytest.mark.realtime
async def test_a_listener_that_ended_in_a_way_nobody_foresaw_is_known_to_be_deaf(fake, source):
    fake.pulled("web:1", WEB)
    await source.look()
    await settle(fake)
    source._event_log.enter = lambda envelope: 1 / 0
    fake.happen("/images/create")
    with pytest.raises(ZeroDivisionError):
        await source._listener._task
    await source.look()

    assert source._listener.deaf
    assert source._schedule.due() - time.monotonic() <= poll_schedule.DEAF
