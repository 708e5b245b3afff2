"""
Laws of pulls: bytes are conserved, disks are never overfull, nothing is downloaded twice, nothing is left behind.

Histories are drawn small and crowded: few layers that images share in any order, pods that come, use an image for a while
and go, requests that are withdrawn, a disk that may be too small, a node that may go and come back.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.digest import Digest, digest_of
from lamina.model.image import Image, Layer
from lamina.simulator.engine import Environment, Link, Network, Transfer
from lamina.simulator.pulls import (
    DiskSpec,
    ImagePullRequest,
    LayerSources,
    NodeImageStore,
    Puller,
    RemovalReason,
    RuntimeSpec,
)
from lamina.simulator.pulls.pull_plan import PullPlan
from lamina.simulator.pulls.pull_request import BlobDownload

RATE = 64.0
# Everything is counted anew after every event; many more are tried under `make soak`.
FEWER = settings(max_examples=settings().max_examples * 2 // 5)

# --------------------------------------------------------------------------------------------------------- what is drawn

SIZES = st.integers(0, 40)


@st.composite
def catalogs(draw: st.DrawFn) -> tuple[Image, ...]:
    """A few images of the same few layers, in any order; some repeat a layer."""
    layers = [
        Layer(digest_of(f"layer {number}".encode()), size, unpacked=unpacked)
        for number, (size, unpacked) in enumerate(
            draw(st.lists(st.tuples(SIZES, st.none() | SIZES), min_size=2, max_size=6))
        )
    ]
    stacks = draw(st.lists(st.lists(st.sampled_from(layers), min_size=1, max_size=5), min_size=1, max_size=5))
    return tuple(
        Image(digest_of(f"image {number}".encode()), tuple(stack), (f"i{number}",))
        for number, stack in enumerate(stacks)
    )


RUNTIMES = st.builds(
    RuntimeSpec,
    parallel_pulls=st.sampled_from([1, 2, 0]),
    pull_qps=st.sampled_from([0.0, 0.0, 0.5]),
    pull_burst=st.just(2),
    slots=st.sampled_from([1, 3, 0]),
    slots_per=st.sampled_from(["image", "node"]),
    connection_rate=st.sampled_from([0.0, 0.0, 16.0]),
    resolve=st.sampled_from([0.0, 0.25]),
    unpack_rate=st.sampled_from([0.0, 32.0]),
    unpack_threads=st.sampled_from([1, 2]),
    disk_rate=st.sampled_from([0.0, 0.0, 48.0]),
    write_cache=st.sampled_from([0, 30]),
    layer_overhead=st.sampled_from([0.0, 0.125]),
    ratio=st.just(2.0),
    reuse=st.sampled_from(["set", "prefix"]),
    lazy=st.sampled_from([None, None, 0.25]),
)
DISKS = st.builds(
    DiskSpec,
    capacity=st.integers(50, 600),
    min_age=st.sampled_from([0.0, 120.0]),
    evict_below=st.sampled_from([0.0, 0.15]),
    accounting=st.sampled_from(["reported", "real"]),
)


@dataclass(frozen=True)
class Visit:
    """Somebody who asks for an image, uses it for a while, and perhaps loses interest before it is there."""

    at: float
    image: int
    stays: float
    patience: float | None


@dataclass(frozen=True)
class History:
    """What happens on one node."""

    images: tuple[Image, ...]
    runtime: RuntimeSpec
    disk: DiskSpec | None
    visits: tuple[Visit, ...]
    outage: float | None = None


@st.composite
def histories(
    draw: st.DrawFn, *, outages: bool = True, disks: st.SearchStrategy[DiskSpec | None] | None = None
) -> History:
    """A dozen visits at most."""
    images = draw(catalogs())
    # Quarters meet often, and what happens together is where order shows.
    quarters = st.integers(0, 60).map(lambda number: number / 4)
    visits = st.builds(
        Visit,
        quarters,
        st.integers(0, len(images) - 1),
        st.sampled_from([0.0, 2.0, 500.0, 5000.0]),
        st.none() | quarters,
    )
    return History(
        images,
        draw(RUNTIMES),
        draw(st.none() | DISKS if disks is None else disks),
        tuple(draw(st.lists(visits, min_size=1, max_size=12))),
        draw(st.none() | quarters) if outages else None,
    )


# -------------------------------------------------------------------------------------------------------------- a stage


class Spied(Network):
    """Refuses to download a blob that is there or under way."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.moving: dict[Digest, Transfer] = {}
        self.store: NodeImageStore | None = None

    def start(
        self,
        path: tuple[Link, ...],
        size: float,
        on_done: Callable[..., object],
        *args: object,
        marks: Sequence[float] = (),
    ) -> Transfer:
        layers = _carried(args)
        assert self.store is not None
        for layer in layers:
            assert layer.digest not in self.moving
            assert layer.digest not in self.store.blobs

        def arrive(*args: object) -> None:
            for layer in layers:
                del self.moving[layer.digest]
            on_done(*args)

        transfer = super().start(path, size, arrive, *args, marks=marks)
        self.moving |= {layer.digest: transfer for layer in layers}
        return transfer

    def cancel(self, transfer: Transfer) -> None:
        super().cancel(transfer)
        self.moving = {digest: one for digest, one in self.moving.items() if one is not transfer}


