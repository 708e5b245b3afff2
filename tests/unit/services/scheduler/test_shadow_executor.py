"""Observing: where pods would have gone, compared with where they went, and nothing kept for ever."""

import math
from typing import Any

import msgspec
import pytest

from lamina.model.events import Event, ImagesLearned, LayersReported, NodeGone, NodeSeen, PodGone, PodSeen, WorkDone
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import DoWork, Evict, Nominate
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.services.informers.event_queue import EventQueue
from lamina.services.scheduler import shadow_executor
from lamina.services.scheduler.scheduler_host import SchedulerHost
from lamina.services.scheduler.shadow_executor import (
    LET_GO_AFTER,
    MOST_SCHEDULERS,
    MOST_SHADOWS,
    OTHER_SCHEDULERS,
    ShadowExecutor,
)
from lamina.testing import a_loop, a_node, a_pod, an_image, held
from tests.unit.services.fakes import StillClock

APP = an_image("app:1", {"base": 500_000_000, "app": 100_000_000})


class Silent:
    def attempted(self, *_: object) -> None:
        pass

    def unchanged(self, *_: object) -> None:
        pass


class Post:
    """An observer, its loop and its host, put together as in the service."""

    def __init__(self, *nodes: str, loop: Loop | None = None, **more: Any) -> None:
        self.clock, self.inbox = StillClock(), EventQueue()
        self.loop = loop or a_loop(settings=LoopSettings(detail="savings"))
        self.observer = ShadowExecutor(self.loop, self.inbox.put, self.clock)
        self.host = SchedulerHost(self.loop, self.inbox, self.observer, Silent(), self.clock, allowed=lambda: True)
        self.tell(*(NodeSeen(a_node(name, **more)) for name in nodes))

    def tell(self, *events: Event) -> None:
        for event in events:
            self.inbox.put(event)
        self.settle()

    def see(self, *pods: Pod) -> None:
        self.tell(*(self.observer.seen(pod) for pod in pods))

    def gone(self, *pods: Pod) -> None:
        self.tell(*(self.observer.gone(pod) for pod in pods))

    def settle(self) -> None:
        for _ in range(5):
            self.host.step()

    def later(self, seconds: float) -> None:
        self.clock.at += seconds
        self.settle()

    def believed(self, name: str) -> str:
        """Where a pod counts."""
        placed = self.loop.cluster.cache.get(name)
        return "" if placed is None else placed.node

    @property
    def tallies(self) -> dict[str, Any]:
        return {name: value for name, value in msgspec.structs.asdict(self.observer.totals).items() if value}


def placed(pod: Pod, node: str) -> Pod:
    return msgspec.structs.replace(pod, node_name=node)


def layered(*holders: str) -> Post:
    """Two nodes that report, of which some hold the image."""
    post = Post("n1", "n2")
    post.tell(ImagesLearned((APP,)))
    post.tell(*(LayersReported(held(name, *([APP] if name in holders else []))) for name in ("n1", "n2")))
    return post


# ------------------------------------------------------------------------------------------------------------ comparing


def test_a_pod_counts_where_it_would_have_gone_until_it_is_placed():
    post = layered("n2")
    post.see(a_pod())
    assert "n2" == post.believed("p1")

    post.see(placed(a_pod(), "n1"))
    assert "n1" == post.believed("p1")


def test_the_same_node_is_the_same_node():
    post = layered("n2")
    post.see(a_pod())
    post.see(placed(a_pod(), "n2"))

    assert {"compared": 1, "same": 1} == post.tallies
    assert ("n2", "n2") == (post.observer.last["default/p1"].ours, post.observer.last["default/p1"].theirs)


def test_a_node_that_has_to_download_more_is_later_than_ours():
    post = layered("n2")
    post.see(a_pod())
    post.see(placed(a_pod(), "n1"))

    assert (1, 1, 600_000_000) == (post.tallies["compared"], post.tallies["sooner"], post.tallies["bytes"])
    assert 0 < post.tallies["seconds"]
    assert "later" not in post.tallies


def test_a_node_that_has_more_is_sooner_than_ours():
    """Ours had no room left on the better node, for example; here the better node could not be taken."""
    post = layered("n2")
    post.tell(NodeSeen(a_node("n2", unschedulable=True)))
    post.see(a_pod())
    post.see(placed(a_pod(), "n2"))

    assert (1, 1, -600_000_000) == (post.tallies["compared"], post.tallies["later"], post.tallies["bytes"])
    assert "-600 MB of downloads" in post.observer.summary()


