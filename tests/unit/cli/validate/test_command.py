"""``lamina validate``: every kind of file is recognized by its content and checked by its own reader."""

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner, Result

from lamina.cli.profiles import profiles
from lamina.cli.simulate.command import simulate
from lamina.cli.validate import file_kinds
from lamina.cli.validate.command import KINDS, validate
from lamina.model.digest import digest_of
from lamina.model.image import Image, Layer
from lamina.trace.recording import RecordingHeader, compressed
from lamina.wire.catalog_file import encode_catalog
from tests.unit.wire.layouts import Layout

SWF = "; Computer: x\n1 0 5 10 2 -1 -1 2 60 -1 1 3 1 4 2 -1 -1 -1\n"
POD = '{"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}'
SNAPSHOT = '{"pods": [' + POD + '], "nodes": [], "pvs": [], "pvcs": [], "storageClasses": []}'
RECORD = (
    '{"time": "2026-03-01T12:30:05Z", "event": "Add", "resource": {"kind": "Namespace", "metadata": {"name": "x"}}}\n'
)
SCENARIO = """\
images: {app: {base: 1MB}}
nodes: [{name: n, cpu: 4, memory: 1Gi}]
pods: [{name: p, image: app, cpu: 1}]
"""
WRONG = "nodes: [{name: n, cpu: 4, memory: 1Gi}]\npodz: []\n"
SCHEDULER = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
EXTENDER = "apiVersion: lamina.dev/v1alpha1\nkind: ExtenderConfiguration\nagents: [{name: layers}]\n"
USAGE = "prometheus:\n  url: http://prometheus.monitoring:9090\n"
REGISTRIES = "registries:\n- host: registry.example\n"
DOCKER = '{"auths": {"registry.example": {"auth": "bWU6c2VjcmV0"}}}'
KUBECONFIG = "apiVersion: v1\nkind: Config\nclusters: []\n"
MANIFEST = json.dumps({"schemaVersion": 2, "layers": [{"digest": digest_of(b"1"), "size": 1}]})
IMAGE = Image(digest_of(b"2"), (Layer(digest_of(b"1"), 1),), ("registry.example/web:1",))


def run(*words: object, text: str | None = None) -> Result:
    return CliRunner().invoke(validate, [str(word) for word in words], input=text, catch_exceptions=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        pytest.param("scenario", SCENARIO, id="scenario"),
        pytest.param("scenario", "{nodes: [{name: n, cpu: 4, memory: 1Gi}]}", id="scenario on one line"),
        pytest.param("scheduler", SCHEDULER, id="scheduler"),
        pytest.param("extender", EXTENDER, id="extender"),
        pytest.param("usage", USAGE, id="usage"),
        pytest.param("usage", "metricsServer: true\n", id="usage from the metrics API"),
        pytest.param("registries", REGISTRIES, id="registries"),
        pytest.param("docker-config", DOCKER, id="docker-config"),
        pytest.param("kubeconfig", KUBECONFIG, id="kubeconfig"),
        pytest.param("catalog", encode_catalog([IMAGE], "x.jsonl"), id="catalog"),
        pytest.param("catalog", encode_catalog([IMAGE], "x.jsonl.gz"), id="catalog, gzip"),
        pytest.param("catalog", encode_catalog([IMAGE], "x.jsonl.zst"), id="catalog, zstd"),
        pytest.param("recording", b"".join(compressed([RecordingHeader()])), id="recording"),
        pytest.param("images", MANIFEST, id="manifest"),
        pytest.param("swf", SWF, id="SWF with comments"),
        pytest.param("swf", SWF.splitlines()[-1], id="SWF without comments"),
        pytest.param("kube-scheduler-simulator", SNAPSHOT, id="snapshot"),
        pytest.param("kube-scheduler-simulator", RECORD, id="record"),
    ],
)
def test_a_file_is_recognized_and_read_also_from_standard_input(file, kind, content):
    data = content.encode() if isinstance(content, str) else content
    file.write_bytes(data)
    piped = CliRunner().invoke(validate, ["-"], input=data, catch_exceptions=False)

    assert (0, f"{file}: {kind}: ok\n") == ((told := run(file)).exit_code, told.output)
    assert (0, f"stdin: {kind}: ok\n") == (piped.exit_code, piped.output)


@pytest.mark.parametrize("name", ["trace.jsonl.zst", "trace.jsonl", ""], ids=["compressed", "plain", "its folder"])
def test_a_trace_is_recognized(tmp_path, name):
    (tmp_path / "s.yaml").write_text(SCENARIO)
    CliRunner().invoke(simulate, [str(tmp_path / "s.yaml"), "--out", str(tmp_path)], catch_exceptions=False)
    trace = tmp_path / "trace.jsonl.zst"
    if name == "trace.jsonl":
        import zstandard

        (tmp_path / name).write_bytes(zstandard.ZstdDecompressor().decompressobj().decompress(trace.read_bytes()))

    assert f"{tmp_path / name}: trace: ok\n" == run(tmp_path / name).output