def _carried(args: tuple[object, ...]) -> tuple[Layer, ...]:
    """Which blobs a transfer brings: one, all of a pull, or none because it is something else."""
    match args:
        case (BlobDownload() as fetch,):
            return (fetch.layer,)
        case (ImagePullRequest(), PullPlan() as plan):
            return plan.missing
    return ()


@dataclass(frozen=True)
class Described:
    """As much of a node as its source has to know."""

    runtime: RuntimeSpec
    name: str = "n1"
    bandwidth: float = RATE
    uplink: str = ""


@dataclass
class Stage:
    """One node on which a history happens, checked after every event. Also the watcher and the advertiser."""

    history: History
    log: list[tuple[object, ...]] = field(default_factory=list)
    pulls: list[ImagePullRequest] = field(default_factory=list)
    became_present: int = 0

    def __post_init__(self) -> None:
        self.env = Environment()
        self.network = Spied(self.env)
        self.store = self.network.store = NodeImageStore(self.history.runtime, self.history.disk)
        source = LayerSources(self.network).for_node(Described(self.history.runtime))
        self.link = source.link
        self.puller = Puller(self.env, self.network, self.store, self.history.runtime, source, self)
        self.store.advertiser = self

    def run(self) -> "Stage":
        for visit in self.history.visits:
            self.env.at(visit.at, self.arrive, visit)
        if self.history.outage is not None:
            self.env.at(self.history.outage, self.puller.stop)
        events = 0
        while self.env.peek() < float("inf"):
            self.env.step()
            self.check()
            events += 1
            assert events < 5000, "a history comes to an end"
        return self

    def arrive(self, visit: Visit) -> None:
        image = self.history.images[visit.image]

        def ready() -> None:
            self.note("ready", visit.image)
            self.store.acquire(image, self.env.now)
            self.env.after(visit.stays, leave)

        def leave() -> None:
            self.store.release(image, self.env.now)

        pull = self.puller.request(image, ready)
        self.pulls.append(pull)
        if visit.patience is not None:
            self.env.after(visit.patience, self.puller.cancel, pull)

    def note(self, *what: object) -> None:
        self.log.append((self.env.now, *what))

    # -- what the node says --------------------------------------------------------------------------------------------

    def pull_began(self, pull: ImagePullRequest, missing: tuple[Layer, ...]) -> None:
        self.note("began", pull.image.names, [layer.digest for layer in missing])

    def layer_pulled(self, layer: Layer) -> None:
        self.note("layer", layer.digest)

    def pull_done(self, pull: ImagePullRequest, *, news: bool) -> None:
        self.note("done", pull.image.names, news)

    def pull_failed(self, pull: ImagePullRequest, reason: str, retry_at: float) -> None:
        assert retry_at > self.env.now
        self.note("failed", pull.image.names, reason, retry_at)

    def images_removed(self, images: tuple[Image, ...], freed: int, why: RemovalReason) -> None:
        self.note(why, [image.names for image in images], freed)

    def disk_pressure(self, on: bool) -> None:
        self.note("pressure", on)

    def gained(self, digest: Digest) -> None:
        self.became_present += self.store.blobs[digest]

    def lost(self, digest: Digest) -> None:
        assert digest not in self.store.blobs

    # -- what always holds ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Count everything again, the long way."""
        store, puller = self.store, self.puller
        keeps = self.history.runtime.reuse == "set"
        images = [store.runtime_image(image) for image in store.images.values()]
        pulls = [pull.runtime_image for pull in (*puller._active, *puller._draining)]
        blobs = Counter(digest for one in (images if keeps else []) + pulls for digest in one.blobs)
        chains = Counter(chain for one in images + pulls for chain in one.chains)

        assert blobs == store._blob_refs
        assert chains == store._chain_refs
        assert store.blobs.keys() <= blobs.keys()
        assert store.chains.keys() <= chains.keys()
        assert all(chain in store.chains for one in images for chain in one.chains)
        assert sum(store.blobs.values()) + sum(store.chains.values()) == store.held
        assert 0 <= store.used <= store.capacity
        assert store.idle == sum(not record.users for record in store._records.values())
        if not pulls and not puller._downloader.downloads:
            assert 0 == store.reserved
            assert {} == puller._unpacking
            assert 0 == puller._downloader._busy


