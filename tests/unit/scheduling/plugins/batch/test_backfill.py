"""Backfill in a loop: what waits, why, and what lets it start."""

import msgspec
import pytest

from lamina.model.errors import InputError
from lamina.model.events import NodeSeen, PodGone, TimePassed
from lamina.model.pod import Pod, PodUid
from lamina.model.pod_groups import gang_annotations
from lamina.model.walltime import WALLTIME
from lamina.scheduling.plugins.batch.backfill import plugin
from lamina.scheduling.plugins.batch.backfill.plugin import Backfill
from lamina.scheduling.plugins.batch.backfill.waiting_list import WaitingList
from lamina.testing import LoopHarness, a_node, a_pod
from tests.backfill_runs import a_backfilling_loop, a_configuration


def a_job(name: str, cpu: int, walltime: str = "", **annotations: str) -> Pod:
    return a_pod(name, cpu, "1Gi", annotations=annotations | ({WALLTIME: walltime} if walltime else {}))


def a_harness(*nodes: int, **args: object) -> LoopHarness:
    """A cluster of nodes with so many cpus, at 100 seconds."""
    harness = LoopHarness(a_backfilling_loop(**args))
    harness.tell(TimePassed(100.0), *(NodeSeen(a_node(f"n{row}", cpu)) for row, cpu in enumerate(nodes)))
    return harness


@pytest.mark.parametrize(
    ("later", "cpu", "starts"),
    [
        pytest.param("50s", 2, True, id="ends when the reservation begins"),
        pytest.param("51s", 2, False, id="ends after it, and would take its room"),
        pytest.param("51s", 1, True, id="ends after it, beside it"),
        pytest.param("", 2, False, id="without a walltime"),
        pytest.param("", 1, True, id="without a walltime, beside it"),
    ],
)
def test_a_later_job_starts_only_if_it_delays_no_reservation(later: str, cpu: int, starts: bool) -> None:
    # 8 cpus: "first" holds 5 until 150 s, then "wide" takes 7 and leaves 1.
    harness = a_harness(8)
    harness.see(a_job("first", 5, "50s"))
    harness.see(a_job("wide", 7, "10s"))

    harness.see(a_job("later", cpu, later))

    assert ("later" in harness.bound) == starts
    assert harness.pending["wide"].endswith(plugin.RESERVED + ".")


@pytest.mark.parametrize(
    ("reservations", "starts"),
    [pytest.param("first", True, id="EASY"), pytest.param("all", False, id="conservative")],
)
def test_only_conservative_backfill_protects_the_second_job_that_waits(reservations: str, starts: bool) -> None:
    # "later" leaves 6 of 8 cpus for "wide" at 150 s, but not 8 for "whole" after that.
    harness = a_harness(8, reservations=reservations)
    for job in (a_job("first", 5, "50s"), a_job("wide", 6, "10s"), a_job("whole", 8, "10s")):
        harness.see(job)

    harness.see(a_job("later", 2, "1h"))

    assert ("later" in harness.bound) == starts


def test_depth_0_is_first_come_first_served() -> None:
    harness = a_harness(8, depth=0)
    for job in (a_job("first", 5, "50s"), a_job("wide", 7, "10s"), a_job("short", 1, "1s")):
        harness.see(job)

    assert list(harness.bound) == ["first"]


def test_a_gang_starts_as_a_whole_and_keeps_its_reservation() -> None:
    harness = a_harness(4, 4)
    gang = [a_job(f"g{number}", 3, "10s", **gang_annotations("g", 2)) for number in range(2)]
    harness.see(a_job("first", 3, "50s"))
    harness.see(*gang)
    harness.see(a_job("long", 4, "1h"))
    assert list(harness.bound) == ["first"]

    harness.tell(TimePassed(120.0), PodGone(PodUid("first")))

    assert {"g0", "g1"} <= harness.bound.keys()
    assert "long" not in harness.bound


def test_a_job_that_waits_behind_one_that_is_deleted_is_tried_again() -> None:
    harness = a_harness(8)
    for job in (a_job("first", 5, "50s"), a_job("wide", 7, "10s"), a_job("later", 2, "1h")):
        harness.see(job)
    assert "later" not in harness.bound

    harness.tell(TimePassed(101.0), PodGone(PodUid("wide")))
    harness.at(103.0)

    assert "later" in harness.bound


