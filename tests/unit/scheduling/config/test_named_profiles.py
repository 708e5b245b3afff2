"""Named: the profiles that come along."""

from pathlib import Path

import msgspec
import pytest

from lamina.model.errors import InputError
from lamina.scheduling.config.merge import NOT_IN_TREE
from lamina.scheduling.config.named_profiles import DEFAULT, FORMER_NAMES, NAMED, current_name, named, unsupported
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.plugins.locality.layer_locality import Barrier, LayerLocalityArgs
from tests.unit.scheduling.bench import Bench

KNOWN = registry(entry_points=False)
FILTERS = [
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
]
DEFAULTS = [
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodeResourcesFit", 1),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("NodeResourcesBalancedAllocation", 1),
]


RANKS = {
    "lamina-balanced": [*DEFAULTS, ("LayerLocality", 5)],
    "lamina-even": [*DEFAULTS, ("LayerLocality", 2)],
    "lamina-roomy": [*DEFAULTS, ("LayerLocality", 5)],
    "lamina-local": [*DEFAULTS, ("LayerLocality", 5), ("ImagePresence", 2)],
    "flow": [*DEFAULTS, ("LayerLocality", 5)],
    "lamina-images": [*DEFAULTS, ("LayerLocality", 5)],
    "gang": [*DEFAULTS, ("LayerLocality", 5)],
    "drf": [*DEFAULTS, ("LayerLocality", 5)],
    "easy": [*DEFAULTS, ("LayerLocality", 5)],
    "conservative": [*DEFAULTS, ("LayerLocality", 5)],
    "kube-default": [*DEFAULTS, ("ImageLocality", 1)],
    "image-locality": [("ImageLocality", 1)],
    "ryax": [*DEFAULTS, ("ImageLocality", 1), ("LayerLocality", 1)],
    "hotedge": [("HotEdge", 1)],
    "lrscheduler": [("LRScheduler", 2), ("NodeResourcesBalancedAllocation", 1)],
    "random": [],
    "least-allocated": [("NodeResourcesFit", 1)],
    "most-allocated": [("NodeResourcesFit", 1)],
    "qos-measured": [*DEFAULTS, ("ImageLocality", 1)],
    "qos-original": [*DEFAULTS, ("ImageLocality", 1)],
    "qos": [*DEFAULTS, ("ImageLocality", 1)],
}
PLACERS = {
    "flow": ["MinCostFlow"],
    "gang": ["GangScheduling"],
    "drf": ["GangScheduling"],
    "easy": ["Backfill"],
    "conservative": ["Backfill"],
}


@pytest.mark.parametrize(("name", "scorers"), RANKS.items(), ids=RANKS)
def test_a_named_profile_ranks_by_what_its_name_says(name, scorers):
    """And filters, sorts and binds like every other."""
    profile = named(name, KNOWN).profiles(Bench().context)["default-scheduler"]

    assert scorers == [(part.name, part.weight) for part in profile.scorers]
    assert FILTERS == [part.name for part in profile.filters]
    sort = "QosAware" if name in {"qos-original", "qos"} else "PrioritySort"
    assert (sort, ["DefaultBinder"]) == (profile.queue_sort.name, [one.name for one in profile.bind])
    gangs = ["GangScheduling"] if {"GangScheduling", "Backfill"} & set(PLACERS.get(name, [])) else []
    assert ["SchedulingGates", *gangs] == [one.name for one in profile.pre_enqueue]
    assert PLACERS.get(name, []) == [one.name for one in profile.place]
    assert "UnmetDemands" == profile.pre_filter[0].name


def test_every_named_profile_is_in_the_table_above():
    """A new one wants a row there."""
    assert list(RANKS) == list(NAMED)