def test_without_layers_nobody_knows():
    post = Post("n1", "n2")
    post.see(a_pod())
    post.see(placed(a_pod(), "n2"))

    assert {"compared": 1, "unknown": 1} == post.tallies


def test_a_node_that_nobody_knew_when_the_choice_was_made_is_not_known():
    post = layered("n2")
    post.see(a_pod())
    post.tell(NodeSeen(a_node("n3")))
    post.see(placed(a_pod(), "n3"))

    assert {"compared": 1, "unknown": 1} == post.tallies


def test_a_node_that_never_came_is_not_known():
    post = layered("n2")
    post.see(a_pod())
    post.see(placed(a_pod(), "n9"))

    assert {"compared": 1, "unknown": 1} == post.tallies


def test_a_node_that_took_the_row_of_another_is_not_known_either():
    post = layered("n2")
    post.see(a_pod())
    post.tell(NodeGone("n1"), NodeSeen(a_node("n3")))
    post.see(placed(a_pod(), "n3"))

    assert {"compared": 1, "unknown": 1} == post.tallies


def test_a_pod_that_was_placed_before_we_decided_is_not_compared():
    post = layered("n2")
    post.see(placed(a_pod(), "n1"))

    assert {} == post.tallies
    assert "n1" == post.believed("p1")


def test_both_in_one_portion_is_too_late_to_compare_and_counts_where_it_went():
    post = layered("n2")
    post.see(a_pod(), placed(a_pod(), "n1"))

    assert {} == post.tallies
    assert "n1" == post.believed("p1")


def test_what_comes_after_the_placement_is_not_compared_again():
    post = layered("n2")
    post.see(a_pod())
    post.see(placed(a_pod(), "n1"))
    post.see(msgspec.structs.replace(placed(a_pod(), "n1"), started=True))

    assert 1 == post.tallies["compared"]


def test_a_pod_that_was_deleted_before_it_was_placed_is_forgotten():
    post = layered("n2")
    post.see(a_pod())
    post.gone(a_pod())

    assert ("", {}) == (post.believed("p1"), post.tallies)
    post.later(LET_GO_AFTER + 1)
    assert {} == post.tallies


def test_a_pod_for_which_there_is_no_room_is_counted():
    post = Post("n1")
    post.see(a_pod("huge", cpu=64))

    assert {"refused": 1} == post.tallies


def test_the_newest_comparisons_are_kept_and_no_more(monkeypatch):
    monkeypatch.setattr(shadow_executor, "MOST_SHADOWS", 5)
    post = Post("n1", "n2")
    for number in range(9):
        post.see(a_pod(f"p{number}"))
        post.see(placed(a_pod(f"p{number}"), "n2"))

    assert [f"default/p{number}" for number in range(4, 9)] == list(post.observer.last)


# --------------------------------------------------------------------------------------------------- whatever scheduler


@pytest.mark.parametrize(
    ("name", "taken"),
    [("default-scheduler", "default-scheduler"), ("somebody-else", "default-scheduler"), ("", "default-scheduler")],
)
def test_every_pod_is_looked_at_whatever_scheduler_it_names(name, taken):
    post = Post("n1")
    event = post.observer.seen(a_pod(scheduler=name))

    assert isinstance(event, PodSeen)
    assert taken == event.pod.scheduler_name


def test_a_placed_pod_is_left_as_it_is():
    post = Post("n1")

    assert "somebody-else" == post.observer.seen(a_pod(scheduler="somebody-else", on="n1")).pod.scheduler_name


def test_pods_are_counted_by_the_scheduler_they_name():
    post = Post("n1")
    post.see(a_pod(scheduler="somebody-else"))

    assert {"somebody-else": 1} == dict(post.observer.schedulers)


# -------------------------------------------------------------------------------------------------------------- letting go


def test_pods_that_name_ever_new_schedulers_are_counted_together():
    post = Post()
    for number in range(3 * MOST_SCHEDULERS):
        post.observer.seen(a_pod(f"p{number}", scheduler=f"made-up-{number}"))
    post.observer.seen(a_pod("known", scheduler="made-up-0"))

    counted = post.observer.schedulers
    assert MOST_SCHEDULERS + 1 == len(counted)
    assert 2 == counted["made-up-0"]
    assert 2 * MOST_SCHEDULERS == counted[OTHER_SCHEDULERS]


def test_a_pod_nobody_places_is_let_go():
    post = Post("n1")
    post.see(a_pod("p1"))
    post.later(LET_GO_AFTER + 1)
    post.see(a_pod("p2"))

    assert ("", "n1") == (post.believed("p1"), post.believed("p2"))
    assert {"let_go": 1} == post.tallies


