"""
Histories of a cluster as the layer room sees it, drawn or thrown, and played to an inventory and to its oracle at once.

Nodes come and go and their rows are used again, reports arrive early, late and about other machines of the same name,
images become known before or after, names move and expire, pods are bound, run and vanish, and time passes. After every
step everything that can be asked has to be what the oracle says.
"""

import math
import random
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from lamina.layers import layer_index as index_room
from lamina.layers.inventory import Inventory
from lamina.layers.layer_set import LayerSet
from lamina.layers.not_held import held_bytes, not_held_at, update_rows
from lamina.model.image import Image, Layer, Platform
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.testing import a_digest
from tests.property.layer_oracle import Model, Need, Row, need_of, store_of

STEPS = 40
MB = 1_000_000

# ---------------------------------------------------------------------------------------------------------- the images

LINUX, ARM = Platform(), Platform(architecture="arm64", variant="v8")
SIZES = {"os": 300 * MB, "lib": 50 * MB, "nil": 32, "app": 7 * MB, "tool": 20 * MB, "data": 900 * MB + 1, "void": 0}


def layer(name: str) -> Layer:
    """Build ``os`` (diff id and unpacked size known), ``os?`` (neither) or ``os~`` (known, but packed differently)."""
    plain = name.rstrip("?~!")
    size = SIZES.get(plain, 11 * MB)
    if name.endswith("?"):
        return Layer(a_digest(plain), size)
    packed = a_digest(f"{plain} in zstd" if name.endswith("~") else plain)
    return Layer(packed, size - 1 if name.endswith("~") and size else size, a_digest(f"diff of {plain}"), 2 * size + 5)


def image(digest: str, layers: str, *names: str, platform: Platform = LINUX) -> Image:
    return Image(a_digest(f"manifest {digest}"), tuple(map(layer, layers.split())), names, platform)


IMAGES = [
    image("app", "os lib app", "app:1"),
    image("newer app", "os lib data", "app:1", "app:2"),
    image("app on arm", "arm-os lib arm-app", "app:1", platform=ARM),
    image("unread", "os? tool?", "tool:1"),
    image("out of order", "lib os web", "web:1"),
    image("packed again", "os~ lib~ app~", "twin:1"),
    image("twice", "os nil lib nil", "dup:1"),
    image("twice, unread", "os? nil? lib? nil? tool?", "dup:2"),
    image("empty", "", "empty:1"),
    image("half read", "os half? lib", "half:1"),
    image("half read on arm", "arm-os half? void", "half:1", platform=ARM),
]
NAMES = ["app:1", "app:2", "tool:1", "web:1", "twin:1", "dup:1", "dup:2", "empty:1", "half:1", "never:1"]
ASKED = [
    ("app:1",),
    ("tool:1",),
    ("dup:1",),
    ("web:1", "app:1"),
    ("dup:2", "tool:1", "app:2", "tool:1"),
    ("twin:1", "half:1"),
    ("empty:1",),
    (),
]

# ----------------------------------------------------------------------------------------------------------- histories

Step = tuple[Any, ...]
"""What happens, and small numbers that say how."""

NODES = ["a", "b", "c"]
UIDS = ["first", "second", ""]
# Rows at the borders of bytes and of the arrays, which nodes get in this order and give back.
ROWS = [0, 9, 513]
# And one that nobody ever has.
ALL_ROWS = [0, 2, 9, 513]
HEIGHT = 515
FIGURES: list[dict[str, Any]] = [
    {},
    {"download_rate": 1e7, "unpack_rate": 3e8},
    {"disk": 1400 * MB, "disk_free": 500 * MB, "download_rate": 5e7},
    {"disk": 10_000 * MB, "disk_free": 1},
    {"disk": 320 * MB, "disk_free": 320 * MB, "unpack_rate": 2e7},
]
PAUSES = [0.1, 0.1, 0.25, 1.0, 3.0, 7.0, 40.0, 130.0, 700.0]
LIVES = [0.0, 0.0, 0.0, 5.0, 50.0]
# How long before it arrives a report was made; some clocks are ahead.
AGES = [0.0, 0.1, 30.0, -90.0]

