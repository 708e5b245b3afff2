"""Inventory: catalogue, reports and index together."""

import msgspec
import pytest

from lamina.layers import inventory as room
from lamina.layers.inventory import Inventory
from lamina.testing import an_image, held

APP = an_image("app:1", {"os": 300, "app": 50})
TOOL = an_image("tool:1", {"os": 300, "tool": 7})


@pytest.fixture
def inventory():
    """Two images are known; a node has row 4."""
    made = Inventory()
    made.learn([APP, TOOL])
    made.join("n1", "uid-1", 4)
    return made


def present(inventory: Inventory, *names: str, height: int = 5) -> list[int]:
    wanted = inventory.wanted(names)
    assert wanted is not None
    return list(map(int, inventory.index.present_bytes(wanted, height)))


# --------------------------------------------------------------------------------------------------------------- asking


def test_what_is_wanted_is_every_distinct_layer_with_its_size(inventory):
    """Over all images of a pod; the total is what an empty node has to fetch."""
    wanted = inventory.wanted(("app:1", "tool:1", "app:1"))

    assert {layer.digest: layer.size for image in (APP, TOOL) for layer in image.layers} == wanted.sizes
    assert 300 + 50 + 7 == wanted.total


@pytest.mark.parametrize("names", [("new:1",), ("app:1", "new:1")])
def test_with_one_image_unknown_nothing_can_be_said(inventory, names):
    """Absence of data is never data."""
    assert inventory.wanted(names) is None


def test_nothing_is_wanted_for_no_images(inventory):
    """That is known."""
    assert (0, {}) == (inventory.wanted(()).total, inventory.wanted(()).sizes)


def test_who_wants_the_same_images_shares_the_answer(inventory):
    """Pods of one image come in crowds."""
    assert inventory.wanted(("app:1",)) is inventory.wanted(("app:1",))


def test_an_answer_is_not_shared_beyond_what_it_was_made_from(inventory):
    """What a name means may have changed once an image was learned."""
    before = inventory.wanted(("app:1",))
    inventory.learn([msgspec.structs.replace(an_image("newer", {"os": 300, "newer": 60}), names=("app:1",))])

    assert (350, 360) == (before.total, inventory.wanted(("app:1",)).total)


def test_an_image_that_was_unknown_is_wanted_once_it_is_known(inventory):
    """That nothing could be said is not remembered."""
    assert inventory.wanted(("new:1",)) is None
    inventory.learn([an_image("new:1", {"new": 9})])

    assert 9 == inventory.wanted(("new:1",)).total


def test_answers_are_kept_for_so_many_sets_of_images(inventory, monkeypatch):
    """Those not asked for longest go first."""
    monkeypatch.setattr(room, "KEPT", 2)
    first, second = inventory.wanted(("app:1",)), inventory.wanted(("tool:1",))
    inventory.wanted(("app:1",))
    inventory.wanted(("app:1", "tool:1"))

    assert inventory.wanted(("app:1",)) is first
    assert inventory.wanted(("tool:1",)) is not second


# -------------------------------------------------------------------------------------------------------------- reports


def test_a_report_says_what_its_node_holds(inventory):
    """Rows that never reported are -1, not 0."""
    assert [4] == inventory.report(held("n1", APP))
    assert [-1, -1, -1, -1, 300] == present(inventory, "tool:1")


def test_a_report_of_nothing_is_a_report(inventory):
    """The node holds none of it, and said so."""
    assert [4] == inventory.report(held("n1"))
    assert 0 == present(inventory, "app:1")[4]


def test_a_report_replaces_the_one_before(inventory):
    """What is not in it is gone."""
    inventory.report(held("n1", APP))
    inventory.report(held("n1", TOOL, sequence=2))

    assert (300, 307) == (present(inventory, "app:1")[4], present(inventory, "tool:1")[4])


def test_a_report_that_says_the_same_is_no_news(inventory):
    """Agents repeat themselves."""
    inventory.report(held("n1", APP))

    assert [] == inventory.report(held("n1", APP, sequence=2))


@pytest.mark.parametrize(
    ("sequence", "counts"),
    [
        pytest.param(4, False, id="earlier"),
        pytest.param(5, True, id="the same"),
        pytest.param(6, True, id="later"),
    ],
)
def test_a_late_report_is_dropped(inventory, sequence, counts):
    """By its sequence number."""
    inventory.report(held("n1", APP, sequence=5))
    inventory.report(held("n1", sequence=sequence))

    assert (0 if counts else 350) == present(inventory, "app:1")[4]


def test_an_agent_of_another_machine_counts_from_the_start(inventory):
    """The new machine under an old name begins its sequence anew."""
    inventory.report(held("n1", APP, sequence=9, node_uid="uid-1"))
    inventory.leave("n1")
    inventory.join("n1", "uid-2", 4)

    assert [4] == inventory.report(held("n1", TOOL, sequence=1, node_uid="uid-2"))


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        pytest.param("uid-1", True, id="of this machine"),
        pytest.param("uid-0", False, id="of another machine of this name"),
        pytest.param("", True, id="of a machine that does not say"),
    ],
)
def test_a_report_about_another_machine_of_the_same_name_says_nothing(inventory, told, counts):
    """Names are given again."""
    assert ([4] if counts else []) == inventory.report(held("n1", APP, node_uid=told))
    assert (350 if counts else -1) == present(inventory, "app:1")[4]


