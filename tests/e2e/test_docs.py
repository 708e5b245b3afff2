"""What the documentation shows works as shown."""

import re
from pathlib import Path

import msgspec
import pytest

from lamina.scheduling.config.load import load
from lamina.scheduling.config.named import NAMED
from lamina.scheduling.plugins.in_tree import registry
from lamina.scheduling.plugins.locality.layer_locality import LayerLocalityArgs
from lamina.simulator.workloads import load_scenario
from lamina.simulator.workloads.schema import (
    DefaultsEntry,
    EventEntry,
    NodeEntry,
    PodEntry,
    ScenarioFile,
    SpreadEntry,
)
from lamina.simulator.workloads.workload_schema import (
    ArrivalsEntry,
    BurstsEntry,
    CatalogEntry,
    CpuEntry,
    DurationEntry,
    GenerateEntry,
    PopularityEntry,
    WorkloadEntry,
)

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_plugin_of_the_page_works_as_the_page_tests_it() -> None:
    """
    The class, the test beside it and the configuration that enables it.
    """
    plugin, proof = blocks("docs/plugins.md", "python")
    names: dict[str, object] = {}
    exec(compile(plugin, "docs/plugins.md", "exec"), names)
    exec(compile(proof, "docs/plugins.md", "exec"), names)
    known = registry(entry_points=False)
    known.register(names["FewestPods"])  # type: ignore[arg-type]

    load(blocks("docs/plugins.md", "yaml")[0], "docs/plugins.md", known)


def test_the_scenarios_of_the_page_are_scenarios(tmp_path: Path) -> None:
    """
    Every field they show is understood.
    """
    listed, generated = blocks("docs/scenarios.md", "yaml")
    (tmp_path / "common.yaml").write_text("about: shared\n", encoding="utf-8")
    (tmp_path / "listed.yaml").write_text(listed, encoding="utf-8")
    (tmp_path / "generated.yaml").write_text(generated, encoding="utf-8")

    scenario = load_scenario(tmp_path / "listed.yaml")
    drawn = load_scenario(tmp_path / "generated.yaml")

    assert ["n1", "n2", "n3", "big"] == [node.name for node in scenario.nodes]
    assert 21 == len(scenario.arrivals)
    assert (400, 1000) == (len(drawn.images), len(drawn.arrivals))


@pytest.mark.parametrize(
    "kind",
    [
        ScenarioFile,
        DefaultsEntry,
        NodeEntry,
        PodEntry,
        SpreadEntry,
        EventEntry,
        CatalogEntry,
        GenerateEntry,
        WorkloadEntry,
        ArrivalsEntry,
        PopularityEntry,
        DurationEntry,
        CpuEntry,
        BurstsEntry,
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