NOBODY = Row("", "", "amd64")

# Two of three nodes are there and have reported, and all images are known: most of what can happen then can happen now.
OPENING: list[Step] = [
    ("learn", tuple(range(len(IMAGES))), 0),
    ("join", 0, 2, 0),
    ("join", 1, 2, 0),
    ("report", 0, 2, 0, (), (0, 0, 0)),
    ("report", 1, 2, 0, (3, 4), (1, 1, 0)),
]

few_images = st.lists(st.integers(0, len(IMAGES) - 1), max_size=3).map(tuple)
few_figures = st.tuples(st.integers(0, 1), st.integers(0, len(FIGURES) - 1), st.integers(0, len(AGES) - 1))
few_names = st.lists(st.integers(0, len(NAMES) - 1), min_size=1, max_size=2).map(tuple)


def a(kind: str, *parts: int | st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    """Draw a step; a number stands for one of so many."""
    return st.tuples(st.just(kind), *(st.integers(0, one - 1) if isinstance(one, int) else one for one in parts))


STEP = st.one_of(
    a("join", len(NODES), len(UIDS), 2),
    a("leave", len(NODES)),
    a("report", len(NODES), len(UIDS), 8, few_images, few_figures),
    a("report", len(NODES), st.just(2), 8, few_images, few_figures),
    a("learn", few_images, len(LIVES)),
    a("expect", 4, len(NODES), few_names),
    a("expect", 4, len(NODES), few_names),
    a("ran", 4),
    a("gone", 4),
    a("pass_time", len(PAUSES)),
    a("pass_time", len(PAUSES)),
)


def thrown(dice: random.Random) -> list[Step]:
    """Throw a history of the same kinds of steps, more of the likely ones."""

    def some(count: int, least: int, most: int) -> tuple[int, ...]:
        return tuple(dice.randrange(count) for _ in range(dice.randint(least, most)))

    def step() -> Step:
        node, uid, pod = dice.randrange(3), dice.choices(range(3), [1, 1, 6])[0], dice.randrange(4)
        match dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]:
            case "join":
                return ("join", node, uid, dice.random() < 0.2)
            case "leave":
                return ("leave", node)
            case "report":
                figures = (dice.randrange(2), dice.randrange(len(FIGURES)), dice.randrange(len(AGES)))
                return ("report", node, uid, dice.randrange(8), some(len(IMAGES), 0, 3), figures)
            case "learn":
                return ("learn", some(len(IMAGES), 1, 4), dice.randrange(len(LIVES)))
            case "expect":
                return ("expect", pod, node, some(len(NAMES), 1, 3))
            case "pass_time":
                return ("pass_time", dice.randrange(len(PAUSES)))
            case kind:
                return (kind, pod)

    return [*(OPENING if dice.random() < 0.7 else ()), *(step() for _ in range(STEPS))]


WEIGHTS = {"join": 2, "leave": 1, "report": 4, "learn": 2, "expect": 7, "ran": 2, "gone": 2, "pass_time": 8}


