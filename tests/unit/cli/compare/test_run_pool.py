"""Many runs at once: order, failures, and what a process is handed and hands back."""

import pickle
import signal
from pathlib import Path

import pytest

from lamina.cli.compare import run_pool
from lamina.cli.compare.run_pool import RunFailedError, RunTask

SCENARIO = """\
images: {app: {base: 10MB}}
nodes: [{name: n, count: 3, cpu: 4, memory: 1Gi}]
pods: [{name: p, count: 6, every: 1s, image: app, cpu: 1}]
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def test_a_run_gives_its_summary_without_the_lines_for_single_nodes(scenario):
    figures = run_pool.run_one(RunTask(scenario, "image-locality", 3))

    assert ("small", "image-locality", 3, 6) == (
        figures["scenario"],
        figures["profile"],
        figures["seed"],
        figures["pods"]["started"],
    )
    assert "nodes" not in figures


@pytest.mark.slow
def test_results_come_in_the_order_of_the_tasks_however_many_run_at_once(scenario):
    tasks = [RunTask(scenario, profile, seed) for seed in (3, 1, 2) for profile in ("image-locality", "kube-default")]
    counted: list[int] = []

    here = run_pool.run_all(tasks, 1, lambda: counted.append(1))
    there = run_pool.run_all(tasks, 2, lambda: counted.append(2))

    assert here == there
    assert [(task.profile, task.seed) for task in tasks] == [(one["profile"], one["seed"]) for one in there]
    assert [1] * 6 + [2] * 6 == counted


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_that_fails_is_named_with_the_reason_and_how_to_see_it_alone(scenario, jobs):
    missing = scenario.with_name("gone.yaml")
    tasks = [RunTask(scenario, "image-locality", 1), RunTask(missing, "kube-default", 2)]

    with pytest.raises(RunFailedError) as failure:
        run_pool.run_all(tasks, jobs, lambda: None)

    first, second = str(failure.value).splitlines()
    assert first.startswith("the run under kube-default with seed 2 failed: ")
    assert "gone.yaml: there is no such file" in first
    assert f"to see it alone: lamina simulate {missing} --profile kube-default --seed 2" == second


def test_a_failure_that_is_nobodys_mistake_is_named_by_its_kind(scenario, monkeypatch):
    monkeypatch.setattr(run_pool, "configuration", lambda _: {}["profile"])

    with pytest.raises(RunFailedError, match="with seed 4 failed: KeyError: 'profile'"):
        run_pool.run_one(RunTask(scenario, "image-locality", 4))


def test_a_failure_survives_the_way_between_processes():
    failure = RunFailedError(RunTask(Path("x.yaml"), "image-locality", 1), "why")

    assert str(failure) == str(pickle.loads(pickle.dumps(failure)))


@pytest.mark.parametrize(
    ("handler", "heard"),
    [
        pytest.param(signal.default_int_handler, [signal.SIGINT], id="in a terminal"),
        pytest.param(signal.SIG_IGN, [], id="in the background of a shell, which ignores it"),
    ],
)
def test_ctrl_c_while_processes_start_is_noted_unless_it_is_ignored(handler, heard):
    before = signal.signal(signal.SIGINT, handler)
    try:
        with run_pool._noting_interrupts() as noted:
            signal.raise_signal(signal.SIGINT)
        after = signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)

    assert (heard, handler) == (noted, after)


def test_there_is_at_least_one_core():
    assert run_pool.cores() >= 1
