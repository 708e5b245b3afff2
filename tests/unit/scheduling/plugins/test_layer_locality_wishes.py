"""LayerLocality's annotation: what pods and namespaces can say about it."""

from typing import Any

import msgspec
import pytest

from lamina.model import events
from lamina.model.layer_wish import wish
from lamina.model.pod import Pod
from lamina.scheduling.loop.loop_state import LoopSettings
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.scheduling.runtime.explanation import Detail
from lamina.testing import LoopHarness, a_loop, a_node, a_pod, an_image, held
from tests.unit.scheduling.bench import Bench, final

MB = 1_000_000
APP = an_image("app:1", {"app": 1000 * MB})
NAME = "lamina.dev/layer-locality"
IGNORED = "annotation lamina.dev/layer-locality is {!r}; write off, or a percentage from 0 to 100; it was ignored"


def says(pod: Pod, what: str | None) -> Pod:
    return pod if what is None else msgspec.structs.replace(pod, annotations={NAME: what, "other": "50"})


# ------------------------------------------------------------------------------------------------------------- the words


@pytest.mark.parametrize(
    ("said", "want"),
    [
        pytest.param("off", 0, id="off"),
        pytest.param("0", 0, id="nothing"),
        pytest.param("7", 7, id="a little"),
        pytest.param("050", 50, id="leading zero"),
        pytest.param("100", 100, id="everything"),
    ],
)
def test_a_wish_is_off_or_a_percentage(said, want):
    assert (want, "") == wish({NAME: said})


def test_who_says_nothing_wishes_nothing():
    assert (None, "") == wish({"other": "off"})


@pytest.mark.parametrize(
    "said",
    ["", "on", "Off", "101", "999", "1000", "-1", "+5", "5.5", "50%", " 50", "50 ", "fifty", "١٠", "5\n", "null"],
)
def test_anything_else_is_ignored_and_told(said):
    assert (None, IGNORED.format(said)) == wish({NAME: said})


def test_a_long_story_is_cut_short():
    """An annotation may have 256 kB, a line in an explanation not."""
    assert (None, IGNORED.format("x" * 40)) == wish({NAME: "x" * 200_000})


# ------------------------------------------------------------------------------------------------------------- the score


def scores(pod: str | None, namespace: str | None = None, **args: Any) -> dict[str, int] | None:
    """Score two nodes, of which one holds the image (100) and one does not (26)."""
    bench = Bench(a_node("has"), a_node("lacks"))
    bench.learn(APP)
    bench.report(held("has", APP), held("lacks"))
    if namespace is not None:
        bench.context.namespaces["default"] = {NAME: namespace}
    plugin = bench.make("LayerLocality", LayerLocalityArgs(bandwidth=100e6, unpack_rate=230e6, **args))
    return final(bench, plugin, says(a_pod(image="app:1"), pod))


@pytest.mark.parametrize(
    ("pod", "namespace", "want"),
    [
        pytest.param(None, None, (100, 26), id="nothing said"),
        pytest.param("off", None, None, id="off"),
        pytest.param("0", None, None, id="0"),
        # 26.3/2 = 13.1
        pytest.param("50", None, (50, 13), id="half"),
        pytest.param("1", None, (1, 0), id="1 percent"),
        pytest.param("100", None, (100, 26), id="everything"),
        pytest.param("nonsense", None, (100, 26), id="nonsense counts as nothing said"),
        pytest.param(None, "off", None, id="the namespace says off"),
        pytest.param(None, "50", (50, 13), id="the namespace says half"),
        pytest.param(None, "nonsense", (100, 26), id="the namespace says nonsense"),
        pytest.param("100", "off", (100, 26), id="the pod wins over off"),
        pytest.param("off", "100", None, id="the pod wins with off"),
        pytest.param("50", "nonsense", (50, 13), id="the pod wins over nonsense"),
        pytest.param("nonsense", "50", (50, 13), id="a pod that says nonsense leaves it to its namespace"),
    ],
)
def test_pods_and_namespaces_say_how_much_layers_count(pod, namespace, want):
    """The pod's own word first."""
    assert (None if want is None else dict(zip(("has", "lacks"), want, strict=True))) == scores(pod, namespace)


@pytest.mark.parametrize("mode", ["bytes", "original"])
def test_it_holds_in_every_mode(mode):
    assert {"has": 50, "lacks": 0} == scores("50", mode=mode)
    assert scores("off", mode=mode) is None


