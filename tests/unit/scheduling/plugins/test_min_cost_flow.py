"""MinCostFlow: pods of a batch are weighed against each other."""

import sys
from collections import Counter

import msgspec
import numpy as np
import pytest

from lamina.model import events
from lamina.model.errors import InputError, WiringError
from lamina.model.image import Image
from lamina.model.node import Node
from lamina.model.pod import HostPort, Owner, Pod
from lamina.model.taints import NO_SCHEDULE, PREFER_NO_SCHEDULE, Taint
from lamina.scheduling.config.loader import load
from lamina.scheduling.plugins.batch.min_cost_flow import MinCostFlow, MinCostFlowArgs
from lamina.scheduling.plugins.batch.min_cost_flow.args import LoadPrice, PendingPrice
from lamina.scheduling.plugins.batch.min_cost_flow.cost_models import barrier
from lamina.scheduling.plugins.batch.min_cost_flow.flow_network import FlowNetwork, solve
from lamina.scheduling.plugins.batch.min_cost_flow.highs import load_solver
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import LoopHarness, a_loop, a_node, a_pod, an_image, held

MB = 1_000_000
PLUGINS = ("PrioritySort", "TaintToleration", "NodeResourcesFit", "LayerLocality", "MinCostFlow", "DefaultBinder")
BIG = an_image("big:1", {"base": 100 * MB, "big": 2000 * MB})
SMALL = an_image("small:1", {"base": 100 * MB, "small": 400 * MB})
OTHER = an_image("other:1", {"other": 400 * MB})


def a_desk(*nodes: tuple[Node, tuple[Image, ...]], plugins: tuple[str, ...] = PLUGINS, **args: object) -> LoopHarness:
    """Nodes that hold images."""
    desk = LoopHarness(a_loop(plugins, args={"MinCostFlow": MinCostFlowArgs(**args)}))
    desk.tell(events.ImagesLearned((BIG, SMALL, OTHER)))
    for node, images in nodes:
        desk.tell(events.NodeSeen(node), events.LayersReported(held(node.name, *images)))
    return desk


def replicas(count: int, image: Image, cpu: int | str = 1, **kwargs) -> list[Pod]:
    owner = Owner("ReplicaSet", "web", "web-uid")
    return [a_pod(f"web-{number}", cpu, image=image.names[0], owner=owner, **kwargs) for number in range(count)]


def test_the_pod_that_loses_most_gets_the_node_that_both_want():
    """In queue order the first one would take it, and the other would pull 2 GB."""
    small, big = a_pod("small", 4, image="small:1"), a_pod("big", 4, image="big:1")
    nodes = [(a_node("warm", 4), (BIG, SMALL)), (a_node("cold", 4), ())]
    together = a_desk(*nodes)
    together.see(small, big)
    alone = a_desk(*nodes, plugins=tuple(name for name in PLUGINS if name != "MinCostFlow"))
    alone.see(small, big)

    assert {"small": "warm", "big": "cold"} == alone.bound
    # One call sees both pods only if they arrive together.
    desk = a_desk(*nodes)
    desk.tell(*(events.PodSeen(pod) for pod in (small, big)))
    assert {"small": "cold", "big": "warm"} == desk.bound


def test_a_pod_of_higher_priority_gets_scarce_room():
    """Even if a pod of lower priority would start sooner there."""
    desk = a_desk((a_node("only", 4), (SMALL,)))
    desk.see(a_pod("low", 4, image="small:1"), a_pod("high", 4, image="big:1", priority=10))

    assert {"high": "only"} == desk.bound
    assert "low" in desk.pending


def test_a_pod_that_waited_longer_gets_scarce_room():
    """The cost of waiting grows."""
    desk = a_desk((a_node("full", 4), ()), pending=PendingPrice(seconds=0, growth=10))
    there = a_pod("there", 4, image="small:1")
    desk.see(there)
    desk.see(a_pod("first", 4, image="big:1"))
    desk.at(60.0)
    desk.see(a_pod("second", 4, image="small:1"))
    desk.tell(events.PodGone(there.uid))
    desk.at(400.0)

    assert "full" == desk.bound["first"]
    assert "second" in desk.pending


def test_pods_without_room_wait_with_the_usual_reason():
    """They go through the ordinary cycle."""
    desk = a_desk((a_node("n1", 2), ()))
    desk.see(*[a_pod(f"p{number}", 1, image="small:1") for number in range(3)])

    assert 2 == len(desk.bound)
    assert ["0/1 nodes are available: 1 Insufficient cpu."] == [text[:45] for text in desk.pending.values()]


