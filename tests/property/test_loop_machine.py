"""
The loop under random pods, nodes, failures and time.

A machine plays the cluster: it keeps the truth an API server would have, performs the loop's commands late, out of
order, or not at all, and checks after every step that what the loop believes equals a naive recomputation.
"""

import os
from typing import ClassVar

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from lamina.model import events
from lamina.model.node import Node
from lamina.model.pod import Pod, SpreadConstraint
from lamina.model.selectors import LabelSelector
from lamina.model.taints import NO_EXECUTE, NO_SCHEDULE, Taint, Toleration, untolerated
from lamina.scheduling.contract.commands import Bind, DoWork, Evict, ReportPluginError, ReportUnschedulable, WakeAt
from lamina.scheduling.loop import scheduling_queue
from lamina.testing import a_loop, a_node, a_pod, an_image, held
from tests.property.machine_plugins import PLUGINS, Volume

SCHEDULES = int(os.environ.get("LAMINA_SCHEDULES", "2000"))
STEPS = 25
MB = 1_000_000
IMAGES = [an_image(f"app-{n}:1", {"base": 50 * MB, f"app-{n}": (n + 1) * 100 * MB}) for n in range(3)]
DEDICATED = Taint("dedicated", "", NO_SCHEDULE)
ZONES = ("x", "y")
EVEN = (SpreadConstraint(1, "zone", selector=LabelSelector((("app", "even"),))),)
WIDE = {f"example.com/r{number}": 1 for number in range(40)}
"""More resources than a node has by rights: what asks for them must cost nothing that stays."""