def test_silent_nodes_are_weighed_like_the_others():
    """The mean of 100 and 26.3 is 63.1, and half of that 31.6."""
    bench = Bench(a_node("has"), a_node("lacks"), a_node("silent"))
    bench.learn(APP)
    bench.report(held("has", APP), held("lacks"))
    plugin = bench.make("LayerLocality", LayerLocalityArgs(bandwidth=100e6, unpack_rate=230e6))

    assert {"has": 50, "lacks": 13, "silent": 32} == final(bench, plugin, says(a_pod(image="app:1"), "50"))


# --------------------------------------------------------------------------------------------------------- in a decision


def a_desk(detail: Detail = "brief") -> LoopHarness:
    """Two nodes: the emptier one lacks the image."""
    plugins = ["PrioritySort", "NodeResourcesFit", "LayerLocality", "DefaultBinder"]
    desk = LoopHarness(a_loop(plugins, settings=LoopSettings(detail=detail)))
    desk.tell(
        events.ImagesLearned((APP,)),
        events.NodeSeen(a_node("has", cpu=8)),
        events.NodeSeen(a_node("lacks", cpu=8)),
        events.LayersReported(held("has", APP)),
        events.LayersReported(held("lacks")),
    )
    desk.see(a_pod("x", cpu="100m", on="has"))
    return desk


@pytest.mark.parametrize(("said", "want"), [(None, "has"), ("off", "lacks"), ("50", "has"), ("huh", "has")])
def test_a_pod_that_does_not_care_goes_where_there_is_more_room(said, want):
    desk = a_desk()

    desk.see(says(a_pod("p", image="app:1"), said))

    assert want == desk.bound["p"]


@pytest.mark.parametrize(
    ("pod", "namespace", "detail", "want"),
    [
        pytest.param(None, None, "brief", (), id="nothing said"),
        pytest.param("50", None, "brief", (), id="nothing wrong"),
        pytest.param("huh", None, "brief", (IGNORED.format("huh"),), id="the pod says nonsense"),
        pytest.param("huh", None, "full", (IGNORED.format("huh"),), id="in full detail"),
        pytest.param("huh", None, "none", (), id="where nobody wants to know"),
        pytest.param(None, "what", "brief", (IGNORED.format("what"),), id="the namespace says nonsense"),
        pytest.param("50", "what", "brief", (IGNORED.format("what"),), id="also where the pod's own word counts"),
        pytest.param("huh", "what", "brief", (IGNORED.format("huh"),), id="both: the pod's first"),
    ],
)
def test_nonsense_is_told_with_the_decision(pod, namespace, detail, want):
    """The pod is placed all the same."""
    desk = a_desk(detail)
    if namespace is not None:
        desk.tell(events.NamespaceSeen("default", {NAME: namespace}))

    desk.see(says(a_pod("p", image="app:1"), pod))

    assert ("has", want) == (desk.bound["p"], desk.decisions["p"].notes)


def test_a_namespace_that_changes_its_mind_is_heard_by_pods_that_wait_already():
    """The pod fits nowhere at first; when there is room, what its namespace says by then counts."""
    desk = a_desk()
    pod = a_pod("p", cpu=7, image="app:1")
    desk.see(a_pod("y", cpu=4, on="has"), a_pod("z", cpu=4, on="lacks"), pod)
    assert {"p": "0/2 nodes are available: 2 Insufficient cpu."} == desk.pending

    desk.tell(events.NamespaceSeen("default", {NAME: "off"}))
    desk.tell(events.PodGone("y"), events.PodGone("z"), events.TimePassed(60.0))

    assert {"p": "lacks"} == desk.bound


def test_a_namespace_that_changes_its_mind_is_heard_by_pods_like_earlier_ones():
    """What was kept for pods of this shape is not used again."""
    desk = a_desk()
    heard = {}
    for name, said in [("first", None), ("second", "off"), ("third", "100"), ("fourth", None)]:
        desk.tell(events.NamespaceSeen("default", {} if said is None else {NAME: said}))
        desk.see(a_pod(name, image="app:1"))
        heard[name] = desk.bound[name]

    assert {"first": "has", "second": "lacks", "third": "has", "fourth": "has"} == heard


def test_another_namespace_is_none_of_its_business():
    desk = a_desk()
    desk.tell(events.NamespaceSeen("elsewhere", {NAME: "off"}))
    desk.see(a_pod("p", image="app:1"))
    desk.see(msgspec.structs.replace(a_pod("q", image="app:1"), namespace="elsewhere"))

    assert {"p": "has", "q": "lacks"} == desk.bound
