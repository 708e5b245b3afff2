"""When the extender answers, what it waits for, and how old its data is."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lamina.services.extender.sync_state import AGENTS, SyncState
from lamina.services.informers.informer_set import InformerSet


def state(*unsynced: str, **stale: float | None) -> SyncState:
    """The state with these resources unsynced, and with these reflectors, at second 100."""
    reflectors = {
        kind: SimpleNamespace(synced=kind not in unsynced, stale_since=since) for kind, since in stale.items()
    }
    informers: Any = SimpleNamespace(unsynced=list(unsynced), reflectors=reflectors)
    return SyncState(cast("InformerSet", informers), now=lambda: 100.0)


def test_without_a_cluster_to_watch_it_is_ready() -> None:
    alone = SyncState(None)

    assert (True, [], {}) == (alone.ready(), alone.unsynced(), alone.stale())


@pytest.mark.parametrize(
    ("unsynced", "expected"),
    [
        pytest.param(("Pod", "Node"), ["Pod", "Node"], id="lists are missing"),
        pytest.param((), [AGENTS], id="all listed, and not processed yet"),
    ],
)
def test_before_the_sync_is_complete_it_names_what_it_waits_for(unsynced: tuple[str, ...], expected: list[str]) -> None:
    waiting = state(*unsynced)

    assert (False, expected) == (waiting.ready(), waiting.unsynced())


def test_after_the_sync_it_stays_ready_although_a_watch_fails() -> None:
    synced = state("Pod")
    synced.complete()

    assert (True, []) == (synced.ready(), synced.unsynced())


def test_data_is_as_old_as_the_last_time_its_watch_was_up() -> None:
    assert {"Node": 0.0, "Pod": 9.5} == state("NodeLayers", Node=None, Pod=90.5, NodeLayers=3.0).stale()
