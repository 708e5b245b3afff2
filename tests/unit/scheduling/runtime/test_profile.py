"""Profile: which plugins run where, and what is wrong with a profile that cannot run."""

from typing import Any, ClassVar

import pytest

from lamina.model.errors import WiringError
from lamina.scheduling.contract.points import Reads
from lamina.scheduling.runtime.profile import Profile
from lamina.scheduling.state.cluster_changes import ChangeKind, ClusterChange
from lamina.scheduling.state.facets import Facet
from lamina.testing import a_node, a_pod, a_profile
from tests.unit.scheduling.bench import Bench

ENOUGH = ("PrioritySort", "DefaultBinder")


class Quiet:
    """A filter that says nothing about itself: no signature, no reads."""

    name: ClassVar = "Quiet"

    def __init__(self, *_: Any) -> None: ...

    def filter(self, state, pod, nodes): ...


class Signing(Quiet):
    """A filter and scorer that tells pods apart by a label."""

    name: ClassVar = "Signing"
    reads: ClassVar = Reads(rows=frozenset({Facet.IMAGES}), whole=frozenset({Facet.PODS}))

    def score(self, state, pod, nodes): ...

    def sign(self, pod):
        return pod.labels.get("team")


class Patient(Quiet):
    """A filter that retries on one kind of change, and on closer inspection only for nodes with an even row."""

    name: ClassVar = "Patient"
    retry_on: ClassVar = frozenset({ChangeKind.NODE_TAINTS})

    def worth_retrying(self, pod, change):
        return change.row % 2 == 0


class Binder(Quiet):
    """A binder, and nothing else."""

    name: ClassVar = "Binder"
    filter: Any = None

    def bind(self, state, pod, node): ...


def profile(*plugins, weights=None) -> Profile:
    return a_profile(Bench(a_node()).context, [*ENOUGH, *plugins], weights=weights)


# ------------------------------------------------------------------------------------------------------ wrong profiles


def wrong_with(by_point, weights=None) -> str:
    with pytest.raises(WiringError) as caught:
        Profile("mine", by_point, weights or {})
    return str(caught.value)


def sound() -> dict[str, list[Any]]:
    bench = Bench()
    return {"queueSort": [bench.make("PrioritySort")], "bind": [bench.make("DefaultBinder")]}


@pytest.mark.parametrize(
    ("changes", "weights", "want"),
    [
        pytest.param({"filters": [Quiet()]}, {}, "there is no extension point 'filters'", id="no such point"),
        pytest.param({"score": [Quiet()]}, {"Quiet": 1}, "plugin 'Quiet' does not extend score", id="not its point"),
        pytest.param(
            {"filter": [Quiet(), Quiet()]}, {}, "plugin 'Quiet' is listed twice at filter", id="twice at one point"
        ),
        pytest.param({"queueSort": []}, {}, "exactly one queueSort plugin is needed", id="no order"),
        pytest.param(
            {"queueSort": [Bench().make("PrioritySort"), Bench().make("PrioritySort")]},
            {},
            "plugin 'PrioritySort' is listed twice at queueSort; exactly one queueSort plugin is needed",
            id="two orders",
        ),
        pytest.param({"bind": []}, {}, "at least one bind plugin is needed", id="no binder"),
        pytest.param(
            {"score": [Signing()]},
            {},
            "score plugin 'Signing' is not configured with a weight of at least 1",
            id="no weight",
        ),
        pytest.param(
            {"score": [Signing()]},
            {"Signing": 0},
            "score plugin 'Signing' is not configured with a weight of at least 1",
            id="a weight of nothing",
        ),
    ],
)
def test_a_profile_that_cannot_run_is_refused_when_it_is_made(changes, weights, want):
    """With its name and what is wrong."""
    assert f"profile 'mine': {want}" == wrong_with({**sound(), **changes}, weights)


def test_all_wiring_mistakes_are_told_at_once():
    """Nobody has to start five times to hear five things."""
    assert (
        "profile 'mine': there is no extension point 'sort'; "
        "plugin 'Quiet' does not extend score; "
        "plugin 'Quiet' is listed twice at filter; "
        "exactly one queueSort plugin is needed; "
        "at least one bind plugin is needed; "
        "score plugin 'Signing' is not configured with a weight of at least 1; "
        "score plugin 'Quiet' is not configured with a weight of at least 1"
    ) == wrong_with({"sort": [Quiet()], "score": [Signing(), Quiet()], "filter": [Quiet(), Quiet()]}, {"Signing": -1})


