"""QosHistory on a real API server: it keeps what the scheduler writes, also the largest, and rejects what is impossible."""

import json

import pytest

from lamina.services.scheduler.qos.history_conversion import stored_history
from lamina.wire.custom_resources.qos_history import (
    SPEC_LIMIT,
    QosHistory,
    StoredController,
    StoredPod,
    StoredTimes,
    decode_qos_history,
    encode_qos_history,
)
from lamina.wire.errors import WireError
from tests.integration.custom_resources.people import forget, refused
from tests.unit.qos.qos_lives import Cluster, promised

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

HISTORIES = "/apis/lamina.dev/v1alpha1/qoshistories"
NAME = "lamina-scheduler"


@pytest.fixture(autouse=True)
def none_left(cluster):
    forget(cluster, f"{HISTORIES}/{NAME}")
    yield
    forget(cluster, f"{HISTORIES}/{NAME}")


def written(history: QosHistory) -> dict[str, object]:
    found: dict[str, object] = json.loads(encode_qos_history(NAME, history) or b"")
    return found


def a_history() -> QosHistory:
    lives = Cluster()
    lives.create(0.5, "a", "b", promise=promised(0.8), replicas=2)
    lives.bind(1.25, "a", took=0.25)
    lives.evict(20.0, "a")
    return stored_history(lives.engine.summary(1_700_000_000.5, 10, 10))


def test_it_is_kept_as_it_was_written(cluster):
    cluster.api("POST", HISTORIES, written(a_history()))
    stored = json.dumps(cluster.api("GET", f"{HISTORIES}/{NAME}")).encode()

    assert a_history() == decode_qos_history(stored)
    assert "OBSERVED" in cluster.kubectl("get", "qh")


def test_the_largest_one_is_kept(cluster):
    pods = tuple(
        StoredPod(f"uid-{number:036}", "effective", StoredTimes(12345.678, 0, 9.5, 0.25)) for number in range(5)
    )
    controllers = tuple(
        StoredController("default", f"c{number:040}", 0.9, 0.9, "average", 0.1, "Deployment", 5, pods=())
        for number in range(2000)
    )
    largest = QosHistory(
        1_700_000_000.0, (StoredController("d", "p", 0.9, 0.9, "average", 0.1, pods=pods), *controllers[1:])
    )
    body = encode_qos_history(NAME, largest)
    assert body is not None
    assert SPEC_LIMIT / 4 < len(body)

    cluster.api("POST", HISTORIES, json.loads(body))


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"slo": 1.5}, id="SLO above 1"),
        pytest.param({"approach": "best"}, id="unknown approach"),
        pytest.param({"times": {"waiting": -1}}, id="negative time"),
        pytest.param({"pods": [{"uid": "u", "state": "dead"}]}, id="unknown state"),
    ],
)
def test_an_impossible_value_is_rejected_by_the_schema_and_by_the_reader_alike(cluster, change):
    document = written(a_history())
    document["spec"]["controllers"][0] |= change

    assert 422 == refused(lambda: cluster.api("POST", HISTORIES, document))[0]
    with pytest.raises(WireError):
        decode_qos_history(json.dumps(document).encode())


def test_a_write_fails_if_another_client_wrote_meanwhile(cluster):
    version = cluster.api("POST", HISTORIES, written(a_history()))["metadata"]["resourceVersion"]
    body = json.loads(encode_qos_history(NAME, QosHistory(5.0, ()), version) or b"")
    cluster.api("PUT", f"{HISTORIES}/{NAME}", body)

    assert 409 == refused(lambda: cluster.api("PUT", f"{HISTORIES}/{NAME}", body))[0]
