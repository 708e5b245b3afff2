"""What docs/extender.md, docs/scheduling-agents.md and examples/test-pod show works as shown."""

import contextlib
import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import msgspec
import pytest
import yaml

from lamina.cli.extender import extender
from lamina.cli.new_agent.folder import files as new_files
from lamina.scheduling.plugins.in_tree import agents
from lamina.services.extender.configuration import (
    ExtenderConfiguration,
    TlsEntry,
    load_configuration,
    read_configuration,
)
from lamina.services.extender.environment_variables import EnvironmentSettings
from lamina.services.extender.kube_scheduler_config import (
    USUAL_WEIGHT,
    WEIGHTS,
    WEIGHTS_ALONE,
    ExtenderTarget,
    kube_configuration,
)
from lamina.services.extender.settings import ExtenderFlags, merge_settings
from testbed import ports

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extender.md").read_text(encoding="utf-8")
AGENTS_PAGE = (ROOT / "docs" / "scheduling-agents.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "test-pod"
DEPLOY = ROOT / "deploy"
PLAIN = sorted(path for path in DEPLOY.rglob("*.yaml") if not path.is_relative_to(DEPLOY / "chart"))
"""The plain manifests; the chart has templates."""


def blocks(page, language="sh"):
    return re.findall(rf"```{language}(?: cluster| title=\S+)?\n(.*?)```", page, flags=re.DOTALL)


def test_the_configuration_of_the_page_is_one():
    text = next(one for one in blocks(PAGE, "yaml") if "ExtenderConfiguration" in one)
    settings = merge_settings(
        ExtenderFlags(),
        EnvironmentSettings(),
        read_configuration(text, "docs/extender.md", agents(entry_points=False)),
        _known(),
    )

    assert (["layers", "safe"], ()) == ([agent.name for agent in settings.agents], settings.complaints)


def _known():
    return agents(entry_points=False)


def test_every_field_of_the_file_is_on_the_page():
    """A field nobody documents is a field nobody uses."""
    text = next(one for one in blocks(PAGE, "yaml") if "ExtenderConfiguration" in one)
    shown = set(re.findall(r"(\w+):", text))
    fields = {field.encode_name for kind in (ExtenderConfiguration, TlsEntry) for field in msgspec.structs.fields(kind)}

    assert set() == fields - shown


def test_every_flag_is_on_the_page_and_there_are_no_others():
    flags = {name for one in extender.params for name in one.opts if name.startswith("--")}
    lines = "\n".join(line for line in PAGE.splitlines() if line.startswith(("| `-", "lamina ")))
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", lines))

    assert (set(), set()) == (flags - named, named - flags - {"--help"})


def test_every_verb_is_on_both_pages():
    known = _known()
    verbs = [verb for name in known for verb in (*known[name].predicates, *known[name].priorities)]

    assert [] == [verb for verb in verbs if f"`{verb}`" not in PAGE]
    assert [] == [verb for verb in verbs if f"`{verb}`" not in AGENTS_PAGE and verb != "foo"]


@pytest.mark.parametrize("agent", ["safe", "pigeon", "congestion"])
def test_every_argument_of_an_agent_is_on_the_page_with_its_default(agent):
    rows = re.findall(r"^\| (?:[A-Z][^|]*\| |all \| )?(`[a-zA-Z`, ]+`) \| (.*?) \|", AGENTS_PAGE, flags=re.MULTILINE)
    listed = {name: told for names, told in rows for name in re.findall(r"`(\w+)`", names)}
    for plugin in _known()[agent].plugins:
        for field in msgspec.structs.fields(plugin.Args):
            if field.name in ("api_version", "kind"):
                continue
            assert field.encode_name in listed
            default = field.default
            if isinstance(default, bool | str):
                assert str(default).lower().strip() in listed[field.encode_name].lower()
            elif isinstance(default, int | float):
                assert f"{default:g}" in re.findall(r"[\d.]+", listed[field.encode_name])


def test_the_alarms_are_about_metrics_there_are(tmp_path):
    from lamina.services.extender.metrics import ExtenderMetrics

    rules = next(one for one in blocks(PAGE, "yaml") if one.startswith("groups:"))
    metrics = ExtenderMetrics()
    metrics.answered("x", "y")
    metrics.served("/scheduler/x", 200, 0.1, 1, 1)
    metrics.refused("x")
    counted = set(re.findall(r"^(lamina_extender_\w+)", metrics.exposition().decode(), flags=re.MULTILINE))
    # Counted only where there is a panel to look at.
    counted |= {f"lamina_extender_{name}" for name in ("ready", "nodes", "pods", "nodes_measured")}

    assert set() == set(re.findall(r"lamina_extender_\w+", rules)) - counted
    assert 5 == len(yaml.safe_load(rules)["groups"][0]["rules"])


def scraping():
    return next(one for one in blocks(PAGE, "yaml") if one.startswith("scrape_configs:"))


@pytest.mark.needs("promtool")
def test_prometheus_takes_what_is_to_be_scraped(tmp_path):
    """All but how pods are found: some builds of promtool have no way to ask a cluster."""
    config = yaml.safe_load(scraping())
    assert [{"role": "pod", "namespaces": {"names": ["lamina-system"]}}] == config["scrape_configs"][0].pop(
        "kubernetes_sd_configs"
    )
    path = tmp_path / "prometheus.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    ended = subprocess.run(["promtool", "check", "config", str(path)], capture_output=True, text=True, check=False)

    assert (0, "") == (ended.returncode, ended.stderr)


def test_every_extender_of_the_manifests_is_scraped_and_nothing_else():
    """By the names of ports; and each kind is a job of its own."""
    keep, job = yaml.safe_load(scraping())["scrape_configs"][0]["relabel_configs"]
    found = {
        (path.stem, port["containerPort"]): job["replacement"].replace("$1", container["name"])
        for path in PLAIN
        for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if one and one["kind"] in ("Deployment", "DaemonSet")
        for kind in ("initContainers", "containers")
        for container in one["spec"]["template"]["spec"].get(kind, ())
        for port in container.get("ports", ())
        if re.fullmatch(keep["regex"], port["name"])
    }

    assert {
        ("one-process", 5411): "lamina-extender",
        ("separate", 5411): "lamina-extender",
        ("two-processes", 5411): "lamina-extender-safe",
        ("two-processes", 5412): "lamina-extender-layers",
    } == found


def test_every_image_is_a_placeholder():
    """No registry is named that somebody could take for ours, or that is asked unawares."""
    files = [*PLAIN, *EXAMPLE.glob("*.yaml")]
    images = [image for path in files for image in re.findall(r"image: *(\S+)", path.read_text(encoding="utf-8"))]

    assert {"registry.example/lamina:set-me", "registry.example/kube-scheduler:set-me"} <= set(images)
    assert [] == [image for image in images if not re.fullmatch(r"registry\.example/[a-z-]+:set-me", image)]


@pytest.mark.needs("promtool")
def test_prometheus_takes_the_alarms(tmp_path):
    rules = tmp_path / "rules.yaml"
    rules.write_text(next(one for one in blocks(PAGE, "yaml") if one.startswith("groups:")), encoding="utf-8")
    ended = subprocess.run(["promtool", "check", "rules", str(rules)], capture_output=True, text=True, check=False)

    assert (0, "") == (ended.returncode, ended.stderr)


@pytest.mark.slow
def test_the_first_question_of_the_page_gets_the_answer_of_the_page():
    question = blocks(PAGE, "json")[0].encode()
    answer = json.loads(re.search(r"```text\n(\[.*\])\n```", PAGE).group(1))
    port = ports.free()
    words = ["extender", "--agents", "congestion", "--state", "body", "--listen", f"127.0.0.1:{port}"]
    with subprocess.Popen([sys.executable, "-m", "lamina.cli.main", *words], stderr=subprocess.DEVNULL) as process:
        try:
            assert answer == asked(process, f"http://127.0.0.1:{port}/scheduler/priorities/congestion", question)
        finally:
            process.send_signal(signal.SIGTERM)
    assert 0 == process.returncode


def asked(process, url, question):
    while process.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, question, timeout=10) as response:
            return json.load(response)
        time.sleep(0.05)
    return None