def test_every_amount_counts():
    """The flow counts pods; cpu and memory decide how many of its choices are accepted."""
    desk = a_desk((a_node("n1", 8, "8Gi"), (BIG, SMALL)), (a_node("n2", 8, "8Gi"), ()))
    pods = [a_pod(f"wide-{number}", 4, "1Gi", image="small:1") for number in range(2)]
    pods += [a_pod(f"deep-{number}", 1, "5Gi", image="big:1") for number in range(2)]
    desk.tell(*(events.PodSeen(pod) for pod in pods))

    assert 4 == len(desk.bound)
    for node in ("n1", "n2"):
        there = [pod for pod in pods if desk.bound[pod.name] == node]
        assert sum(dict(pod.requests)["cpu"] for pod in there) <= 8000
        assert sum(dict(pod.requests)["memory"] for pod in there) <= 8 * 2**30


def test_two_new_images_are_pulled_on_two_nodes():
    """One node pulls one image after the other; an idle node is ready sooner although it is as cold."""
    desk = a_desk((a_node("n1", 64), ()), (a_node("n2", 64), ()), load=LoadPrice(seconds=0))
    desk.tell(*(events.PodSeen(pod) for pod in (a_pod("a", 1, image="small:1"), a_pod("b", 1, image="other:1"))))

    assert {"n1", "n2"} == set(desk.bound.values())


def test_pods_with_the_same_new_image_share_its_pull():
    """If load costs nothing, a second copy of the image saves no time."""
    desk = a_desk((a_node("n1", 64), ()), (a_node("n2", 64), ()), load=LoadPrice(seconds=0), score_price=0)
    pods = [a_pod("a", 1, image="small:1"), a_pod("b", 2, image="small:1")]
    desk.tell(*(events.PodSeen(pod) for pod in pods))

    assert 1 == len(set(desk.bound.values()))


@pytest.mark.parametrize(
    ("share", "most"),
    [
        pytest.param(0.2, 2, id="a fifth of ten"),
        pytest.param(0.0, 1, id="one each"),
        pytest.param(1.0, 10, id="no limit"),
    ],
)
def test_replicas_spread_by_the_number_that_arrive_together(share, most):
    """The batch knows how many there are, so that the share is right for the first of them too."""
    nodes = [(a_node(f"n{number}", 64), (SMALL,) if number == 0 else ()) for number in range(10)]
    desk = a_desk(*nodes, replica_share=share, load=LoadPrice(seconds=0, barrier=0), score_price=0)
    desk.tell(*(events.PodSeen(pod) for pod in replicas(10, SMALL)))

    assert 10 == len(desk.bound)
    assert most == Counter(desk.bound.values())["n0"]


def test_pods_that_exclude_each_other_get_a_node_each():
    """The flow allows one pod with host ports for each node."""
    desk = a_desk((a_node("n1", 8), (SMALL,)), (a_node("n2", 8), ()), plugins=(*PLUGINS[:3], "NodePorts", *PLUGINS[3:]))
    pods = [
        msgspec.structs.replace(a_pod(f"p{number}", 1, image="small:1"), host_ports=(HostPort("TCP", "0.0.0.0", 80),))
        for number in range(3)
    ]
    desk.tell(*(events.PodSeen(pod) for pod in pods))

    assert {"n1", "n2"} == set(desk.bound.values())
    assert 1 == len(desk.pending)


def test_layers_do_not_count_for_a_pod_that_disables_them():
    """The load decides then."""
    desk = a_desk((a_node("warm", 4), (BIG,)), (a_node("cold", 8), ()), score_price=0)
    pod = msgspec.structs.replace(a_pod("p", 1, image="big:1"), annotations={"lamina.dev/layer-locality": "off"})
    desk.see(pod)
    desk.see(a_pod("q", 1, image="big:1"))

    assert {"p": "cold", "q": "warm"} == desk.bound


def test_an_unknown_image_prefers_no_node():
    """The load decides."""
    desk = a_desk((a_node("small", 4), (BIG,)), (a_node("large", 64), ()))
    desk.see(a_pod("p", 1, image="nothing-known:1"))

    assert {"p": "large"} == desk.bound


