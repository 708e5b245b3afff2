"""Inventory: catalog, reports, arrivals and index together."""

import math

import msgspec
import pytest

from lamina.layers import inventory as room
from lamina.layers.bit_matrix import FIRST_ROWS
from lamina.layers.inventory import Inventory
from lamina.layers.report_checks import ANOTHER_MACHINE, MORE_THAN_DISK, TOO_EARLY
from lamina.model.image import Platform
from lamina.testing import a_digest, held
from tests.unit.layers.shelf import (
    APP,
    APP_ON_OS,
    COLD_APP,
    MB,
    NEW,
    OS,
    TOOL,
    but,
    seconds,
    stacked,
)


def is_known(inventory: Inventory, row: int = 4) -> bool:
    return bool(inventory.index.reported[row])


# ---------------------------------------------------------------------------------------------------------------- reports


def test_a_report_says_what_its_node_holds(inventory):
    """A row that never reported is not one that holds nothing."""
    assert math.isnan(seconds(inventory, "app:1"))
    assert [4] == inventory.report(held("n1", TOOL))
    assert APP_ON_OS == pytest.approx(seconds(inventory, "app:1"))
    assert math.isnan(seconds(inventory, "app:1", row=3))


def test_a_report_of_nothing_is_a_report(inventory):
    """The node holds none of it, and said so."""
    assert [4] == inventory.report(held("n1"))
    assert COLD_APP == pytest.approx(seconds(inventory, "app:1"))


def test_a_report_replaces_the_one_before(inventory):
    """What is not in it is gone."""
    inventory.report(held("n1", APP))
    inventory.report(held("n1", TOOL, sequence=2))

    assert {TOOL.digest} == inventory.index.held(4)
    assert (APP_ON_OS, 0) == pytest.approx((seconds(inventory, "app:1"), seconds(inventory, "tool:1")))


def test_a_report_that_says_the_same_is_no_news(inventory):
    """Agents repeat themselves."""
    inventory.report(held("n1", APP))

    assert [] == inventory.report(held("n1", APP, sequence=2))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"reuse": "set"}, id="how it reuses layers"),
        pytest.param({"download_rate": 1e6}, id="how fast it downloads"),
        pytest.param({"unpack_rate": 1e6}, id="how fast it unpacks"),
        pytest.param({"disk": 1000 * MB}, id="its disk"),
    ],
)
def test_a_report_may_say_something_new_about_the_same_images(inventory, changes):
    inventory.report(held("n1", OS))
    kept = inventory.readiness_cache.readiness(("app:1",))
    inventory.readiness_cache.look(kept, 5)

    assert [4] == inventory.report(but(held("n1", OS, sequence=2), **changes))
    inventory.readiness_cache.look(kept, 5)
    assert float(kept.seconds[4]) == seconds(inventory, "app:1")
    assert [] == inventory.report(but(held("n1", OS, sequence=3), **changes))


def test_a_report_tells_how_its_node_reuses_layers(inventory):
    """Row 4 holds the upper layer of APP as a blob: 2 s for 250 MB, or 3 s for all; 5 s to unpack either way."""
    inventory.learn([stacked("x:1", APP.layers[1])])
    report = held("n1", stacked("x:1", APP.layers[1]))

    inventory.report(report)
    assert 5 + 0.15 * 3 + 0.04 == pytest.approx(seconds(inventory, "app:1"))
    inventory.report(but(report, reuse="set"))
    assert 5 + 0.15 * 2 + 0.04 == pytest.approx(seconds(inventory, "app:1"))


def test_a_report_tells_how_fast_its_node_is(inventory):
    """375 MB at 12.5 MB/s."""
    inventory.report(but(held("n1"), download_rate=12.5e6))

    assert 30 + 0.15 * 5 + 0.04 == pytest.approx(seconds(inventory, "app:1"))


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

    assert (COLD_APP if counts else 0) == pytest.approx(seconds(inventory, "app:1"))


# ------------------------------------------------------------------------------------------------------- which machine it is


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
    """Names are given again. It is complained of, and the node is not blamed for it."""
    assert ([4] if counts else []) == inventory.report(held("n1", APP, node_uid=told))
    assert counts == is_known(inventory)
    assert ({} if counts else {ANOTHER_MACHINE: 1}) == inventory.complaints
    assert {} == inventory.conditions