@pytest.mark.parametrize(
    ("name", "barrier", "knowledge"),
    [
        # docs/decisions/0006: free up to begin, out of the question `width` further on, and the price in between.
        pytest.param("lamina-balanced", Barrier(begin=0.5, width=0.8, seconds=5, floor=0.10), "layers", id="balanced"),
        pytest.param("lamina-even", Barrier(begin=0.0, width=1.2, seconds=10, floor=0.03), "layers", id="even"),
        pytest.param("lamina-roomy", Barrier(begin=0.8, width=1.2, seconds=5, floor=0.10), "layers", id="roomy"),
        pytest.param("lamina-local", Barrier(begin=1.0, width=2.0, seconds=5, floor=0.10), "layers", id="local"),
        pytest.param("lamina-images", Barrier(begin=0.5, width=0.8, seconds=5, floor=0.10), "images", id="images"),
    ],
)
def test_the_profiles_of_the_product_differ_in_what_crowding_costs(name, barrier, knowledge):
    """All of them go by seconds, and give no node more than a fifth of a controller's pods."""
    (config,) = named(name, KNOWN).config.profiles
    (given,) = (one.args for one in config.plugin_config if one.name == "LayerLocality")

    assert LayerLocalityArgs(
        mode="seconds", knowledge=knowledge, barrier=barrier, replica_share=0.2
    ) == msgspec.convert(given, LayerLocalityArgs)


@pytest.mark.parametrize("name", NAMED)
def test_a_named_profile_keeps_answers_for_pods_of_one_shape(name):
    """All its plugins sign, so that decisions are quick."""
    profile = named(name, KNOWN).profiles(Bench().context)["default-scheduler"]

    assert profile._signable


@pytest.mark.parametrize("name", NAMED)
def test_a_named_profile_says_what_it_is_for(name):
    """In a line for people."""
    summary, _ = NAMED[name]

    assert summary
    assert "\n" not in summary


def test_the_balanced_one_is_the_default():
    """It is what this is about, and what LayerLocality does when nobody says otherwise."""
    (config,) = named(DEFAULT, KNOWN).config.profiles

    assert "lamina-balanced" == DEFAULT
    assert LayerLocalityArgs() == msgspec.convert(config.plugin_config[0].args, LayerLocalityArgs)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("lamina-balance", "did you mean 'lamina-balanced'?", id="nearly"),
        pytest.param("Kube_Default", "did you mean 'kube-default'?", id="spelled differently"),
        pytest.param(
            "xyz",
            "choose from lamina-balanced, lamina-even, lamina-roomy, lamina-local, flow, lamina-images, gang, drf, easy, "
            "conservative, kube-default, image-locality and 9 more",
            id="not at all",
        ),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, said):
    """It might have been a file, too."""
    with pytest.raises(InputError) as caught:
        named(name, KNOWN)
    assert f"--profile: there is no profile {name!r} and no such file; {said}" == str(caught.value)


def test_kube_default_says_what_it_leaves_out_and_names_everything_that_is_not_in_tree():
    """Its figures are not kube-scheduler's own as far as pods ask for these."""
    said = unsupported("kube-default")

    assert "\n" not in said
    assert said.startswith("kube-default is kube-scheduler's default profile without: resource claims, ")
    assert [] == [words for words in NOT_IN_TREE.values() if words not in said]


@pytest.mark.parametrize("name", [*(name for name in NAMED if name != "kube-default"), "my.yaml", ""])
def test_other_profiles_do_not_stand_for_a_scheduler(name):
    assert not unsupported(name)


def test_the_readme_counts_the_profiles():
    """Four are for layers alone; the rest is for other goals, or there to compare with."""
    readme = (Path(__file__).resolve().parents[4] / "README.md").read_text(encoding="utf-8")
    assert f"There are four profiles, from `lamina-even` to `lamina-local`, and {len(NAMED) - 4} others:" in " ".join(
        readme.split()
    )


@pytest.mark.parametrize("former", FORMER_NAMES)
def test_a_former_name_is_accepted_and_listed_nowhere(former):
    assert former not in NAMED
    assert named(current_name(former), KNOWN).config == named(former, KNOWN).config


def test_a_name_that_never_changed_and_a_file_stay_what_they_are():
    assert ["kube-default", "./original"] == [current_name("kube-default"), current_name("./original")]
