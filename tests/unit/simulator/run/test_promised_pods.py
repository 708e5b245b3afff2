"""Promises in the annotations of simulated pods, and the summary of how they were kept."""

import json

import pytest

from lamina.model.pod import Owner
from lamina.scheduling.config.named_profiles import named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.run import simulate, summary
from lamina.simulator.run.promised_pods import CapacityRecorder, controller_of, promised_slo
from lamina.simulator.workloads import load_scenario
from lamina.testing import a_pod
from lamina.trace.trace_records import NodeJoined, NodeLeft

SCENARIO = """
layers: {L: 1kB}
images: {'web:1': [L]}
nodes: [{name: n, cpu: 2, memory: 4Gi, holds: ['web:1']}]
defaults: {startDelay: 0s, runtime: plain}
deployments:
- {name: low, image: 'web:1', replicas: 2, cpu: 1, qos: {slo: 0.5, class: bronze}}
- {name: high, at: 20s, image: 'web:1', cpu: 1, priority: 10, qos: {slo: 1}}
until: 100
"""


def kube_default():
    return named("kube-default", registry())


def test_a_run_measures_the_promises_of_its_controllers(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    found = summary(simulate(load_scenario(path), kube_default()))["qos"]

    # Of low's two pods, one runs for 100 s. The other runs for 20 s, and its replacement waits for 80 s.
    assert 0.6 == pytest.approx(found["classes"]["bronze"]["mean"])
    assert ["bronze", "slo-1"] == list(found["classes"])
    # The pod with the higher priority is placed a second after its victim was removed: back-off.
    assert 79 / 80 == pytest.approx(found["classes"]["slo-1"]["mean"])
    assert {"total": 1, "preempted": 1} == found["disruptions"]
    assert (2, 0.5) == (found["controllers"], found["missed"])
    assert 1 / 200 == pytest.approx(found["capacity_lost"])
    json.dumps(found)


def test_a_run_without_promises_measures_none(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.split("deployments", maxsplit=1)[0] + "until: 100\n", encoding="utf-8")

    assert "qos" not in summary(simulate(load_scenario(path), kube_default()))


@pytest.mark.parametrize(
    ("text", "slo"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("0.9", 0.9, id="a share"),
        pytest.param("1", 1.0, id="all"),
        pytest.param("90%", None, id="no number"),
        pytest.param("1.5", None, id="above 1"),
        pytest.param("nan", None, id="not a number"),
    ],
)
def test_the_slo_of_a_pod_is_a_share(text, slo):
    assert slo == promised_slo(a_pod("p", annotations={} if text is None else {"slo": text}))


@pytest.mark.parametrize(
    ("fields", "controller"),
    [
        pytest.param({}, "default/p", id="alone"),
        pytest.param({"owner": Owner("ReplicaSet", "set", "u")}, "default/set", id="owned"),
        pytest.param(
            {"annotations": {"controller": "web"}, "owner": Owner("Job", "j", "u")}, "default/web", id="named"
        ),
        pytest.param({"annotations": {"controller": ""}}, "default/p", id="an empty name"),
    ],
)
def test_the_controller_of_a_pod_is_named_by_its_annotation_or_its_owner(fields, controller):
    assert controller == controller_of(a_pod("p", **fields))


def test_the_capacity_changes_with_the_nodes():
    recorder = CapacityRecorder()
    for record in (NodeJoined(0.0, "a", {"cpu": 2000}), NodeJoined(5.0, "b", {"cpu": 1000}), NodeLeft(9.0, "a")):
        recorder.handlers[type(record)](record)

    assert [(0.0, 2000.0), (5.0, 3000.0), (9.0, 1000.0)] == recorder.steps
