"""SafeOverload, compatible: kube-safe-scheduler's predicate and priority to the letter."""

import pytest

from lamina.model.pod import Container, Pod, total_requests
from lamina.model.resources import amounts
from lamina.scheduling.contract.scheduling_agent import LINEAR
from lamina.scheduling.plugins.agents.safe import OverloadArgs, SafeOverload
from lamina.testing import a_node, a_pod
from tests.unit.scheduling.bench import Bench, refused
from tests.unit.scheduling.plugins.agents.safe.usage import NOTHING, annotated, plain, points

COMPATIBLE = OverloadArgs(compatible=True)
FINE = (0.425, 0.10)  # level 9
FAIR = (0.70, 0.15)  # level 5
POOR = (0.85, 0.10)  # level 0, and refused


def level(node, pod: Pod = NOTHING, args: OverloadArgs = COMPATIBLE) -> int:
    bench = Bench(node)
    return LINEAR[points(SafeOverload(bench.context, args), bench, pod)[node.name]]


def accepted(node, pod: Pod = NOTHING, args: OverloadArgs = COMPATIBLE) -> bool:
    bench = Bench(node)
    return not refused(bench, SafeOverload(bench.context, args), pod)


PUBLISHED = [
    # mean, deviation; level; accepted
    (0.425, 0.10, 9, True),
    (0.70, 0.15, 5, True),
    (0.80, 0.10, 2, True),
    (0.85, 0.10, 0, False),
    (0.85, 0.05, 2, True),
    (0.30, 0.30, 5, True),
    (0.60, 0.30, 1, True),
    (0.50, 0.50, 0, False),
    (0.95, 0.0, 0, False),
    (0.90, 0.0, 10, True),
]


@pytest.mark.parametrize("resource", ["cpu", "memory"])
@pytest.mark.parametrize(("mean", "deviation", "want", "accept"), PUBLISHED, ids=str)
def test_published_levels_and_verdicts_are_met(mean, deviation, want, accept, resource):
    node = annotated(**{resource: (mean, deviation)})

    assert (want, accept) == (level(node), accepted(node))


@pytest.mark.parametrize(
    ("cpu", "memory", "want", "accept"),
    [
        pytest.param(FINE, FAIR, 5, True, id="memory is worse"),
        pytest.param(FAIR, FINE, 5, True, id="cpu is worse"),
        pytest.param(FINE, POOR, 0, False, id="memory is too bad"),
        pytest.param(FAIR, None, 5, True, id="only cpu is known"),
        pytest.param(None, POOR, 0, False, id="only memory is known, and bad"),
        pytest.param(None, None, 0, True, id="nothing is known: the worst level, and no refusal"),
    ],
)
def test_the_worse_of_cpu_and_memory_decides(cpu, memory, want, accept):
    node = annotated(cpu=cpu, memory=memory)

    assert (want, accept) == (level(node), accepted(node))


@pytest.mark.parametrize(
    ("annotations", "want"),
    [
        pytest.param({"mean-free-cpu": "5 cores"}, 0, id="a mean that is no number: not known"),
        pytest.param({"mean-free-cpu": ""}, 0, id="an empty mean"),
        pytest.param({"mean-free-cpu": "nan"}, 0, id="not a number by name"),
        pytest.param({"mean-free-cpu": "100"}, 10, id="no deviation: none"),
        pytest.param({"mean-free-cpu": "99"}, 0, id="no deviation, beyond the threshold"),
        pytest.param({"mean-free-cpu": "300", "std-free-cpu": "?"}, 10, id="a deviation that is no number: none"),
        pytest.param({"mean-free-cpu": "300", "std-free-cpu": "-150"}, 10, id="a negative deviation: none"),
        pytest.param({"mean-free-cpu": "5000", "std-free-cpu": "100"}, 10, id="more free than there is"),
        pytest.param({"mean-free-cpu": "-5000", "std-free-cpu": "0"}, 0, id="less free than nothing"),
        pytest.param({"std-free-cpu": "100"}, 0, id="a deviation without a mean"),
        # 0.8 · 100 + 0.2 · 50 = 90 < 100 free: 0.91 used, beyond.
        pytest.param({"mean-free-cpu": "100", "forcasted-free-cpu": "50"}, 0, id="a forecast of more"),
        pytest.param({"mean-free-cpu": "99", "forcasted-free-cpu": "104"}, 10, id="a forecast of less"),
        pytest.param({"mean-free-cpu": "100", "forcasted-free-cpu": "N/A"}, 10, id="no forecast"),
    ],
)
def test_annotations_are_read_as_the_annotator_writes_them(annotations, want):
    assert want == level(a_node(cpu=1, memory="1000", annotations=annotations))