def test_a_node_without_a_uid_takes_any_report():
    """Simulated nodes need none."""
    made = Inventory()
    made.join("n1", "", 0)

    assert [0] == made.report(held("n1", APP, node_uid="uid-7"))


def test_a_report_about_another_machine_changes_nothing(inventory):
    """An image of the right report becomes known afterwards, and counts."""
    inventory.report(held("n1", NEW, node_uid="uid-1"))
    inventory.report(held("n1", node_uid="uid-0"))
    inventory.learn([NEW])

    assert 0 == seconds(inventory, "new:1")


def test_a_report_may_come_before_the_machine_that_replaces_another(inventory):
    """Reports and nodes arrive by different ways."""
    inventory.report(held("n1", TOOL, node_uid="uid-1"))
    inventory.report(held("n1", APP, node_uid="uid-2"))
    inventory.leave("n1")

    assert inventory.join("n1", "uid-2", 4)
    assert {APP.digest} == inventory.index.held(4)


def test_early_reports_may_be_late_too(inventory):
    """The machine before is still there; the newer report of the next one arrives first."""
    inventory.report(held("n1", APP, sequence=2, node_uid="uid-2"))
    inventory.report(held("n1", sequence=1, node_uid="uid-2"))
    inventory.leave("n1")
    inventory.join("n1", "uid-2", 4)

    assert {APP.digest} == inventory.index.held(4)


def test_an_early_report_does_not_replace_a_newer_one(inventory):
    """One came before the machine before had left, the newer one after that."""
    inventory.report(held("n1", sequence=1, node_uid="uid-2"))
    inventory.leave("n1")
    inventory.report(held("n1", APP, sequence=2, node_uid="uid-2"))
    inventory.join("n1", "uid-2", 4)

    assert {APP.digest} == inventory.index.held(4)


def test_an_early_report_about_yet_another_machine_says_nothing(inventory):
    inventory.report(held("n2", APP, node_uid="uid-7"))

    assert not inventory.join("n2", "uid-8", 0)
    assert not is_known(inventory, 0)


def test_reports_for_nodes_that_never_come_are_kept_for_so_many(monkeypatch):
    """The oldest are dropped first, so that many reports do not fill the memory."""
    monkeypatch.setattr(room, "MOST_EARLY", 3)
    made = Inventory()
    for name in ("a", "b", "c", "a", "d"):
        made.report(held(name, APP))

    assert {TOO_EARLY: 1} == made.complaints
    assert [True, False, True, True] == [made.join(name, "", row) for row, name in enumerate("abcd")]


def test_all_nodes_of_a_large_cluster_may_come_after_their_reports():
    """Lists of reports and of nodes are asked for at the same time."""
    made = Inventory()
    made.learn([APP])
    names = [f"n{number}" for number in range(6_000)]
    for name in names:
        made.report(held(name, APP))

    assert all(made.join(name, "", row) for row, name in enumerate(names))
    assert {} == made.complaints


# -------------------------------------------------------------------------------------------------------- coming and going


def test_a_report_may_come_before_its_node():
    """It is kept and counts from the moment the node has a row."""
    made = Inventory()
    made.learn([OS, APP])

    assert [] == made.report(held("n1", OS))
    assert made.join("n1", "uid-1", 2)
    assert APP_ON_OS == pytest.approx(seconds(made, "app:1", row=2))


def test_a_node_of_which_nothing_is_known_joins_all_the_same(inventory):
    """It is told so."""
    assert not inventory.join("n2", "uid-2", 0)
    assert math.isnan(seconds(inventory, "app:1", row=0))


@pytest.mark.parametrize("row", [FIRST_ROWS - 1, FIRST_ROWS, 5 * FIRST_ROWS])
def test_there_may_be_any_number_of_nodes(inventory, row):
    """Whether the last of them is asked about, bound to, or reports first."""
    inventory.join("last", "", row)
    assert math.isnan(seconds(inventory, "app:1", row=row))
    inventory.join("next", "", row + FIRST_ROWS)
    assert [row + FIRST_ROWS] == inventory.expect("p", "next", ("app:1",))
    inventory.join("third", "", row + 5 * FIRST_ROWS)
    assert [row + 5 * FIRST_ROWS] == inventory.report(held("third", APP))


def test_a_report_may_come_before_its_images(inventory):
    """What is known of it counts at once, the rest when it becomes known."""
    inventory.report(held("n1", NEW, OS))

    assert APP_ON_OS == pytest.approx(seconds(inventory, "app:1"))
    assert (True, [4]) == inventory.learn([NEW])
    assert 0 == seconds(inventory, "new:1")


