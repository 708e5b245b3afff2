"""Named: the profiles that come along."""

import pytest

from lamina.model.errors import InputError
from lamina.scheduling.config.named import DEFAULT, NAMED, named
from lamina.scheduling.plugins.in_tree import registry
from tests.unit.scheduling.bench import Bench

KNOWN = registry(entry_points=False)
FILTERS = ["NodeUnschedulable", "NodeName", "TaintToleration", "NodeResourcesFit"]


@pytest.mark.parametrize(
    ("name", "scorers"),
    [
        pytest.param(
            "layers", [("TaintToleration", 3), ("NodeResourcesFit", 1), ("LayerLocality", 5)], id="the product"
        ),
        pytest.param(
            "kube-default",
            [("TaintToleration", 3), ("NodeResourcesFit", 1), ("ImageLocality", 1)],
            id="upstream's defaults",
        ),
        pytest.param("image-locality", [("ImageLocality", 1000)], id="images alone"),
        pytest.param("least-allocated", [("NodeResourcesFit", 1)], id="room alone"),
    ],
)
def test_a_named_profile_ranks_by_what_its_name_says(name, scorers):
    """And filters, sorts and binds like every other."""
    profile = named(name, KNOWN).profiles(Bench().context)["default-scheduler"]

    assert scorers == [(part.name, part.weight) for part in profile.scorers]
    assert FILTERS == [part.name for part in profile.filters]
    assert ("PrioritySort", ["DefaultBinder"]) == (profile.queue_sort.name, [one.name for one in profile.bind])


def test_every_named_profile_is_in_the_table_above():
    """A new one wants a row there."""
    assert ["layers", "kube-default", "image-locality", "least-allocated"] == list(NAMED)


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


def test_layers_is_the_default():
    """It is what this is about."""
    assert "layers" == DEFAULT


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param("layer", "did you mean 'layers'?", id="nearly"),
        pytest.param("Kube_Default", "did you mean 'kube-default'?", id="spelled differently"),
        pytest.param("xyz", "choose from layers, kube-default, image-locality, least-allocated", id="not at all"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, said):
    """It might have been a file, too."""
    with pytest.raises(InputError) as caught:
        named(name, KNOWN)
    assert f"--profile: there is no profile {name!r} and no such file: {said}" == str(caught.value)
