"""From a study file to the points of its design and the scenario document of each."""

from pathlib import Path
from typing import Any

import pytest

from lamina.model.errors import InputError
from lamina.simulator.studies.study_design import documents, moved, points
from lamina.simulator.studies.study_file import FactorEntry, StudyFile, read_study


def a_study(design: Any = "full", **factors: Any) -> StudyFile:
    entries = {name: FactorEntry(field=field, values=values) for name, (field, values) in factors.items()}
    return StudyFile(scenario="base.yaml", design=design, factors=entries)


def test_a_full_design_has_all_combinations():
    found = points(a_study(a=("x", (1, 2)), b=("y", ("p", "q"))))

    assert [tuple(point.levels.values()) for point in found] == [(1, "p"), (1, "q"), (2, "p"), (2, "q")]
    assert [point.number for point in found] == [0, 1, 2, 3]
    assert found[1].label == "a=1, b=q"


def test_one_at_a_time_changes_one_factor_of_the_first_levels():
    found = points(a_study("one-at-a-time", a=("x", (1, 2, 3)), b=("y", (8, 9))))

    assert [tuple(point.levels.values()) for point in found] == [(1, 8), (2, 8), (3, 8), (1, 9)]


@pytest.mark.parametrize("design", ["full", "one-at-a-time"])
def test_a_study_without_factors_has_one_point(design):
    (point,) = points(a_study(design))

    assert point.levels == {}
    assert point.label == "the scenario as it is"


def test_a_design_has_a_limit():
    with pytest.raises(InputError, match="10,000 points; use at most 1,000"):
        points(a_study(a=("x", tuple(range(100))), b=("y", tuple(range(100)))))


def made(tmp_path: Path, base: str, **factors: Any) -> list[dict[str, Any]]:
    (tmp_path / "base.yaml").write_text(base, encoding="utf-8")
    study, source = a_study(**factors), tmp_path / "study.yaml"
    return [one for _, one in documents(study, source, tmp_path / "base.yaml")]


def test_a_level_replaces_the_field_in_a_list_or_adds_it(tmp_path):
    base = "nodes: [{name: n, count: 3}]\nworkload: {pods: 5}\n"
    found = made(tmp_path, base, nodes=("nodes[0].count", (1, 2)), load=("workload.arrivals.load", (0.5, 0.9)))

    assert [(one["nodes"][0]["count"], one["workload"]["arrivals"]["load"]) for one in found] == [
        (1, 0.5),
        (1, 0.9),
        (2, 0.5),
        (2, 0.9),
    ]
    assert all(one["workload"]["pods"] == 5 for one in found)
    assert [one["name"] for one in found] == ["base"] * 4


def test_names_of_other_files_are_rewritten_for_the_new_folder(tmp_path):
    (document,) = made(tmp_path, "include: [more.yaml]\ncatalog: images.jsonl\n")
    there = moved(document, tmp_path, tmp_path / "out" / "scenarios")

    assert (document["include"], document["catalog"]) == (["more.yaml"], "images.jsonl")
    assert (there["include"], there["catalog"]) == (["../../more.yaml"], "../../images.jsonl")


@pytest.mark.parametrize(
    ("field", "levels", "expected"),
    [
        pytest.param("catalog", ("a.jsonl", "sub/b.jsonl"), ["../../a.jsonl", "../../sub/b.jsonl"], id="catalog files"),
        pytest.param(
            "catalog", ("a.jsonl", {"generate": {}}), ["../../a.jsonl", {"generate": {}}], id="a file and parameters"
        ),
        pytest.param("include", (["a.yaml"], []), [["../../a.yaml"], []], id="included files"),
    ],
)
def test_files_named_by_levels_are_relative_to_the_scenario(tmp_path, field, levels, expected):
    found = made(tmp_path, "catalog: images.jsonl\n", files=(field, levels))

    assert [moved(one, tmp_path, tmp_path / "out" / "scenarios")[field] for one in found] == expected


@pytest.mark.parametrize(
    ("field", "message"),
    [
        pytest.param("nodes[1].count", r"the scenario has no entry \[1\] there", id="no such entry"),
        pytest.param("nodes[0].count.x", "'x' is inside a value without fields", id="inside a number"),
        pytest.param("nodes[first]", "is no path of a field", id="no number"),
        pytest.param("nodes..count", "is no path of a field", id="an empty name"),
    ],
)
def test_a_field_that_the_scenario_cannot_have_is_a_mistake(tmp_path, field, message):
    with pytest.raises(InputError, match=message) as refused:
        made(tmp_path, "nodes: [{name: n, count: 3}]\n", some=(field, (1, 2)))

    assert [one.path for one in refused.value.mistakes] == ["factors.some.field"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("profiles: [a]\n", "scenario", id="no scenario"),
        pytest.param("scenario: a\nfactors: {x: {field: y, values: [1]}}\n", "factors.x.values", id="one level"),
        pytest.param("scenario: a\nseeds: 0\n", "seeds", id="no seed"),
        pytest.param("scenario: a\ndesign: half\n", "design", id="another design"),
        pytest.param("scenario: a\nmore: 1\n", "more", id="an unknown field"),
    ],
)
def test_a_mistake_in_a_study_file_is_reported_with_its_field(tmp_path, text, message):
    path = tmp_path / "study.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=message):
        read_study(path)


def test_a_missing_study_file_is_reported(tmp_path):
    with pytest.raises(InputError, match="cannot be read: no such file or directory; name a study file"):
        read_study(tmp_path / "none.yaml")
