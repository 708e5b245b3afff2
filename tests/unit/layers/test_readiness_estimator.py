"""Readiness: how soon a pod could start on each row, as far as images go."""

import math

import numpy as np
import pytest

from lamina.layers.arriving_images import ArrivingImages
from lamina.layers.bit_matrix import FIRST_ROWS
from lamina.layers.layer_index import REMEMBERED, LayerIndex
from lamina.layers.pull_rates import PullRates
from lamina.layers.readiness_estimator import Readiness, ReadinessEstimator
from lamina.model.image import Image
from tests.unit.layers.shelf import APP, APP_ON_OS, BIG, COLD_APP, COLD_BIG, COLD_TOOL, MB, OS, TOOL, TOOL_ON_OS

COLD_BOTH = 8 + 0.15 * 4 + 0.04  # 500 MB at 125, 800 MB at 100


class Track:
    """Everything a stopwatch looks at."""

    def __init__(self) -> None:
        self.index = LayerIndex()
        self.rates = PullRates(FIRST_ROWS)
        self.arrivals = ArrivingImages(self.index, self.rates)
        self.watch = ReadinessEstimator(self.index, self.rates, self.arrivals)

    def ready(self, *images: Image, whole_only: bool = False) -> Readiness:
        return Readiness([(0, self.index.want(images))], whole_only=whole_only)

    def times(self, ready: Readiness, height: int = 1) -> list[float]:
        self.watch.look(ready, height)
        return [float(one) for one in ready.seconds[:height]]

    def at(self, now: float) -> None:
        self.arrivals.pass_time(now)


@pytest.fixture
def track():
    return Track()


def test_seconds_are_zero_where_every_image_is_there(track):
    track.index.hold(0, [APP, TOOL])
    ready = track.ready(TOOL, APP)

    assert [0] == track.times(ready)
    assert ([0], [0]) == (ready.transfer[:1].tolist(), ready.download[:1].tolist())


@pytest.mark.parametrize(
    ("wants", "holds", "want"),
    [
        pytest.param([APP], [], COLD_APP, id="a node that has nothing"),
        pytest.param([APP], [OS], APP_ON_OS, id="a node with the base"),
        pytest.param([OS], [APP], 0.04, id="all layers and no manifest"),
        pytest.param([APP, TOOL], [], COLD_BOTH, id="two images that share a base: 8 + 0.15*4 + 0.04"),
        pytest.param([APP, TOOL], [APP], TOOL_ON_OS, id="one of two"),
    ],
)
def test_seconds_are_those_of_a_pull_where_something_is_missing(track, wants, holds, want):
    track.index.hold(0, holds)

    assert [want] == pytest.approx(track.times(track.ready(*wants)))


def test_nothing_is_known_where_nothing_was_reported(track):
    """Not even where all of it is on its way; and figures there are no NaN that could spread."""
    track.index.hold(1, [])
    track.arrivals.expect("p", 2, [APP])
    ready = track.ready(APP)

    assert [True, False, True] == np.isnan(track.times(ready, 3)).tolist()
    assert np.isfinite([ready.transfer, ready.download]).all()


def test_seconds_wait_for_the_last_image_on_its_way(track):
    """Both are on their way, the base with the first of them; time passes."""
    track.index.hold(0, [])
    track.arrivals.expect("p", 0, [APP, TOOL])
    one, both = track.ready(APP), track.ready(TOOL, APP)

    assert (COLD_APP, COLD_APP + TOOL_ON_OS) == pytest.approx((track.times(one)[0], track.times(both)[0]))
    track.at(2.0)
    assert (COLD_APP - 2, COLD_APP + TOOL_ON_OS - 2) == pytest.approx((track.times(one)[0], track.times(both)[0]))
    assert 0 == one.transfer[0] == one.download[0]


def test_what_should_have_come_by_now_may_come_any_moment(track):
    """It is not waited for backwards in time."""
    track.index.hold(0, [])
    track.arrivals.expect("p", 0, [APP])
    track.at(COLD_APP + 30)

    assert [0] == track.times(track.ready(APP))


