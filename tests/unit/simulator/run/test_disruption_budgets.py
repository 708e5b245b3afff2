"""A simulated story of preemption with a disruption budget: who is evicted, and when."""

from pathlib import Path

import pytest
import yaml

from lamina.simulator.run import SimulationResult
from lamina.simulator.workloads import load_scenario
from lamina.trace import trace_records
from tests.unit.simulator.test_run import log, run

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "budgets" / "scenario.yaml"
Line = tuple[float, str, str]


def played(path: Path, seed: int = 0) -> tuple[SimulationResult, list[Line]]:
    result, trace = run(load_scenario(path), "kube-default", seed)
    return result, log(trace, trace_records.PodRemoved)


@pytest.mark.parametrize("seed", range(3))
def test_the_budget_says_who_goes_and_holds_as_long_as_another_victim_helps(seed: int) -> None:
    """
    db-0 evicts a shop pod, which the budget allows. db-1 evicts a report pod, although it is more important.

    The report pod that replaces it then evicts a shop pod: nothing else helps, and a budget is not a guarantee.
    """
    result, removed = played(EXAMPLE, seed)

    assert [(63.0, "shop"), (73.0, "report"), (76.0, "shop")] == [(at, pod.split("-")[0]) for at, _, pod in removed]
    assert (3, 0) == (result.preemptions, result.evictions)
    assert [("db-0", 67.0), ("db-1", 77.0)] == [
        (pod.pod.removeprefix("default/"), pod.bound) for pod in result.pods if "/db-" in pod.pod
    ]


def test_without_the_budget_the_least_important_pods_go(tmp_path: Path) -> None:
    written = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    written["objects"] = [one for one in written["objects"] if one["kind"] != "PodDisruptionBudget"]
    changed = tmp_path / "without.yaml"
    changed.write_text(yaml.safe_dump(written), encoding="utf-8")
    result, removed = played(changed)

    assert [(63.0, "shop"), (71.0, "shop")] == [(at, pod.split("-")[0]) for at, _, pod in removed]
    assert 2 == result.preemptions


def test_an_event_can_relax_the_budget(tmp_path: Path) -> None:
    written = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    budget = written["objects"][0]
    relaxed = {**budget, "spec": {**budget["spec"], "minAvailable": 0}}
    written["events"] = [{"at": "65s", "apply": relaxed}]
    changed = tmp_path / "relaxed.yaml"
    changed.write_text(yaml.safe_dump(written), encoding="utf-8")
    _, removed = played(changed)

    assert ["shop", "shop"] == [pod.split("-")[0] for _, _, pod in removed]


def test_a_deleted_budget_protects_nothing(tmp_path: Path) -> None:
    written = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    written["events"] = [{"at": "65s", "delete": {"kind": "PodDisruptionBudget", "name": "shop"}}]
    changed = tmp_path / "deleted.yaml"
    changed.write_text(yaml.safe_dump(written), encoding="utf-8")
    _, removed = played(changed)

    assert ["shop", "shop"] == [pod.split("-")[0] for _, _, pod in removed]
