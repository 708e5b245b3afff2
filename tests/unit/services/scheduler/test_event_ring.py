"""The event ring: holds the last events with the state before them, in bounds, and can be replayed from its beginning."""

import msgspec
import pytest

from lamina.model import events
from lamina.services.scheduler.event_ring import EventRing, RingLimits, Segment, TiePicks
from lamina.services.scheduler.replayer import replay_recording
from lamina.testing import a_loop, a_node, a_pod, an_image, held
from lamina.trace.recording import DecideCall
from tests.unit.services.scheduler.recorded import REGISTRY, Life, records_of


def entries(segment: Segment) -> int:
    return sum(1 if isinstance(entry, DecideCall) else len(entry) for entry in segment.entries)


def test_nothing_is_dropped_while_there_is_room():
    life = Life().live(10)

    assert 1 == len(list(life.ring))
    assert next(iter(life.ring)).count == entries(life.ring.recording())


def test_the_snapshot_moves_forward_as_old_events_are_dropped(tmp_path):
    """Whenever one looks, there are at most two segments, neither longer than allowed by more than one call."""
    life = Life(RingLimits(entries=30))
    begun = set()
    for _ in range(60):
        life.step()
        segments = list(life.ring)
        begun.add(segments[-1].started)
        assert len(segments) <= 2
        assert all(segment.count <= 30 + 2 for segment in segments)
    assert len(begun) > 5


@pytest.mark.parametrize("steps", range(1, 40, 3))
def test_what_is_remembered_is_replayed_from_its_own_beginning(tmp_path, steps):
    """Wherever the ring happens to be, decisions come out the same, ties and times to wake up at included."""
    life = Life(RingLimits(entries=25)).live(steps)
    decisions = []
    for segment in (life.ring.recording(), life.ring.newest()):
        data = b"".join(life.writer.encode(segment))
        found = replay_recording("test", records_of(data, tmp_path), REGISTRY)

        assert (True, None, True) == (found.equal, found.difference, found.exact)
        assert entries(segment) == found.events + sum(isinstance(entry, DecideCall) for entry in segment.entries)
        decisions.append(found.decisions)
    assert (len(list(life.ring)) == 1) == (decisions[0] == decisions[1])


def test_each_full_segment_is_handed_out_once_and_they_follow_each_other(tmp_path):
    """Together they have every decision, each of them equal."""
    life = Life(RingLimits(entries=25))
    life.live(50)
    found = [
        replay_recording("test", records_of(b"".join(life.writer.encode(one)), tmp_path), REGISTRY)
        for one in (*life.full, life.ring.newest())
    ]

    assert all(one.equal for one in found)
    assert len(life.full) > 3
    assert sum(one.decisions for one in found) >= 50


def test_reports_with_many_images_fill_a_segment_sooner():
    images = [an_image(f"app-{number}:1", {f"layer {number}": 5}) for number in range(100)]
    life = Life(RingLimits(entries=1000, bytes=100_000))
    for number in range(1, 12):
        life.ring.take(events.LayersReported(held("n1", *images, sequence=number)))

    assert 2 == len(list(life.ring))


def test_commands_of_events_before_the_snapshot_are_not_compared(tmp_path):
    """A standby takes events in and decides nothing; what it would have told is still there when it begins to lead."""
    life = Life(RingLimits(entries=25))
    life.live(20)
    life.ring.take(events.TimePassed(life.now + 1), events.PodSeen(a_pod("held", cpu=1)))
    (bind,) = [one for one in life.ring.decide(1) if getattr(one, "pod", None) is not None][:1]
    life.ring.take(events.BindFailed(bind.pod.uid, "conflict"))
    assert life.loop.pending > 0
    while life.ring.newest().carried == 0:
        life.now += 1.0
        life.ring.take(events.TimePassed(life.now + 1))
    list(life.decide())
    data = b"".join(life.writer.encode(life.ring.newest()))

    assert replay_recording("test", records_of(data, tmp_path), REGISTRY).equal


def test_the_host_sees_the_loop_through_the_ring():
    picks = TiePicks(lambda _: 0)
    loop = a_loop(pick=picks)
    ring = EventRing(loop, picks, lambda: 0.0)
    ring.take(events.NodeSeen(a_node("n1", cpu=4)), events.NodeSeen(a_node("n2", cpu=4)))
    ring.take()
    ring.take(events.PodSeen(a_pod("p1", cpu=1)), events.PodSeen(a_pod("p2", cpu=1)))
    ring.decide(1)

    assert (loop.queue, True, ["default-scheduler"]) == (ring.queue, ring.unfinished, ring.tried)
    decided = ring.newest().entries[-1]
    assert isinstance(decided, DecideCall)
    assert (1, 1, (0,)) == (decided.limit, decided.tried, decided.picks)


def test_a_decision_that_breaks_the_core_is_recorded(monkeypatch, tmp_path):
    """It is the last entry, with what the core raised; the replay reaches it and says how it ends there."""
    life = Life().live(3)

    def broken(_: int = 0) -> None:
        raise ZeroDivisionError("by nothing" * 1000)

    monkeypatch.setattr(life.loop, "decide", broken)
    with pytest.raises(ZeroDivisionError):
        life.ring.decide(1)
    decided = life.ring.newest().entries[-1]
    assert isinstance(decided, DecideCall)
    assert decided.broke.startswith("ZeroDivisionError: by nothing")
    assert 1000 == len(decided.broke)

    found = replay_recording(
        "test", records_of(b"".join(life.writer.encode(life.ring.recording())), tmp_path), REGISTRY
    )
    assert found.difference is not None
    assert ("error", found.decisions + 1) == (found.difference.why, found.difference.decision)
    assert "when this was recorded, and decided in the replay" in found.difference.message


def test_a_pod_with_long_annotations_that_changes_again_and_again_stays_within_the_limit():
    """The texts that the ring holds are counted, not the pods."""
    life = Life(RingLimits(bytes=1_000_000))
    for number in range(200):
        annotations = {"a": f"{number:08}" * 5000}
        life.ring.take(events.PodSeen(msgspec.structs.replace(a_pod("p"), node_name="n1", annotations=annotations)))
    letters = sum(
        len(event.pod.annotations["a"])
        for entry in life.ring.recording().entries
        if not isinstance(entry, DecideCall)
        for event in entry
        if isinstance(event, events.PodSeen)
    )

    assert letters <= 2 * (1_000_000 + 40_000)
