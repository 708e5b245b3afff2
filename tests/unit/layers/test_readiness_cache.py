"""Wants: sets of images resolved for every platform there is, and kept."""

import msgspec
import pytest

from lamina.layers import readiness_cache as room
from lamina.layers.inventory import Inventory
from lamina.layers.row_platforms import MOST, OTHER
from lamina.model.image import Platform
from lamina.testing import a_digest
from tests.unit.layers.shelf import APP, OS, TOOL

ARM = Platform(architecture="arm64")
ARM_APP = msgspec.structs.replace(APP, digest=a_digest("app on arm"), layers=OS.layers, platform=ARM)


@pytest.fixture
def inventory():
    """Two images are known; one node is there."""
    made = Inventory()
    made.learn([APP, TOOL])
    made.join("n1", "", 0)
    return made


@pytest.fixture
def wants(inventory):
    return inventory.readiness_cache


def test_who_wants_the_same_images_shares_the_answer(wants):
    """Pods of one image come in crowds."""
    assert wants.readiness(("app:1",)) is wants.readiness(("app:1",))


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("new:1",), id="one that is not known"),
        pytest.param(("app:1", "new:1"), id="one of two"),
    ],
)
def test_with_one_image_unknown_nothing_can_be_said(wants, names):
    """Absence of data is never data."""
    assert (None, None) == (wants.readiness(names), wants.first_known(names))


def test_before_there_are_nodes_nothing_can_be_said():
    """There is no platform for which anything could be known."""
    made = Inventory()
    made.learn([APP])

    assert (0, None) == (made.readiness_cache.platforms, made.readiness_cache.readiness(("app:1",)))


def test_nothing_is_wanted_for_no_images(wants):
    """That is known."""
    assert 0 == wants.first_known(()).total


def test_several_names_of_one_image_are_one_image(inventory):
    inventory.learn([msgspec.structs.replace(APP, names=("app:stable",))])

    assert (APP,) == inventory.readiness_cache.first_known(
        ("app:1", "app:stable", "docker.io/library/app:1", "app:1")
    ).images


def test_an_answer_is_not_kept_beyond_what_it_was_made_from(inventory):
    """What a name means may have changed once an image was learned; that it meant nothing is not remembered either."""
    before = inventory.readiness_cache.first_known(("app:1",))
    assert inventory.readiness_cache.first_known(("new:1",)) is None
    inventory.learn([msgspec.structs.replace(TOOL, digest=a_digest("newer"), names=("app:1", "new:1"))])

    assert (APP,) == before.images
    assert TOOL.layers == inventory.readiness_cache.first_known(("app:1",)).images[0].layers
    assert TOOL.layers == inventory.readiness_cache.first_known(("new:1",)).images[0].layers


def test_answers_are_kept_for_so_many_sets_of_images(wants, monkeypatch):
    """Those not asked for longest go first."""
    monkeypatch.setattr(room, "KEPT", 2)
    first, second = wants.readiness(("app:1",)), wants.readiness(("tool:1",))
    wants.readiness(("app:1",))
    wants.readiness(("app:1", "tool:1"))

    assert wants.readiness(("app:1",)) is first
    assert wants.readiness(("tool:1",)) is not second


def test_what_is_not_kept_is_let_go(inventory, monkeypatch):
    """However many sets of images are asked for, the index knows those that are kept: 9 keys for two layers."""
    monkeypatch.setattr(room, "KEPT", 1)
    for names in [("app:1",), ("tool:1",), ("never:1",), ("app:1", "tool:1"), ("app:1",)]:
        inventory.readiness_cache.readiness(names)
    assert 9 == len(inventory.index)
    inventory.readiness_cache.clear()

    assert 0 == len(inventory.index)


def test_knowing_whole_images_only_is_another_answer(wants):
    assert wants.readiness(("app:1",)) is not wants.readiness(("app:1",), whole_only=True)
    assert wants.readiness(("app:1",), whole_only=True).whole_only


# --------------------------------------------------------------------------------------------------------------- platforms


def test_images_are_resolved_for_every_platform_nodes_have(inventory):
    """A name means another image on each; where it means none, that is known as well."""
    inventory.learn([ARM_APP])
    inventory.join("n2", "", 1, ARM)
    inventory.join("n3", "", 2)
    app, tool = inventory.readiness_cache.readiness(("app:1",)), inventory.readiness_cache.readiness(("tool:1",))

    assert 2 == inventory.readiness_cache.platforms
    assert [(0, (APP,)), (1, (ARM_APP,))] == [(number, wanted.images) for number, wanted in app.variants]
    assert (1, None) == tool.variants[1]
    assert [0, 1, 0] == [inventory.readiness_cache.platform(row) for row in range(3)]


