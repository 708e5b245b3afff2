"""Merge: which plugins a profile ends up with, where, in which order, with which weight."""

from typing import Any, ClassVar

import msgspec
import pytest

from lamina.scheduling.config.merge import DEFAULTS, NOT_IN_TREE, ProfilePlugins, choose
from lamina.scheduling.config.schema import Plugins
from lamina.scheduling.contract.plugin_registry import POINTS, points_of
from lamina.scheduling.plugins.in_tree import registry


class Filter:
    """A filter of somebody else's."""

    name: ClassVar = "Filter"

    def filter(self, state, pod, nodes): ...


class Both(Filter):
    """A filter and scorer of somebody else's."""

    name: ClassVar = "Both"

    def score(self, state, pod, nodes): ...


class Score:
    """A scorer of somebody else's."""

    name: ClassVar = "Score"

    def score(self, state, pod, nodes): ...


class Binder:
    """A binder of somebody else's."""

    name: ClassVar = "Binder"

    def bind(self, state, pod, node): ...


KNOWN = registry(entry_points=False)
for one in (Filter, Both, Score, Binder):
    KNOWN.register(one)

FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
)
SCORES = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


def filters(*without: str) -> tuple[str, ...]:
    """Name the default filters but these."""
    return tuple(name for name in FILTERS if name not in without)


def scores(*without: str) -> tuple[str, ...]:
    """Name the default scorers but these."""
    return tuple(name for name in SCORES if name not in without)


def chosen(plugins: dict[str, Any]) -> ProfilePlugins:
    return choose(msgspec.convert(plugins, Plugins), lambda name: points_of(KNOWN[name]) if name in KNOWN else ())


def named(*names: str, **weights: int) -> list[dict[str, Any]]:
    """Write plugins as configuration does; those with a weight come last."""
    return [{"name": name} for name in names] + [{"name": name, "weight": weight} for name, weight in weights.items()]


def test_by_default_a_profile_has_upstreams_plugins_at_all_their_points():
    """In upstream's order, as far as they are in tree; and one of ours before them."""
    by_point = {point: names for point, names in chosen({}).by_point.items() if names}

    assert {
        "preEnqueue": ("SchedulingGates",),
        "queueSort": ("PrioritySort",),
        "preFilter": (
            "UnmetDemands",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeDeclaredFeatures",
        ),
        "filter": FILTERS,
        "postFilter": ("DefaultPreemption",),
        "preScore": (
            "NodeAffinity",
            "NodeResourcesFit",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation",
        ),
        "score": SCORES,
        "reserve": ("VolumeBinding",),
        "preBind": ("VolumeBinding",),
        "bind": ("DefaultBinder",),
    } == by_point
    assert WEIGHTS == chosen({}).weights


def test_every_point_is_in_the_answer():
    """Also those where nobody stands."""
    assert list(POINTS) == list(chosen({}).by_point)


