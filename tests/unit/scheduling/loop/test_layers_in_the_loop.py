"""What the loop tells the inventory, and that whoever looks afterwards sees it: bindings, starts, time, platforms."""

from typing import Any

import msgspec
import pytest

from lamina.model import events
from lamina.model.image import Platform
from lamina.model.pod import Pod
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.scheduling.runtime.evaluation_cache import EvaluationCache
from lamina.scheduling.runtime.shape_evaluation import ShapeEvaluation
from lamina.testing import LoopHarness, a_digest, a_loop, a_node, a_pod, an_image, held

MB = 1_000_000
# A pull takes 1.15 s for each 100 MB, and 0.04 s: app:1 is ready in 11.54 s, 500/16.54 = 30.2 points; tool:1 in 5.79 s.
ARGS = LayerLocalityArgs(bandwidth=100e6, unpack_rate=230e6, byte_price=0.0)
PLUGINS = ["PrioritySort", "NodeUnschedulable", "NodeResourcesFit", "LayerLocality", "DefaultBinder"]
ARM = Platform("linux", "arm64")

APP = an_image("app:1", {"os": 300 * MB, "app": 700 * MB})
TOOL = an_image("tool:1", {"tool": 500 * MB})
APP_FOR_ARM = msgspec.structs.replace(an_image("app:1", {"arm": 500 * MB}, ARM), digest=a_digest("app:1 for arm"))


class Watched:
    """A desk, and what LayerLocality thinks of its nodes for a pod of one shape."""

    def __init__(self, *nodes: str, weight: int = 1) -> None:
        self.desk = LoopHarness(a_loop(PLUGINS, weights={"LayerLocality": weight}, args={"LayerLocality": ARGS}))
        self.cluster = self.desk.loop.cluster
        self.profile = self.desk.loop.profiles["default-scheduler"]
        self._kept = EvaluationCache(self.profile, self.cluster.columns)
        self.desk.tell(events.ImagesLearned((APP, TOOL)))
        for name in nodes:
            self.desk.tell(events.NodeSeen(a_node(name)), events.LayersReported(held(name)))

    def tell(self, *happened: events.Event) -> None:
        self.desk.tell(*happened)

    def scores(self, pod: Pod | None = None) -> dict[str, int]:
        """Return what an evaluation that was kept says, which has to be what a new one says."""
        pod = pod or a_pod("probe", image="app:1")
        kept = self._kept.of(self.profile.shape(pod), pod)
        index = [part.name for part in self.profile.scorers].index("LayerLocality")
        new = ShapeEvaluation(self.profile, self.cluster.columns, pod)
        assert new.totals.tolist() == kept.totals.tolist()
        return {name: int(kept.scores[index, row]) for name, row in self.cluster.columns.rows.items()}


def on(pod: Pod, node: str, **more: Any) -> events.PodSeen:
    return events.PodSeen(msgspec.structs.replace(pod, node_name=node, **more))


# ------------------------------------------------------------------------------------------------- from binding to start

P1 = a_pod("p1", image="app:1")


def test_nothing_is_expected_of_a_pod_that_waits():
    watched = Watched("n1", "n2")
    watched.tell(events.PodSeen(a_pod("p1", cpu=100, image="app:1")))

    assert {"n1": 30, "n2": 30} == watched.scores()


def test_the_image_of_a_pod_is_on_its_way_as_soon_as_a_node_was_chosen():
    """Before the binding is confirmed. After 6 s 5.54 s are left: 500/10.54 = 47.4."""
    watched = Watched("n1", "n2")
    commands = watched.desk.loop.feed(events.PodSeen(P1))
    assert {"n1": 30, "n2": 30} == watched.scores()
    watched.desk.loop.feed(events.TimePassed(6.0))

    assert {"n1": 47, "n2": 30} == watched.scores()
    assert 1 == len(commands)


def test_a_second_pod_of_the_same_instant_sees_the_first_ones_pull():
    """tool:1 waits until app:1 is there: 11.54 + 5.79 s against 5.79 s."""
    watched = Watched("n1", "n2")
    watched.desk.see(P1)

    # 500/22.33 = 22.4, 500/10.79 = 46.3
    assert {"n1": 22, "n2": 46} == watched.scores(a_pod(image="tool:1"))


def test_a_binding_that_fails_takes_the_expectation_back():
    watched = Watched("n1", "n2")
    watched.desk.loop.feed(events.PodSeen(P1))
    watched.desk.loop.feed(events.BindFailed(P1.uid, "the API server is away"))

    assert {"n1": 46, "n2": 46} == watched.scores(a_pod(image="tool:1"))