def test_an_order_and_a_binder_are_enough():
    """Such a profile takes any node."""
    made = Profile("mine", sound(), {})

    assert ("mine", "PrioritySort", ["DefaultBinder"]) == (
        made.name,
        made.queue_sort.name,
        [plugin.name for plugin in made.bind],
    )
    assert ([], []) == (made.filters, made.scorers)


# -------------------------------------------------------------------------------------------------------------- shapes


def test_plugins_keep_their_order_at_each_point():
    """As configured."""
    made = profile("TaintToleration", "NodeResourcesFit", "NodeName", weights={"TaintToleration": 3})

    assert ["TaintToleration", "NodeResourcesFit", "NodeName"] == [part.name for part in made.filters]
    assert [("TaintToleration", 3), ("NodeResourcesFit", 1)] == [(part.name, part.weight) for part in made.scorers]
    assert {"PrioritySort", "DefaultBinder", "TaintToleration", "NodeResourcesFit", "NodeName"} == set(made.plugins)


def test_pods_have_the_same_shape_when_no_deciding_plugin_can_tell_them_apart():
    """Labels matter to one plugin here, names to none."""
    made = profile(Signing)

    assert made.sign(a_pod("a", labels={"team": "x"})) == made.sign(a_pod("b", labels={"team": "x"}))
    assert made.sign(a_pod("a", labels={"team": "x"})) != made.sign(a_pod("a", labels={"team": "y"}))


def test_one_plugin_without_a_signature_makes_every_pod_its_own_shape():
    """None stands for a shape nobody may keep answers for."""
    assert profile(Signing, Quiet).sign(a_pod()) is None


def test_plugins_that_do_not_decide_need_no_signature():
    """Binding comes after a node was chosen."""
    assert profile(Signing, Binder).sign(a_pod()) is not None


def test_a_plugin_that_does_not_say_what_it_reads_reads_everything():
    """Right comes before quick."""
    assert tuple(Facet) == profile(Quiet).reads_whole


def test_what_is_read_is_what_the_deciding_plugins_read():
    """Coming and going of nodes shows in their labels and is always read."""
    made = profile(Signing, "NodeResourcesFit")

    assert (Facet.PODS,) == made.reads_whole
    assert (Facet.RESOURCES, Facet.LABELS, Facet.IMAGES) == made.reads_rows


# --------------------------------------------------------------------------------------------------------- trying again


@pytest.mark.parametrize(
    ("plugin", "kind", "row", "want"),
    [
        pytest.param("Patient", ChangeKind.NODE_TAINTS, 0, True, id="the right kind, the right node"),
        pytest.param("Patient", ChangeKind.NODE_TAINTS, 1, False, id="the right kind, a closer look"),
        pytest.param("Patient", ChangeKind.NODE_ADDED, 0, False, id="another kind"),
        pytest.param("Quiet", ChangeKind.LAYERS, 1, True, id="a plugin that does not say: any"),
        pytest.param("Foreign", ChangeKind.LAYERS, 1, True, id="a plugin that is not there: any"),
        pytest.param("NodeName", ChangeKind.NODE_ADDED, 1, True, id="no closer look: the kind decides"),
        pytest.param("NodeName", ChangeKind.POD_REMOVED, 1, False, id="no closer look, another kind"),
    ],
)
def test_a_refused_pod_is_retried_when_its_refuser_sees_a_reason(plugin, kind, row, want):
    """The kind of change first, then the plugin's own look at it."""
    made = profile(Patient, Quiet, "NodeName")

    assert want == made.worth_retrying(plugin, a_pod(), ClusterChange(kind, row))


class Scales:
    """Refuses for amounts; raises where a pod or a row is odd."""

    name: ClassVar = "Scales"
    retry_on: ClassVar = frozenset({ChangeKind.NODE_ADDED})

    def __init__(self, context, args): ...

    def filter(self, state, pod, nodes):
        return None

    def worth_retrying(self, pod, change):
        return True

    def needs(self, pod):
        return {"weight": 100 // int(pod.labels["scale"]), "nothing": 0}

    def offers(self, row):
        return {"weight": 100 // row, "nothing": -1}


@pytest.mark.parametrize(
    ("scale", "row", "needs", "offers"),
    [
        pytest.param("2", 4, {"weight": 50}, {"weight": 25}, id="what is above zero"),
        pytest.param("0", 0, None, None, id="a plugin that raises cannot say"),
    ],
)
def test_a_plugin_that_refuses_for_amounts_is_asked_for_them(scale, row, needs, offers):
    """The queue then finds pods by what they need; in doubt it asks about each."""
    made = profile(Scales, "NodeName")

    assert made.hints_by_amounts("Scales")
    assert not made.hints_by_amounts("NodeName")
    assert needs == made.needs("Scales", a_pod(labels={"scale": scale}))
    assert offers == made.offers("Scales", row)
