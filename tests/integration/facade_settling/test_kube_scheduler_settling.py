"""The real kube-scheduler gives exact results in virtual time, by its log, by its metrics, and by both."""

import io

import pytest
from msgspec.structs import replace

from lamina.apiserver.facade_run import FacadeRun
from lamina.apiserver.scheduler_profiles import KUBE_SCHEDULER, KUBE_SCHEDULER_JSON
from lamina.apiserver.settling import log_settling
from lamina.apiserver.settling.scheduler_log import FLAGS
from lamina.apiserver.settling.settle_method import SchedulerStuckError
from lamina.simulator.facade.decision_log import DecisionLogHeader, DecisionLogWriter
from testbed import building
from tests.e2e._settle_scenarios import cases, play

pytestmark = [pytest.mark.realtime, pytest.mark.testbed("kube-scheduler", alone=True)]


@pytest.fixture(scope="module")
def program():
    return str(building.ensure("kube-scheduler"))


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        pytest.param("unsched", KUBE_SCHEDULER, id="pods that wait for a label and for a node, log"),
        pytest.param("preempt0", KUBE_SCHEDULER, id="preemption without grace, log"),
        pytest.param("preempt30", KUBE_SCHEDULER_JSON, id="preemption with grace, log, JSON"),
        pytest.param("preempt0", replace(KUBE_SCHEDULER, settle="metrics"), id="preemption without grace, metrics"),
    ],
)
def test_every_start_is_at_its_exact_time(program, name, profile):
    case = cases()[name]
    with FacadeRun(profile, [program]) as run:
        result = play(case, run)
        figures = run.figures

    assert "" == case.problem(result)
    assert figures is not None
    assert (profile.settle, True, 0, 0) == (figures.method, figures.proven, figures.limits_hit, figures.starved)
    assert figures.checks > 0
    assert figures.decisions > 0


def test_metrics_decide_if_the_log_is_silent(program, monkeypatch):
    monkeypatch.setattr(log_settling, "START_SECONDS", 5.0)
    monkeypatch.setattr(log_settling, "QUIET_SECONDS", 1.0)
    case = cases()["preempt30"]
    silent = tuple(one for one in KUBE_SCHEDULER.arguments if one not in FLAGS)
    with FacadeRun(replace(KUBE_SCHEDULER, arguments=silent), [program]) as run:
        result = play(case, run)
        figures = run.figures

    assert "" == case.problem(result)
    assert figures is not None
    assert figures.limits_hit == figures.checks > 0


def test_a_scheduler_that_ends_is_reported_with_its_last_lines(program):
    with (
        FacadeRun(KUBE_SCHEDULER, [program, "--no-such-flag"]) as run,
        pytest.raises(SchedulerStuckError, match="unknown flag: --no-such-flag"),
    ):
        play(cases()["unsched"], run)


def test_all_inputs_of_the_scheduler_are_in_the_decision_log(program):
    sink = io.BytesIO()
    log = DecisionLogWriter(sink, DecisionLogHeader(scenario="preempt0"))
    with FacadeRun(KUBE_SCHEDULER, [program], log=log) as run:
        play(cases()["preempt0"], run)

    text = sink.getvalue()

    # 24 pods are placed, 8 of them twice, because they are victims once.
    assert (32, 8) == (text.count(b'"op":"bind"'), text.count(b'"op":"delete"'))