def test_a_preference_of_other_plugins_counts_as_seconds():
    """A soft taint is worth points, and points are worth seconds."""
    tainted = a_node("tainted", 4, taints=[Taint("special", "", PREFER_NO_SCHEDULE)])
    nodes = [(tainted, ()), (a_node("plain", 4), ())]
    desk = a_desk(*nodes, score_price=1)
    desk.see(a_pod("p", 1, image="small:1"))

    assert {"p": "plain"} == desk.bound


def test_a_filter_is_never_overruled():
    """However little the refused node would cost."""
    desk = a_desk((a_node("warm", 4, taints=[Taint("special", "", NO_SCHEDULE)]), (BIG,)), (a_node("cold", 4), ()))
    desk.see(a_pod("p", 1, image="big:1"))

    assert {"p": "cold"} == desk.bound


@pytest.mark.parametrize(
    ("model", "want"),
    [
        pytest.param("layers", {"warm": 4, "cold": 0}, id="layers: seconds until ready"),
        pytest.param("quincy", {"warm": 4, "cold": 0}, id="quincy: bytes"),
        pytest.param("octopus", {"warm": 2, "cold": 2}, id="octopus: pods"),
    ],
)
def test_a_cost_model_decides_what_matters(model, want):
    """For four pods and a node that holds their image."""
    desk = a_desk((a_node("warm", 64), (BIG,)), (a_node("cold", 64), ()), cost_model=model)
    desk.tell(*(events.PodSeen(a_pod(f"p{number}", 1, image="big:1")) for number in range(4)))

    assert want == Counter(desk.bound.values()) | Counter(dict.fromkeys(want, 0)) or want == {
        node: list(desk.bound.values()).count(node) for node in want
    }


def test_quincy_prefers_no_node_that_holds_less_than_a_tenth():
    """The first node holds 100 MB of 2.1 GB: as in Quincy, that is not worth an arc of its own."""
    base = an_image("base:1", {"base": 100 * MB})
    desk = a_desk((a_node("n1", 64), ()), (a_node("n2", 64), ()), cost_model="quincy")
    desk.tell(events.ImagesLearned((base, BIG)), events.LayersReported(held("n2", base, sequence=2)))
    desk.see(a_pod("p", 1, image="big:1"))
    preferred = a_desk((a_node("n1", 64), ()), (a_node("n2", 64), ()), cost_model="quincy")
    preferred.tell(events.LayersReported(held("n2", SMALL, sequence=2)))
    preferred.see(a_pod("q", 1, image="small:1"))

    assert {"p": "n1"} == desk.bound
    assert {"q": "n2"} == preferred.bound


# ------------------------------------------------------------------------------------------------------------- holding


def test_a_held_pod_waits_for_a_better_node_and_not_for_ever():
    """A pull of 500 MB costs more than waiting for five seconds, and less than waiting for a minute."""
    desk = a_desk((a_node("cold", 8), ()), hold=True, pending=PendingPrice(seconds=1, growth=1))
    desk.see(a_pod("p", 1, image="small:1"))
    first = dict(desk.pending)
    for second in range(1, 120):
        desk.at(float(second))
        if desk.bound:
            break

    assert {"p": "0/1 nodes are available: waiting costs less than starting now on any node with room."} == first
    assert {"p": "cold"} == desk.bound
    assert 5 < desk.loop.now < 60


def test_a_held_pod_goes_to_a_warm_node_that_becomes_free():
    """That is what it waited for."""
    price = {"load": LoadPrice(seconds=0, barrier=0), "pending": PendingPrice(seconds=5)}
    desk = a_desk((a_node("cold", 8), ()), (a_node("warm", 2), (BIG,)), hold=True, **price)
    there = a_pod("there", 2, image="big:1")
    desk.see(there)
    desk.see(a_pod("p", 2, image="big:1"))
    held_back = dict(desk.bound)
    desk.tell(events.PodGone(there.uid))
    for second in range(1, 5):
        desk.at(float(second))

    assert {"there": "warm"} == held_back
    assert "warm" == desk.bound["p"]


# -------------------------------------------------------------------------------------------------------------- bounds


def test_pods_beyond_the_bounds_go_through_the_ordinary_cycle():
    """Here each pod is a class, and one class is allowed."""
    desk = a_desk((a_node("n1", 8), ()), (a_node("n2", 8), ()), most_cells=2)
    desk.tell(*(events.PodSeen(a_pod(f"p{number}", f"{number + 1}00m", image="small:1")) for number in range(3)))

    assert 3 == len(desk.bound)


