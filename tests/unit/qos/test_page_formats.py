"""The texts of the debug page and of the log, byte for byte."""

import json
from pathlib import Path

import pytest

from lamina.qos.page_formats import (
    LOG_COLUMNS,
    controller_table,
    go_duration,
    json_page,
    log_line,
    replica_table,
)
from lamina.qos.promise import QosApproach
from lamina.qos.qos_view import QosView, qos_view
from tests.unit.qos.qos_lives import Cluster, promised

GOLDEN = Path(__file__).parent / "golden"


def sample() -> QosView:
    """The page with the two published rows, and a group of two."""
    cluster = Cluster()
    cluster.create(0, "long", of="controller-1", promise=promised(0.8), replicas=1)
    cluster.bind(0, "long")
    # Waited for 636 seconds, was bound in 591 milliseconds and ran for 493 seconds.
    born = 7446 - 1129.591
    cluster.create(born, "late", of="controller-2", promise=promised(0.5), replicas=1)
    cluster.bind(born + 636.591, "late", took=0.591)
    group = promised(0.9, QosApproach.CONCURRENT)
    cluster.create(7406, "g0", "g1", of="group", promise=group, replicas=2)
    cluster.bind(7426, "g0", took=0.25)
    return qos_view(cluster.engine, 7446)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        pytest.param(7446, "2h4m6s", id="hours"),
        pytest.param(0, "0s", id="zero"),
        pytest.param(0.591, "591ms", id="milliseconds"),
        pytest.param(1, "1s", id="one second"),
        pytest.param(1.001, "1s", id="longer than a second is cut to seconds"),
        pytest.param(1861.5, "31m1s", id="minutes"),
        pytest.param(3600, "1h0m0s", id="zero minutes are printed"),
        pytest.param(-142.541, "-2m22.541s", id="negative ones keep milliseconds"),
        pytest.param(-0.5, "-500ms", id="negative milliseconds"),
        pytest.param(-1.5, "-1.5s", id="no zeros at the end"),
        pytest.param(0.0004, "0s", id="below a millisecond"),
        pytest.param(-0.0004, "0s", id="no negative zero"),
        pytest.param(float("inf"), "+Inf", id="never"),
    ],
)
def test_a_duration_is_printed_as_go_prints_it(seconds, text):
    assert go_duration(seconds) == text


def test_the_first_format_of_the_page():
    assert controller_table(sample()) == (GOLDEN / "controllers.txt").read_text(encoding="utf-8")


def test_the_published_rows_are_within_1_1_seconds():
    """Published: 2h4m6s running at SLO 0.8, TTV 31m1s; 8m13s running after 10m36s waiting at 0.5, TTV -2m22.541s."""
    first, second, *_ = sample().controllers

    assert go_duration(first.slack) == "31m1s"
    assert abs(second.slack - -142.541) < 1.1
    line = controller_table(sample()).splitlines()[2].split()
    assert line == ["controller-2", "0.44/0.50", "-2m23.591s", "8m13s", "10m36s", "591ms"]


def test_the_later_format_of_the_page():
    assert replica_table(sample()) == (GOLDEN / "replicas.txt").read_text(encoding="utf-8")


def test_the_page_as_json():
    text = json_page(sample())

    assert text == (GOLDEN / "page.json").read_bytes()
    page = json.loads(text)
    assert page["at"] == 7446
    assert [each["name"] for each in page["controllers"]] == ["controller-1", "controller-2", "group"]


def test_a_finished_incarnation_is_one_line_of_csv():
    cluster = Cluster()
    cluster.create(1000, "a,b", promise=promised(0.5), replicas=1)
    cluster.bind(1010, "a,b", took=0.5)
    cluster.evict(1020, "a,b")

    (finished,) = cluster.finished
    # QoS 10/20 is the SLO, so the metric is 0.
    assert (
        log_line(finished)
        == '1020,"a,b",web,0.5,0,average,1000,9500,500,10000,false,0.500000,0.0000,9500,500,10000,0\n'
    )
    assert len(LOG_COLUMNS.split(",")) == 17
