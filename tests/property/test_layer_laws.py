"""
Laws of the layer room, each held against sets and lists that do the same naively (`layer_oracle`).

The first two play whole histories (`layer_histories`); the others look at one part with images, names and orders drawn
freely.
"""

import math
import os
import random

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.layers import layer_index as index_room
from lamina.layers.bit_matrix import FIRST_LINES, FIRST_ROWS, BitMatrix, SparseBitMatrix
from lamina.layers.catalog import Catalog, folded
from lamina.layers.inventory import Inventory
from lamina.layers.not_held import update_rows
from lamina.model.digest import Digest
from lamina.model.image import Image, Layer, Platform
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.testing import a_digest
from tests.property.layer_histories import (
    ARM,
    ASKED,
    FIGURES,
    IMAGES,
    LINUX,
    MB,
    OPENING,
    SIZES,
    STEP,
    STEPS,
    close,
    few_images,
    image,
    layer,
    play,
    thrown,
)
from tests.property.layer_oracle import need_of, store_of

HISTORIES = int(os.environ.get("LAMINA_HISTORIES", "100"))
"""How many histories are thrown."""


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.booleans(), st.lists(STEP, min_size=10, max_size=STEPS))
def test_the_inventory_knows_what_sets_and_lists_know(opened, steps):
    """Whatever happens in whichever order; this one shrinks what it finds."""
    play([*(OPENING if opened else ()), *steps])


@pytest.mark.hypothesis
@pytest.mark.timeout(0)
def test_the_inventory_knows_what_sets_and_lists_know_for_long():
    """The same with dice, for as many histories as somebody has time for."""
    for number in range(HISTORIES):
        try:
            play(thrown(random.Random(number)))
        except Exception as error:
            error.add_note(f"in the history of random.Random({number})")
            raise


# --------------------------------------------------------------------------------------------------------------- index

stacks = st.lists(st.sampled_from([name + mark for name in [*SIZES, "web"] for mark in ("", "?", "~")]), max_size=6)
any_image = stacks.map(lambda names: image(f"of {names}", " ".join(names)))
any_images = st.lists(any_image, max_size=3)
INDEX_ROWS = [0, 7, 8, FIRST_ROWS]


@given(
    st.lists(st.tuples(st.sampled_from(INDEX_ROWS), any_images, any_images, st.booleans()), max_size=8),
    st.lists(any_images, min_size=1, max_size=3),
)
def test_an_index_counts_what_sets_count(steps, wants):
    """For any images: layers in any order, twice, packed differently, with and without diff ids."""
    index = index_room.LayerIndex()
    height = INDEX_ROWS[-1] + 2
    rows: dict[int, tuple[list[Image], list[Image], bool]] = {}
    asked = [(need_of(*images), index.want(images)) for images in wants]
    for row, held, coming, by_prefix in steps:
        rows[row] = (held, coming, by_prefix)
        index.hold(row, held, by_prefix=by_prefix)
        index.expect(row, coming)
        for need, wanted in asked:
            update_rows(index, wanted, height)
            for number in INDEX_ROWS:
                held, coming, by_prefix = rows.get(number, ([], [], True))
                expected = need.not_held(store_of(*held, *coming), by_prefix=by_prefix)
                assert expected == (wanted.download[number], wanted.unpack[number], wanted.complete[number])
    for _, wanted in asked:
        index.unwant(wanted)
    for row in rows:
        index.forget(row)
        index.expect(row, ())
    assert (0, 1 + len(index._spare)) == (len(index), len(index._line_uses))
    assert not any(matrix.any() for matrix in index._matrices)


# Some lines, or most of those there are.
sheet_lines = st.lists(st.integers(1, 2 * FIRST_LINES - 1), min_size=1, max_size=6) | st.integers(1, FIRST_LINES).map(
    lambda first: list(range(first, first + FIRST_LINES - 50))
)
sheet_steps = st.tuples(
    st.sampled_from(["set", "clear", "grow"]),
    sheet_lines,
    st.sampled_from([0, 1, 8, FIRST_ROWS - 1]),
)


