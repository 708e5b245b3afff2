"""Summaries survive the way into the API and back, to the millisecond."""

import msgspec
import pytest

from lamina.qos.promise import ControllerKey, QosApproach
from lamina.services.scheduler.qos.history_conversion import stored_history, summary_of
from lamina.wire.custom_resources.qos_history import decode_qos_history, encode_qos_history
from tests.unit.qos.qos_lives import Cluster, promised


@pytest.mark.parametrize("approach", QosApproach)
def test_a_summary_is_the_same_after_it_was_stored(approach):
    cluster = Cluster()
    cluster.create(0.5, "a", "b", promise=promised(0.75, approach), replicas=2)
    cluster.bind(3.25, "a", "b", took=0.25)
    cluster.evict(10.125, "a")
    cluster.create(11.0, "c", promise=promised(0.75, approach), replicas=2)
    cluster.end(20.0, "b", succeeded=True)
    summary = cluster.engine.summary(30.0, 10, 10)

    body = encode_qos_history("lamina-scheduler", stored_history(summary))

    assert body is not None
    assert summary == summary_of(decode_qos_history(body))
    assert ["b", "c"] == [pod.uid for pod in summary.controllers[0].pods]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"promise": promised(0.5, importance=1e13)}, id="importance"),
        pytest.param({"key": ControllerKey("default", "", "x" * 254)}, id="name"),
        pytest.param({"key": ControllerKey("default", "K" * 64, "web")}, id="kind"),
    ],
)
def test_a_controller_that_would_be_rejected_costs_the_others_nothing(change):
    cluster = Cluster()
    cluster.create(0.0, "a", of="first", promise=promised(0.5))
    cluster.create(0.0, "b", of="second", promise=promised(0.5))
    summary = cluster.engine.summary(10.0, 10)
    odd = msgspec.structs.replace(summary.controllers[0], **change)
    kept = summary.controllers[1]

    body = encode_qos_history("s", stored_history(msgspec.structs.replace(summary, controllers=(odd, kept)))) or b""

    assert (kept,) == summary_of(decode_qos_history(body)).controllers


def test_slots_beyond_a_limit_are_left_out_over_all_controllers():
    cluster = Cluster()
    for of in ("first", "second"):
        cluster.create(0.0, f"{of}-a", f"{of}-b", of=of, promise=promised(0.5, QosApproach.INDEPENDENT), replicas=2)

    stored = stored_history(cluster.engine.summary(10.0, 10), most_slots=3)

    assert [2, 1] == [len(one.slots) for one in stored.controllers]
