"""Rates: how fast rows download and unpack, and how full their disks are."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.layers.pull_rates import DOWNLOAD, FASTEST, SLOWEST, UNPACK, PullRates
from lamina.model.errors import WiringError

MB = 1_000_000
ROW_0 = np.array([0])


def pull(rates: PullRates, download: float, unpack: float) -> float:
    seconds, loading = rates.pull_seconds(ROW_0, np.array([download * MB]), np.array([unpack * MB]))
    assert [download * MB / DOWNLOAD] == loading.tolist()
    assert float(seconds[0]) == rates.pull_takes(0, download * MB, unpack * MB)
    return float(seconds[0])


def room(rates: PullRates, download: float, unpack: float, *, by_prefix: bool) -> float:
    seconds = rates.disk_seconds(ROW_0, np.array([download * MB]), np.array([unpack * MB]), np.array([by_prefix]))
    assert seconds is not None
    return float(seconds[0])


@pytest.mark.parametrize(
    ("download", "unpack", "want"),
    [
        pytest.param(0, 0, 0.04, id="nothing: the manifest is still asked for"),
        pytest.param(250, 0, 2.04, id="downloading only: 2 + 0.04"),
        pytest.param(0, 300, 3.04, id="unpacking only: 3 + 0.04"),
        pytest.param(250, 300, 3.34, id="unpacking takes longer: 3 + 0.15*2 + 0.04"),
        pytest.param(500, 300, 4.49, id="downloading takes longer: 4 + 0.15*3 + 0.04"),
        pytest.param(125, 100, 1.19, id="as long: 1 + 0.15*1 + 0.04"),
    ],
)
def test_a_pull_takes_the_longer_of_two_and_a_part_of_the_other(download, unpack, want):
    """At 125 MB/s and 100 MB/s unpacked, which is assumed for unmeasured rows."""
    assert want == pytest.approx(pull(PullRates(1), download, unpack))


def test_a_pull_takes_as_long_as_its_own_row_makes_it():
    """Row 1 was seen to download at 25 MB/s and to unpack at 200 MB/s: 10 + 0.15*1 + 0.04."""
    rates = PullRates(2)
    rates.observe(1, 25e6, 200e6, 0, 0)
    # Without `follow` the other row is still as was assumed.
    seconds, _ = rates.pull_seconds(slice(None), np.full(2, 250e6), np.full(2, 200e6))

    assert [2 + 0.15 * 2 + 0.04, 10.19] == pytest.approx(seconds.tolist())


@pytest.mark.parametrize(
    ("told", "counts"),
    [
        pytest.param(0.0, DOWNLOAD, id="nothing"),
        pytest.param(-5.0, DOWNLOAD, id="negative"),
        pytest.param(float("nan"), DOWNLOAD, id="not a number"),
        pytest.param(1e-300, SLOWEST, id="slower than anything"),
        pytest.param(3e7, 3e7, id="plausible"),
        pytest.param(1e300, FASTEST, id="faster than anything"),
        pytest.param(float("inf"), FASTEST, id="infinite"),
    ],
)
def test_a_rate_that_cannot_be_is_cut_off(told, counts):
    rates = PullRates(1)
    rates.observe(0, told, told, 0, 0)

    usual = {DOWNLOAD: UNPACK}
    assert (counts, usual.get(counts, counts)) == (rates.download[0], rates.unpack[0])


def test_what_is_not_told_any_more_is_assumed_again():
    """Each report stands for itself."""
    rates = PullRates(1)

    assert rates.observe(0, 3e7, 4e7, 100, 50)
    assert not rates.observe(0, 3e7, 4e7, 100, 50)
    assert rates.observe(0, 0.0, 4e7, 100, 50)
    assert (DOWNLOAD, 4e7, 100, 50) == (rates.download[0], rates.unpack[0], rates.disk[0], rates.used[0])
    assert rates.observe(0, 0.0, 0.0, 0, 0)
    assert (UNPACK, 0, 0) == (rates.unpack[0], rates.disk[0], rates.used[0])


@pytest.mark.parametrize("field", range(4))
def test_any_figure_may_be_news(field):
    rates = PullRates(1)
    told = [3e7, 4e7, 100, 50]
    rates.observe(0, *told)
    told[field] += 1

    assert rates.observe(0, *told)


def test_what_is_assumed_can_be_set_for_rows_that_did_not_tell():
    """One of the two rates may be told and the other not."""
    rates = PullRates(3)
    rates.observe(1, 3e7, 0.0, 0, 0)
    rates.observe(2, 0.0, 4e7, 0, 0)
    rates.assume(1e6, 2e6)

    assert ([*near(3e7), 3e7, *near(3e7)], [*near(4e7, 4e7), 4e7]) == (rates.download.tolist(), rates.unpack.tolist())
    rates.observe(1, 0.0, 0.0, 0, 0)
    rates.observe(2, 0.0, 0.0, 0, 0)
    rates.update_assumed()
    assert ([1e6] * 3, [2e6] * 3) == (rates.download.tolist(), rates.unpack.tolist())


def test_everybody_has_to_assume_the_same():
    """Profiles share one inventory; the message says what to do about it."""
    rates = PullRates(1)
    rates.assume(1e6, 2e6)
    rates.assume(1e6, 2e6)

    with pytest.raises(WiringError, match="must assume the same bandwidth and unpack rate"):
        rates.assume(1e6, 3e6)


@pytest.mark.parametrize("row", [0, 1, 2, 3, 100])
def test_rows_come_as_they_are_needed(row):
    """With what is assumed."""
    rates = PullRates(2)
    rates.assume(1e6, 2e6)
    rates.observe(row, 3e7, 4e7, 100, 50)
    rates.reach(row + 2)

    assert (1e6, 2e6, 0, 0) == tuple(one[row + 1] for one in (rates.download, rates.unpack, rates.disk, rates.used))
    assert {3e7, 1e6} == set(rates.download.tolist())


# ------------------------------------------------------------------------------------------------------------------ disk


@pytest.mark.parametrize(
    ("free", "by_prefix", "want"),
    [
        pytest.param(1000, False, 0, id="an empty disk"),
        pytest.param(450, False, 0, id="room up to 85 %: 550 + 100 + 200 of 850"),
        pytest.param(200, False, 250 / (3.3 * 125), id="800 + 100 + 200 - 850, at 3.3 bytes on disk for one"),
        pytest.param(200, True, 150 / (2.3 * 125), id="thrown-away blobs take no room: 800 + 200 - 850, at 2.3"),
        pytest.param(0, False, 450 / (3.3 * 125), id="a full disk"),
    ],
)
def test_making_room_is_priced_in_seconds_of_download(free, by_prefix, want):
    """A disk of 1000 MB; 100 MB to download, 200 MB unpacked; kubelets begin to remove images at 85 %."""
    rates = PullRates(1)
    rates.observe(0, 0.0, 0.0, 1000 * MB, free * MB)

    assert want == pytest.approx(room(rates, 100, 200, by_prefix=by_prefix))


def test_room_is_dearer_where_downloads_are_slower():
    """250 MB too much at 3.3 * 25 MB/s."""
    rates = PullRates(1)
    rates.observe(0, 25e6, 0.0, 1000 * MB, 200 * MB)

    assert 250 / (3.3 * 25) == pytest.approx(room(rates, 100, 200, by_prefix=False))


def test_an_unknown_disk_has_room():
    """Row 0 did not tell, row 1 did."""
    rates = PullRates(2)
    lacking = np.full(2, 1e12)
    assert rates.disk_seconds(slice(None), lacking, lacking, np.zeros(2, dtype=bool)) is None
    rates.observe(1, 0.0, 0.0, 1000 * MB, 0)
    seconds = rates.disk_seconds(slice(None), lacking, lacking, np.zeros(2, dtype=bool))

    assert seconds is not None
    assert (0.0, True) == (seconds[0], seconds[1] > 0)


def near(*rates: float) -> list[Any]:
    """What is assumed moves in steps of 5 %."""
    return [pytest.approx(rate, rel=0.03) for rate in rates]


def test_who_has_not_been_seen_to_download_counts_as_the_middle_of_those_who_have():
    rates = PullRates(5)
    for row, rate in enumerate((8e6, 9e6, 100e6)):
        rates.observe(row, rate, 0.0, 0, 0)
    rates.update_assumed()

    assert [8e6, 9e6, 100e6, *near(9e6, 9e6)] == rates.download.tolist()
    assert [UNPACK] * 5 == rates.unpack.tolist()


def test_the_configured_rate_is_used_until_one_is_measured():
    rates = PullRates(2)
    rates.assume(50e6, 60e6)

    assert [50e6, 50e6] == rates.download.tolist()
    rates.observe(0, 10e6, 0.0, 0, 0)
    assert [False, True] == rates.update_assumed().tolist()
    assert [10e6, *near(10e6)] == rates.download.tolist()
    rates.observe(0, 0.0, 0.0, 0, 0)
    rates.update_assumed()
    assert [50e6, 50e6] == rates.download.tolist()


def test_a_row_that_comes_later_counts_as_the_others_do():
    rates = PullRates(1)
    rates.observe(0, 10e6, 20e6, 0, 0)
    rates.update_assumed()
    rates.reach(3)

    assert [10e6, *near(10e6, 10e6)] == rates.download.tolist()[:3]


def test_a_small_move_of_the_median_changes_no_row():
    rates = PullRates(2)
    rates.observe(0, 10e6, 0.0, 0, 0)
    rates.update_assumed()
    rates.observe(0, 10.01e6, 0.0, 0, 0)

    assert rates.update_assumed() is None


@given(st.lists(st.floats(SLOWEST, FASTEST), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_what_is_assumed_does_not_depend_on_the_order_of_reports(told, rng):
    """Also not on what was told in between."""
    plain, other = PullRates(13), PullRates(13)
    for row, rate in enumerate(told):
        plain.observe(row, rate, rate, 0, 0)
    rows = list(enumerate(told))
    rng.shuffle(rows)
    for row, rate in rows:
        other.observe(row, FASTEST, 0.0, 0, 0)
        other.update_assumed()
        other.observe(row, rate, rate, 0, 0)
    plain.update_assumed()
    other.update_assumed()

    assert (plain.download.tolist(), plain.unpack.tolist()) == (other.download.tolist(), other.unpack.tolist())
    assert near(sorted(told)[(len(told) - 1) // 2]) == [plain.download[12]]