# ----------------------------------------------------------------------------------------------------------------- laws


@FEWER
@given(histories())
def test_bytes_pulled_are_bytes_that_became_present(history):
    """Counted four ways, blobs included that have vanished since; every step of the way keeps its books."""
    stage = Stage(history).run()
    by_layer = sum(layer.size for layer in _pulled(stage))

    assert stage.became_present == stage.puller.pulled_bytes
    assert by_layer == stage.puller.pulled_bytes
    assert sum(pull.downloaded for pull in stage.pulls) == stage.puller.pulled_bytes


def _pulled(stage: Stage) -> list[Layer]:
    layers = {layer.digest: layer for image in stage.history.images for layer in image.layers}
    return [layers[digest] for _, what, digest, *_ in stage.log if what == "layer"]


@FEWER
@given(histories(disks=DISKS))
def test_a_disk_is_never_over_its_capacity_and_its_books_agree_with_a_recount(history):
    """Looked at after every event, as in all histories: see `Stage.check`."""
    stage = Stage(history).run()

    assert stage.store.used <= stage.store.capacity


@FEWER
@given(histories(), st.sampled_from([0, 2]))
def test_no_blob_is_downloaded_that_is_there_or_under_way(history, parallel):
    """`Spied` refuses it; a blob that was removed may come again."""
    runtime = msgspec.structs.replace(history.runtime, parallel_pulls=parallel, lazy=None)
    stage = Stage(replace(history, runtime=runtime)).run()

    assert {} == stage.network.moving


@FEWER
@given(histories())
def test_the_same_history_gives_the_same_log(history):
    assert Stage(history).run().log == Stage(history).run().log


@FEWER
@given(histories(outages=False, disks=st.none()))
def test_on_a_disk_that_never_fills_whoever_waits_gets_the_image(history):
    stage = Stage(history).run()
    waited = [pull for pull in stage.pulls if pull.on_ready is not None]

    assert [] == [pull.image.names for pull in waited if pull.done_at is None]
    for pull in stage.pulls:
        reached = [at for at in (pull.requested_at, pull.began_at, pull.downloaded_at, pull.done_at) if at is not None]
        assert sorted(reached) == reached


@FEWER
@given(histories(outages=False, disks=st.none()))
def test_what_is_kept_is_downloaded_once(history):
    """With blobs kept and nothing removed, no layer ever comes twice."""
    stage = Stage(history).run()
    times = Counter(layer.digest for layer in _pulled(stage))

    if history.runtime.reuse == "set":
        assert set(times.values()) <= {1}


@FEWER
@given(histories())
def test_in_the_end_nothing_is_left_behind(history):
    """What remains is what the images are made of; nothing is promised, under way or half done."""
    stage = Stage(history).run()
    runtime_images = [stage.store.runtime_image(image) for image in stage.store.images.values()]

    assert {} == stage.puller._downloader.downloads
    assert 0 == stage.store.reserved
    assert {chain for one in runtime_images for chain in one.chains} == set(stage.store.chains)
    if history.runtime.reuse == "prefix":
        assert {} == stage.store.blobs


# ------------------------------------------------------------------------------ one download, or one for each layer

# Beside the times of all that is drawn, so that no rounding decides what comes first.
ASIDE = 0.0123457