@given(st.lists(sheet_steps, max_size=20))
def test_a_sheet_that_keeps_only_lines_with_a_bit_says_what_one_that_keeps_all_says(steps):
    """And has a place of its own for each of them."""
    every = np.arange(2 * FIRST_LINES, dtype=np.intp)
    sheets = (BitMatrix(), SparseBitMatrix())
    rows = FIRST_ROWS
    for sheet in sheets:
        sheet.reach(2 * FIRST_LINES, rows)
    for deed, some, row in steps:
        rows += FIRST_ROWS if deed == "grow" else 0
        for sheet in sheets:
            if deed == "grow":
                sheet.reach(2 * FIRST_LINES, rows)
            else:
                getattr(sheet, deed)(np.array(some, dtype=np.intp), row)
        plain, sparse = (sheet.of(every) for sheet in sheets)
        assert (plain == sparse).all()
        places = sheets[1]._places[sheets[1]._places != 0].tolist()
        assert plain.any(axis=1).sum() <= len(places) == len(set(places) - set(sheets[1]._spare))


# ------------------------------------------------------------------------------------------------------------- catalog

SPELLINGS = ["app:1", "docker.io/library/app:1", "library/app:1", "app:2", "app", "ghcr.io/app:1", "NO REFERENCE"]
learned_images = st.builds(
    lambda number, names, arm: Image(
        # A manifest is for one platform: the digest tells both.
        a_digest(f"{number}{arm}"),
        (Layer(a_digest(f"layer {number}"), number),),
        tuple(names),
        ARM if arm else LINUX,
    ),
    st.integers(0, 3),
    st.lists(st.sampled_from(SPELLINGS), max_size=3),
    st.booleans(),
)
learnings = st.tuples(learned_images, st.sampled_from([1.0, 2.0, 5.0, math.inf]), st.sampled_from([0.0, 0.0, 1.0]))


@given(st.lists(learnings, max_size=12))
def test_a_name_means_what_was_learned_last_for_its_platform(learned):
    """Until that is too long ago; and a digest what was learned first, because content does not change."""
    catalog, now = Catalog(), 0.0
    by_digest: dict[Digest, Image] = {}
    by_name: dict[tuple[str, Platform], tuple[Digest, float]] = {}
    for one, good_for, pause in learned:
        meant = {key: digest for key, (digest, _) in by_name.items()}
        told = {(folded(name), one.platform): one.digest for name in one.names}
        news = one.digest not in by_digest or meant | told != meant
        by_digest.setdefault(one.digest, one)
        by_name |= {key: (digest, now + good_for) for key, digest in told.items()}
        assert news == catalog.learn(one, now + good_for)
        now += pause
        expired = [key for key, (_, until) in by_name.items() if until <= now]
        for key in expired:
            del by_name[key]
        assert bool(expired) == catalog.expire(now)
        for name in SPELLINGS:
            for platform in (LINUX, ARM):
                digest, _ = by_name.get((folded(name), platform), (None, 0.0))
                assert (None if digest is None else by_digest[digest]) == catalog.find(name, platform)
    assert list(by_digest.values()) == list(catalog)


# --------------------------------------------------------------------------------------------------------------- order


@given(st.permutations(range(8)), st.lists(few_images, min_size=4, max_size=4), st.booleans())
def test_the_order_in_which_things_become_known_does_not_matter(order, holdings, first):
    """Nodes, reports and images, and pods that are on their way: in the end the same is known."""
    shuffled, straight = Inventory(), Inventory()
    deeds = [("join", number) for number in range(4)] + [("report", number) for number in range(4)]

    def do(inventory: Inventory, deed: str, number: int) -> None:
        if deed == "join":
            inventory.join(f"n{number}", "", number)
            inventory.expect(f"p{number}", f"n{number}", ("app:2",))
        else:
            images = tuple(HeldImage(IMAGES[one].digest) for one in holdings[number])
            inventory.report(LayerReport(node=f"n{number}", images=images, download_rate=1e7))

    if first:
        shuffled.learn(IMAGES)
    for place in order:
        do(shuffled, *deeds[place])
        shuffled.learn([IMAGES[place]])
    shuffled.learn(IMAGES)
    straight.learn(IMAGES)
    for deed in deeds:
        do(straight, *deed)

    for names in ASKED:
        seconds = []
        for inventory in (shuffled, straight):
            ready = inventory.readiness_cache.readiness(names)
            assert ready is not None
            inventory.readiness_cache.look(ready, 5)
            seconds.append(ready.seconds.tolist())
        assert all(map(close, seconds[0][:4], seconds[1][:4]))
        assert math.isnan(seconds[0][4])