def test_seconds_queue_behind_what_is_being_pulled(track):
    """Also if nothing else is missing: all of OS comes with APP, but its manifest has to be asked for."""
    track.index.hold(0, [])
    track.arrivals.expect("p", 0, [APP])
    track.at(1.0)

    assert [COLD_APP - 1 + COLD_BIG] == pytest.approx(track.times(track.ready(BIG)))
    assert [COLD_APP - 1 + TOOL_ON_OS] == pytest.approx(track.times(track.ready(TOOL)))
    assert [COLD_APP - 1 + 0.04] == pytest.approx(track.times(track.ready(OS)))


def test_an_image_on_its_way_may_be_worth_less_than_a_node_that_has_nothing(track):
    """The one waits in a long queue."""
    track.index.hold(0, [])
    track.index.hold(1, [])
    track.arrivals.expect("p", 0, [BIG, APP])
    queued, cold = track.times(track.ready(APP), 2)

    assert (COLD_BIG + COLD_APP, COLD_APP) == pytest.approx((queued, cold))


def test_one_image_on_its_way_and_one_missing_wait_for_the_queue_and_the_pull(track):
    track.index.hold(0, [])
    track.arrivals.expect("p", 0, [APP])

    assert [COLD_APP + TOOL_ON_OS] == pytest.approx(track.times(track.ready(APP, TOOL)))


def test_an_image_a_pod_runs_with_is_there_before_a_report_has_it(track):
    """Between two ticks as well, and the same for old and new estimates."""
    track.index.hold(0, [])
    track.arrivals.expect("p", 0, [APP])
    ready = track.ready(APP)
    track.times(ready)
    track.at(1.0)
    track.at(1.2)
    track.arrivals.ran("p")

    assert ([0], [0]) == (track.times(ready), track.times(track.ready(APP)))
    track.at(9.0)
    assert ([0], [0]) == (track.times(ready), track.times(track.ready(APP)))


@pytest.mark.parametrize(
    ("by_prefix", "disk"),
    [
        # 1000 MB used of 1200; 375 MB to download, 500 MB unpacked; 85 % are 1020 MB.
        pytest.param(False, (1000 + 375 + 500 - 1020) / (3.3 * 125), id="blobs are kept"),
        pytest.param(True, (1000 + 500 - 1020) / (2.3 * 125), id="blobs are thrown away"),
    ],
)
def test_seconds_include_what_must_make_room(track, by_prefix, disk):
    """But not where nothing has to be pulled: row 1 has the image, row 2 has it on its way."""
    for row, holds in enumerate([[], [APP], []]):
        track.index.hold(row, holds, by_prefix=by_prefix)
        track.rates.observe(row, 0.0, 0.0, 1200 * MB, 200 * MB)
    track.arrivals.expect("p", 2, [APP])

    assert [COLD_APP + disk, 0, COLD_APP] == pytest.approx(track.times(track.ready(APP), 3))


def test_rates_are_those_of_the_row(track):
    """Row 1 downloads at 12.5 MB/s: 30 s for 375 MB, and 20 s for its missing 250 MB."""
    track.index.hold(0, [])
    track.index.hold(1, [])
    track.rates.observe(1, 12.5e6, 0.0, 0, 0)
    ready = track.ready(APP)

    assert [COLD_APP, 30 + 0.15 * 5 + 0.04] == pytest.approx(track.times(ready, 2))
    assert [3, 30] == pytest.approx(ready.transfer[:2].tolist())


def test_download_is_told_as_a_share_of_all(track):
    """And its seconds are those that only this pod would cause."""
    for row, holds in enumerate([[], [OS], [APP]]):
        track.index.hold(row, holds)
    track.arrivals.expect("p", 0, [TOOL])
    ready = track.ready(APP)
    track.watch.look(ready, 3)

    assert [125 / 375, 125 / 375, 0] == pytest.approx(ready.download[:3].tolist())
    assert [1, 1, 0] == pytest.approx(ready.transfer[:3].tolist())


@pytest.mark.parametrize(
    ("holds", "want", "share"),
    [
        pytest.param([], COLD_APP, 1, id="nothing"),
        pytest.param([TOOL], COLD_APP, 1, id="another image on the same base: as if it had nothing"),
        pytest.param([APP], 0, 0, id="the image"),
    ],
)
def test_without_layers_only_whole_images_count(track, holds, want, share):
    """To compare with."""
    track.index.hold(0, holds)
    ready = track.ready(APP, whole_only=True)

    assert [want] == pytest.approx(track.times(ready))
    assert share == ready.download[0]