def test_what_others_bound_is_on_its_way_too():
    """The extender and other schedulers bind pods as well."""
    watched = Watched("n1", "n2")
    watched.tell(on(P1, "n2"))

    assert {"n1": 46, "n2": 22} == watched.scores(a_pod(image="tool:1"))


def test_a_pod_that_was_bound_elsewhere_brings_its_images_there():
    watched = Watched("n1", "n2")
    watched.desk.loop.feed(events.PodSeen(P1))
    watched.tell(on(P1, "n2"))

    assert {"n1": 46, "n2": 22} == watched.scores(a_pod(image="tool:1"))


def test_when_a_pod_runs_its_images_are_there_before_any_report_says_so():
    watched = Watched("n1", "n2")
    watched.desk.see(P1)
    watched.tell(events.TimePassed(3.0), on(P1, "n1", started=True))

    assert {"n1": 100, "n2": 30} == watched.scores()
    # And nobody has to wait for them: 5.79 s
    assert {"n1": 46, "n2": 46} == watched.scores(a_pod(image="tool:1"))


def test_a_pod_that_runs_when_it_is_first_seen_is_not_waited_for():
    """The report says what is there; a scheduler that starts anew must not expect the images of all running pods."""
    watched = Watched("n1", "n2")
    watched.tell(on(P1, "n1", started=True))

    assert {"n1": 30, "n2": 30} == watched.scores()


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param(0.0, {"n1": 46, "n2": 46}, id="before the pull began: it never does"),
        # 5.54 s are left: 11.33 s, 500/16.33 = 30.6
        pytest.param(6.0, {"n1": 31, "n2": 46}, id="in the middle of it: the runtime carries it through"),
    ],
)
def test_the_images_of_a_pod_that_is_gone_are_expected_only_if_the_pull_has_begun(after, want):
    watched = Watched("n1", "n2")
    watched.desk.see(P1)
    watched.tell(events.TimePassed(after), events.PodGone(P1.uid))

    assert want == watched.scores(a_pod(image="tool:1"))


@pytest.mark.parametrize("how", ["finished", "deleting"])
def test_a_pod_that_ends_before_it_ran_is_gone(how):
    watched = Watched("n1", "n2")
    watched.desk.loop.feed(events.PodSeen(P1))
    watched.tell(events.PodSeen(msgspec.structs.replace(P1, **{how: True})))

    assert {"n1": 46, "n2": 46} == watched.scores(a_pod(image="tool:1"))


def test_an_image_that_does_not_come_is_not_waited_for_for_ever():
    """Three times what it should have taken, and a minute at least: then it counts as missing."""
    watched = Watched("n1", "n2")
    watched.desk.see(P1)
    watched.tell(events.TimePassed(70.0))
    assert {"n1": 100, "n2": 30} == watched.scores()

    watched.tell(events.TimePassed(72.0))

    assert {"n1": 30, "n2": 30} == watched.scores()


def test_a_report_confirms_what_arrived():
    watched = Watched("n1", "n2")
    watched.desk.see(P1)
    watched.tell(events.TimePassed(12.0), events.LayersReported(held("n1", APP, sequence=2)), events.PodGone(P1.uid))

    assert {"n1": 100, "n2": 30} == watched.scores()


def test_a_pod_seen_before_its_node_brings_its_images_when_the_node_comes():
    watched = Watched("n1")
    watched.tell(on(P1, "late"), events.NodeSeen(a_node("late")), events.LayersReported(held("late")))

    assert {"n1": 46, "late": 22} == watched.scores(a_pod(image="tool:1"))


def test_a_node_that_left_and_another_in_its_place_are_strangers():
    """What was on its way to the first is not on its way to the second, and what runs late on the first is not there."""
    watched = Watched("n1", "n2")
    watched.tell(on(P1, "n1"), on(a_pod("p2", image="app:1"), "n2"), events.TimePassed(1.0))
    watched.tell(events.NodeGone("n1"), events.NodeSeen(a_node("n3")), events.LayersReported(held("n3")))
    watched.tell(on(a_pod("p3", image="app:1"), "n3"))
    watched.tell(on(P1, "n1", started=True), events.PodGone(P1.uid))

    # n2: 10.54 s, 500/15.54 = 32.2; n3: 11.54 s
    assert {"n2": 32, "n3": 30} == watched.scores()


# ------------------------------------------------------------------------------------------------- names, time, reports