class Pair:
    """An inventory and its model, told the same and compared after each step."""

    def __init__(self) -> None:
        self.inventory = Inventory()
        self.model = Model()
        self.sequence = self.steps = 0
        # Wanted from the beginning to the end, and looked at now and then.
        self.kept = [self.inventory.index.want(self.images(names)) for names in ASKED]

    def images(self, names: Sequence[str]) -> list[Image]:
        return [one for name in names for one in IMAGES if name in one.names and one.platform == LINUX]

    def step(self, kind: str, *arguments: Any) -> None:
        """Let something happen, and see that whoever was affected by it is told of."""
        self.steps += 1
        before = self.answers()
        rows = getattr(self, kind)(*arguments)
        after = self.answers()
        if rows is not None:
            changed = {row for row in {*before, *after} if before.get(row) != after.get(row)}
            assert changed <= set(rows)
        self.compare()

    def answers(self) -> dict[int, list[Any]]:
        """Return all the model has to say, by row."""
        model = self.model
        return {number: [self.answer(row, names) for names in ASKED[:6]] for number, row in model.rows.items()}

    def answer(self, row: Row, names: Sequence[str]) -> Any:
        need = self.model.need(names, row.platform)
        if need is None or self.model.held(row) is None:
            return None
        return self.model.seconds(row, need, whole_only=False), self.model.trust(row)

    # -- steps: each returns the rows that were told of; None: whoever is told looks at everything anew ---------------

    def join(self, node: int, uid: int, arm: int) -> None:
        name, platform = NODES[node], ARM if arm else LINUX
        if self.model.row_of(name) is not None:
            return
        row = next(one for one in ROWS if one not in self.model.rows)
        self.model.join(name, UIDS[uid], row, platform.architecture)
        # Kubelets tell no variant.
        told = self.inventory.join(name, UIDS[uid], row, Platform(architecture=platform.architecture))
        assert (self.model.held(self.model.rows[row]) is not None) <= told

    def leave(self, node: int) -> None:
        row = self.model.row_of(NODES[node])
        if row is not None:
            self.model.leave(row)
            self.inventory.leave(NODES[node])

    def report(
        self, node: int, uid: int, late: int, images: tuple[int, ...], figures: tuple[int, int, int]
    ) -> list[int]:
        reuse, disk_and_rates, age = figures
        self.sequence += 1
        report = LayerReport(
            node=NODES[node],
            node_uid=UIDS[uid],
            sequence=self.sequence - (3 if late == 1 else 0),
            observed_at=max(self.model.now - AGES[age], 0.0),
            images=tuple(HeldImage(IMAGES[one].digest) for one in images),
            reuse="set" if reuse else "prefix",
            renews_within=[0.0, 10.0][age % 2],
            **FIGURES[disk_and_rates],
        )
        self.model.report(report)
        return self.inventory.report(report)

    def learn(self, images: tuple[int, ...], life: int) -> list[int] | None:
        learned = [IMAGES[one] for one in images]
        news, rows = self.inventory.learn(learned, LIVES[life])
        assert self.model.learn(learned, LIVES[life]) == news
        return None if news else rows

    def expect(self, pod: int, node: int, names: tuple[int, ...]) -> list[int]:
        wanted = tuple(NAMES[one] for one in names)
        self.model.expect(f"p{pod}", NODES[node], wanted)
        return self.inventory.expect(f"p{pod}", NODES[node], wanted)

    def ran(self, pod: int) -> list[int]:
        self.model.ran(f"p{pod}")
        return self.inventory.ran(f"p{pod}")

    def gone(self, pod: int) -> list[int]:
        self.model.gone(f"p{pod}")
        return self.inventory.gone(f"p{pod}")

    def pass_time(self, pause: int) -> list[int] | None:
        now = self.model.now + PAUSES[pause]
        expired, rows = self.inventory.pass_time(now)
        assert self.model.pass_time(now) == expired
        return None if expired else rows

    # -- comparing ---------------------------------------------------------------------------------------------------

    def compare(self) -> None:
        """Ask everything; and let those look again who seldom do, each at another number of rows."""
        for number, height in enumerate([1, 11, HEIGHT]):
            if self.steps % (number + 2) == 0:
                update_rows(self.inventory.index, self.kept[number], height)
        for names in ASKED:
            self.compare_names(names, whole_only=False)
        self.compare_names(ASKED[4], whole_only=True)
        self.compare_trust()
        self.compare_lines()

    def compare_names(self, names: tuple[str, ...], *, whole_only: bool) -> None:
        model, cache = self.model, self.inventory.readiness_cache
        needs = {platform: model.need(names, platform) for platform in model.platforms}
        ready = cache.readiness(names, whole_only=whole_only)
        assert all(need is None for need in needs.values()) == (ready is None)
        if ready is None:
            return
        cache.look(ready, HEIGHT)
        for need, (_, wanted) in zip(needs.values(), ready.variants, strict=True):
            assert (need is None) == (wanted is None)
            if need is not None and wanted is not None:
                update_rows(self.inventory.index, wanted, HEIGHT)
                self.compare_rows(need, wanted)
        told = np.array([ready.seconds, ready.transfer, ready.download])
        known: list[int] = []
        for number, row in model.rows.items():
            need = needs[row.platform]
            if need is not None and model.held(row) is not None:
                known.append(number)
                expected = model.seconds(row, need, whole_only=whole_only)
                assert all(map(close, expected, told[:, number])), (names, number, expected, told[:, number])
        assert sorted(known) == np.flatnonzero(~np.isnan(told[0])).tolist()
        assert np.isfinite(told[1:]).all()

    def compare_rows(self, need: Need, wanted: LayerSet) -> None:
        """Compare what was kept and patched, and what is counted for a few rows, with the model."""
        model, index = self.model, self.inventory.index
        held = held_bytes(index, wanted, HEIGHT)
        at = np.array(ALL_ROWS, dtype=np.intp)
        here = [np.array(not_held_at(index, wanted, at, coming=coming)).T.tolist() for coming in (True, False)]
        assert need.total == wanted.total
        for place, number in enumerate(ALL_ROWS):
            row = model.rows.get(number, NOBODY)
            by_prefix = model.by_prefix(row)
            for coming, some in zip((None, ()), here, strict=True):
                has = model.store(row, coming)
                expected = need.not_held(has, by_prefix=by_prefix)
                assert list(expected) == some[place]
                if coming is None:
                    assert expected == (wanted.download[number], wanted.unpack[number], wanted.complete[number])
            assert need.total - need.not_held(model.store(row, ()), by_prefix=False)[0] == held[number]

    def compare_trust(self) -> None:
        trust = self.inventory.freshness.of(slice(None), HEIGHT)
        told = np.ones(HEIGHT) if trust is None else trust
        expected = {number: self.model.trust(row) for number, row in self.model.rows.items()}
        assert all(close(expected.get(number, 1.0), told[number]) for number in ALL_ROWS)

    def compare_lines(self) -> None:
        """As many lines as there are things in images that somebody holds, expects or wants."""
        index = self.inventory.index
        images = {one.digest: one for names in ASKED for one in self.images(names)}
        for row in self.model.rows.values():
            images |= {one.digest: one for one in [*(self.model.held(row) or ()), *(one.image for one in row.queue)]}
        for ready in self.inventory.readiness_cache._kept.values():
            for _, wanted in ready.variants if ready is not None else ():
                images |= {one.digest: one for one in (wanted.images if wanted is not None else ())}
        assert store_of(*images.values()).names() == len(index)
        # Line 0 stands for nothing; the others are in use, or wait to be used again.
        assert len(index) == len(index._line_uses) - len(index._spare) - 1

    def finish(self) -> None:
        """Everybody leaves; see that what was kept is right to the end, and that nothing remains."""
        inventory, index = self.inventory, self.inventory.index
        for names, kept in zip(ASKED, self.kept, strict=True):
            fresh = index.want(self.images(names))
            for one in (kept, fresh):
                update_rows(index, one, HEIGHT)
                self.compare_rows(need_of(*self.images(names)), one)
            assert (kept.download[:HEIGHT] == fresh.download[:HEIGHT]).all()
            assert (kept.unpack[:HEIGHT] == fresh.unpack[:HEIGHT]).all()
            assert (kept.complete[:HEIGHT] == fresh.complete[:HEIGHT]).all()
            index.unwant(kept)
            index.unwant(fresh)
        for row in list(self.model.rows.values()):
            inventory.leave(row.node)
        for pod in range(4):
            inventory.gone(f"p{pod}")
        inventory.readiness_cache.clear()
        assert 0 == len(index)
        assert not any(matrix.any() for matrix in index._matrices)
        assert not index._entries
        arrivals = inventory.arrivals
        assert ({}, {}, {}) == (arrivals._rows, arrivals._pods, arrivals.etas)
        assert np.isneginf(arrivals.queue_end).all()
        assert (0, {}, {}) == (len(inventory._unstarted), inventory._waiting, inventory._room)


def close(expected: float, told: float) -> bool:
    return math.isclose(expected, told, rel_tol=1e-9, abs_tol=1e-12)


def play(history: Sequence[Step]) -> None:
    pair = Pair()
    # Few changes are remembered, so that somebody is always too late.
    with mock.patch.object(index_room, "REMEMBERED", 2):
        for step in history:
            pair.step(*step)
        pair.finish()