# --------------------------------------------------------------------------------------------------------------- platforms


def test_a_row_is_timed_for_what_the_images_are_on_its_platform(track):
    """Rows 0 and 2 are of the first platform, row 1 of the second, row 3 of one for which the images are not known."""
    for row, platform in enumerate([0, 1, 0, 2]):
        track.index.hold(row, [])
        track.watch.place(row, platform)
    variants = [(0, track.index.want([APP])), (1, track.index.want([OS])), (2, None)]
    ready = Readiness(variants, whole_only=False)
    times = track.times(ready, 4)

    # OS alone: 250 MB at 125, 400 MB at 100.
    assert [COLD_APP, 4 + 0.15 * 2 + 0.04, COLD_APP] == pytest.approx(times[:3])
    assert math.isnan(times[3])
    assert (0, 0) == (ready.transfer[3], ready.download[3])
    assert [0, 1, 0, 2] == [track.watch.platform(row) for row in range(4)]


def test_a_row_may_get_another_platform(track):
    """Another node has it now; old estimates change as well."""
    track.index.hold(0, [])
    variants = [(0, track.index.want([APP])), (1, track.index.want([TOOL]))]
    ready = Readiness(variants, whole_only=False)
    assert [COLD_APP] == pytest.approx(track.times(ready))
    track.watch.place(0, 1)

    assert [COLD_TOOL] == pytest.approx(track.times(ready))


# ------------------------------------------------------------------------------------------------------------ looking again


def test_an_old_estimate_is_updated(track):
    """Patched where something changed, and equal to a new estimate."""
    for row in range(6):
        track.index.hold(row, [])
    ready = track.ready(APP)
    track.times(ready, 6)
    kept = ready.seconds
    track.index.hold(0, [APP])
    track.index.hold(1, [OS])
    track.index.forget(2)
    track.arrivals.expect("p", 3, [TOOL])
    track.rates.observe(4, 12.5e6, 0.0, 0, 0)
    track.index.touch(4)
    track.at(2.0)

    expected = [0, APP_ON_OS, math.nan, COLD_TOOL - 2 + APP_ON_OS, 30.79, COLD_APP]
    assert expected == pytest.approx(track.times(ready, 6), nan_ok=True)
    assert expected == pytest.approx(track.times(track.ready(APP), 6), nan_ok=True)
    assert ready.seconds is kept


def test_nothing_is_timed_when_nothing_changed(track):
    track.index.hold(0, [])
    ready = track.ready(APP)
    track.times(ready)
    ready.seconds[0] = -7

    assert [-7] == track.times(ready)


def test_a_query_after_many_changes_sees_the_current_state(track):
    track.index.hold(0, [])
    track.index.hold(1, [])
    ready = track.ready(APP)
    track.times(ready, 2)
    track.index.hold(0, [OS])
    for _ in range(3 * REMEMBERED):
        track.index.touch(1)

    assert [APP_ON_OS, COLD_APP] == pytest.approx(track.times(ready, 2))


@pytest.mark.parametrize("height", [0, 1, FIRST_ROWS, FIRST_ROWS + 1, 5 * FIRST_ROWS])
def test_any_number_of_rows_can_be_looked_at(track, height):
    """On rows beyond the known ones, nothing is known."""
    track.index.hold(0, [APP])

    assert ([0.0] + [math.nan] * height)[:height] == pytest.approx(track.times(track.ready(APP), height), nan_ok=True)


def test_a_query_of_fewer_rows_may_be_followed_by_one_of_more(track):
    """Rows between them changed in the meantime."""
    for row in range(30):
        track.index.hold(row, [])
    ready = track.ready(APP)
    track.times(ready, 16)
    track.index.hold(20, [APP])
    track.index.hold(10, [APP])
    assert [COLD_APP] * 3 == pytest.approx(track.times(ready, 3))

    assert [10, 20] == np.flatnonzero(np.array(track.times(ready, 30)) == 0).tolist()