def test_a_flow_that_needs_too_many_steps_leaves_the_batch_to_the_ordinary_cycle():
    """Two classes need at least one step."""
    pods = [a_pod("small", 4, image="small:1"), a_pod("big", 4, image="big:1")]
    desk = a_desk((a_node("warm", 4), (BIG, SMALL)), (a_node("cold", 4), ()), most_steps=1)
    desk.tell(*(events.PodSeen(pod) for pod in pods))

    assert {"small": "warm", "big": "cold"} == desk.bound


def test_equal_pods_need_no_program():
    """However many they are, they fill the cheapest places in order."""
    network = FlowNetwork(
        counts=np.array([1000]),
        costs=np.array([[5, 0, 7]]),
        slots=np.array([[600, 300, 50]]),
        prices=np.array([[0, 1], [0, 1], [0, 1]]),
        rooms=np.array([[500, 500]] * 3),
        pending_class=np.array([0, 0]),
        pending_cost=np.array([6, 1000]),
        pending_count=np.array([60, 940]),
    )
    flow = solve(network, lambda *_: pytest.fail("one class was given to the solver"), 0)

    assert flow is not None
    # The 60 pods for which waiting costs 6 would have to take places that cost as much or more.
    assert [(0, 600), (1, 300)] == list(zip(flow.nodes.tolist(), flow.pods.tolist(), strict=True))[:2]
    assert 500 * 5 + 100 * 6 + 300 * 0 + 40 * 7 + 60 * 6 == flow.cost


@pytest.mark.parametrize(
    ("excess", "seconds"),
    [
        pytest.param(0.4, 0.0, id="below begin"),
        pytest.param(0.8, 5.0, id="half-way"),
        pytest.param(1.1, 35.0, id="near the end"),
        pytest.param(5.0, 600.0, id="beyond it"),
    ],
)
def test_the_barrier_rises_up_to_its_limit(excess, seconds):
    """As LayerLocality's, except that no node is excluded."""
    assert [pytest.approx(seconds)] == barrier(LoadPrice(), np.array([excess])).tolist()


# ------------------------------------------------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("args", "said"),
    [
        pytest.param("costModel: trivial", "costModel", id="unknown model"),
        pytest.param("rounds: 0", "rounds", id="no rounds"),
        pytest.param("batch: 100000", "batch", id="a batch that is too large"),
        pytest.param("hold: true\n      pending:\n        growth: 0", "wait for ever", id="waiting for ever"),
        pytest.param("most: 1", "most", id="unknown field"),
    ],
)
def test_wrong_arguments_are_reported_with_their_place(args, said):
    """In one line."""
    text = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    place:
      enabled:
      - name: MinCostFlow
  pluginConfig:
  - name: MinCostFlow
    args:
      {args}
"""
    with pytest.raises(InputError) as caught:
        load(text, "profile.yaml", registry(entry_points=False))

    (mistake,) = caught.value.mistakes
    assert said in str(mistake)
    assert mistake.line >= 9


def test_without_scipy_the_profile_says_what_to_install(monkeypatch):
    """When it is built, not when the first pod arrives."""
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)

    with pytest.raises(WiringError, match=r"MinCostFlow' needs scipy, .* pip install 'lamina\[flow\]'"):
        a_loop(PLUGINS)


def test_the_solver_reports_when_it_is_given_something_impossible():
    """Such a program cannot come from a network, in which every pod may stay pending."""
    network = FlowNetwork(
        counts=np.array([1, 1]),
        costs=np.zeros((2, 1), dtype=np.int64),
        slots=np.ones((2, 1), dtype=np.int64),
        prices=np.zeros((1, 1), dtype=np.int64),
        rooms=np.ones((1, 1), dtype=np.int64),
        pending_class=np.array([0]),
        pending_cost=np.array([1]),
        pending_count=np.array([0]),
    )
    with pytest.raises(RuntimeError, match="the solver returned 2"):
        solve(network, load_solver(), 1000)


def test_the_plugin_is_named_as_in_configurations():
    """And its batch is its argument."""
    assert "MinCostFlow" == MinCostFlow.name
    (profile,) = a_loop(PLUGINS, args={"MinCostFlow": MinCostFlowArgs(batch=7)}).profiles.values()
    assert [7] == [plugin.batch for plugin in profile.place]