def test_a_pod_that_is_waited_for_keeps_its_room():
    post = Post("n1")
    post.see(a_pod("p1"))
    post.later(LET_GO_AFTER - 1)
    post.see(a_pod("p2"))

    assert "n1" == post.believed("p1")


def test_room_is_let_go_also_when_all_the_others_wait_for_it():
    post = Post("n1", cpu=4)
    post.see(a_pod("p1", cpu=4))
    post.see(a_pod("p2", cpu=4))
    post.later(LET_GO_AFTER + 1)
    # It was looked at again at that very moment, and rests from that.
    post.later(10.0)

    assert "n1" == post.believed("p2")


def test_a_pod_that_was_let_go_is_looked_at_again_when_it_changes():
    post = Post("n1")
    post.see(a_pod("p1"))
    post.later(LET_GO_AFTER + 1)
    post.see(a_pod("p2"))
    post.see(a_pod("p1", labels={"changed": "yes"}))
    post.see(placed(a_pod("p1"), "n1"))

    assert {"compared": 1, "same": 1, "let_go": 1} == post.tallies


def test_there_are_never_more_choices_than_agreed():
    post = Post("n1", pods=5000, cpu=4000)
    for number in range(MOST_SHADOWS + 20):
        post.inbox.put(post.observer.seen(a_pod(f"p{number}", cpu="1m")))
    while len(post.inbox) or post.loop.unfinished or len(post.loop.queue):
        post.host.step()

    assert {"let_go": 20} == post.tallies
    assert MOST_SHADOWS == len(post.observer._shadows)
    assert ("", "n1") == (post.believed("p0"), post.believed(f"p{MOST_SHADOWS}"))


# ------------------------------------------------------------------------------------------------------- other commands


def test_nobody_is_evicted_and_nothing_is_answered_that_was_not_done():
    post = Post("n1")
    post.observer.perform(Evict(a_pod("victim"), a_pod(), "n1"))
    post.observer.perform(Nominate(a_pod(), "n1"))

    assert 0 == len(post.inbox)


def test_work_before_a_binding_counts_as_done():
    post = Post("n1")
    post.observer.perform(DoWork(a_pod(), "n1", "VolumeBinding", 3, None))

    assert [WorkDone("p1", "VolumeBinding", 3)] == post.inbox.take(5)


# ---------------------------------------------------------------------------------------------------------------- words


def test_there_is_a_summary_when_nothing_happened():
    assert "observed no pod placed by another scheduler" == Post().observer.summary()


def test_the_summary_says_what_would_have_been_gained():
    post = layered("n2")
    for number, node in enumerate(("n1", "n2")):
        post.see(a_pod(f"p{number}"))
        post.see(placed(a_pod(f"p{number}"), node))
    said = post.observer.summary()

    assert "observed 2 pods placed by others: the same node for 1, images ready sooner for 1, later for 0" in said
    assert "600 MB of downloads would have been saved" in said


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        (("n1", "n1", None, None), "p went to n1, where Lamina would have put it"),
        (
            ("n2", "n1", None, None),
            "p went to n1; Lamina would have put it on n2; its readiness estimate there is unknown",
        ),
        (
            ("n2", "n1", 2.5, 1000),
            "p went to n1; Lamina would have put it on n2, its images ready 2.5 s sooner and 1.0 kB less to download",
        ),
        (
            ("n2", "n1", -2.5, -1000),
            "p went to n1; Lamina would have put it on n2, its images ready 2.5 s later and 1.0 kB more to download",
        ),
    ],
    ids=["same", "unknown", "sooner", "later"],
)
def test_each_comparison_is_said_in_a_line(observed, words):
    ours, theirs, seconds, saved = observed

    assert words == shadow_executor._said(
        shadow_executor.ShadowComparison(pod="p", ours=ours, theirs=theirs, seconds=seconds, bytes=saved)
    )


def test_what_is_saved_is_a_number_whatever_is_reported():
    """Rates of nothing, disks that are full: never an exception out of the watch that told us."""
    post = Post("n1", "n2")
    post.tell(ImagesLearned((APP,)))
    odd = msgspec.structs.replace(held("n1"), download_rate=1e-300, unpack_rate=1e-300, disk=10**9, disk_free=0)
    post.tell(LayersReported(odd), LayersReported(held("n2", APP)))
    post.see(a_pod())
    post.see(placed(a_pod(), "n1"))

    assert 1 == post.tallies["compared"]
    assert not math.isnan(post.observer.totals.seconds)
    post.observer.summary()


def test_pods_gone_and_seen_are_events_for_the_loop():
    assert PodGone("p1") == Post().observer.gone(a_pod())
