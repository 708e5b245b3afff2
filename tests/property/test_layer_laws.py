"""
Laws of the layer index and the inventory, each held against dictionaries of sets that do the same naively.

The index is fed lists of layers; the inventory what really happens: nodes come and go and their rows are used again,
reports arrive early, late and about other machines of the same name, images become known before or after.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.layers import index as index_room
from lamina.layers.catalog import Catalog, folded
from lamina.layers.index import FIRST_ROWS, LayerIndex
from lamina.layers.inventory import Inventory
from lamina.layers.wanted import WantedLayers
from lamina.model.digest import Digest
from lamina.model.image import Image, Layer, Platform
from lamina.model.reports import LayerReport
from lamina.testing import a_digest, an_image, held

SIZES = {f"layer {number}": size for number, size in enumerate([1, 2, 30, 500, 0, 7_000_000, 2**40, 3, 4, 2**50])}
LAYERS = [Layer(a_digest(name), size) for name, size in SIZES.items()]
EXAMPLES = max(300, settings().max_examples)

Held = dict[int, set[Digest]]
"""Row → what it holds; rows that never said are not in it."""


def subsets(most: int) -> st.SearchStrategy[tuple[Layer, ...]]:
    """Draw some layers, repeats included."""
    return st.lists(st.sampled_from(LAYERS), max_size=most).map(tuple)


def bytes_on(model: Held, sizes: dict[Digest, int], height: int) -> list[int]:
    """Count naively."""
    return [
        sum(size for digest, size in sizes.items() if digest in model[row]) if row in model else -1
        for row in range(height)
    ]


# --------------------------------------------------------------------------------------------------------------- index

rows = st.one_of(st.integers(0, 9), st.sampled_from([FIRST_ROWS - 1, FIRST_ROWS, 2 * FIRST_ROWS + 5]))
replacing = st.tuples(rows, subsets(6))
forgetting = st.tuples(rows, st.none())
asking = st.tuples(st.integers(0, 2), st.one_of(st.integers(0, 12), st.just(FIRST_ROWS + 1)))


@settings(max_examples=EXAMPLES)
@given(
    st.lists(st.one_of(replacing, replacing, forgetting, asking.map(lambda ask: ("ask", *ask))), max_size=25),
    st.tuples(subsets(3), subsets(5), subsets(9)),
)
def test_the_index_counts_what_sets_count(steps, wants):
    """Whoever asks, for the first time or again, however long ago, about however many rows."""
    index, model = LayerIndex(), Held()
    asked = [WantedLayers({layer.digest: layer.size for layer in layers}) for layers in wants]
    # Few changes are remembered, so that somebody is always too late.
    with mock.patch.object(index_room, "REMEMBERED", 1):
        for step in steps:
            if step[0] == "ask":
                _, number, height = step
                assert bytes_on(model, asked[number].sizes, height) == (
                    index.present_bytes(asked[number], height).tolist()
                )
                continue
            row, layers = step
            if layers is None:
                index.forget(row)
                model.pop(row, None)
            else:
                now = {layer.digest for layer in layers}
                assert (model.get(row) != now) == index.replace(row, layers)
                model[row] = now
            assert model.get(row, set()) == index.held(row)
            assert len(set().union(*model.values())) == len(index)
        height = max(model, default=0) + 2
        for one in asked:
            anew = WantedLayers(one.sizes)
            assert bytes_on(model, one.sizes, height) == index.present_bytes(one, height).tolist()
            assert bytes_on(model, one.sizes, height) == index.present_bytes(anew, height).tolist()


@given(st.lists(st.tuples(st.integers(0, 5), subsets(4)), max_size=40))
def test_lines_are_freed_when_nobody_holds_a_layer(steps):
    """There are never more lines than there were layers at one time, and one more list."""
    index, model, most = LayerIndex(), Held(), 0
    for row, layers in steps:
        index.replace(row, layers)
        model[row] = {layer.digest for layer in layers}
        most = max(most, len(set().union(*model.values())))
        assert len(index) == index._used - len(index._spare)
    assert index._used <= most + len(LAYERS)
    for row in model:
        index.forget(row)
    assert (0, index._used) == (len(index), len(index._spare))
    assert not index._bits.any()


# ------------------------------------------------------------------------------------------------------------- catalog

ARM = Platform(architecture="arm64")
SPELLINGS = ["app:1", "docker.io/library/app:1", "library/app:1", "app:2", "app", "ghcr.io/app:1", "NO REFERENCE"]
images = st.builds(
    lambda number, names, arm: Image(
        # A manifest is for one platform: the digest tells both.
        a_digest(f"{number}{arm}"),
        tuple(LAYERS[:number]),
        tuple(names),
        ARM if arm else Platform(),
    ),
    st.integers(0, 3),
    st.lists(st.sampled_from(SPELLINGS), max_size=3),
    st.booleans(),
)


@given(st.lists(images, max_size=12))
def test_a_name_means_what_was_learned_last_for_its_platform(learned):
    """And a digest what was learned first, because content does not change."""
    catalog = Catalog()
    by_digest: dict[Digest, Image] = {}
    by_name: dict[tuple[str, Platform], Digest] = {}
    for image in learned:
        before = (dict(by_digest), dict(by_name))
        by_digest.setdefault(image.digest, image)
        by_name.update({(folded(name), image.platform): image.digest for name in image.names})
        assert (before != (by_digest, by_name)) == catalog.learn(image)
    assert list(by_digest.values()) == list(catalog)
    for name in SPELLINGS:
        for platform in (Platform(), ARM):
            digest = by_name.get((folded(name), platform))
            assert (None if digest is None else by_digest[digest]) == catalog.find(name, platform)


# ----------------------------------------------------------------------------------------------------------- inventory

IMAGES = [
    an_image(f"image:{number}", {name: SIZES[name] for name in names})
    for number, names in enumerate(
        [["layer 0", "layer 2"], ["layer 0", "layer 3"], ["layer 5"], [], ["layer 0", "layer 2", "layer 5", "layer 6"]]
    )
]
NODES = ["a", "b", "c", "d"]
UIDS = ["first", "second", "", "first", "second"]


def late(report: LayerReport, before: LayerReport | None) -> bool:
    """Say whether a report is older than one about the same machine."""
    return before is not None and before.node_uid == report.node_uid and report.sequence < before.sequence


@dataclass
class Model:
    """Everything in dictionaries, worked out anew whenever somebody asks."""

    known: dict[Digest, Image] = field(default_factory=dict)
    reports: dict[str, LayerReport] = field(default_factory=dict)
    early: dict[str, LayerReport] = field(default_factory=dict)
    """About machines that are not there: perhaps the next of that name."""
    rows: dict[str, tuple[int, str]] = field(default_factory=dict)

    def held(self) -> Held:
        """Return what each row holds, as far as reports and images are known."""
        found: Held = {}
        for node, (row, _) in self.rows.items():
            report = self.reports.get(node)
            if report is None or self.is_foreign(report):
                continue
            images = [self.known[one.digest] for one in report.images if one.digest in self.known]
            found[row] = {layer.digest for image in images for layer in image.layers}
        return found

    def free_row(self) -> int:
        """Return the lowest row nobody has, so that rows are used again."""
        taken = {row for row, _ in self.rows.values()}
        return next(row for row in range(len(taken) + 1) if row not in taken)

    def is_foreign(self, report: LayerReport) -> bool:
        """Say whether a report is about another machine than the one that is there."""
        _, uid = self.rows.get(report.node, (0, ""))
        return bool(report.node_uid and uid and report.node_uid != uid)


def changed(before: Held, after: Held) -> set[int]:
    return {row for row in {*before, *after} if before.get(row) != after.get(row)}


class Pair:
    """An inventory and its model, told the same and compared after each step."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.model = Model()

    def join(self, node: str, uid: str) -> None:
        """A node comes, unless it is there; what was heard of it before counts from now on."""
        model = self.model
        if node in model.rows:
            return
        row = model.free_row()
        model.rows[node] = (row, uid)
        early = model.early.pop(node, None)
        if early is not None and not model.is_foreign(early):
            model.reports[node] = early
        assert (row in model.held()) == self.inventory.join(node, uid, row)

    def leave(self, node: str) -> None:
        """A node goes, and its report with it."""
        if node not in self.model.rows:
            return
        del self.model.rows[node]
        self.model.reports.pop(node, None)
        self.inventory.leave(node)

    def report(self, report: LayerReport) -> None:
        """A report arrives."""
        before = self.model.held()
        absent = report.node not in self.model.rows or self.model.is_foreign(report)
        into = self.model.early if absent else self.model.reports
        if not late(report, into.get(report.node)):
            into[report.node] = report
        assert changed(before, self.model.held()) == set(self.inventory.report(report))

    def learn(self, images: Sequence[Image]) -> None:
        """Images become known."""
        before = self.model.held()
        fresh = {image.digest: image for image in images if image.digest not in self.model.known}
        self.model.known.update(fresh)
        news, rows = self.inventory.learn(images)
        assert (bool(fresh), changed(before, self.model.held())) == (news, set(rows))

    def compare(self) -> None:
        """Ask for single images and for all, as pods would."""
        model = self.model.held()
        for names in [*((f"image:{number}",) for number in range(len(IMAGES))), ("image:0", "image:2", "image:0")]:
            wanted = self.inventory.wanted(names)
            images = [image for name in names for image in self.model.known.values() if name in image.names]
            if len(images) < len(names):
                assert wanted is None
                continue
            assert wanted is not None
            sizes = {layer.digest: layer.size for image in images for layer in image.layers}
            assert (sizes, sum(sizes.values())) == (wanted.sizes, wanted.total)
            assert bytes_on(model, sizes, 6) == self.inventory.index.present_bytes(wanted, 6).tolist()
        assert len(set().union(*model.values())) == len(self.inventory.index)


