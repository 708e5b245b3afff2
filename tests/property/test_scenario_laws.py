"""Whatever somebody writes into a scenario, it is either run or told what is wrong with it, and where."""

import copy
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.model.errors import InputError, Mistake
from lamina.simulator.workloads import Scenario, load_scenario

WHOLE: dict[str, Any] = {
    "name": "whole",
    "defaults": {"runtime": "mine", "disk": {"size": "50GB", "high": 0.8, "low": 0.7}, "statusDelay": ["10s", 40]},
    "registry": {"rate": "10Gbit"},
    "uplinks": {"edge": "50Mbit"},
    "runtimes": {"mine": {"preset": "crio", "slots": 2, "lazy": 0.5, "unpackRate": "80MB"}},
    "layers": {"base": "100MB", "app": 5_000_000},
    "images": {"web:1": ["base", "app"], "web:2": {"base": "100MB", "more": "1MB"}},
    "nodes": [
        {"name": "n", "count": 3, "cpu": 4, "memory": "16Gi", "uplink": "edge", "zone": ["a", "b"], "disk": "20GB"}
    ],
    "pods": [
        {"name": "p", "count": 3, "every": "1s", "image": "web:1", "cpu": "500m", "stages": [{"seconds": 5}]},
        {"name": "q", "image": "web:2", "annotations": {"simSpec": "[{seconds: 5, resourceUsage: {cpu: 1}}]"}},
        {"name": "r", "image": "web:2", "duration": "5s", "failures": 1, "restart": "OnFailure", "deadline": "1m"},
    ],
    "deployments": [{"name": "web", "replicas": 2, "image": "web:1", "surge": "25%", "unavailable": 1}],
    "statefulSets": [{"name": "db", "replicas": 2, "image": "web:1"}],
    "daemonSets": [{"name": "agent", "image": "web:1", "labels": {"app": "agent"}}],
    "jobs": [{"name": "batch", "image": "web:1", "duration": "10s", "completions": 3, "parallelism": 2}],
    "workload": {
        "pods": 5,
        "arrivals": {"every": "1s"},
        "duration": {"mean": "5s"},
        "cpu": [{"amount": "250m"}],
        "updates": 1,
    },
    "events": [
        {"at": "5s", "fail": "n1", "for": "10s"},
        {"at": "6s", "drain": "n2"},
        {"at": "7s", "update": {"name": "web", "image": "web:2"}},
        {"at": "8s", "scale": {"name": "web", "to": 4}},
        {"at": "9s", "join": {"name": "late", "cpu": 4, "memory": "16Gi"}},
        {"at": "10s", "remove": "p1"},
    ],
    "until": "1h",
}

ODD = st.one_of(
    st.sampled_from(
        [None, True, -1, 0, 1, 10**18, 0.5, float("inf"), float("nan"), "", "x", "-5s", "n1", "web", "web:1"]
    ),
    st.sampled_from([[], {}, [[]], {"a": 1}, [None], "25%", "10Gbit", "containerd", "edge", "1h", "999TiB"]),
    st.text(max_size=8),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List everywhere something can be written instead."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(one for step, item in inside for one in places(item, (*path, step)))]


EVERYWHERE = places(WHOLE)[1:]


def loaded(document: dict[str, Any]) -> Scenario:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_bytes(msgspec.yaml.encode(document))
        return load_scenario(path)


def told(document: dict[str, Any]) -> tuple[Mistake, ...]:
    """Return what is wrong with a scenario."""
    try:
        loaded(document)
    except InputError as error:
        return error.mistakes
    return ()


def test_the_scenario_that_is_spoilt_is_a_good_one() -> None:
    scenario = loaded(WHOLE)

    assert (3, 4, 7) == (len(scenario.nodes), len(scenario.controllers), len(scenario.events))


@given(changes=st.lists(st.tuples(st.sampled_from(EVERYWHERE), ODD), min_size=1, max_size=3))
def test_a_spoilt_scenario_is_loaded_or_told_with_lines(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = copy.deepcopy(WHOLE)
    for path, value in changes:
        place: Any = document
        try:
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
        except (IndexError, KeyError, TypeError):
            # What was there before has been replaced already.
            continue
    mistakes = told(document)

    assert all(mistake.line > 0 and mistake.message for mistake in mistakes)
    assert len(mistakes) == len({str(mistake) for mistake in mistakes}), "each mistake is told once"


@pytest.mark.parametrize("seed", [0, 1])
def test_a_scenario_is_the_same_whenever_it_is_loaded(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_bytes(msgspec.yaml.encode(WHOLE))

    assert load_scenario(path, seed) == load_scenario(path, seed)
