"""Summaries survive the way into the API and back, to the millisecond."""

import pytest

from lamina.qos.promise import QosApproach
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