# A layer of which two manifests tell different sizes; whoever holds both can have no more than the larger.
LIAR = Image(a_digest("liar"), (Layer(layer("os").digest, 1500 * MB), layer("tool")), ("liar:1",))
TOLD = [*IMAGES, LIAR]
few_told = st.lists(st.integers(0, len(TOLD) - 1), max_size=4, unique=True)


@given(
    st.permutations(range(len(TOLD) + 3)),
    st.lists(st.tuples(few_told, st.sampled_from(FIGURES), st.booleans()), min_size=3, max_size=3),
    st.lists(st.booleans(), min_size=len(TOLD), max_size=len(TOLD)),
)
def test_the_order_of_reports_and_images_does_not_matter(order, holdings, alone):
    """Images become known one by one or together, before or after the reports: what is held is what reports say."""
    shuffled, straight = Inventory(), Inventory()
    reports = [
        LayerReport(
            node=f"n{number}",
            images=tuple(HeldImage(TOLD[one].digest, 1, TOLD[one].names) for one in some),
            reuse="set" if loose else "prefix",
            **figures,
        )
        for number, (some, figures, loose) in enumerate(holdings)
    ]
    for inventory in (shuffled, straight):
        for row in range(3):
            inventory.join(f"n{row}", "", row, ARM if row == 2 else LINUX)
    portion: list[Image] = []
    for place in order:
        if place < len(TOLD):
            portion.append(msgspec.structs.replace(TOLD[place], names=()))
        if place >= len(TOLD) or alone[place]:
            shuffled.learn(portion)
            portion = []
        if place >= len(TOLD):
            shuffled.report(reports[place - len(TOLD)])
    shuffled.learn(portion)
    straight.learn([msgspec.structs.replace(one, names=()) for one in TOLD])
    for report in reports:
        straight.report(report)

    assert (straight.conditions, straight.complaints) == (shuffled.conditions, shuffled.complaints)
    assert straight.index.reported.tolist() == shuffled.index.reported.tolist()
    assert [straight.index.held(row) for row in range(3)] == [shuffled.index.held(row) for row in range(3)]
    assert len(straight.index) == len(shuffled.index)
    for names in (
        [
            "liar:1",
        ],
        *ASKED[:-1],
    ):
        ready = [inventory.readiness_cache.readiness(tuple(names)) for inventory in (straight, shuffled)]
        assert (ready[0] is None) == (ready[1] is None)
        for inventory, one in zip((straight, shuffled), ready, strict=True):
            if one is not None:
                inventory.readiness_cache.look(one, 3)
        if ready[0] is not None and ready[1] is not None:
            assert np.array_equal(ready[0].seconds, ready[1].seconds, equal_nan=True)
            assert (ready[0].download == ready[1].download).all()


def test_the_images_of_these_laws_share_what_images_share():
    """Or nothing could go wrong: a base, blobs in another order, content packed differently, and names."""
    app, newer, arm, unread, reordered, twin, *_ = map(store_of, IMAGES)

    assert 2 == len(app.chains & newer.chains)
    assert (1, 0) == (len(app.chains & unread.chains), len(app.diff_chains & unread.diff_chains))
    assert (2, 0) == (len(app.blobs & reordered.blobs), len(app.chains & reordered.chains))
    assert (0, 3) == (len(app.blobs & twin.blobs), len(app.diff_chains & twin.diff_chains))
    assert set(IMAGES[0].names) == set(IMAGES[2].names) < set(IMAGES[1].names)
    assert not app.images & arm.images