@pytest.mark.parametrize("name", ["saved.tar", "saved"], ids=["an archive", "a folder"])
def test_an_image_layout_is_recognized(tmp_path, name):
    layout = Layout()
    path = layout.saved(tmp_path / name, layout.manifest())

    assert f"{path}: images: ok\n" == run(path).output


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param(WRONG, r"{}:2: podz: .*did you mean 'pods'\?", id="a scenario's field"),
        pytest.param("nodes: []\npods: [\n", r"{}:\d+: .*", id="a scenario that is no YAML"),
        pytest.param(
            SCENARIO + "profile: lamina-balancd\n", r"{}:4: profile: .*did you mean 'lamina-balanced'\?", id="a profile"
        ),
        pytest.param(
            SCENARIO + "profile: gone.yaml\n", r"{}:4: profile: gone.yaml cannot be read: .*", id="a profile file"
        ),
        pytest.param(
            SCHEDULER + "profiles:\n- plugins: {score: {enabled: [{name: NodeAfinity}]}}\n",
            r"{}:4: .*did you mean 'NodeAffinity'\?",
            id="a plugin",
        ),
        pytest.param(EXTENDER.replace("layers", "layer"), r"{}:3: .*did you mean 'layers'\?", id="an agent"),
        pytest.param(USAGE + "evry: 5s\n", r"{}:3: evry: .*did you mean 'every'\?", id="usage"),
        pytest.param(REGISTRIES + "- host: registry.example\n", r"{}:3: .* already has an entry.*", id="registries"),
        pytest.param('{"auths": {"registry.example": {"auth": "?"}}}', "{}: auths: .*", id="credentials"),
        pytest.param('{"format":"lamina-catalog","version":1}\n{}\n', "{}:2: is not an image .*", id="a catalog"),
        pytest.param("kind: Pod\napiVersion: v1\n", "{}: is a 'Pod', which Lamina does not read .*", id="a pod"),
        pytest.param('{"nb_res": 1, "jobs": [], "profiles": {}}', "{}: is a Batsim workload; validate .*", id="Batsim"),
        pytest.param(SWF + "2 0\n", "{}:3: has 2 of 18 fields: .*", id="SWF"),
        pytest.param(SNAPSHOT.replace('"p"', '""'), "{}:1: a pod has no name; add metadata.name", id="snapshot"),
        pytest.param("colour: red\n", "{}: no kind of file that Lamina reads has the fields colour; .*", id="unknown"),
        pytest.param("", "{}: has no fields, so its kind is not known; .*", id="empty"),
    ],
)
def test_a_mistake_is_one_line_with_the_file_and_the_exit_code_is_1(file, content, line):
    file.write_text(content)
    told = run(file)

    assert 1 == told.exit_code
    assert 1 == len(told.output.splitlines()), told.output
    assert re.fullmatch(line.replace("{}", re.escape(str(file)), 1), told.output.strip()), told.output


def test_a_file_that_is_missing_does_not_hide_the_others(tmp_path, file):
    file.write_text(SCENARIO)
    told = run(tmp_path / "gone", file)

    assert (1, f"{tmp_path}/gone: cannot be read: no such file or directory\n{file}: scenario: ok\n") == (
        told.exit_code,
        told.output,
    )


def test_a_kind_that_is_named_is_not_guessed(file):
    file.write_text(SCENARIO)
    told = run("--kind", "registries", file)

    assert 1 == told.exit_code
    assert 3 == len(told.output.splitlines())
    assert all(line.startswith(f"{file}:") for line in told.output.splitlines())


def test_results_are_data_on_request(tmp_path, file):
    file.write_text(WRONG)
    (tmp_path / "good").write_text(REGISTRIES)
    told = run(file, tmp_path / "good", "-o=json")
    bad, good = json.loads(told.output)

    assert 1 == told.exit_code
    assert {"file": str(tmp_path / "good"), "kind": "registries", "ok": True, "mistakes": []} == good
    assert ("scenario", False, 1) == (bad["kind"], bad["ok"], len(bad["mistakes"]))


def test_mistakes_on_standard_input_name_stdin():
    assert run("-", text=WRONG).output.startswith("stdin:2: podz: ")


def test_every_kind_can_be_named_on_the_command_line():
    assert set(get_args(file_kinds.FileKind)) == set(KINDS)


def test_a_printed_profile_is_valid():
    printed = CliRunner().invoke(profiles, ["lamina-balanced"]).output

    assert "stdin: scheduler: ok\n" == run("-", text=printed).output
