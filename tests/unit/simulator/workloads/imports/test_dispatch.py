"""What files of other tools bring into a scenario, and how they get along with what is there already."""

from pathlib import Path

import msgspec
import pytest

from lamina.model.errors import InputError
from lamina.simulator.pulls.runtime_spec import DiskSpec
from lamina.simulator.workloads import Scenario, load_scenario
from lamina.simulator.workloads.pull_entries import PRESETS

IMAGES = "layers: {L1: 300MB}\nimages: {'web:1': [L1]}\n"
NODES = "nodes: [{name: n, count: 4, cpu: 4, memory: 16Gi}]\n"

JOBS = {
    "nb_res": 4,
    "jobs": [
        {"id": "1", "subtime": 0, "res": 2, "profile": "p", "walltime": 100},
        {"id": "2", "subtime": 5.5, "res": 1, "profile": "p"},
    ],
    "profiles": {"p": {"type": "delay", "delay": 60}},
}

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
      annotations: {simSpec: "- {seconds: 5}"}
    spec: {containers: [{name: main, image: "web:1"}]}
"""


@pytest.fixture
def load(tmp_path):
    """Write a scenario beside a Batsim workload and a manifest, and load it."""
    (tmp_path / "jobs.json").write_bytes(msgspec.json.encode(JOBS))
    (tmp_path / "web.yaml").write_text(DEPLOYMENT, encoding="utf-8")

    def load(text: str, data: Path | None = None) -> Scenario:
        path = tmp_path / "main.yaml"
        path.write_text(IMAGES + text, encoding="utf-8")
        return load_scenario(path, data=data)

    return load


@pytest.fixture
def told(load, tmp_path):
    """Load what cannot be loaded; return the message without the folder."""

    def told(text: str, data: Path | None = None) -> str:
        with pytest.raises(InputError) as caught:
            load(text, data)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return told


def test_pods_of_an_import_come_beside_those_that_are_listed(load):
    scenario = load(NODES + "pods: [{name: p, at: 1s, image: 'web:1'}]\nimports: [{batsim: jobs.json}]\n")

    assert [("w0-1-1", 0.0), ("w0-1-2", 0.0), ("p", 1.0), ("w0-2", 5.5)] == [
        (one.pod.name, one.at) for one in scenario.arrivals
    ]
    assert (60.0, 100.0) == (scenario.arrivals[0].life.seconds, scenario.arrivals[0].life.deadline)


def test_nodes_of_an_import_are_as_the_defaults_say(load):
    scenario = load(
        "defaults: {bandwidth: 1MB, runtime: crio, disk: 20GB}\nimports: [{batsim: jobs.json, nodes: 3}]\n"
        "events: [{at: 5s, cordon: node2}]\n"
    )

    assert ["node1", "node2", "node3"] == [node.name for node in scenario.nodes]
    assert {(1e6, PRESETS["crio"], DiskSpec(capacity=20_000_000_000))} == {
        (node.bandwidth, node.runtime, node.disk) for node in scenario.nodes
    }


def test_controllers_of_an_import_can_be_scaled(load):
    scenario = load(
        NODES + "imports: [{manifests: web.yaml}]\nevents: [{at: 5s, scale: {name: web, to: 3}}]\nuntil: 1h\n"
    )

    assert [("Deployment", "web", 2)] == [(one.kind, one.name, one.replicas) for one in scenario.controllers]
    assert ["scale"] == [one.kind for one in scenario.events]


def test_files_are_looked_for_in_the_folder_for_data(load, told, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "jobs.json").rename(elsewhere / "jobs.json")

    assert 3 == len(load(NODES + "imports: [{batsim: jobs.json}]\n", elsewhere).arrivals)
    assert "nowhere: there is no such folder for data; name the one that imports are in" == told(
        NODES, tmp_path / "nowhere"
    )


def test_mistakes_of_imports_are_told_with_all_others_and_not_twice(told):
    said = told(
        NODES
        + """
imports:
- {batsim: job.json}
- {batsim: jobs.json, manifests: web.yaml}
- {batsim: jobs.json, keepAlive: 5m}
pods: [{name: p, image: "wbe:1"}]
events: [{at: 5s, remove: w0-1-1}]
"""
    )

    assert "main.yaml:6: imports[0].batsim: " in said
    assert "main.yaml:7: imports[1]: say exactly one of batsim, swf, alibabaDlrm" in said
    assert "main.yaml:8: imports[2].keepAlive: means nothing here" in said
    assert "main.yaml:9: pods[0].image: there is no image 'wbe:1'; did you mean 'web:1'?" in said
    # The pod that is removed may have been in a file that could not be read.
    assert 4 == len(said.splitlines())


@pytest.mark.parametrize(
    ("said", "message"),
    [
        pytest.param(
            "pods: [{name: w0-2, image: 'web:1'}]\nimports: [{batsim: jobs.json}]\n",
            "imports[0].batsim: there is a second pod 'w0-2', the first is in main.yaml:4",
            id="a pod of the same name",
        ),
        pytest.param(
            "imports: [{batsim: jobs.json, nodes: {count: 2, name: n}}]\n",
            "imports[0].batsim: there is a second node 'n1', the first is in main.yaml:3",
            id="a node of the same name",
        ),
        pytest.param(
            "defaults: {disk: 900MB}\nimports: [{batsim: jobs.json}]\n",
            "imports[0]: the image 'web:1' needs 990 MB packed and unpacked, the disk of node n1 has 900 MB",
            id="a disk too small",
        ),
        pytest.param(
            "imports: [{manifests: web.yaml}]\n",
            "imports[0]: 'web' is restarted for ever; say until when the scenario runs",
            id="pods that are restarted for ever",
        ),
    ],
)
def test_what_an_import_brings_has_to_fit(told, said, message):
    assert message == told(NODES + said).partition(": ")[2]


def test_what_an_import_left_out_is_kept_for_people(load, tmp_path):
    (tmp_path / "more.yaml").write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", encoding="utf-8")
    scenario = load(NODES + "imports: [{manifests: more.yaml}]\n")

    assert 1 == len(scenario.notes)
    assert scenario.notes[0].startswith(f"{tmp_path}/main.yaml:4: ")
    assert "Secret" in scenario.notes[0]