def test_a_restored_loop_knows_the_jobs_that_wait() -> None:
    harness = a_harness(8)
    for job in (a_job("first", 5, "50s"), a_job("wide", 7, "10s")):
        harness.see(job)
    restored = LoopHarness(a_backfilling_loop())
    restored.loop.restore(harness.loop.snapshot())

    restored.tell(TimePassed(101.0))
    restored.see(a_job("later", 2, "1h"))

    assert "later" not in restored.bound


def test_a_job_that_fits_on_no_empty_node_is_left_to_the_ordinary_cycle() -> None:
    harness = a_harness(8)

    harness.see(a_job("huge", 9, "10s"), a_job("small", 1))

    assert harness.pending["huge"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert "small" in harness.bound


def test_a_pod_past_its_walltime_keeps_others_from_its_room() -> None:
    harness = a_harness(8)
    harness.see(a_job("first", 5, "50s"))
    harness.at(200.0)

    harness.see(a_job("wide", 7, "10s"))
    harness.see(a_job("later", 2, "1s"))

    # "first" may end at any moment, and "wide" starts then.
    assert list(harness.bound) == ["first"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        pytest.param({"depth": -1}, "depth", id="negative depth"),
        pytest.param({"order": "random"}, "order", id="unknown order"),
        pytest.param({"reservations": "all", "depth": 0}, "write reservations: first for depth 0", id="no jobs at all"),
        pytest.param({"reservation": "all"}, "did you mean 'reservations'?", id="misspelled"),
    ],
)
def test_wrong_arguments_are_refused_with_a_hint(args: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        a_configuration(**args)

    assert message in str(caught.value)


def test_a_walltime_that_cannot_be_read_is_noted() -> None:
    harness = LoopHarness(a_backfilling_loop())
    (made,) = {
        id(one): one
        for profile in harness.loop.profiles.values()
        for one in profile.plugins.values()
        if isinstance(one, Backfill)
    }.values()

    assert "is ignored" in made.notes(msgspec.structs.replace(a_job("j", 1), annotations={WALLTIME: "later"}))


def test_a_gang_whose_first_pods_are_others_now_keeps_its_turn() -> None:
    # Of three pods two must start. Those with the promise differ in size, and the two that are left do not.
    harness = a_harness(4, 4, reservations="all")
    harness.see(a_job("first", 4, "50s"), a_job("second", 4, "50s"))
    sizes = {"a": 3, "b": 4, "c": 4}
    harness.see(*(a_job(name, cpu, "10s", **gang_annotations("g", 2)) for name, cpu in sizes.items()))
    assert harness.pending["a"].endswith(plugin.RESERVED + ".")

    harness.tell(TimePassed(110.0), PodGone(PodUid("a")))
    harness.at(112.0)
    assert harness.pending["c"].endswith(plugin.RESERVED + ".")
    harness.tell(TimePassed(120.0), PodGone(PodUid("first")), PodGone(PodUid("second")))

    assert {"b", "c"} <= harness.bound.keys()


def test_pods_wait_by_priority_and_arrival_and_those_of_a_job_as_they_came() -> None:
    waiting = WaitingList()
    pods = {name: PodUid(name) for name in ("late", "z", "a", "urgent", "gone", "new")}
    waiting.put([pods["late"]], 0, 9.0)
    waiting.put([pods["z"], pods["a"]], 0, 5.0)
    waiting.put([pods["urgent"]], 0, 7.0)
    waiting.put([pods["gone"]], 0, 1.0)
    waiting.see(a_pod("new"))
    # Its priority changed, and it moves.
    waiting.put([pods["urgent"]], 3, 7.0)
    removed = [waiting.remove(pods["gone"]), waiting.remove(pods["gone"])]
    scheduler = a_pod("new").scheduler_name

    assert removed == [True, False]
    assert waiting.first(scheduler, 9) == ["urgent", "z", "a", "late", "new"]
    assert waiting.first(scheduler, 2) == ["urgent", "z", "a", "new"]
    assert waiting.first("another", 1) == ["urgent"]
