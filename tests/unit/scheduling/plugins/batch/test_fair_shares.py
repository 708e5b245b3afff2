"""Fair shares: what queues deserve, and who comes first."""

import math

import numpy as np
import pytest

from lamina.model import events
from lamina.model.pod import Owner, Pod
from lamina.model.pod_groups import QUEUE_KEY, Queue
from lamina.model.resources import amounts
from lamina.scheduling.contract.commands import Evict
from lamina.scheduling.plugins.batch.gangs.fair_shares import QueueDemand, deserved_shares, share_of
from lamina.testing import LoopHarness, a_node, a_pod
from tests.unit.scheduling.plugins.batch.test_gangs import bound, gang_loop, said, see


def demand(weight: int, *request: float, deserved: tuple[float, ...] = (), most: tuple[float, ...] = ()) -> QueueDemand:
    return QueueDemand(
        weight,
        np.array(request, dtype=np.float64),
        np.array(deserved) if deserved else None,
        np.array(most) if most else None,
    )


@pytest.mark.parametrize(
    ("queues", "want"),
    [
        pytest.param([demand(1, 100), demand(1, 100)], [[50], [50]], id="equal weights"),
        pytest.param([demand(3, 100), demand(1, 100)], [[75], [25]], id="weights 3 to 1"),
        # The first one needs 10 of its 50; the rest is divided 1 to 3 among the others: 22.5 and 67.5.
        pytest.param([demand(4, 10), demand(1, 100), demand(3, 100)], [[10], [22.5], [67.5]], id="what one leaves"),
        # 10 and 20 are met one after the other, and the third one gets what they leave.
        pytest.param([demand(1, 10), demand(1, 35), demand(1, 100)], [[10], [35], [55]], id="to a fixpoint"),
        pytest.param([demand(1, 20), demand(1, 30)], [[20], [30]], id="enough for all"),
        pytest.param([demand(1, 100, most=(10,)), demand(1, 100)], [[10], [90]], id="a limit"),
        pytest.param([demand(1, 100, deserved=(70,)), demand(1, 100)], [[85], [15]], id="a written share comes first"),
        pytest.param([demand(1, 100, 0), demand(1, 100, 40)], [[50, 0], [50, 40]], id="each resource by itself"),
        pytest.param([], [], id="no queue"),
    ],
)
def test_queues_divide_the_cluster_by_weight(queues: list[QueueDemand], want: list[list[float]]):
    total = np.full(2 if queues and len(queues[0].request) == 2 else 1, 100.0)

    assert want == [pytest.approx(share.tolist()) for share in deserved_shares(total, queues)]


@pytest.mark.parametrize(
    ("has", "of", "want"),
    [
        pytest.param([2, 1], [10, 4], 0.25, id="the largest fraction"),
        pytest.param([0], [0], 0.0, id="nothing of nothing"),
        pytest.param([1], [0], math.inf, id="something of nothing"),
    ],
)
def test_a_share_is_the_largest_fraction(has: list[float], of: list[float], want: float):
    assert want == share_of(np.array(has, dtype=np.float64), np.array(of, dtype=np.float64))


def owned(name: str, owner: str, **more: object) -> Pod:
    return a_pod(name, owner=Owner("Job", owner), **more)  # type: ignore[arg-type]


def test_drf_gives_two_jobs_equal_dominant_shares():
    """The example of Ghodsi et al. 2011: 9 cpu and 18 GiB; 1 cpu and 4 GiB against 3 cpu and 1 GiB: 3 pods against 2."""
    loop = gang_loop(order="drf")
    loop.feed(events.NodeSeen(a_node("n1", cpu=9, memory="18Gi")))
    pods = [owned(f"a{n}", "a", cpu=1, memory="4Gi") for n in range(9)]
    pods += [owned(f"b{n}", "b", cpu=3, memory="1Gi") for n in range(9)]
    started = sorted(bound(loop.feed(*see(*pods))))

    assert ["a0", "a1", "a2", "b0", "b1"] == started


def queued(name: str, queue: str, **more: object) -> Pod:
    return a_pod(name, cpu=1, annotations={QUEUE_KEY: queue}, **more)  # type: ignore[arg-type]


def test_queues_start_pods_by_weight_and_an_idle_share_is_used_by_others():
    loop = gang_loop(order="proportion")
    queues = [events.ObjectSeen(Queue(name="gold", weight=3)), events.ObjectSeen(Queue(name="lead", weight=1))]
    loop.feed(events.NodeSeen(a_node("n1", cpu=8)), *queues)
    pods = [queued(f"l{n}", "lead") for n in range(9)] + [queued(f"g{n}", "gold") for n in range(9)]
    commands = loop.feed(*see(*pods))
    alone = gang_loop(order="proportion")
    alone.feed(events.NodeSeen(a_node("n1", cpu=8)), *queues)

    assert ["g0", "g1", "g2", "g3", "g4", "g5", "l0", "l1"] == sorted(bound(commands))
    assert {'queue "lead" has its share.', 'queue "gold" has its share.'} == said(commands)
    assert 8 == len(bound(alone.feed(*see(*pods[:9]))))


def test_a_closed_queue_starts_nothing_and_a_limit_is_kept():
    loop = gang_loop(order="proportion")
    closed, small = Queue(name="closed", open=False), Queue(name="small", capability=amounts({"cpu": 2}))
    loop.feed(events.NodeSeen(a_node("n1", cpu=8)), events.ObjectSeen(closed), events.ObjectSeen(small))
    commands = loop.feed(*see(queued("c", "closed"), *(queued(f"s{n}", "small") for n in range(4))))

    assert ["s0", "s1"] == sorted(bound(commands))
    assert {'queue "closed" is closed.', 'queue "small" has all that its capability allows.'} == said(commands)


@pytest.mark.parametrize(
    ("reclaim", "evicted"), [pytest.param(True, 2, id="reclaim"), pytest.param(False, 0, id="no reclaim")]
)
def test_a_queue_takes_back_its_share_but_not_more(reclaim: bool, evicted: int):
    harness = LoopHarness(gang_loop(order="proportion", reclaim=reclaim))
    harness.tell(events.NodeSeen(a_node("n1", cpu=4)))
    harness.see(*(queued(f"l{n}", "lead") for n in range(4)))
    for n in range(4):
        harness.see(queued(f"g{n}", "gold"))

    assert evicted == len([one for one in harness.commands if isinstance(one, Evict)])