nodes = st.sampled_from(NODES[:2])  # few names and long stories, so that they meet
some_images = st.lists(st.sampled_from(IMAGES), max_size=3).map(tuple)
joins = st.tuples(st.just("join"), st.tuples(nodes, st.sampled_from(UIDS)))
leaves = st.tuples(st.just("leave"), st.tuples(nodes))
learnings = st.tuples(st.just("learn"), st.tuples(some_images))
reports = st.builds(
    lambda node, sequence, uid, images: ("report", (held(node, *images, sequence=sequence, node_uid=uid),)),
    nodes,
    st.integers(1, 4),
    st.sampled_from(UIDS),
    some_images,
)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.one_of(joins, leaves, learnings, reports, reports), min_size=20, max_size=40))
def test_the_inventory_knows_what_dictionaries_know(steps):
    """Whatever comes in whichever order."""
    pair = Pair()
    for name, arguments in steps:
        getattr(pair, name)(*arguments)
        pair.compare()


@given(st.lists(st.one_of(joins, leaves, learnings, reports), max_size=15), nodes, some_images)
def test_a_report_about_another_machine_says_nothing_about_this_one(steps, node, images):
    """Whatever was known before stays known, and nothing is added."""
    pair = Pair()
    for name, arguments in steps:
        getattr(pair, name)(*arguments)
    if pair.model.rows.get(node, (0, ""))[1]:
        stranger = held(node, *images, sequence=9, node_uid="a stranger")
        assert [] == pair.inventory.report(stranger)
        pair.compare()


@given(st.permutations(range(8)), st.lists(some_images, min_size=4, max_size=4))
def test_the_order_in_which_things_become_known_does_not_matter(order, holdings):
    """Nodes, reports and images, one of each four: in the end the same is known."""
    inventory, straight = Inventory(), Inventory()
    deeds = [("join", number) for number in range(4)] + [("report", number) for number in range(4)]

    def do(of: Inventory, deed: str, number: int) -> None:
        if deed == "join":
            of.join(NODES[number], "", number)
        else:
            of.report(held(NODES[number], *holdings[number]))

    for place in order:
        do(inventory, *deeds[place])
        inventory.learn([IMAGES[place % len(IMAGES)]])
    straight.learn(IMAGES)
    for deed in deeds:
        do(straight, *deed)

    for image in IMAGES:
        one, two = inventory.wanted(image.names), straight.wanted(image.names)
        assert one is not None
        assert two is not None
        assert straight.index.present_bytes(two, 5).tolist() == inventory.index.present_bytes(one, 5).tolist()


def test_the_images_of_these_laws_share_layers():
    """Or nothing could go wrong."""
    assert {LAYERS[0]} == set(IMAGES[0].layers) & set(IMAGES[1].layers)
