"""When garbage is collected by a service that watches a cluster."""

import asyncio
import gc

import pytest

from lamina.services.informers import initial_sync
from lamina.services.informers.initial_sync import gc_paused, wait_synced
from tests.unit.services.fakes import leaping


@pytest.fixture(autouse=True)
def _thawed():
    """Leave nothing frozen for other tests."""
    yield
    gc.unfreeze()


def test_garbage_is_not_collected_until_everything_was_seen():
    async def story():
        seen = False
        with gc_paused():
            looking = asyncio.create_task(wait_synced(lambda: seen))
            await asyncio.sleep(3 * initial_sync.BETWEEN_LOOKS)
            assert not gc.isenabled()

            seen = True
            await looking

            assert (True, initial_sync.THRESHOLDS) == (gc.isenabled(), gc.get_threshold())
            assert gc.get_freeze_count() > 0

    leaping(story())


def test_who_never_sees_everything_collects_garbage_after_a_while():
    async def story():
        with gc_paused():
            looking = asyncio.create_task(wait_synced(lambda: False))
            await asyncio.sleep(initial_sync.SYNC_TIMEOUT - initial_sync.BETWEEN_LOOKS)
            assert not gc.isenabled()
            await asyncio.sleep(3 * initial_sync.BETWEEN_LOOKS)

            assert (True, False) == (gc.isenabled(), looking.done())
            looking.cancel()

    leaping(story())


def test_afterwards_garbage_is_collected_as_before():
    before = gc.get_threshold()
    with gc_paused():
        gc.set_threshold(*initial_sync.THRESHOLDS)

    assert (True, before) == (gc.isenabled(), gc.get_threshold())