@FEWER
@given(
    histories(disks=st.none()),
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0.0, 8.0, 40.0, 200.0])), max_size=4),
)
def test_a_pull_in_one_download_is_the_same_as_layer_by_layer(history, changes):
    """At whatever rate, and when it is withdrawn or the node goes: the same times, bytes and contents."""
    runtime = msgspec.structs.replace(
        history.runtime,
        parallel_pulls=1,
        pull_qps=0.0,
        connection_rate=0.0,
        unpack_threads=1,
        disk_rate=0.0,
        lazy=None,
    )
    visits = tuple(
        replace(one, at=one.at + number * ASIDE, patience=one.patience and one.patience + ASIDE / 2)
        for number, one in enumerate(history.visits)
    )
    outage = history.outage and history.outage + ASIDE / 3
    alone = replace(history, runtime=runtime, visits=visits, outage=outage)

    whole, layered = Stage(alone), Stage(alone)
    layered.puller._whole_image = None
    for stage in (whole, layered):
        for at, rate in changes:
            stage.env.at(at / 4 + ASIDE / 5, stage.link.set_rate, rate)
        stage.env.at(12.0, stage.link.set_rate, RATE)
        stage.run()

    assert whole.puller._whole_image is not None
    assert [pytest.approx(_course(pull)) for pull in layered.pulls] == [_course(pull) for pull in whole.pulls]
    assert layered.puller.pulled_bytes == whole.puller.pulled_bytes
    assert layered.became_present == whole.became_present
    assert layered.store.images == whole.store.images
    assert layered.store.blobs == whole.store.blobs
    assert layered.store.chains == whole.store.chains
    assert _without_layers(layered) == _without_layers(whole)


def _course(pull: ImagePullRequest) -> tuple[float, ...]:
    # Of a pull that was broken off, the last byte that had to be there never was.
    downloaded_at = None if pull.done_at is None else pull.downloaded_at
    times = (pull.requested_at, pull.began_at, downloaded_at, pull.done_at)
    return (*[-1.0 if time is None else time for time in times], pull.downloaded, pull.failures)


def _without_layers(stage: Stage) -> list[list[object]]:
    return [what for _, *what in stage.log if what[0] != "layer"]


# --------------------------------------------------------------------------------------- one pull, calculated otherwise


def arrivals(sizes: list[int], slots: int) -> list[Fraction]:
    """When each of some downloads ends that share one link fairly, *slots* at once, in this order."""
    left = [Fraction(size) for size in sizes]
    ends: list[Fraction] = [Fraction(0)] * len(sizes)
    now, waiting, moving = Fraction(0), list(range(len(sizes))), list[int]()
    while waiting or moving:
        while waiting and (not slots or len(moving) < slots):
            moving.append(waiting.pop(0))
        least = min(left[one] for one in moving)
        now += least * len(moving) / Fraction(RATE)
        for one in moving:
            left[one] -= least
            if not left[one]:
                ends[one] = now
        moving = [one for one in moving if left[one]]
    return ends


def unpacked_at(there: list[Fraction], seconds: list[Fraction], threads: int) -> Fraction:
    """When the last layer is committed: one thread goes bottom up, several take layers as they come."""
    if threads == 1:
        end = Fraction(0)
        for arrived, takes in zip(there, seconds, strict=True):
            end = max(end, arrived) + takes
        return end
    free, ends = [Fraction(0)] * threads, []
    for _, number in sorted((at, number) for number, at in enumerate(there)):
        thread = free.index(min(free))
        free[thread] = max(free[thread], there[number]) + seconds[number]
        ends.append(free[thread])
    return max(ends)


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 400)), min_size=1, max_size=8), RUNTIMES)
def test_one_pull_on_an_idle_node_takes_what_the_formula_says(layers, drawn):
    runtime = RuntimeSpec(
        slots=drawn.slots,
        slots_per=drawn.slots_per,
        resolve=drawn.resolve,
        unpack_rate=drawn.unpack_rate,
        unpack_threads=drawn.unpack_threads,
        layer_overhead=drawn.layer_overhead,
        reuse=drawn.reuse,
    )
    image = Image(
        digest_of(b"image"),
        tuple(
            Layer(digest_of(f"layer {number}".encode()), size, unpacked=unpacked)
            for number, (size, unpacked) in enumerate(layers)
        ),
        ("i",),
    )
    stage = Stage(History((image,), runtime, None, (Visit(0.0, 0, 0.0, None),))).run()
    there = arrivals([size for size, _ in layers], runtime.slots)
    rate = Fraction(runtime.unpack_rate)
    seconds = [Fraction(runtime.layer_overhead) + (unpacked / rate if rate else 0) for _, unpacked in layers]

    assert pytest.approx(float(runtime.resolve + max(there))) == stage.pulls[0].downloaded_at
    assert pytest.approx(float(runtime.resolve + unpacked_at(there, seconds, runtime.unpack_threads))) == (
        stage.pulls[0].done_at
    )
