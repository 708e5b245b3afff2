"""PigeonHoling: what it ranks by, what counts, and what does not."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.pod import Container, Pod, total_requests
from lamina.model.resources import amounts
from lamina.scheduling.contract.plugin_registry import faults
from lamina.scheduling.contract.scheduling_agent import agent_faults
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.scheduling.plugins.agents.pigeon import AGENT, PigeonHoling, PigeonHolingArgs
from lamina.scheduling.plugins.agents.pigeon.args import environment
from lamina.scheduling.state.columns import Floats
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.bench import Bench, final

OBJECTIVES = ("A_BINPACK", "LOAD_BALANCE", "CONSOLIDATE")


def three() -> Bench:
    """Three nodes of 4 cpus and 8 GiB: one with half of its cpu in use, one with half of its memory, and an empty one."""
    bench = Bench(*(a_node(name, 4, "8Gi") for name in "abc"))
    bench.place("a", a_pod("on-a", 2, "2Gi"))
    bench.place("b", a_pod("on-b", 1, "4Gi"))
    return bench


def plugin(bench: Bench, **args: object) -> PigeonHoling:
    return PigeonHoling(bench.context, msgspec.convert(args, PigeonHolingArgs))


# ------------------------------------------------------------------------------------------------------------- ranking


@pytest.mark.parametrize(
    ("objective", "expected"),
    [
        # Values .553641, .553641, .229271.
        pytest.param("A_BINPACK", {"a": 10, "b": 10, "c": 100}, id="adaptive packing"),
        # .256851, .212459, .155902: 1 + 9 · .044392/.100949 = 4.96
        pytest.param("LOAD_BALANCE", {"a": 10, "b": 50, "c": 100}, id="balance"),
        # .356608, .394375, .619893: 1 + 9 · .225518/.263285 = 8.71
        pytest.param("CONSOLIDATE", {"a": 100, "b": 90, "c": 10}, id="consolidation"),
    ],
)
def test_the_published_example_gets_the_published_points(objective, expected):
    bench = three()
    pigeon = plugin(bench, objective=objective)
    for earlier in (a_pod("p1", "500m", "1Gi"), a_pod("p2", "1", "512Mi")):
        final(bench, pigeon, earlier)

    assert expected == final(bench, pigeon, a_pod("p3", "500m", "1Gi"))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_nodes_that_are_equally_good_get_all_points(objective):
    bench = Bench(a_node("n1"), a_node("n2"), a_node("n3"))

    assert {"n1": 100, "n2": 100, "n3": 100} == final(bench, plugin(bench, objective=objective), a_pod(cpu=1))


def test_what_only_rounding_tells_apart_is_equally_good():
    """One has half of its cpu in use and the other half of its memory: their values differ in the last bit, if at all."""
    bench = three()

    assert {"a": 100, "b": 100} == final(bench, plugin(bench), a_pod("p", "500m", "1Gi"), feasible=["a", "b"])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    ("pod", "short"),
    [
        pytest.param(a_pod(cpu="2001m"), {"a"}, id="cpu"),
        pytest.param(a_pod(memory="5Gi"), {"b"}, id="memory"),
        pytest.param(a_pod(cpu=5), {"a", "b", "c"}, id="none has room"),
    ],
)
def test_a_node_without_room_gets_none(objective, pod, short):
    bench = three()
    points = final(bench, plugin(bench, objective=objective), pod)

    assert short == {name for name, given in points.items() if given == 0}


def test_only_feasible_nodes_are_ranked():
    """Of all three, node b is nearly as good as a; without a it is the best there is."""
    bench = three()
    pigeon = plugin(bench, objective="CONSOLIDATE")

    assert {"b": 100, "c": 10} == final(bench, pigeon, a_pod("p", "500m", "1Gi"), feasible=["b", "c"])


def test_where_no_node_is_feasible_nothing_is_ranked_and_nothing_counts():
    bench = three()
    pigeon = plugin(bench)

    assert {} == final(bench, pigeon, a_pod("p", 1), feasible=[])
    assert pigeon._demand.count == 0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_single_node_gets_all_points(objective):
    bench = Bench(a_node("n1"))

    assert {"n1": 100} == final(bench, plugin(bench, objective=objective), a_pod(cpu=1))


def test_nodes_that_have_left_count_for_nothing():
    bench, other = three(), three()
    bench.put(a_node("gone", 64, "1Gi"))
    bench.place("gone", a_pod("on-gone", 60))
    bench.remove("gone")
    pod = a_pod("p", "500m", "1Gi")

    for objective in OBJECTIVES:
        assert final(other, plugin(other, objective=objective), pod) == final(
            bench, plugin(bench, objective=objective), pod
        )


# --------------------------------------------------------------------------------------------------------- whole cluster


def test_the_cluster_is_all_nodes_not_only_those_the_pod_can_go_to():
    """
    With the two full nodes the cluster is nearly full, and an empty node is what balances it best. Among the two it can go
    to alone, either leaves one with the pod and one without.
    """
    bench = Bench(*(a_node(name, 4, "8Gi") for name in ("full", "fuller", "x", "y")))
    bench.place("full", a_pod("f1", 4))
    bench.place("fuller", a_pod("f2", 4))
    bench.place("x", a_pod("on-x", 1))
    pod = a_pod("p", 1)
    args = {"objective": "LOAD_BALANCE"}

    assert {"x": 10, "y": 100} == final(bench, plugin(bench, **args), pod, feasible=["x", "y"])
    assert {"x": 10, "y": 100} == final(bench, plugin(bench, **args, compatible=True), pod, feasible=["x", "y"])
    # On y: shares 1/4 and 1/4 of two nodes, deviation 0. On x: 1/2 and 0, deviation 1/4; over all nodes 1, 1, 1/2, 0.
    assert [0.25, 0.0] == values(bench, pod, compatible=True, feasible=["x", "y"], **args)
    assert pytest.approx([0.414578, 0.375]) == values(bench, pod, feasible=["x", "y"], **args)


def values(bench: Bench, pod: Pod, feasible: list[str], **args: object) -> list[float]:
    """What each of the feasible nodes is worth, before points are made of it."""

    class Watched(PigeonHoling):
        def _values(self, *given):
            seen.append(super()._values(*given))
            return seen[0]

    seen: list[Floats] = []
    final(bench, Watched(bench.context, msgspec.convert(args, PigeonHolingArgs)), pod, feasible)
    return [seen[0].item(bench.columns.rows[name]) for name in feasible]


def test_only_compatible_pigeons_leave_init_containers_and_overhead_out():
    container, heavy = Container("app", amounts({"cpu": 1})), Container("init", amounts({"cpu": 3}))
    requests, ranked = total_requests((container,), (heavy,), overhead=amounts({"cpu": 1}))
    pod = msgspec.structs.replace(
        a_pod("p"), containers=(container,), init_containers=(heavy,), requests=requests, scoring_requests=ranked
    )
    bench = three()

    # 4 cpus with the init container and the overhead: only the empty node has room for that.
    assert {"a": 0, "b": 0, "c": 100} == final(bench, plugin(bench), pod)
    assert 0 not in final(bench, plugin(bench, compatible=True), pod).values()


# ----------------------------------------------------------------------------------------------------------- resources


@pytest.mark.parametrize("name", ["gpu", "nvidia.com/gpu", "amd.com/gpu", "example.com/gpu"])
def test_a_gpu_is_a_gpu_whoever_made_it(name):
    bench = Bench(a_node("used", more={name: 4}), a_node("free", more={name: 4}), a_node("none"))
    bench.place("used", a_pod("on-used", more={name: 3}))
    pigeon = plugin(bench, objective="LOAD_BALANCE", numResources=4, primeResource=3)

    assert {"used": 10, "free": 100, "none": 0} == final(bench, pigeon, a_pod("p", more={name: 1}))


def test_gpus_of_several_makers_add_up():
    bench = Bench(a_node("n1", more={"nvidia.com/gpu": 1, "amd.com/gpu": 1}), a_node("n2", more={"nvidia.com/gpu": 1}))
    pigeon = plugin(bench, numResources=4)

    # All of n2 would be in use.
    assert {"n1": 100, "n2": 0} == final(bench, pigeon, a_pod("p", more={"nvidia.com/gpu": 2}))


def test_storage_of_pods_and_nodes_is_counted_in_one_unit():
    """In bytes against GiB, a pod that asks for one GiB would fit nowhere."""
    bench = Bench(
        a_node("small", more={"ephemeral-storage": "1Gi"}),
        a_node("large", more={"ephemeral-storage": "10Gi"}),
        a_node("tiny", more={"ephemeral-storage": "1023Mi"}),
    )
    pigeon = plugin(bench, objective="LOAD_BALANCE", numResources=5, primeResource=4)

    assert {"small": 10, "large": 100, "tiny": 0} == final(bench, pigeon, a_pod(more={"ephemeral-storage": "1Gi"}))


def test_resources_beyond_those_that_count_are_not_looked_at():
    bench = Bench(a_node("n1", more={"ephemeral-storage": "1Mi"}), a_node("n2", more={"ephemeral-storage": "1Gi"}))

    assert {"n1": 100, "n2": 100} == final(bench, plugin(bench), a_pod(more={"ephemeral-storage": "1Gi"}))


@pytest.mark.parametrize(("pods", "expected"), [pytest.param(2, 100, id="room for it"), pytest.param(1, 0, id="none")])
def test_a_pod_counts_for_one_pod(pods, expected):
    bench = Bench(a_node("n1", pods=pods))
    bench.place("n1", a_pod("other"))

    assert {"n1": expected} == final(bench, plugin(bench, numResources=3), a_pod("p"))


def test_a_pod_that_asks_for_nothing_counts_for_a_little():
    """10 thousandths of a cpu and 16 MiB."""
    nodes = [a_node("cpu", "9m", "1Gi"), a_node("memory", 1, "15Mi"), a_node("both", "10m", "16Mi")]
    bench = Bench(*nodes)

    assert {"cpu": 0, "memory": 0, "both": 100} == final(bench, plugin(bench), a_pod())


# --------------------------------------------------------------------------------------------------------- annotations


def annotated(**said: dict[str, str]) -> Bench:
    return Bench(*(a_node(name, 4, "8Gi", annotations=annotations) for name, annotations in said.items()))


def test_use_may_be_what_nodes_say_it_is():
    """The published example once more, from annotations: cpu in thousandths, memory in bytes, missing means none."""
    bench = annotated(
        a={"requested-cpu": "2000", "requested-memory": str(2 << 30)},
        b={"requested-cpu": "1000", "requested-memory": str(4 << 30)},
        c={},
    )
    bench.place("c", a_pod("nobody-told", 3, "6Gi"))
    args = {"objective": "LOAD_BALANCE", "usage": "annotations"}

    assert {"a": 10, "b": 50, "c": 100} == final(bench, plugin(bench, **args), a_pod("p", "500m", "1Gi"))
    assert 10 == final(bench, plugin(bench, objective="LOAD_BALANCE"), a_pod("p", "500m", "1Gi"))["c"]


@pytest.mark.parametrize("said", ["", "lots", "nan", "inf", "-5", "-1e300"])
def test_what_cannot_be_meant_is_no_use(said):
    bench = annotated(a={"requested-cpu": said}, b={})

    assert {"a": 100, "b": 100} == final(bench, plugin(bench, usage="annotations"), a_pod("p", 1))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_absurd_use_leaves_no_room_and_harms_nobody_else(objective):
    bench = annotated(a={"requested-cpu": "1e300"}, b={"requested-cpu": "1000"}, c={"requested-cpu": "1000"})

    assert {"a": 0, "b": 100, "c": 100} == final(
        bench, plugin(bench, objective=objective, usage="annotations"), a_pod("p", 1)
    )


# -------------------------------------------------------------------------------------------------------------- stories


def placed(pods: list[Pod], nodes: int = 4, **args: object) -> dict[str, list[str]]:
    """Let pods come one by one to a cluster of equal nodes; who went where."""
    loop = a_loop(
        ["PrioritySort", "NodeResourcesFit", "PigeonHoling", "DefaultBinder"],
        weights={"PigeonHoling": 1000},
        args={"PigeonHoling": msgspec.convert(args, PigeonHolingArgs)},
    )
    desk = LoopHarness(loop)
    desk.tell(*(events.NodeSeen(a_node(f"n{number}", 4, "8Gi")) for number in range(nodes)))
    desk.see(*pods)
    by_node: dict[str, list[str]] = {}
    for pod, node in desk.bound.items():
        by_node.setdefault(node, []).append(pod)
    return by_node


def test_pods_that_are_all_alike_are_spread():
    by_node = placed([a_pod(f"p{number}", "500m", "1Gi") for number in range(8)])

    assert [2, 2, 2, 2] == [len(pods) for pods in by_node.values()]


def test_once_sizes_are_mixed_small_pods_keep_nodes_free_for_large_ones():
    """Three small pods, a large one, ten more small ones: these go to where the large one is, while there is room."""
    sizes = [("100m", "200Mi")] * 3 + [("3", "6Gi")] + [("100m", "200Mi")] * 10
    by_node = placed([a_pod(f"p{number}", *size) for number, size in enumerate(sizes)])

    assert {"n0": 1, "n1": 1, "n2": 1, "n3": 11} == {name: len(pods) for name, pods in sorted(by_node.items())}
    assert by_node["n3"][0] == "p3"


def test_balancing_spreads_and_consolidating_packs():
    pods = [a_pod(f"p{number}", "500m", "1Gi") for number in range(8)]

    assert [2, 2, 2, 2] == sorted(len(pods) for pods in placed(pods, objective="LOAD_BALANCE").values())
    assert [8] == [len(pods) for pods in placed(pods, objective="CONSOLIDATE").values()]


def test_an_extender_answers_the_published_levels_and_retries_change_nothing():
    panel = ExtenderCore([AGENT])
    panel.take(*(events.NodeSeen(a_node(name, 4, "8Gi")) for name in "abc"))
    panel.take(events.PodSeen(a_pod("on-a", 2, "2Gi", on="a")), events.PodSeen(a_pod("on-b", 1, "4Gi", on="b")))
    for earlier in (a_pod("p1", "500m", "1Gi"), a_pod("p2", "1", "512Mi")):
        panel.prioritize("pigeon-holing", earlier, ["a", "b", "c"])
    pod = a_pod("p3", "500m", "1Gi")

    for _ in range(3):
        assert [1, 1, 10] == panel.prioritize("pigeon-holing", pod, ["a", "b", "c"])
    assert [10, 1] == panel.prioritize("pigeon-holing", pod, ["c", "a"])


# ------------------------------------------------------------------------------------------------ arguments, environment


@pytest.mark.parametrize(
    ("said", "words"),
    [
        pytest.param({"objective": "SPREAD"}, "Invalid enum value 'SPREAD'", id="objective"),
        pytest.param({"numResources": 0}, "Expected `int` >= 1", id="no resource"),
        pytest.param({"numResources": 6}, "Expected `int` <= 5", id="too many resources"),
        pytest.param({"primeResource": 2}, "primeResource 2 is not among the first 2 resources", id="prime"),
        pytest.param({"usage": "prometheus"}, "Invalid enum value 'prometheus'", id="usage"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(said, words):
    with pytest.raises(msgspec.ValidationError, match=words):
        msgspec.convert(said, PigeonHolingArgs)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({}, {}, id="nothing set"),
        pytest.param({"NUM_RESOURCES": "3"}, {"numResources": 3}, id="resources"),
        pytest.param({"POLICY_OBJECTIVE": "CONSOLIDATE"}, {"objective": "CONSOLIDATE"}, id="objective"),
        pytest.param({"NUM_RESOURCES": "", "POLICY_OBJECTIVE": " "}, {}, id="set to nothing"),
    ],
)
def test_the_environment_says_what_arguments_say(variables, expected):
    told, complaints = environment(variables)

    assert ({"PigeonHoling": expected} if expected else {}) == told
    assert [] == complaints


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        pytest.param(
            {"NUM_RESOURCES": "6"}, "NUM_RESOURCES is '6'; write a number from 1 to 5; it was ignored", id="too many"
        ),
        pytest.param(
            {"NUM_RESOURCES": "two"}, "NUM_RESOURCES is 'two'; write a number from 1 to 5; it was ignored", id="a word"
        ),
        pytest.param(
            {"POLICY_OBJECTIVE": "binpack"},
            "POLICY_OBJECTIVE is 'binpack'; write one of A_BINPACK, LOAD_BALANCE, CONSOLIDATE; it was ignored",
            id="unknown objective",
        ),
    ],
)
def test_what_the_environment_cannot_mean_is_told_and_the_default_holds(variables, complaint):
    assert ({}, [complaint]) == environment(variables)


def test_an_objective_from_the_environment_counts_demand_like_any_other():
    """Where it did not, adaptive packing found every node equally good."""
    bench = three()
    told, _ = environment({"POLICY_OBJECTIVE": "A_BINPACK"})
    pigeon = plugin(bench, **told["PigeonHoling"])
    for number in range(3):
        final(bench, pigeon, a_pod(f"p{number}", "500m", "1Gi"))

    assert pigeon._demand.count == 3


def test_the_agent_can_be_served():
    assert [] == agent_faults(AGENT)
    assert [] == faults(PigeonHoling)
    assert ({}, {"pigeon-holing": "PigeonHoling"}) == (AGENT.predicates, AGENT.priorities)
    assert environment is AGENT.environment