def test_a_node_without_a_uid_takes_any_report():
    """Simulated nodes need none."""
    made = Inventory()
    made.learn([APP])
    made.join("n1", "", 0)

    assert [0] == made.report(held("n1", APP, node_uid="uid-7"))


def test_a_report_about_another_machine_changes_nothing(inventory):
    """An image of the right report becomes known afterwards, and counts."""
    new = an_image("new:1", {"os": 300, "new": 9})
    inventory.report(held("n1", new, node_uid="uid-1"))
    inventory.report(held("n1", node_uid="uid-0"))
    inventory.learn([new])

    assert 309 == present(inventory, "new:1")[4]


def test_a_report_may_come_before_the_machine_that_replaces_another(inventory):
    """Reports and nodes arrive by different ways."""
    inventory.report(held("n1", TOOL, node_uid="uid-1"))
    inventory.report(held("n1", APP, node_uid="uid-2"))
    inventory.leave("n1")

    assert inventory.join("n1", "uid-2", 4)
    assert 350 == present(inventory, "app:1")[4]


def test_early_reports_may_be_late_too(inventory):
    """The machine before is still there; the newer report of the next one arrives first."""
    inventory.report(held("n1", APP, sequence=2, node_uid="uid-2"))
    inventory.report(held("n1", sequence=1, node_uid="uid-2"))
    inventory.leave("n1")
    inventory.join("n1", "uid-2", 4)

    assert 350 == present(inventory, "app:1")[4]


def test_an_early_report_does_not_replace_a_newer_one(inventory):
    """One came before the machine before had left, the newer one after that."""
    inventory.report(held("n1", sequence=1, node_uid="uid-2"))
    inventory.leave("n1")
    inventory.report(held("n1", APP, sequence=2, node_uid="uid-2"))
    inventory.join("n1", "uid-2", 4)

    assert 350 == present(inventory, "app:1")[4]


# ------------------------------------------------------------------------------------------------------ coming and going


def test_a_report_may_come_before_its_node():
    """It is kept and counts from the moment the node has a row."""
    made = Inventory()
    made.learn([APP])

    assert [] == made.report(held("n1", APP))
    assert made.join("n1", "uid-1", 2)
    assert [-1, -1, 350] == present(made, "app:1", height=3)


def test_a_node_of_which_nothing_is_known_joins_all_the_same(inventory):
    """It is told so."""
    assert not inventory.join("n2", "uid-2", 0)
    assert -1 == present(inventory, "app:1")[0]


def test_a_report_may_come_before_its_images():
    """What is known of it counts at once, the rest when it becomes known."""
    made = Inventory()
    made.learn([TOOL])
    made.join("n1", "", 0)
    made.report(held("n1", APP, TOOL))

    assert [307] == present(made, "tool:1", height=1)
    assert (True, [0]) == made.learn([APP])
    assert [350] == present(made, "app:1", height=1)


def test_learning_an_image_tells_about_every_node_that_reported_it():
    """In the order of their names."""
    made = Inventory()
    for row, name in enumerate(["c", "a", "b", "d"]):
        made.join(name, "", row)
    for name in ("a", "b", "c"):
        made.report(held(name, APP))

    assert (True, [1, 2, 0]) == made.learn([APP])


def test_learning_what_is_known_is_no_news(inventory):
    """Nothing has to be judged anew."""
    assert (False, []) == inventory.learn([APP, TOOL])


def test_learning_what_nobody_holds_is_news_about_no_node(inventory):
    """But pods that ask for it can now be judged."""
    assert (True, []) == inventory.learn([an_image("new:1", {"new": 1})])


def test_an_image_may_turn_out_to_change_nothing():
    """All its layers were there already, from another image."""
    base = an_image("base:1", {"os": 300})
    made = Inventory()
    made.learn([APP])
    made.join("n1", "", 0)
    made.report(held("n1", APP, base))

    assert (True, []) == made.learn([base])


def test_a_node_takes_its_report_along(inventory):
    """Its row counts as never reported, for whoever gets it next."""
    inventory.report(held("n1", APP))
    inventory.leave("n1")

    assert [-1] * 5 == present(inventory, "app:1")
    assert not inventory.join("n2", "uid-2", 4)
    assert not inventory.join("n1", "uid-1", 3)
    assert [-1] * 5 == present(inventory, "app:1")


def test_a_node_that_left_is_not_waited_for(inventory):
    """What it reported and nobody could read concerns nobody any more."""
    new = an_image("new:1", {"new": 1})
    inventory.report(held("n1", new))
    inventory.leave("n1")

    assert (True, []) == inventory.learn([new])


def test_nodes_share_layers_and_not_rows(inventory):
    """Each is told of alone."""
    inventory.join("n2", "", 1)
    inventory.report(held("n1", APP))
    inventory.report(held("n2", TOOL))

    assert [-1, 300, -1, -1, 350] == present(inventory, "app:1")


def test_a_tag_that_moved_is_wanted_as_it_is_now(inventory):
    """Nodes hold what they held; what the name means has changed."""
    inventory.report(held("n1", APP))
    newer = msgspec.structs.replace(an_image("newer", {"os": 300, "newer": 60}), names=("app:1",))
    inventory.learn([newer])

    assert 300 == present(inventory, "app:1")[4]