def test_a_name_means_an_image_for_as_long_as_its_source_said():
    """Then the plugin has nothing to say, and all nodes get 0."""
    watched = Watched("n1", "n2")
    probe = a_pod("probe", image="soon:1")
    watched.tell(events.ImagesLearned((an_image("soon:1", {"soon": 500 * MB}),), good_for=60.0))
    assert {"n1": 46, "n2": 46} == watched.scores(probe)

    watched.tell(events.TimePassed(59.0))
    assert {"n1": 46, "n2": 46} == watched.scores(probe)
    watched.tell(events.TimePassed(60.0))
    assert {"n1": 0, "n2": 0} == watched.scores(probe)


def test_a_name_that_is_confirmed_goes_on_meaning_the_image():
    watched = Watched("n1")
    probe = a_pod("probe", image="soon:1")
    learned = events.ImagesLearned((an_image("soon:1", {"soon": 500 * MB}),), good_for=60.0)
    watched.tell(learned, events.TimePassed(50.0), learned, events.TimePassed(100.0))
    assert {"n1": 46} == watched.scores(probe)

    watched.tell(events.TimePassed(110.0))
    assert {"n1": 0} == watched.scores(probe)


def test_a_name_that_moves_means_the_new_image():
    watched = Watched("n1", "n2")
    watched.tell(events.LayersReported(held("n1", TOOL, sequence=2)))
    assert {"n1": 100, "n2": 46} == watched.scores(a_pod(image="tool:1"))

    moved = msgspec.structs.replace(an_image("tool:1", {"new tool": 1000 * MB}), digest=a_digest("the new one"))
    watched.tell(events.ImagesLearned((moved,)))

    assert {"n1": 30, "n2": 30} == watched.scores(a_pod(image="tool:1"))


def test_a_report_that_is_renewed_without_news_is_believed_again():
    """It says the same as before; that it says so again is the news."""
    watched = Watched("n1", "n2")

    def report(sequence: int, at: float) -> events.Event:
        told = held("n1", APP, sequence=sequence)
        return events.LayersReported(msgspec.structs.replace(told, observed_at=at, renews_within=30.0))

    watched.tell(report(2, 0.0))
    assert {"n1": 100, "n2": 30} == watched.scores()
    watched.tell(events.TimePassed(1000.0))
    assert {"n1": 30, "n2": 30} == watched.scores()

    watched.tell(report(3, 1000.0))

    assert {"n1": 100, "n2": 30} == watched.scores()


# ------------------------------------------------------------------------------------------------- platforms, large sizes


@pytest.mark.parametrize("late", [False, True], ids=["with its name", "later than its name"])
def test_a_node_may_say_its_platform(late):
    """app:1 for arm is 500 MB: 5.79 s, 500/10.79 = 46.3."""
    watched = Watched("n1", "n2")
    watched.tell(events.ImagesLearned((APP_FOR_ARM,)))
    before = watched.scores()
    if not late:
        watched.tell(events.NodeGone("n2"))
    watched.tell(events.NodeSeen(msgspec.structs.replace(a_node("n2"), platform=ARM)))
    if not late:
        watched.tell(events.LayersReported(held("n2")))

    assert {"n1": 30, "n2": 30} == before
    assert {"n1": 30, "n2": 46} == watched.scores()


def test_a_new_platform_gives_a_plugin_that_had_nothing_to_say_something_to_say():
    """The image is known for arm only; then the first arm node joins."""
    watched = Watched("n1")
    watched.tell(events.ImagesLearned((msgspec.structs.replace(APP_FOR_ARM, names=("arm-only:1",)),)))
    probe = a_pod("probe", image="arm-only:1")
    assert {"n1": 0} == watched.scores(probe)

    watched.tell(
        events.NodeSeen(msgspec.structs.replace(a_node("n2"), platform=ARM)), events.LayersReported(held("n2"))
    )

    # n1 counts as the mean of the nodes of which it is known.
    assert {"n1": 46, "n2": 46} == watched.scores(probe)


def test_a_pod_on_a_node_nobody_knows_says_what_size_is_usual():
    """Ten pods of a tenth of a node, then ten of a half: who was out of the question is not crowded any more."""
    watched = Watched("n1", "n2", "n3")
    for number in range(10):
        watched.tell(on(a_pod(f"small {number}", cpu="400m", memory="1Mi"), "nowhere"))
    watched.tell(on(a_pod("there", cpu=2, memory="1Mi"), "n1"))
    watched.tell(events.LayersReported(held("n1", APP, sequence=2)))
    assert {"n1": 0, "n2": 30, "n3": 30} == watched.scores()

    for number in range(10):
        watched.tell(on(a_pod(f"large {number}", cpu=2, memory="1Mi"), "nowhere"))

    # Loaded 0.525 with the probe, the mean is 0.175: x = 0.35/0.5 = 0.7, and 5·0.2/0.6 = 1.67 s.
    assert {"n1": 75, "n2": 30, "n3": 30} == watched.scores()
