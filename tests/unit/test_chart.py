"""deploy/chart and the image's recipe without helm and without a container engine: what each says fits the rest."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import image_inputs
import render_manifests
from lamina.scheduling.plugins.in_tree import agents
from lamina.services.extender.kube_scheduler_config import INSTEAD, WEIGHTS, WEIGHTS_ALONE

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "chart"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
HELPERS = (CHART / "templates" / "extender" / "_configuration.tpl").read_text(encoding="utf-8")
METRIC = re.compile(r"\b((?:lamina|scheduler)_[a-z_]+)\b")


def test_the_manifests_are_those_of_the_chart():
    assert 0 == render_manifests.check()


def test_a_change_of_a_manifest_or_of_the_chart_is_noticed(tmp_path, monkeypatch):
    chart = tmp_path / "chart"
    chart.mkdir()
    (chart / "values.yaml").write_text("one: 1\n", encoding="utf-8")
    (tmp_path / "plain.yaml").write_text("kind: A\n", encoding="utf-8")
    monkeypatch.setattr(render_manifests, "DEPLOY", tmp_path)
    monkeypatch.setattr(render_manifests, "CHART", chart)
    monkeypatch.setattr(render_manifests, "RECORD", chart / "rendered.sha256")
    found = [render_manifests.digest(["plain.yaml"])]

    (tmp_path / "plain.yaml").write_text("kind: B\n", encoding="utf-8")
    found.append(render_manifests.digest(["plain.yaml"]))
    (chart / "values.yaml").write_text("one: 2\n", encoding="utf-8")
    found.append(render_manifests.digest(["plain.yaml"]))

    assert 3 == len(set(found))


def keys(value, path=()):
    """The path of every key; mappings without keys of their own end one."""
    if not isinstance(value, dict) or not value:
        return {path}
    return {path, *(found for key, nested in value.items() for found in keys(nested, (*path, key)))}


def allowed(schema, path=()):
    """The paths that a schema names, and those below which anything may stand."""
    named, free = {path}, set()
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        free.add(path)
    for key, nested in schema.get("properties", {}).items():
        below, open_below = allowed(nested, (*path, key))
        named, free = named | below, free | open_below
    return named, free


def test_the_schema_names_every_value_and_no_other():
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    named, free = allowed(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")))
    given = keys(values)

    assert [] == sorted(one for one in given - named if not any(one[: len(start)] == start for start in free))
    assert {("global",)} == named - given


def test_optional_parts_are_off():
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    switched = {
        ".".join(path): value
        for path in keys(values)
        if path and path[-1] == "enabled"
        for value in [_at(values, path)]
    }

    assert {"crds.enabled", "scheduler.enabled", "nodeAgent.enabled", "viewer.enabled"} == {
        name for name, on in switched.items() if on
    }


def _at(values, path):
    for key in path:
        values = values[key]
    return values


def test_the_charts_version_is_the_packages():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert [PROJECT["version"]] * 3 == [chart["version"], chart["appVersion"], image_inputs.version()]
    assert f"ARG VERSION={PROJECT['version']}\n" in RECIPE


def test_the_charts_table_of_agents_is_the_codes():
    table = re.search(r'define "lamina.agentVerbs" -}}\n(.*?){{- end }}', HELPERS, re.DOTALL).group(1)
    written = yaml.safe_load(table)
    known = agents(entry_points=False)
    coded = {
        name: [
            {
                "verb": verb,
                **({"filters": True} if verb in agent.predicates else {}),
                **({"weight": WEIGHTS[verb]} if verb in WEIGHTS else {}),
                **({"alone": WEIGHTS_ALONE[verb]} if verb in WEIGHTS_ALONE else {}),
                **({"instead": INSTEAD[verb]} if verb in INSTEAD else {}),
            }
            for verb in dict.fromkeys((*agent.predicates, *agent.priorities))
        ]
        for name, agent in ((name, known[name]) for name in known)
    }

    assert coded == written
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert sorted(coded) == sorted(schema["properties"]["extender"]["properties"]["agents"]["items"]["enum"])


@pytest.mark.parametrize("name", ["rules.yaml", "dashboard.json"])
def test_every_metric_of_rules_and_dashboard_exists(name):
    text = (CHART / "files" / name).read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    queries = [rule["expr"] for group in data.get("groups", ()) for rule in group["rules"]]
    queries += [target["expr"] for panel in data.get("panels", ()) for target in panel["targets"]]
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/lamina/services").rglob("metrics.py"))
    known = set(re.findall(r'"((?:lamina|scheduler)_[a-z_]+)"', sources))
    asked = {re.sub(r"_(total|bucket)$", "", metric) for query in queries for metric in METRIC.findall(query)}

    assert queries
    assert set() == asked - known


def test_every_alert_has_a_part_of_the_page_on_operations():
    rules = yaml.safe_load((CHART / "files" / "rules.yaml").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")

    assert [] == [
        rule["alert"] for group in rules["groups"] for rule in group["rules"] if f"### {rule['alert']}\n" not in page
    ]


def test_the_recipe_copies_only_what_the_build_may_see():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    visible = {line[1:] for line in ignored if line.startswith("!")}
    copied = {line.split()[1] for line in RECIPE.splitlines() if line.startswith("COPY ") and "--from" not in line}

    assert "*" in ignored
    assert copied == visible
    assert (ROOT / "scripts" / "assemble_image.py").exists()


def test_the_image_runs_as_nobody_in_particular_and_installs_extras_that_there_are():
    extras = re.search(r"^ARG EXTRAS=(.*)$", RECIPE, re.MULTILINE).group(1)

    assert "\nUSER 65532:65532\n" in RECIPE
    assert extras == image_inputs.EXTRAS
    assert set() == set(extras.split(",")) - set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize(
    ("line", "python", "pin"),
    [
        pytest.param("click==8.5.1", "3.11", "click==8.5.1", id="a pin"),
        pytest.param("# a comment; with a semicolon", "3.11", "", id="a comment"),
        pytest.param('numpy==2.4.6; python_version < "3.12"', "3.11", "numpy==2.4.6", id="of this version"),
        pytest.param('numpy==2.4.6; python_version < "3.12"', "3.13", "", id="of another version"),
    ],
)
def test_pins_are_those_of_the_images_python(line, python, pin):
    assert pin == image_inputs.pinned(line, python)
