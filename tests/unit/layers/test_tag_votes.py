"""Claims: what nodes call images, and why one node cannot rename what the others hold."""

import pytest

from lamina.layers.tag_votes import TagVotes
from lamina.model.image import Platform
from lamina.model.layer_report import HeldImage
from lamina.testing import a_digest

AMD, ARM = Platform(), Platform(architecture="arm64")
OLD, NEW = sorted([a_digest("old"), a_digest("new")])


def called(digest, *names):
    return HeldImage(digest, 1, names)


def claims(*held):
    """What is claimed after these images were reported, each by a node of its own."""
    made = TagVotes(str.lower)
    for image in held:
        made.change(AMD, (), [image])
    return made


@pytest.mark.parametrize(
    ("held", "meant"),
    [
        pytest.param([], None, id="no node holds it"),
        pytest.param([OLD], OLD, id="one node does"),
        pytest.param([OLD, NEW, OLD], OLD, id="most nodes hold the old one"),
        pytest.param([NEW, OLD, NEW], NEW, id="most nodes hold the new one"),
        pytest.param([OLD, NEW], NEW, id="as many: the later digest"),
        pytest.param([NEW, OLD], NEW, id="as many: the later digest, in any order"),
    ],
)
def test_a_name_means_what_most_nodes_hold_under_it(held, meant):
    assert meant == claims(*(called(digest, "app:1") for digest in held)).means("app:1", AMD)


def test_a_name_means_something_on_the_platform_of_those_who_hold_it():
    made = claims(called(OLD, "app:1"))
    made.change(ARM, (), [called(NEW, "app:1")])

    assert (OLD, NEW) == (made.means("app:1", AMD), made.means("app:1", ARM))


def test_names_are_spelled_in_one_way():
    assert OLD == claims(called(OLD, "APP:1")).means("app:1", AMD)


def test_a_node_counts_once_however_often_it_says_so():
    """Otherwise one node could outvote all others."""
    made = claims(called(OLD, "app:1"), called(OLD, "app:1"))
    made.change(AMD, (), [HeldImage(NEW, size, ("app:1", "APP:1")) for size in range(9)])

    assert OLD == made.means("app:1", AMD)


@pytest.mark.parametrize(
    ("before", "after", "meant"),
    [
        pytest.param([OLD], [OLD, NEW], NEW, id="under a name it had before: the last counts"),
        pytest.param([OLD, NEW], [OLD], OLD, id="what it held before that comes to light again"),
        pytest.param([OLD, NEW], [OLD, OLD], OLD, id="listed twice"),
        pytest.param([OLD, NEW], [], None, id="nothing any more"),
    ],
)
def test_a_node_that_calls_two_images_the_same_means_the_last(before, after, meant):
    made = TagVotes(str.lower)
    made.change(AMD, (), [called(digest, "app:1") for digest in before])
    made.change(AMD, [called(digest, "app:1") for digest in before], [called(digest, "APP:1") for digest in after])
    made.change(AMD, [called(digest, "APP:1") for digest in after], [called(digest, "app:1") for digest in after])

    assert meant == made.means("app:1", AMD)
    made.change(AMD, [called(digest, "app:1") for digest in after], ())
    assert 0 == len(made)


def test_what_a_node_no_longer_holds_no_longer_counts():
    made = claims(*(called(digest, "app:1") for digest in (OLD, OLD, OLD, NEW)))

    assert {} == made.change(AMD, [called(OLD, "app:1")], ())
    assert {"app:1": OLD} == made.change(AMD, [called(OLD, "app:1")], ())
    assert NEW == made.means("app:1", AMD)


def test_a_tag_that_is_pulled_anew_moves():
    made = claims(called(OLD, "app:1", "app:stable"))

    assert {"app:1": OLD} == made.change(
        AMD, [called(OLD, "app:1", "app:stable")], [called(NEW, "app:1"), called(OLD, "app:stable")]
    )
    assert (NEW, OLD) == (made.means("app:1", AMD), made.means("app:stable", AMD))


def test_nothing_is_kept_about_names_that_no_node_holds():
    made = claims(called(OLD, "app:1", "app:2"))
    made.change(AMD, [called(OLD, "app:1", "app:2")], ())

    assert (0, None) == (len(made), made.means("app:1", AMD))


def test_images_without_names_claim_nothing():
    assert 0 == len(claims(called(OLD)))
