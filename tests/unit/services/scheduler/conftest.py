"""Leaves the garbage collector as it was: a scheduler that runs freezes it."""

import gc

import pytest


@pytest.fixture(autouse=True)
def collected():
    """The garbage collector as it was found."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)
    gc.enable()