@pytest.mark.parametrize(("cpu", "want"), [("900m", True), ("901m", False)])
def test_more_free_than_there_is_leaves_no_room_for_more_than_there_is(cpu, want):
    node = a_node(cpu=1, memory="1000", annotations={"mean-free-cpu": "1250"})

    assert want == accepted(node, a_pod(cpu=cpu))


def a_demanding_pod(containers, init=(), overhead=None) -> Pod:
    running = tuple(Container("app:1", amounts(asked)) for asked in containers)
    before = tuple(Container("init:1", amounts(asked)) for asked in init)
    requests, ranked = total_requests(running, before, overhead=amounts(overhead or {}))
    pod = a_pod()
    return Pod(
        uid=pod.uid,
        name=pod.name,
        containers=running,
        init_containers=before,
        requests=requests,
        scoring_requests=ranked,
    )


@pytest.mark.parametrize(
    ("pod", "want"),
    [
        pytest.param(a_demanding_pod([{"cpu": "400m"}, {"cpu": "100m"}]), True, id="up to the threshold"),
        pytest.param(a_demanding_pod([{"cpu": "400m"}, {"cpu": "101m"}]), False, id="a little more"),
        pytest.param(
            a_demanding_pod([{"cpu": "100m"}], [{"cpu": "501m"}]), False, id="an init container asks for more"
        ),
        pytest.param(a_demanding_pod([{"cpu": "500m"}], [{"cpu": "499m"}] * 3), True, id="init containers take turns"),
        pytest.param(a_demanding_pod([{"cpu": "500m"}], overhead={"cpu": "50m"}), True, id="overhead does not count"),
        pytest.param(a_demanding_pod([{"memory": "500"}]), True, id="memory of which nothing is known"),
    ],
)
def test_what_the_pod_asks_for_is_added_to_the_mean(pod, want):
    """600 of 1000 thousandths are free, so 500 reach the threshold of 90 %."""
    assert want == accepted(annotated(cpu=(0.4, 0.0)), pod)


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param({"threshold": 95}, 7, id="a higher threshold"),
        pytest.param({"tolerance": 100}, 7, id="more is tolerated"),
        pytest.param({"tolerance": 7}, 0, id="less is tolerated"),
        pytest.param({"tolerance": 0}, 0, id="nothing is tolerated"),
        pytest.param({"threshold": 100, "tolerance": 0}, 10, id="nothing is tolerated, and nothing can happen"),
    ],
)
def test_what_is_set_counts(args, want):
    """Risk 0.073385 at 90 %: 1 - √0.073385 = 0.729 where all is tolerated. 0.015510 at 95 %: 1 - √(0.015510 / 0.3) = 0.773."""
    assert want == level(annotated(cpu=FAIR), args=OverloadArgs(compatible=True, **args))


@pytest.mark.parametrize("deviation", [0.5, 0.9])
def test_a_fit_that_fails_is_refused_unless_everything_is_tolerated(deviation):
    node = annotated(cpu=(0.5, deviation))

    assert not accepted(node, args=OverloadArgs(compatible=True, tolerance=99))
    assert accepted(node, args=OverloadArgs(compatible=True, tolerance=100))


def test_a_node_without_capacity_is_one_of_which_nothing_is_known():
    node = a_node(cpu=0, memory="0", annotations={"mean-free-cpu": "0", "mean-free-memory": "0"})

    assert (0, True) == (level(node, a_pod(cpu=1)), accepted(node, a_pod(cpu=1)))


def test_others_have_no_influence():
    """What is not known is the worst level, whatever the mean of the others."""
    bench = Bench(annotated("fine", FINE), annotated("fair", FAIR), plain("silent"))

    assert {"fine": 90, "fair": 50, "silent": 0} == points(SafeOverload(bench.context, COMPATIBLE), bench)


def test_compatible_reads_annotations_only():
    with pytest.raises(ValueError, match="compatible reads annotations: omit source"):
        OverloadArgs(compatible=True, source="measured")
