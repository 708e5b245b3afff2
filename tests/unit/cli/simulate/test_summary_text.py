"""A run's summary on a page: what happened is told, what did not is not."""

from typing import Any

import pytest

from lamina.cli.simulate.summary_text import print_summary
from lamina.simulator.cluster import Phase
from lamina.simulator.run import SimulationResult, summary
from lamina.simulator.run.result import ImageRemovals, NodeOutcome, PodOutcome, Utilisation
from lamina.simulator.run.service_levels import (
    AvailabilityPromise,
    PodSpan,
    RunServiceLevels,
    class_levels,
    controller_levels,
)


def figures(**more: Any) -> dict[str, Any]:
    pod = PodOutcome(
        pod="default/p",
        phase="finished",
        node="n1",
        arrived=0.0,
        decided=1.0,
        bound=1.5,
        started=10.0,
        ended=40.0,
        pull_queue=2.0,
        download=3.0,
        unpack=3.0,
        start=0.5,
        bytes_wanted=100,
        bytes_pulled=75,
    )
    node = NodeOutcome(node="n1", bytes_pulled=75, pulls=1, bytes_held=100, pods=1)
    plain: dict[str, Any] = {"peak_load": None, "imbalance": None, "pods": (pod,), "nodes": (node,)}
    return summary(SimulationResult(scenario="s", profile="x", seed=1, seconds=40.0, **{**plain, **more}))


def levels() -> RunServiceLevels:
    """Two controllers of a class; the pod of one was preempted and did not start again."""
    spans = (
        PodSpan(controller="a", created=0.0, started=0.0),
        PodSpan(controller="b", created=0.0, started=0.0, ended=50.0, disruption="preempted"),
        PodSpan(controller="b", created=50.0),
    )
    found = controller_levels([AvailabilityPromise(name, 0.9, "gold") for name in "ab"], spans, 100.0)
    return RunServiceLevels(controllers=tuple(found), classes=class_levels(found), capacity_lost=0.25)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        pytest.param({}, "75 B downloaded, 25 B found in place, 25% of the needed bytes", id="bytes"),
        pytest.param({}, "bounded slowdown: 1.33 on average, 1.33 at p95", id="slowdown"),
        pytest.param({"overload_seconds": 1234.4}, "for 1,234 node-seconds", id="overload"),
        pytest.param({"peak_load": 2.0, "imbalance": 1.0}, "the busiest node had 2.00 times the mean", id="peak load"),
        pytest.param(
            {"utilisation": Utilisation(requested=0.5, used=0.25)},
            "50% of all cpu was requested, 25% used",
            id="utilisation",
        ),
        pytest.param(
            {"cleared": ImageRemovals(images=3, bytes=5000, pressure_images=1)},
            "3 images removed by GC, 5.0 kB; 1 of them because a disk was nearly full",
            id="cleared",
        ),
        pytest.param(
            {"evictions": 2, "failures": 1, "pull_failures": 4},
            "2 pods evicted, 1 pods failed, 4 failed pulls that were retried",
            id="troubles",
        ),
        pytest.param(
            {"service_levels": levels()},
            "gold: 50% of 2 controllers kept the SLO; availability 0.750 on average, 0.500 at least",
            id="promises",
        ),
        pytest.param({"service_levels": levels()}, "25.0% of the cpu that pods could have used", id="lost capacity"),
        pytest.param({"latency": "0.005s"}, "each attempt took 0.005s", id="latency"),
        pytest.param({"latency": "measured"}, "another run gives other figures", id="measured"),
    ],
)
def test_what_happened_is_told(capsys, more, words):
    print_summary(figures(**more), None)

    assert words in capsys.readouterr().out


def a_pod(phase: Phase, started: float | None = None) -> PodOutcome:
    return PodOutcome(pod="default/q", phase=phase, arrived=0.0, started=started)


def test_pods_that_never_started_are_counted_by_how_far_they_came(capsys):
    phases: tuple[Phase, ...] = (
        *("pending", "pulling", "pulling", "starting"),
        *("stopping", "rejected", "failed", "removed"),
    )
    print_summary(figures(pods=(a_pod("running", 1.0), *map(a_pod, phases))), None)

    assert (
        "8 pods not started: 1 pending without a node, 2 still pulling, 1 still starting, 1 stopping, "
        "1 rejected by their node, 1 failed or evicted, 1 removed; start times cover the others"
    ) in " ".join(capsys.readouterr().out.split())


def test_what_did_not_happen_is_not(capsys):
    print_summary(figures(), None)
    told = capsys.readouterr().out

    assert not [
        word
        for word in ("not started", "removed by GC", "evicted", "failed", "attempt", "busiest", "of all cpu")
        if word in told
    ]


def test_a_run_without_pods_has_no_seconds(capsys):
    print_summary(figures(pods=(), nodes=()), None)
    told = capsys.readouterr().out

    assert "0 of 0 pods started" in told
    assert ["-"] * 5 == [
        cell.strip() for line in told.splitlines() if "arrival to" in line for cell in line.split("|")[2:7]
    ]


def test_a_summary_of_an_older_release_is_read_under_the_former_keys(capsys):
    present = figures(peak_load=2.0, imbalance=1.0)
    print_summary({key: value for key, value in present.items() if key not in ("peak_load", "imbalance")}, None)

    assert "2.00 times the mean, coefficient of variation 1.00" in capsys.readouterr().out