class Cluster(RuleBasedStateMachine):
    """The truth, and what is asked of it."""

    plugins: ClassVar = PLUGINS

    def __init__(self) -> None:
        super().__init__()
        self.turn = 0
        self.loop = a_loop(self.plugins, pick=self.pick)
        self.now = 0.0
        self.serial = 0
        self.nodes: dict[str, Node] = {}
        self.pods: dict[str, Pod] = {}
        self.binds: dict[str, Bind] = {}
        self.work: dict[str, DoWork] = {}
        self.bound: set[str] = set()
        self.wake: float | None = None
        self.broken = False
        self.leads = True
        self.feed(events.ImagesLearned(tuple(IMAGES)))

    def pick(self, count: int) -> int:
        self.turn += 1
        return self.turn % count

    # -- performing --------------------------------------------------------------------------------------------------

    def feed(self, *happened: events.Event) -> None:
        for event in happened:
            note(f"{self.now:8.1f}  {event}")
        # What an exception leaves behind says nothing more; the exception does.
        self.broken = True
        if self.leads:
            commands = self.loop.feed(*happened)
        else:
            # Another instance leads: everything is taken in, and nothing decided or performed.
            self.take(*happened)
            commands = []
        self.broken = False
        for command in commands:
            assert not isinstance(command, ReportPluginError), command.message
            uid = command.pod.uid if not isinstance(command, WakeAt) else ""
            match command:
                case Bind(_, node, _):
                    assert uid not in self.binds, "asked to bind twice"
                    assert uid not in self.bound, "asked to bind what is bound"
                    assert node in self.nodes, "asked to bind to a node that is not there"
                    self.binds[uid] = command
                case DoWork():
                    assert uid not in self.binds
                    self.work[uid] = command
                case Evict():
                    self.evict(command)
                case WakeAt(at):
                    assert at >= self.now or at == pytest.approx(self.now)
                    self.wake = at
                case ReportUnschedulable(_, decision):
                    assert decision.message
                    assert "raised" not in decision.message

    def evict(self, command: Evict) -> None:
        raise AssertionError("no plugin of this machine evicts")

    def take(self, *happened: events.Event) -> None:
        """Let the loop take events in without deciding."""
        self.loop.take(*happened)

    def uid_of(self, choice: int, pool: object) -> str:
        names = sorted(pool)  # type: ignore[call-overload]
        return str(names[choice % len(names)])

    # -- rules -------------------------------------------------------------------------------------------------------

    @rule(cpu=st.integers(2, 6), pods=st.integers(1, 4), tainted=st.booleans(), wide=st.booleans())
    def add_node(self, cpu: int, pods: int, tainted: bool, wide: bool) -> None:
        self.serial += 1
        name = f"n{self.serial}"
        node = a_node(
            name,
            cpu=cpu,
            pods=pods,
            taints=[DEDICATED] if tainted else [],
            uid=name,
            labels={"zone": ZONES[self.serial % 2]},
            more=WIDE if wide else {},
        )
        self.nodes[name] = node
        self.feed(events.NodeSeen(node))

    @precondition(lambda self: self.nodes)
    @rule(choice=st.integers(0, 9), cordon=st.booleans(), tainted=st.booleans(), more=st.integers(0, 2))
    def change_node(self, choice: int, cordon: bool, tainted: bool, more: int) -> None:
        name = self.uid_of(choice, self.nodes)
        old = self.nodes[name]
        cpu = dict(old.allocatable)["cpu"] // 1000 + more
        node = a_node(
            name,
            cpu=cpu,
            pods=dict(old.allocatable)["pods"],
            taints=[DEDICATED] if tainted else [],
            unschedulable=cordon,
            uid=old.uid,
            labels=old.labels,
            more={resource: amount for resource, amount in old.allocatable if resource in WIDE},
            images={IMAGES[choice % 3].names[0]: IMAGES[choice % 3].size},
        )
        self.nodes[name] = node
        self.feed(events.NodeSeen(node))

    @precondition(lambda self: self.nodes)
    @rule(choice=st.integers(0, 9), again=st.booleans())
    def lose_node(self, choice: int, again: bool) -> None:
        name = self.uid_of(choice, self.nodes)
        node = self.nodes.pop(name)
        self.feed(events.NodeGone(name))
        for uid in [uid for uid, pod in self.pods.items() if pod.node_name == name]:
            self.remove(uid)
        if again:
            self.serial += 1
            self.nodes[name] = msgspec.structs.replace(node, uid=f"{name}-{self.serial}")
            self.feed(events.NodeSeen(self.nodes[name]))

    @precondition(lambda self: self.nodes)
    @rule(choice=st.integers(0, 9), count=st.integers(0, 3))
    def report_layers(self, choice: int, count: int) -> None:
        self.serial += 1
        name = self.uid_of(choice, self.nodes)
        self.feed(events.LayersReported(held(name, *IMAGES[:count], sequence=self.serial)))

    @rule(
        cpu=st.integers(0, 4),
        priority=st.integers(0, 2),
        image=st.integers(0, 3),
        labels=st.sets(st.sampled_from(["wait", "work", "gate"])),
        tolerant=st.booleans(),
        kind=st.sampled_from(["plain", "plain", "even", "wide"]),
    )
    def add_pod(self, cpu: int, priority: int, image: int, labels: set[str], tolerant: bool, kind: str) -> None:
        self.serial += 1
        name = f"p{self.serial}"
        pod = a_pod(
            name,
            cpu=cpu or None,
            priority=priority,
            image=f"app-{image}:1",
            labels={**dict.fromkeys(sorted(labels), "closed"), "app": kind},
            tolerations=[Toleration("dedicated", "Exists", "", "")] if tolerant else [],
            spread=EVEN if kind == "even" else (),
            more=WIDE if kind == "wide" else {},
        )
        self.pods[name] = pod
        self.feed(events.PodSeen(pod))

    @precondition(lambda self: any(pod.labels.get("gate") == "closed" for pod in self.pods.values()))
    @rule(choice=st.integers(0, 9))
    def open_gate(self, choice: int) -> None:
        closed = [uid for uid, pod in self.pods.items() if pod.labels.get("gate") == "closed" and not pod.node_name]
        if closed:
            uid = self.uid_of(choice, closed)
            pod = self.pods[uid]
            self.pods[uid] = msgspec.structs.replace(pod, labels={**pod.labels, "gate": "open"})
            self.feed(events.PodSeen(self.pods[uid]))

    @precondition(lambda self: self.pods)
    @rule(choice=st.integers(0, 19), cpu=st.integers(1, 4))
    def edit_pod(self, choice: int, cpu: int) -> None:
        """Somebody changes what a pod asks for, wherever it is on its way."""
        uid = self.uid_of(choice, self.pods)
        old = self.pods[uid]
        if old.node_name or self.loop.bindings.get(uid) is not None:
            return
        new = a_pod(
            uid, cpu=cpu, priority=old.priority, labels=old.labels, tolerations=old.tolerations, spread=old.spread
        )
        self.pods[uid] = new
        self.feed(events.PodSeen(new))

    @precondition(lambda self: self.pods)
    @rule(choice=st.integers(0, 19), how=st.sampled_from(["delete", "finish"]))
    def end_pod(self, choice: int, how: str) -> None:
        uid = self.uid_of(choice, self.pods)
        if how == "finish":
            self.feed(events.PodSeen(msgspec.structs.replace(self.pods[uid], finished=True)))
            self.forget(uid)
        else:
            self.remove(uid)

    @precondition(lambda self: any(pod.node_name for pod in self.pods.values()))
    @rule(choice=st.integers(0, 19), cpu=st.integers(1, 4))
    def resize_pod(self, choice: int, cpu: int) -> None:
        """A bound pod is resized in place, if there is room for it."""
        uid = self.uid_of(choice, [uid for uid, pod in self.pods.items() if pod.node_name])
        old = self.pods[uid]
        grown = cpu * 1000 - dict(old.requests).get("cpu", 0)
        node = self.loop.cluster.context.node(self.loop.cluster.row(old.node_name))
        if old.node_name not in self.nodes or grown > node.free("cpu"):
            return
        sized = a_pod(uid, cpu=cpu)
        requests = {**dict(old.requests), "cpu": cpu * 1000}
        self.pods[uid] = msgspec.structs.replace(
            old, requests=tuple(sorted(requests.items())), scoring_requests=sized.scoring_requests
        )
        self.feed(events.PodSeen(self.pods[uid]))

    @rule()
    def leadership_blinks(self) -> None:
        """Another instance takes the lead, or gives it back; what was seen meanwhile counts."""
        self.leads = not self.leads
        if self.leads:
            self.feed()

    def remove(self, uid: str) -> None:
        self.forget(uid)
        self.feed(events.PodGone(uid))

    def forget(self, uid: str) -> None:
        for pool in (self.pods, self.binds, self.work):
            pool.pop(uid, None)
        self.bound.discard(uid)

    @precondition(lambda self: self.binds)
    @rule(choice=st.integers(0, 9), outcome=st.sampled_from(["ok", "seen first", "only seen", "fails", "elsewhere"]))
    def answer_bind(self, choice: int, outcome: str) -> None:
        uid = self.uid_of(choice, self.binds)
        bind = self.binds.pop(uid)
        if outcome == "fails" or bind.node not in self.nodes:
            self.feed(events.BindFailed(uid, "conflict"))
            return
        node = bind.node
        if outcome == "elsewhere":
            others = [name for name in sorted(self.nodes) if name != node and self.has_room(name, self.pods[uid])]
            if not others:
                self.binds[uid] = bind
                return
            node = others[0]
        self.bound.add(uid)
        self.pods[uid] = msgspec.structs.replace(self.pods[uid], node_name=node)
        seen = events.PodSeen(self.pods[uid])
        match outcome:
            case "ok":
                self.feed(events.BindDone(uid))
                self.feed(seen)
            case "seen first":
                self.feed(seen)
                self.feed(events.BindDone(uid))
            case "only seen":
                self.feed(seen)
            case "elsewhere":
                self.feed(seen, events.BindFailed(uid, "already bound"))

    def has_room(self, name: str, pod: Pod) -> bool:
        node = self.loop.cluster.context.node(self.loop.cluster.row(name))
        asked = {**dict(pod.requests), "pods": 1}
        return all(node.free(resource) >= amount for resource, amount in asked.items())

    @precondition(lambda self: self.work)
    @rule(choice=st.integers(0, 9), works=st.booleans())
    def answer_work(self, choice: int, works: bool) -> None:
        uid = self.uid_of(choice, self.work)
        attempt = self.work.pop(uid).attempt
        self.feed(
            events.WorkDone(uid, "Volume", attempt)
            if works
            else events.WorkFailed(uid, "Volume", attempt, "disk is on fire")
        )

    @rule(choice=st.integers(0, 9))
    def answer_work_late(self, choice: int) -> None:
        """An answer to an attempt before the last one counts for nothing."""
        if self.work:
            uid = self.uid_of(choice, self.work)
            before = len(self.loop.bindings)
            self.feed(events.WorkDone(uid, "Volume", self.work[uid].attempt - 1))
            assert before == len(self.loop.bindings)
            assert uid not in self.binds

    @rule(choice=st.integers(0, 9), yes=st.booleans())
    def answer_permit(self, choice: int, yes: bool) -> None:
        waiting = [one.pod.uid for one in self.loop.bindings.waiting]
        uid = self.uid_of(choice, waiting) if waiting else "nobody"
        self.feed(events.PermitGiven(uid, "Patience") if yes else events.PermitRefused(uid, "Patience", "not now"))

    @precondition(lambda self: self.nodes)
    @rule(choice=st.integers(0, 9), cpu=st.integers(1, 2))
    def foreign_pod(self, choice: int, cpu: int) -> None:
        """Another scheduler places a pod of its own."""
        self.serial += 1
        name = self.uid_of(choice, self.nodes)
        pod = a_pod(f"f{self.serial}", cpu=cpu, on=name, scheduler="another")
        if self.has_room(name, pod):
            self.pods[pod.uid] = pod
            self.bound.add(pod.uid)
            self.feed(events.PodSeen(pod))

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 11.0, 40.0, 400.0]))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.feed(events.TimePassed(self.now))

    # -- what must hold ----------------------------------------------------------------------------------------------

    @invariant()
    def what_is_believed_equals_a_recomputation(self) -> None:
        """
        Columns equal what the believed placements add up to, and no node is overcommitted.
        """
        cluster = self.loop.cluster
        columns = cluster.columns
        assert sorted(self.nodes) == sorted(columns.rows)
        for name, row in columns.rows.items():
            asked = [placed.pod for placed in cluster.cache if placed.node == name]
            free = dict(self.nodes[name].allocatable)
            free["pods"] -= len(asked)
            for pod in asked:
                for resource, amount in pod.requests:
                    free[resource] -= amount
            for resource, left in free.items():
                assert left == cluster.context.node(row).free(resource)
                assert left >= 0, f"{name} is overcommitted"

    @invariant()
    def every_pod_is_in_one_place(self) -> None:
        """
        A pod waits, or is on its way and counted, or is bound and counted; never two of these, never none.
        """
        placed = {one.pod.uid: one for one in self.loop.cluster.cache}
        underway = {one.queued.pod.uid: one for one in self.loop.bindings}
        queued = {one.pod.uid for one in self.loop.queue}
        for uid, pod in self.pods.items():
            if pod.node_name:
                assert pod.node_name == placed[uid].node
                assert uid not in queued
                assert uid not in underway
            elif uid in underway:
                assert underway[uid].node == placed[uid].node
                assert uid not in queued
            else:
                assert uid in queued
                assert uid not in placed
        assert set(self.pods) == set(placed) | queued
        volume = self.loop.profiles["default-scheduler"].plugins["Volume"]
        assert isinstance(volume, Volume)
        assert set(underway) == set(volume.reserved)

    @invariant()
    def the_host_will_be_asked_to_come_back(self) -> None:
        """
        Whoever rests or is held back has a time at which something happens.
        """
        if self.leads and (self.loop.queue.counts()["backoff"] or len(self.loop.bindings.waiting)):
            assert self.wake is not None

    @invariant()
    def nothing_is_kept_of_resources_that_no_node_and_no_pod_has(self) -> None:
        """
        A pod that only asks for them leaves nothing behind.
        """
        here = {resource for node in self.nodes.values() for resource, _ in node.allocatable}
        taken = {resource for one in self.loop.cluster.cache for resource, _ in one.pod.requests}
        scalars = self.loop.cluster.columns.scalars
        assert set(scalars._offered) <= here
        assert set(scalars._used) <= taken

    def teardown(self) -> None:
        """
        With every command performed and time passing, every pod that fits somewhere is bound in the end.
        """
        if self.broken:
            return
        if not self.leads:
            self.leadership_blinks()
        for turn in range(40):
            self.touch_a_node(turn)
            for uid in sorted(self.work):
                self.feed(events.WorkDone(uid, "Volume", self.work.pop(uid).attempt))
            for one in self.loop.bindings.waiting:
                self.feed(events.PermitGiven(one.pod.uid, "Patience"))
            for uid in sorted(self.binds):
                bind = self.binds.pop(uid)
                if bind.node not in self.nodes:
                    self.feed(events.BindFailed(uid, "no such node"))
                    continue
                self.bound.add(uid)
                self.pods[uid] = msgspec.structs.replace(self.pods[uid], node_name=bind.node)
                self.feed(events.BindDone(uid), events.PodSeen(self.pods[uid]))
            self.pass_time(11.0)
            self.what_is_believed_equals_a_recomputation()
            self.every_pod_is_in_one_place()
            if not (self.work or self.binds or len(self.loop.bindings)) and not self.fitting():
                break
        assert [] == self.fitting()
        assert 0 == len(self.loop.bindings)

    def touch_a_node(self, turn: int) -> None:
        """Change what no filter looks at: pods that a permit refused wait for any change, or for five minutes."""
        if self.nodes:
            name = min(self.nodes)
            self.nodes[name] = msgspec.structs.replace(self.nodes[name], annotations={"turn": str(turn)})
            self.feed(events.NodeSeen(self.nodes[name]))

    def fitting(self) -> list[str]:
        """List the pods that wait although a node would take them, by a naive look at every node."""
        return [
            uid
            for uid, pod in self.pods.items()
            if not pod.node_name
            and pod.labels.get("gate") != "closed"
            and any(self.would_take(node, pod) for node in self.nodes.values())
        ]

    def would_take(self, node: Node, pod: Pod) -> bool:
        there = [other for other in self.pods.values() if other.node_name == node.name]
        free = dict(node.allocatable)
        for other in there:
            for resource, amount in other.requests:
                free[resource] = free.get(resource, 0) - amount
        return (
            not node.unschedulable
            and (not pod.spread or self.stays_even(node))
            and untolerated(node.taints, pod.tolerations, (NO_SCHEDULE, NO_EXECUTE)) is None
            and len(there) < free["pods"]
            and all(free.get(resource, 0) >= amount for resource, amount in pod.requests)
        )

    def stays_even(self, node: Node) -> bool:
        """Say whether one more pod of the kind on *node* leaves its zone at most one ahead of the emptiest."""
        counts = dict.fromkeys((one.labels["zone"] for one in self.nodes.values()), 0)
        for pod in self.pods.values():
            if pod.node_name in self.nodes and pod.labels.get("app") == "even":
                counts[self.nodes[pod.node_name].labels["zone"]] += 1
        return counts[node.labels["zone"]] + 1 - min(counts.values()) <= 1


@pytest.mark.hypothesis
@pytest.mark.timeout(0)
def test_the_loop_keeps_its_promises_under_any_schedule_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """No node overcommitted, no pod bound twice or lost, every schedulable pod bound in the end."""
    # The flush after five minutes would hide that a change failed to wake a pod.
    monkeypatch.setattr(scheduling_queue, "FLUSH_AFTER", 1e9)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Cluster,
        settings=settings(
            max_examples=SCHEDULES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