def test_learning_an_image_tells_about_every_node_that_reported_it():
    """In the order of their names."""
    made = Inventory()
    for row, name in enumerate(["c", "a", "b", "d"]):
        made.join(name, "", row)
    for name in ("a", "b", "c"):
        made.report(held(name, APP))

    assert (True, [1, 2, 0]) == made.learn([APP])


def test_learning_an_image_looks_at_nothing_else_that_nodes_reported(inventory, monkeypatch):
    """A scheduler that starts learns thousands of images, and has thousands of reports that wait for each of them."""
    inventory.report(but(held("n1", NEW, APP, OS), disk=1000 * MB, renews_within=60.0))
    for part, deed in [
        (inventory.index, "hold"),
        (inventory.rates, "observe"),
        (inventory.freshness, "renew"),
        (inventory.catalog, "replace_votes"),
    ]:
        monkeypatch.delattr(type(part), deed)

    assert (True, [4]) == inventory.learn([NEW])
    assert {APP.digest, OS.digest, NEW.digest} == inventory.index.held(4)


@pytest.mark.parametrize("late", [False, True], ids=["images first", "the report first"])
@pytest.mark.parametrize(
    ("disk", "fits"),
    [
        pytest.param(0, True, id="the disk is unknown"),
        pytest.param(500 * MB, True, id="just as much as fits: 250 + 125 + 125, the base once"),
        pytest.param(500 * MB - 1, False, id="a byte too much"),
        pytest.param(1, False, id="far too much"),
    ],
)
def test_images_have_to_fit_on_the_disk_whenever_they_become_known(disk, fits, late):
    """Each distinct layer counts once; what cannot be true is complained of once."""
    made = Inventory()
    made.join("n1", "", 4)
    steps = [
        lambda: made.learn([APP]),
        lambda: made.learn([OS, TOOL]),
        lambda: made.report(but(held("n1", APP, TOOL, OS), disk=disk)),
    ]
    for step in steps[::-1] if late else steps:
        step()

    assert (fits, {} if fits else {MORE_THAN_DISK: 1}) == (bool(made.index.reported[4]), made.complaints)
    assert {} == made._waiting


def test_learning_what_is_known_is_no_news(inventory):
    """Nothing has to be judged anew."""
    before = inventory.readiness_cache.readiness(("app:1",))

    assert (False, []) == inventory.learn([APP, TOOL])
    assert inventory.readiness_cache.readiness(("app:1",)) is before


def test_learning_an_image_that_no_node_holds_changes_no_row(inventory):
    """But pods that ask for it can now be judged."""
    assert (True, []) == inventory.learn([NEW])


def test_a_node_takes_its_report_along(inventory):
    """Its row is unreported for the node that gets it next."""
    inventory.report(but(held("n1", APP), download_rate=1e6, disk=400 * MB, renews_within=1.0, reuse="set"))
    inventory.leave("n1")

    assert not inventory.join("n2", "uid-2", 4)
    assert not inventory.join("n1", "uid-1", 3)
    assert [False, False] == [is_known(inventory, row) for row in (3, 4)]
    inventory.pass_time(1000.0)
    assert inventory.freshness.of(slice(None), 5) is None
    inventory.expect("p", "n2", ("app:1",))
    assert [(APP, pytest.approx(1000 + COLD_APP))] == inventory.arrivals.on(4)
    inventory.report(held("n2"))
    assert COLD_APP == pytest.approx(seconds(inventory, "app:1"))


def test_a_node_takes_its_condition_along(inventory):
    """What was complained of stays counted."""
    inventory.report(but(held("n1", APP), disk=1))
    inventory.leave("n1")

    assert ({MORE_THAN_DISK: 1}, {}) == (inventory.complaints, inventory.conditions)


def test_a_node_that_left_is_not_waited_for(inventory):
    """Images in its report that were unknown are no longer waited for."""
    inventory.report(held("n1", NEW))
    inventory.leave("n1")

    assert (True, []) == inventory.learn([NEW])
    assert {} == inventory._waiting


def test_a_node_that_reports_something_else_no_longer_waits_for_what_it_reported(inventory):
    inventory.report(held("n1", NEW))
    inventory.report(held("n1", APP, sequence=2))

    assert (True, []) == inventory.learn([NEW])