def test_the_agent_of_the_page_is_the_one_that_is_written():
    written = new_files("quiet-nodes")
    (shown,), (points,) = blocks(AGENTS_PAGE, "python"), blocks(AGENTS_PAGE, "toml")

    assert written["src/quiet_nodes/__init__.py"] == shown
    assert f"\n{points}\n[tool" in written["pyproject.toml"]


def test_the_weights_of_the_page_are_those_that_are_printed():
    told = re.search(r"^### Weights\n(.*?)\n###", PAGE, flags=re.DOTALL | re.MULTILINE).group(1)
    words = re.search(r"(`[^.]*?) get 10 if their agent is the only one", told.replace("\n", " ")).group(1)

    assert set(WEIGHTS_ALONE) == set(re.findall("`([a-z-]+)`", words.rpartition("again. ")[2]))
    assert ({"layers": 5}, {10}, 1) == (WEIGHTS, set(WEIGHTS_ALONE.values()), USUAL_WEIGHT)


def test_the_levels_of_layers_are_those_of_the_page():
    times, levels = (
        [
            cell.strip()
            for cell in re.search(rf"^\| {word} \|(.*)\|$", AGENTS_PAGE, flags=re.MULTILINE).group(1).split("|")
        ]
        for word in ("ready in", "level")
    )
    seconds = {"at once": 0, "½ s": 0.5, "4 s": 4, "15 s": 15, "1 min": 60, "8 min and more": 480}
    scale = _known()["layers"].levels

    assert [int(level) for level in levels] == [scale[round(100 / (1 + seconds[word] / 5))] for word in times]


def test_the_example_has_what_is_printed_for_it():
    known = _known()
    file = load_configuration(EXAMPLE / "extender.yaml", known)
    settings = merge_settings(ExtenderFlags(), EnvironmentSettings(), file, known)
    printed = kube_configuration([ExtenderTarget(settings.agents, str(settings.address))], settings.scheduler_names)

    assert printed == (EXAMPLE / "scheduler.yaml").read_text(encoding="utf-8")
    assert {settings.scheduler_names[0]} == {
        yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8"))["spec"]["schedulerName"]
        for name in ("pod.yaml", "greedy.yaml")
    }
