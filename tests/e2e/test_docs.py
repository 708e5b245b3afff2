"""What the documentation shows works as shown."""

import re
from pathlib import Path

import msgspec
import pytest

from lamina.model.conversion import mistakes_in
from lamina.model.yaml_document import read_yaml
from lamina.scheduling.config.loader import load
from lamina.scheduling.config.named_profiles import NAMED
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.simulator.workloads import load_scenario
from lamina.simulator.workloads.controller_entries import DaemonSetEntry, DeploymentEntry, JobEntry, StatefulSetEntry
from lamina.simulator.workloads.event_entries import EventEntry, ScaleEntry, UpdateEntry
from lamina.simulator.workloads.imports import import_schema as imports
from lamina.simulator.workloads.imports.import_schema import FunctionFiles, GpuFiles, ImportEntry, NodesEntry
from lamina.simulator.workloads.node_entries import DefaultsEntry, ScenarioNodeEntry
from lamina.simulator.workloads.pod_entries import LimitsEntry, PodEntry, SpreadEntry, StageEntry
from lamina.simulator.workloads.pull_entries import PRESETS, DiskEntry, RegistryEntry, ScenarioRuntimeEntry
from lamina.simulator.workloads.scenario_catalog import CatalogEntry, GenerateEntry
from lamina.simulator.workloads.scenario_loader import ScenarioFile, UsageEntry
from lamina.simulator.workloads.workload_entries import (
    ArrivalsEntry,
    BurstsEntry,
    CpuEntry,
    DiurnalEntry,
    DurationEntry,
    RolloutsEntry,
    ServerlessEntry,
    WorkloadEntry,
    WorkloadPopularityEntry,
)

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}(?: title=\S+)?\n(.*?)```", text, flags=re.DOTALL)


def test_the_plugin_of_the_page_works_as_the_page_tests_it() -> None:
    """
    The class, the test beside it and the configuration that enables it.
    """
    plugin, placing, proof = blocks("docs/plugins.md", "python")
    names: dict[str, object] = {}
    exec(compile(plugin, "docs/plugins.md", "exec"), names)
    exec(compile(placing, "docs/plugins.md", "exec"), {})
    exec(compile(proof, "docs/plugins.md", "exec"), names)
    known = registry(entry_points=False)
    known.register(names["FewestPods"])  # type: ignore[arg-type]

    load(blocks("docs/plugins.md", "yaml")[0], "docs/plugins.md", known)


def test_the_scenarios_of_the_page_are_scenarios(tmp_path: Path) -> None:
    """
    Every field they show is understood.
    """
    texts = {text.splitlines()[0].removeprefix("name: "): text for text in blocks("docs/scenarios.md", "yaml")}
    imported = texts.pop("imported")
    loaded = {}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        loaded[name] = load_scenario(tmp_path / f"{name}.yaml")

    assert ["n1", "n2", "n3", "big"] == [node.name for node in loaded["first"].nodes]
    assert {"first": 29, "pulls": 0, "rollout": 1, "objects": 1, "promises": 0, "generated": 1000} == {
        name: len(one.arrivals) for name, one in loaded.items() if name != "functions"
    }
    # As many as its requests need.
    assert 0 < len(loaded["functions"].arrivals) <= 500
    assert {"first": 0, "pulls": 0, "rollout": 4, "objects": 2, "promises": 12, "generated": 5, "functions": 0} == {
        name: len(one.controllers) for name, one in loaded.items()
    }
    # The files it names are not there; its shape is what is shown.
    assert [] == mistakes_in(read_yaml(imported, "docs/scenarios.md"), ScenarioFile)


def test_the_page_says_what_a_scenario_gets_that_says_nothing(tmp_path: Path) -> None:
    """
    The values of the example are the usual ones.
    """
    texts = {text.splitlines()[0].removeprefix("name: "): text for text in blocks("docs/scenarios.md", "yaml")}
    (tmp_path / "said.yaml").write_text(texts["pulls"], encoding="utf-8")
    (tmp_path / "little.yaml").write_text("nodes: [{name: n, cpu: 1, memory: 1Gi, disk: 100GB}]\n", encoding="utf-8")
    said, little = load_scenario(tmp_path / "said.yaml"), load_scenario(tmp_path / "little.yaml")

    assert little.delays == said.delays
    assert (little.nodes[0].runtime, little.nodes[0].disk) == (said.nodes[0].runtime, said.nodes[0].disk)


def test_every_preset_is_on_the_page() -> None:
    """
    As a line of the table.
    """
    text = (ROOT / "docs/scenarios.md").read_text(encoding="utf-8")

    table = text[text.index("| preset |") :].split("\n\n", 1)[0]
    assert list(PRESETS) == re.findall(r"^\| `(\w+)` \|", table, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "kind",
    [
        ScenarioFile,
        DefaultsEntry,
        RegistryEntry,
        ScenarioRuntimeEntry,
        DiskEntry,
        ScenarioNodeEntry,
        PodEntry,
        SpreadEntry,
        StageEntry,
        LimitsEntry,
        UsageEntry,
        DeploymentEntry,
        StatefulSetEntry,
        DaemonSetEntry,
        JobEntry,
        EventEntry,
        ScaleEntry,
        UpdateEntry,
        ImportEntry,
        GpuFiles,
        FunctionFiles,
        NodesEntry,
        imports.ImportPopularityEntry,
        CatalogEntry,
        GenerateEntry,
        WorkloadEntry,
        ArrivalsEntry,
        WorkloadPopularityEntry,
        DurationEntry,
        CpuEntry,
        BurstsEntry,
        DiurnalEntry,
        RolloutsEntry,
        ServerlessEntry,
    ],
    ids=lambda kind: kind.__name__,
)
def test_every_field_of_a_scenario_is_on_the_page(kind: type[msgspec.Struct]) -> None:
    """
    A field nobody documents is a field nobody uses.
    """
    page = "".join(blocks("docs/scenarios.md", "yaml"))
    shown = set(re.findall(r"(\w+):", page))

    assert set() == {field.encode_name for field in msgspec.structs.fields(kind)} - shown


def test_the_page_about_layers_lists_what_can_be_set_and_every_profile() -> None:
    """
    With the defaults they really have.
    """
    text = (ROOT / "docs/layers.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (`[a-zA-Z`, ]+`) \| (.*?) \|", text, flags=re.MULTILINE)
    told = {name: default for names, default in listed for name in re.findall(r"`(.*?)`", names)}
    own = [field for field in msgspec.structs.fields(LayerLocalityArgs) if field.name not in ("api_version", "kind")]

    assert {field.encode_name for field in own} <= told.keys()
    assert ("5", "0.5", "0.25", "0.2") == tuple(
        told[name] for name in ("halfScore", "neutral", "bytePrice", "replicaShare")
    )
    defaults = LayerLocalityArgs()
    assert (5, 0.5, 0.25, 0.2) == (defaults.half_score, defaults.neutral, defaults.byte_price, defaults.replica_share)
    assert [] == [name for name in NAMED if f"`{name}`" not in text]
