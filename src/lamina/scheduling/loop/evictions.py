"""
Evictions as the loop requests them: the nomination first, then each victim once.

    post_filter's result ──> Nominate(pod), Evict(victim)…, Nominate(others, "")
    EvictFailed ──> the pod's nomination ends and the pod is queued again

The nomination is written before the first eviction: if the process ends in between, the next one does not evict pods
elsewhere. A victim that is between its chosen node and its binding is put back into the queue, not deleted.
"""

from typing import Final

from lamina.model.events import EvictFailed
from lamina.model.pod import Pod
from lamina.scheduling.contract.commands import Evict
from lamina.scheduling.contract.status import unschedulable
from lamina.scheduling.loop.loop_state import LoopState

EVICTIONS_OFF: Final = "preemption: the scheduler has no permission to delete pods."
OFF_FOR: Final = 300.0
"""Seconds without preemption after the API server rejected an eviction for lack of permission."""
PREEMPTED: Final = "preempted"


def preempt(state: LoopState, pod: Pod, node: str, victims: tuple[Pod, ...]) -> None:
    """Nominate *node* for *pod* and evict the victims there."""
    if not all(victim.deleting for victim in victims):
        # As upstream: pods of lower priority that are nominated there may no longer fit. They keep their nomination if
        # nothing new is evicted.
        for other in state.cluster.nominations.below(pod, node):
            state.end_nomination(other)
    state.nominate(pod, node, victims)
    for victim in victims:
        cycle = state.bindings.get(victim.uid)
        if cycle is not None and cycle.stage != "binding":
            state.withdraw(victim.uid)
            state.bindings.abandon(cycle, unschedulable(PREEMPTED))
        elif not victim.deleting and victim.uid not in state.cluster.evictions:
            state.cluster.evictions.begin(victim.uid, pod.uid)
            state.do(Evict(victim, pod, node))


def eviction_failed(state: LoopState, event: EvictFailed) -> None:
    """End the nominations for which a pod was to be evicted, and queue their pods again."""
    state.cluster.evictions.end(event.uid)
    if event.forbidden:
        state.evictions_off_until = state.now + OFF_FOR
    for preemptor in state.cluster.nominations.waiting_for(event.uid):
        state.end_nomination(preemptor)
        queued = state.queue.get(preemptor.uid)
        if queued is not None and queued.place == "unschedulable":
            # No change of the cluster would wake it, so it tries again after its back-off.
            state.queue.remove(preemptor.uid)
            state.queue.put_back(queued, frozenset(), broke=True)
