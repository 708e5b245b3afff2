"""The loop under random events while pods are evicted for others, gracefully, at once, late, or not at all."""

import os
from typing import ClassVar

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from lamina.model import events
from lamina.scheduling.contract.commands import Evict
from lamina.scheduling.loop import scheduling_queue
from tests.property.machine_plugins import PLUGINS
from tests.property.test_loop_machine import STEPS, Cluster

SCHEDULES = int(os.environ.get("LAMINA_SCHEDULES", "2000")) // 4


class PreemptingCluster(Cluster):
    """A cluster whose pods can be evicted."""

    plugins: ClassVar = [*PLUGINS, "DefaultPreemption"]

    def __init__(self) -> None:
        self.evictions: dict[str, Evict] = {}
        super().__init__()

    def evict(self, command: Evict) -> None:
        victim = command.pod.uid
        assert victim not in self.evictions, "asked to evict twice"
        assert command.pod.priority < command.preemptor.priority
        assert not self.pods[victim].deleting, "asked to evict what leaves already"
        self.evictions[victim] = command

    def forget(self, uid: str) -> None:
        super().forget(uid)
        self.evictions.pop(uid, None)

    @precondition(lambda self: self.evictions)
    @rule(choice=st.integers(0, 9), outcome=st.sampled_from(["gone", "leaves", "fails", "forbidden"]))
    def answer_evict(self, choice: int, outcome: str) -> None:
        uid = self.uid_of(choice, self.evictions)
        command = self.evictions.pop(uid)
        pod = self.pods[uid]
        if outcome in {"fails", "forbidden"}:
            self.feed(events.EvictFailed(uid, command.preemptor.uid, "no", outcome == "forbidden"))
        elif outcome == "leaves" and pod.node_name:
            self.pods[uid] = msgspec.structs.replace(pod, deleting=True, preempted=True)
            self.feed(events.PodSeen(self.pods[uid]))
        else:
            self.remove(uid)

    @precondition(lambda self: any(pod.deleting for pod in self.pods.values()))
    @rule(choice=st.integers(0, 9))
    def leave(self, choice: int) -> None:
        """A pod that is being deleted ends."""
        self.remove(self.uid_of(choice, [uid for uid, pod in self.pods.items() if pod.deleting]))

    @invariant()
    def evictions_are_remembered_until_they_are_answered(self) -> None:
        """
        What the loop believes to be leaving is in flight, so that none of it is waited for in vain.
        """
        if self.leads:
            believed = {uid for uid, _ in self.loop.cluster.evictions.snapshot()}
            assert believed == set(self.evictions)

    def teardown(self) -> None:
        """
        Everything asked for happens, and then every pod that fits somewhere is bound.
        """
        if self.broken:
            return
        if not self.leads:
            self.leadership_blinks()
        for _ in range(20):
            for uid in sorted({*self.evictions, *(uid for uid, pod in self.pods.items() if pod.deleting)}):
                self.remove(uid)
            # Preemption that was forbidden is allowed again after five minutes.
            self.pass_time(400.0)
            if not self.evictions:
                break
        super().teardown()

    def touch_a_node(self, turn: int) -> None:
        for uid in sorted(self.evictions):
            self.remove(uid)
        super().touch_a_node(turn)


@pytest.mark.hypothesis
@pytest.mark.timeout(0)
def test_the_loop_keeps_its_promises_while_pods_are_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pod evicted twice or for one of its own priority, and nothing reserved for ever."""
    monkeypatch.setattr(scheduling_queue, "FLUSH_AFTER", 1e9)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        PreemptingCluster,
        settings=settings(
            max_examples=SCHEDULES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