def test_a_platform_that_is_new_is_looked_for_at_once(inventory):
    """What was kept before said nothing about it."""
    inventory.learn([ARM_APP])
    assert 1 == len(inventory.readiness_cache.readiness(("app:1",)).variants)
    inventory.join("n2", "", 1, ARM)

    assert [(APP,), (ARM_APP,)] == [one.images for _, one in inventory.readiness_cache.readiness(("app:1",)).variants]


def test_a_name_that_meant_nothing_is_looked_up_for_a_platform_that_is_new(inventory):
    """That it was unknown is forgotten."""
    inventory.learn([msgspec.structs.replace(ARM_APP, names=("only-arm:1",))])
    assert inventory.readiness_cache.readiness(("only-arm:1",)) is None
    inventory.join("n2", "", 1, ARM)
    assert inventory.readiness_cache.readiness(("only-arm:1",)) is not None
    inventory.leave("n2")
    assert inventory.readiness_cache.readiness(("only-arm:1",)) is None


@pytest.mark.parametrize("how", ["changed", "gone"])
def test_platforms_that_no_node_has_any_more_are_forgotten(inventory, how):
    """A node may call its platform anything, and each that is told apart costs every decision about images."""
    pinned = f"app@{APP.digest}"
    for number in range(100):
        inventory.join("n2", "", 1, Platform(architecture=f"x{number}"))
        assert inventory.readiness_cache.readiness((pinned,)) is not None
        if how == "gone":
            inventory.leave("n2")
    if how == "changed":
        inventory.join("n2", "", 1)
    ready = inventory.readiness_cache.readiness((pinned,))

    assert 1 == inventory.readiness_cache.platforms
    assert 1 == len(ready.variants)
    inventory.readiness_cache.clear()
    assert 0 == len(inventory.index)


def test_platforms_that_mean_the_same_share_what_is_wanted(inventory):
    """A name with a digest means one image everywhere: rows are kept once."""
    for number in range(1, 10):
        inventory.join(f"m{number}", "", number, Platform(architecture=f"x{number}"))
    ready = inventory.readiness_cache.readiness((f"app@{APP.digest}",))

    assert 10 == len(ready.variants)
    assert 1 == len(ready.distinct)
    assert ready.everywhere is ready.distinct[0]


def test_only_so_many_platforms_are_told_apart_and_those_that_most_nodes_have(inventory):
    """Of a row with another one nothing is said about images; when it is the platform of many, it is told apart."""
    for number in range(1, 3 * MOST):
        inventory.join(f"m{number}", "", number, Platform(architecture=f"x{number}"))
    pinned = (f"app@{APP.digest}",)
    ready = inventory.readiness_cache.readiness(pinned)

    assert MOST == inventory.readiness_cache.platforms
    assert MOST + 1 == len(ready.variants)
    assert [0, 1, OTHER] == [inventory.readiness_cache.platform(row) for row in (0, 1, 3 * MOST - 1)]
    assert ready.everywhere is None

    late = Platform(architecture="x40")
    inventory.join("late", "", 3 * MOST, late)
    inventory.join("later", "", 3 * MOST + 1, late)
    assert OTHER != inventory.readiness_cache.platform(3 * MOST) == inventory.readiness_cache.platform(3 * MOST + 1)
    assert MOST == inventory.readiness_cache.platforms

    for number in range(1, 3 * MOST):
        inventory.leave(f"m{number}")
    assert 2 == inventory.readiness_cache.platforms
    assert inventory.readiness_cache.readiness(pinned).everywhere is not None


def test_what_is_known_for_one_platform_of_several_is_known_somewhere(inventory):
    """The first platform nodes had for which all images are known."""
    inventory.join("n2", "", 1, ARM)
    inventory.learn([msgspec.structs.replace(ARM_APP, names=("only-arm:1",))])

    assert (ARM_APP.digest,) == tuple(
        one.digest for one in inventory.readiness_cache.first_known(("only-arm:1",)).images
    )
    assert (APP,) == inventory.readiness_cache.first_known(("app:1",)).images
    assert inventory.readiness_cache.first_known(("app:1", "only-arm:1")) is None
