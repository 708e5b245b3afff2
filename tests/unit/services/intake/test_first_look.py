"""When garbage is collected by a service that watches a cluster."""

import asyncio
import gc

import pytest

from lamina.services.intake import first_look
from lamina.services.intake.first_look import everything_seen, uncollected
from tests.unit.services.fakes import leaping


@pytest.fixture(autouse=True)
def _thawed():
    """Leave nothing frozen for other tests."""
    yield
    gc.unfreeze()


def test_garbage_is_not_collected_until_everything_was_seen():
    async def story():
        seen = False
        with uncollected():
            looking = asyncio.create_task(everything_seen(lambda: seen))
            await asyncio.sleep(3 * first_look.BETWEEN_LOOKS)
            assert not gc.isenabled()

            seen = True
            await looking

            assert (True, first_look.THRESHOLDS) == (gc.isenabled(), gc.get_threshold())
            assert gc.get_freeze_count() > 0

    leaping(story())


def test_who_never_sees_everything_collects_garbage_after_a_while():
    async def story():
        with uncollected():
            looking = asyncio.create_task(everything_seen(lambda: False))
            await asyncio.sleep(first_look.PATIENCE - first_look.BETWEEN_LOOKS)
            assert not gc.isenabled()
            await asyncio.sleep(3 * first_look.BETWEEN_LOOKS)

            assert (True, False) == (gc.isenabled(), looking.done())
            looking.cancel()

    leaping(story())


def test_afterwards_garbage_is_collected_as_before():
    before = gc.get_threshold()
    with uncollected():
        gc.set_threshold(*first_look.THRESHOLDS)

    assert (True, before) == (gc.isenabled(), gc.get_threshold())