def test_nodes_share_layers_and_not_rows(inventory):
    """Each is told of alone."""
    inventory.join("n2", "", 1)
    inventory.report(held("n1", APP))
    inventory.report(held("n2", TOOL))

    assert (APP_ON_OS, 0) == pytest.approx((seconds(inventory, "app:1", row=1), seconds(inventory, "app:1")))


# ---------------------------------------------------------------------------------------------------------------- names


def test_a_tag_that_moved_is_wanted_as_it_is_now(inventory):
    """Nodes hold what they held; what the name means has changed."""
    inventory.report(held("n1", APP))
    inventory.learn([msgspec.structs.replace(NEW, names=("app:1",))])

    assert APP_ON_OS == pytest.approx(seconds(inventory, "app:1"))


def test_a_name_means_something_for_as_long_as_its_source_said(inventory):
    """Then the name is unknown until it is learned again; digests stay."""
    inventory.report(held("n1"))
    inventory.pass_time(100.0)
    inventory.learn([NEW], good_for=60.0)

    assert (False, []) == inventory.pass_time(159.0)
    assert not math.isnan(seconds(inventory, "new:1"))
    assert (True, []) == inventory.pass_time(160.0)
    assert math.isnan(seconds(inventory, "new:1"))
    assert not math.isnan(seconds(inventory, f"new@{NEW.digest}"))
    assert (True, []) == inventory.learn([NEW], good_for=60.0)
    assert not math.isnan(seconds(inventory, "new:1"))


def test_nodes_of_several_platforms_are_each_told_of_their_own_image(inventory):
    """The name means 375 MB on one and 250 MB on the other, which most of its images call a variant of."""
    arm = msgspec.structs.replace(
        OS, digest=a_digest("arm"), names=("app:1",), platform=Platform("linux", "arm64", "v8")
    )
    inventory.learn([arm])
    inventory.join("n2", "", 1, Platform(architecture="arm64"))
    inventory.report(held("n1"))
    inventory.report(held("n2"))

    assert (COLD_APP, 4 + 0.15 * 2 + 0.04) == pytest.approx(
        (seconds(inventory, "app:1"), seconds(inventory, "app:1", row=1))
    )
    assert math.isnan(seconds(inventory, "tool:1", row=1))
    inventory.expect("p", "n2", ("app:1", "tool:1"))
    assert {arm.digest} == inventory.index.expected(1)


# ---------------------------------------------------------------------------------------------------------------- trust


def test_a_report_that_is_not_renewed_is_believed_less_and_less(inventory):
    """It promised another within 60 s; renewing it is news, though it says the same."""
    inventory.report(but(held("n1", APP), renews_within=60.0))

    assert (False, []) == inventory.pass_time(120.0)
    assert (False, [4]) == inventory.pass_time(180.0)
    assert 0.5 == inventory.freshness.of(slice(None), 5)[4]
    assert [4] == inventory.report(but(held("n1", APP, sequence=2), renews_within=60.0, observed_at=180.0))
    assert inventory.freshness.of(slice(None), 5) is None


# ------------------------------------------------------------------------------------------------------------------ memory


def test_nothing_remains_when_everybody_has_left(inventory):
    """Apart from what images consist of, which is true for ever."""
    inventory.join("n2", "", 1)
    inventory.report(held("n1", APP, TOOL, NEW))
    inventory.report(held("n2", OS))
    inventory.expect("p", "n1", ("big:1",))
    inventory.expect("q", "n2", ("app:1", "tool:1"))
    seconds(inventory, "app:1", "tool:1")
    inventory.pass_time(3.0)
    inventory.ran("q")
    for node in ("n1", "n2"):
        inventory.leave(node)
    for pod in ("p", "q"):
        inventory.gone(pod)
    inventory.readiness_cache.clear()

    assert 0 == len(inventory.index)
    assert not any(matrix.any() for matrix in inventory.index._matrices)
    assert ({}, {}, {}) == (inventory.arrivals._rows, inventory.arrivals._pods, inventory.arrivals.etas)
    assert ({}, {}, {}, {}) == (inventory._rows, inventory._reports, inventory._waiting, inventory._room)
    assert (0, {}, {}, set()) == (
        len(inventory._unstarted),
        inventory._unstarted._on,
        inventory._unstarted._naming,
        inventory._poorer,
    )