@pytest.mark.parametrize(
    ("plugins", "point", "want"),
    [
        # -- multiPoint
        pytest.param(
            {"multiPoint": {"disabled": named("TaintToleration")}},
            "filter",
            filters("TaintToleration"),
            id="disabled everywhere: filter",
        ),
        pytest.param(
            {"multiPoint": {"disabled": named("TaintToleration")}},
            "score",
            scores("TaintToleration"),
            id="disabled everywhere: score",
        ),
        pytest.param({"multiPoint": {"disabled": named("*")}}, "score", (), id="all disabled everywhere"),
        pytest.param(
            {"multiPoint": {"disabled": named("*"), "enabled": named("ImageLocality", "NodeName", "Both")}},
            "score",
            ("ImageLocality", "Both"),
            id="all disabled, some enabled again, in the order given",
        ),
        pytest.param(
            {"multiPoint": {"enabled": named("Both")}}, "filter", (*FILTERS, "Both"), id="others come behind: filter"
        ),
        pytest.param(
            {"multiPoint": {"enabled": named("Both")}}, "score", (*SCORES, "Both"), id="others come behind: score"
        ),
        pytest.param(
            {"multiPoint": {"enabled": named("Both", TaintToleration=9)}},
            "score",
            (*SCORES, "Both"),
            id="a default enabled again keeps its place",
        ),
        pytest.param(
            {"multiPoint": {"disabled": named("TaintToleration"), "enabled": named("TaintToleration")}},
            "score",
            (*scores("TaintToleration"), "TaintToleration"),
            id="disabled and enabled goes to the end",
        ),
        # -- a point of its own
        pytest.param(
            {"score": {"disabled": named("TaintToleration")}},
            "score",
            scores("TaintToleration"),
            id="disabled here",
        ),
        pytest.param({"score": {"disabled": named("TaintToleration")}}, "filter", FILTERS, id="and only here"),
        pytest.param({"score": {"disabled": named("*")}}, "score", (), id="all disabled here"),
        pytest.param({"score": {"disabled": named("*")}}, "filter", FILTERS, id="all disabled here, not there"),
        pytest.param({"score": {"enabled": named("Score")}}, "score", (*SCORES, "Score"), id="others come behind here"),
        pytest.param(
            {"score": {"enabled": named(ImageLocality=9)}},
            "score",
            ("ImageLocality", *scores("ImageLocality")),
            id="what is named here comes first",
        ),
        pytest.param(
            {"score": {"enabled": named("ImageLocality", "TaintToleration")}},
            "score",
            ("ImageLocality", "TaintToleration", *scores("ImageLocality", "TaintToleration")),
            id="several come first in the order given",
        ),
        pytest.param(
            {"score": {"enabled": named("Score", "ImageLocality")}},
            "score",
            ("ImageLocality", *scores("ImageLocality"), "Score"),
            id="one that overrides first, another last",
        ),
        pytest.param(
            {"multiPoint": {"enabled": named("Both")}, "filter": {"enabled": named("Both")}},
            "filter",
            ("Both", *FILTERS),
            id="named at both: this point counts",
        ),
        pytest.param(
            {"multiPoint": {"enabled": named("Both")}, "filter": {"disabled": named("Both")}},
            "filter",
            FILTERS,
            id="everywhere but here",
        ),
        pytest.param(
            {"multiPoint": {"disabled": named("NodeName")}, "filter": {"enabled": named("NodeName")}},
            "filter",
            (*filters("NodeName"), "NodeName"),
            id="nowhere but here, hence behind",
        ),
        pytest.param(
            {"bind": {"disabled": named("*"), "enabled": named("Binder", "DefaultBinder")}},
            "bind",
            ("Binder", "DefaultBinder"),
            id="all disabled: the order given is the order",
        ),
        pytest.param(
            {"bind": {"disabled": named("DefaultBinder"), "enabled": named("Binder", "DefaultBinder")}},
            "bind",
            ("Binder", "DefaultBinder"),
            id="disabled and enabled here: the order given, too",
        ),
        pytest.param(
            {"filter": {"disabled": named("*"), "enabled": named("Filter", "NodeName")}},
            "filter",
            ("Filter", "NodeName"),
            id="a filter of one's own before a default one",
        ),
        # -- what is not in tree
        pytest.param({"multiPoint": {"disabled": named("DynamicResources")}}, "filter", FILTERS, id="not there anyway"),
    ],
)
def test_plugins_are_merged_by_upstreams_rules(plugins, point, want):
    """Defaults, less what is disabled, plus what is enabled; what is named at a point itself comes first and wins."""
    assert want == chosen(plugins).by_point[point]


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param({"multiPoint": {"enabled": named(TaintToleration=9)}}, {"TaintToleration": 9}, id="a new one"),
        pytest.param(
            {"multiPoint": {"enabled": named("TaintToleration")}},
            {"TaintToleration": 1},
            id="left out: 1, not the default's 3",
        ),
        pytest.param({"multiPoint": {"enabled": named(TaintToleration=0)}}, {"TaintToleration": 1}, id="0: 1"),
        pytest.param({"multiPoint": {"enabled": named(Both=4)}}, {"Both": 4}, id="somebody else's"),
        pytest.param({"multiPoint": {"enabled": named("Both")}}, {"Both": 1}, id="somebody else's, left out"),
        pytest.param({"score": {"enabled": named(ImageLocality=7)}}, {"ImageLocality": 7}, id="at the point"),
        pytest.param(
            {"multiPoint": {"enabled": named(ImageLocality=5)}, "score": {"enabled": named(ImageLocality=7)}},
            {"ImageLocality": 7},
            id="at both: the point wins",
        ),
        pytest.param(
            {"multiPoint": {"enabled": named(ImageLocality=5)}, "score": {"enabled": named("ImageLocality")}},
            {"ImageLocality": 1},
            id="at both, left out at the point",
        ),
    ],
)
def test_a_weight_is_what_was_said_last_and_at_least_one(plugins, want):
    """The other defaults keep theirs."""
    assert {**WEIGHTS, **want} == chosen(plugins).weights


@pytest.mark.parametrize(
    ("plugins", "want"),
    [
        pytest.param({"multiPoint": {"disabled": named("*")}}, ("UnmetDemands",), id="all disabled everywhere"),
        pytest.param({"preFilter": {"disabled": named("*")}}, ("UnmetDemands",), id="all disabled here"),
        pytest.param({"multiPoint": {"disabled": named("UnmetDemands", "*")}}, ("UnmetDemands",), id="by its name"),
        pytest.param(
            {"preFilter": {"disabled": named("*"), "enabled": named("NodePorts", "UnmetDemands")}},
            ("UnmetDemands", "NodePorts"),
            id="enabled once more, and later",
        ),
    ],
)
def test_whoever_holds_back_what_cannot_be_done_stays_and_comes_first(plugins, want):
    """Nothing a profile says lets a pod be placed as if it had not asked."""
    assert want == chosen(plugins).by_point["preFilter"]


def test_only_scorers_have_weights():
    """A weight on a filter is upstream's to ignore, and ours."""
    assert set(SCORES) == set(chosen({"filter": {"enabled": named(Filter=5)}}).weights)


def test_every_default_is_in_tree():
    """What is not is listed apart, and so is what kube-default leaves out although another profile has it."""
    names = {ref.name for ref in DEFAULTS.multi_point.enabled}

    assert set() == names - set(KNOWN)
    assert {"GangScheduling"} == set(NOT_IN_TREE) & set(KNOWN)
