"""Arrays of placed pods: row after row, the most important pod first, and only changed rows are sorted again."""

import msgspec
import pytest

from lamina.model.pod import Pod, PodUid
from lamina.scheduling.state.cluster_usage import ClusterUsage
from lamina.scheduling.state.columns import NodeColumns
from lamina.scheduling.state.placed_pods import UNKNOWN_START, PlacedPods
from lamina.scheduling.state.pod_cache import PodCache
from lamina.testing import a_node, a_pod


def a_cache(*nodes: str) -> PodCache:
    columns = NodeColumns()
    cache = PodCache(columns, ClusterUsage(columns))
    for name in nodes:
        cache.put_node(a_node(name))
    return cache


def low(name: str, priority: int = 0, since: float = 1.0, app: str = "x") -> Pod:
    return a_pod(name, cpu=1, priority=priority, started_at=since, labels={"app": app})


def names(placed: PlacedPods) -> list[tuple[int, str]]:
    entries = placed.entries()
    return [(row, placed.pod(slot).name) for row, slot in zip(entries.row.tolist(), entries.slot.tolist(), strict=True)]


def test_pods_are_ordered_by_row_priority_start_and_arrival():
    cache = a_cache("n0", "n1")
    placed = cache.arrays()
    for pod, node in (
        (low("late", since=9.0), "n1"),
        (low("second"), "n0"),
        (low("third"), "n0"),
        (low("first", priority=5, since=0.0), "n0"),
        (low("early", since=2.0), "n1"),
    ):
        cache.assume(pod, node)

    assert [(0, "first"), (0, "second"), (0, "third"), (1, "early"), (1, "late")] == names(placed)
    assert UNKNOWN_START == placed.entries().start.item(0), "a pod without a start counts as the latest"


def test_arrays_that_are_requested_late_have_the_earlier_pods():
    cache = a_cache("n0")
    cache.assume(low("a"), "n0")

    assert [(0, "a")] == names(cache.arrays())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda cache: cache.remove(PodUid("a")), [(0, "b"), (1, "c")], id="a pod leaves"),
        pytest.param(
            lambda cache: cache.confirm(low("b", priority=3), "n0"),
            [(0, "b"), (0, "a"), (1, "c")],
            id="another priority",
        ),
        pytest.param(
            lambda cache: cache.confirm(low("a", since=7.0), "n0"), [(0, "b"), (0, "a"), (1, "c")], id="another start"
        ),
        pytest.param(
            lambda cache: cache.confirm(low("a"), "n1"), [(0, "b"), (1, "c"), (1, "a")], id="it moves to another node"
        ),
        pytest.param(lambda cache: cache.remove_node("n0"), [(1, "c")], id="a node is removed"),
        pytest.param(
            lambda cache: (cache.remove_node("n0"), cache.put_node(a_node("n9")), cache.put_node(a_node("n0"))),
            [(1, "c"), (2, "a"), (2, "b")],
            id="a node returns in another row",
        ),
    ],
)
def test_entries_follow_every_change(change, expected):
    cache = a_cache("n0", "n1")
    placed = cache.arrays()
    for name, node in (("a", "n0"), ("b", "n0"), ("c", "n1")):
        cache.assume(low(name), node)
    names(placed)

    change(cache)

    assert expected == names(placed)


def test_the_pod_of_an_entry_is_the_last_seen_one():
    cache = a_cache("n0")
    placed = cache.arrays()
    cache.assume(low("a"), "n0")
    names(placed)

    cache.confirm(msgspec.structs.replace(low("a"), annotations={"k": "v"}), "n0")

    assert {"k": "v"} == placed.pod(placed.entries().slot.item(0)).annotations


def test_kinds_and_slots_are_used_again():
    cache = a_cache("n0")
    placed = cache.arrays()
    for number in range(50):
        cache.assume(low(f"p{number}", app=f"app-{number}"), "n0")
        cache.remove(PodUid(f"p{number}"))

    assert 1 == len(placed.kinds.pods)
    assert [] == names(placed)


@pytest.mark.parametrize("priority", [2**70, -(2**70)], ids=["huge", "hugely negative"])
def test_a_priority_that_fits_no_number_of_the_table_does_not_stop_the_cache(priority):
    cache = a_cache("n0")
    placed = cache.arrays()

    for name, given in (("a", priority), ("b", 0)):
        cache.assume(msgspec.structs.replace(low(name), priority=given), "n0")

    assert ([(0, "a"), (0, "b")] if priority > 0 else [(0, "b"), (0, "a")]) == names(placed)
