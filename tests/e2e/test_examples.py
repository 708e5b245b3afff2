"""
Every folder of examples/ runs and shows what its README says.

An example without an expectation here fails, and so does a README that leaves out how to run it.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from lamina.scheduling.config.loader import load
from lamina.scheduling.config.named_profiles import NAMED, named
from lamina.scheduling.plugins.in_tree import registry
from lamina.simulator.cluster import UsageSpec
from lamina.simulator.run import SimulationResult, simulate, summary
from lamina.simulator.workloads import load_scenario

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCENARIOS = {
    "backfill": "scenario.yaml",
    "batsim": "scenario.yaml",
    "budgets": "scenario.yaml",
    "churn": "scenario.yaml",
    "classic": "scenario.yaml",
    "drf": "scenario.yaml",
    "edge": "scenario.yaml",
    "flow": "scenario.yaml",
    "founding": "scenario.yaml",
    "gang": "scenario.yaml",
    "phases": "scenario.yaml",
    "qos": "sanity.yaml",
    "rollout": "scenario.yaml",
    "safe": "scenario.yaml",
}
"""The first scenario of each example."""
# No scenarios: stories of tests/e2e play them on a real control plane.
STORIES = ("qos-live", "test-pod")

MB = 1_000_000


def run(example: str, profile: str, seed: int = 0) -> SimulationResult:
    scenario = load_scenario(EXAMPLES / example)
    return simulate(scenario.under(profile), named(profile, registry(entry_points=False)), seed=seed, detail="full")


def nodes(result: SimulationResult) -> Mapping[str, str]:
    return {pod.pod.removeprefix("default/"): pod.node for pod in result.pods}


def test_every_example_has_an_expectation():
    assert sorted((*SCENARIOS, *STORIES)) == sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


@pytest.mark.parametrize("example", [*SCENARIOS, *STORIES])
def test_every_example_says_what_it_shows_and_how_to_run_it(example):
    text = (EXAMPLES / example / "README.md").read_text(encoding="utf-8")

    assert text.startswith("# ")
    assert f"examples/{example}/" in text
    assert "```sh\nlamina " in text


@pytest.mark.parametrize(("example", "name"), SCENARIOS.items())
def test_every_scenario_names_a_profile_there_is(example, name):
    scenario = load_scenario(EXAMPLES / example / name)

    assert scenario.about
    assert scenario.profile in NAMED


# ------------------------------------------------------------------------------------------------------------- founding


@pytest.mark.parametrize("seed", range(6))
def test_founding_the_third_pod_goes_where_the_lower_layers_are(seed):
    result = run("founding/scenario.yaml", "lamina-balanced", seed)
    p1, p2, p3 = result.pods

    assert p1.node != p2.node
    assert p2.node == p3.node
    # L1, L2 and L3 for p1, L1, L2 and L4 for p2, and only L3 for p3.
    assert (650 * MB, 600 * MB, 150 * MB) == (p1.bytes_pulled, p2.bytes_pulled, p3.bytes_pulled)
    assert (7.0, 6.5, 2.0) == (p1.pulling, p2.pulling, p3.pulling)
    assert 1400 * MB == summary(result)["bytes_pulled"]


def test_founding_without_layers_it_is_a_matter_of_luck():
    runs = [run("founding/scenario.yaml", "kube-default", seed) for seed in range(12)]
    pulled = {result.pods[2].node == result.pods[1].node: summary(result)["bytes_pulled"] for result in runs}

    assert {True: 1400 * MB, False: 1900 * MB} == pulled


# ----------------------------------------------------------------------------------------------------------------- flow


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("profile", "pulled", "last"), [("flow", 300 * MB, 3.5), ("lamina-balanced", 2100 * MB, 21.5)])
def test_flow_gives_the_warm_node_to_the_pod_that_needs_it(profile, pulled, last, seed):
    result = run("flow/scenario.yaml", profile, seed)

    assert pulled == summary(result)["bytes_pulled"]
    assert last == summary(result)["startup_seconds"]["total"]["max"]
    assert ("warm" if profile == "flow" else "cold") == nodes(result)["train"]


# -------------------------------------------------------------------------------------------------------------- classic

IN_TURN = {"a1": "larger", "a2": "smaller", "a3": "larger", "b1": "smaller", "b2": "larger"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("example", "profile", "pulls"),
    [
        ("classic/scenario.yaml", "image-locality", 2),
        ("classic/scenario.yaml", "lamina-local", 2),
        ("classic/scenario.yaml", "lamina-balanced", 3),
        ("classic/scenario.yaml", "least-allocated", 4),
        ("classic/scenario.yaml", "kube-default", 4),
        ("classic/small.yaml", "lamina-local", 2),
        ("classic/small.yaml", "lamina-balanced", 4),
        ("classic/small.yaml", "least-allocated", 4),
        ("classic/small.yaml", "kube-default", 4),
    ],
)
def test_classic_pulls(example, profile, pulls, seed):
    result = run(example, profile, seed)

    assert pulls == summary(result)["pulls"]
    assert 5 == summary(result)["pods"]["started"]


@pytest.mark.parametrize("profile", ["least-allocated", "kube-default"])
def test_classic_without_regard_to_images_the_nodes_take_turns(profile):
    assert IN_TURN == nodes(run("classic/scenario.yaml", profile))


def test_classic_an_image_below_the_floor_scores_nothing_anywhere():
    result = run("classic/small.yaml", "image-locality")
    scores = {
        score.score
        for decision in result.decisions
        for verdict in decision.verdicts
        for score in verdict.scores
        if score.plugin == "ImageLocality"
    }

    assert {0} == scores


# ---------------------------------------------------------------------------------------------------------------- churn


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_churn_layers_save_downloads_although_versions_change(seed):
    """Both run the same pods: what is drawn does not depend on the profile."""
    scenario = load_scenario(EXAMPLES / "churn" / "scenario.yaml", seed)
    results = {
        profile: summary(simulate(scenario.under(profile), named(profile, registry(entry_points=False)), seed=seed))
        for profile in ("kube-default", scenario.profile)
    }
    usual, ours = results.values()

    assert (2000, 2000) == (usual["pods"]["started"], ours["pods"]["started"])
    assert ours["bytes_pulled"] < 0.8 * usual["bytes_pulled"]


# -------------------------------------------------------------------------------------------------------------- rollout


@pytest.mark.parametrize("seed", range(3))
def test_rollout_the_new_version_pulls_what_is_new_in_it(seed):
    result = run("rollout/scenario.yaml", "lamina-balanced", seed)
    web = [pod for pod in result.pods if pod.pod.startswith("default/web-")]
    old, new = web[:12], web[12:]

    assert {"removed"} == {pod.phase for pod in old}
    assert 15 == sum(pod.phase == "running" for pod in new)
    # On each of five nodes: 90 MB for the first image, 135 MB for the second, 15 MB for its next version.
    assert (5 * 240 * MB, 5 * 15 * MB) == (summary(result)["bytes_pulled"], sum(pod.bytes_pulled for pod in new))


def test_rollout_nothing_new_comes_to_a_node_that_is_drained():
    result = run("rollout/scenario.yaml", "lamina-balanced")
    drained, back = 310.0, 600.0

    assert [] == [pod.pod for pod in result.pods if pod.node == "n1" and drained <= pod.arrived < back]
    # What it ran has ended three seconds later, but for the pod of the DaemonSet.
    assert ["default/log-1"] == [
        pod.pod
        for pod in result.pods
        if pod.node == "n1" and pod.arrived < drained and (pod.ended is None or pod.ended > drained + 3)
    ]
    assert {("n1", back + 120.5)} == {(pod.node, pod.started) for pod in result.pods if pod.arrived > back}


# ----------------------------------------------------------------------------------------------------------------- edge


@pytest.mark.slow
def test_edge_what_is_where_saves_the_line_and_the_disks():
    scenario = load_scenario(EXAMPLES / "edge" / "scenario.yaml")
    usual, ours = (
        summary(simulate(scenario.under(profile), named(profile, registry(entry_points=False))))
        for profile in ("kube-default", scenario.profile)
    )

    assert ours["bytes_pulled"] < 0.6 * usual["bytes_pulled"]
    assert 0 < ours["gc"]["images"] < usual["gc"]["images"]
    assert ours["gc"]["pressure_images"] < usual["gc"]["pressure_images"]
    assert (0, 300) == (ours["evictions"], ours["pods"]["finished"])


# --------------------------------------------------------------------------------------------------------------- phases


def test_phases_the_greediest_and_last_goes_when_memory_runs_out():
    result = run("phases/scenario.yaml", "lamina-balanced")
    pods = {pod.pod.removeprefix("default/"): pod for pod in result.pods}

    assert {"train": "finished", "again": "failed", "web": "finished", "flaky-1": "finished"} == {
        name: pod.phase for name, pod in pods.items()
    }
    assert ("Evicted", 120.5) == (pods["again"].reason, pods["again"].ended)
    assert 2 == pods["flaky-1"].restarts
    assert pytest.approx(83.85) == pods["flaky-1"].ended


# ----------------------------------------------------------------------------------------------------------------- safe


def run_safe(example: str, *, measuring: bool, seed: int = 0, window: float | None = None) -> SimulationResult:
    known = registry(entry_points=False)
    path = EXAMPLES / "safe" / "profile.yaml"
    usual = named("kube-default", known)
    configuration = load(path.read_text(encoding="utf-8"), path.name, known) if measuring else usual
    scenario = load_scenario(EXAMPLES / "safe" / example, seed)
    if window is not None:
        scenario = msgspec.structs.replace(scenario, usage=UsageSpec(every=60.0, window=window))
    return simulate(scenario, configuration, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "overload", "evictions"),
    [
        pytest.param(0, 19015.38, 64, id="0"),
        pytest.param(1, 16582.5, 93, id="1"),
        pytest.param(2, 16753.92, 85, id="2"),
    ],
)
def test_safe_who_measures_avoids_what_requests_lead_to(seed, overload, evictions):
    usual, safe = (summary(run_safe("scenario.yaml", measuring=measuring, seed=seed)) for measuring in (False, True))

    assert (pytest.approx(overload), evictions) == (usual["overload_seconds"], usual["evictions"])
    assert 36 + evictions == usual["pods"]["started"]
    assert (0.0, 0, 36) == (safe["overload_seconds"], safe["evictions"], safe["pods"]["started"])
    assert ([], []) == (usual["pods"]["pending"], safe["pods"]["pending"])


@pytest.mark.slow
def test_safe_a_window_longer_than_the_pods_live_misleads():
    usual = summary(run_safe("short.yaml", measuring=False))
    late = summary(run_safe("short.yaml", measuring=True))
    soon = summary(run_safe("short.yaml", measuring=True, window=300.0))

    assert [24, 34, 13] == [one["evictions"] for one in (usual, late, soon)]
    assert soon["overload_seconds"] < usual["overload_seconds"] < late["overload_seconds"]


# --------------------------------------------------------------------------------------------------------------- batsim


def test_batsim_jobs_become_pods_and_wall_times_deadlines():
    result = run("batsim/scenario.yaml", "lamina-balanced")

    assert 26 == len(result.pods)
    assert {f"w0-4-{number}" for number in range(1, 9)} == {name for name in nodes(result) if name.startswith("w0-4-")}
    assert {"w0-5": "DeadlineExceeded"} == {
        pod.pod.removeprefix("default/"): pod.reason for pod in result.pods if pod.phase == "failed"
    }
    assert 25 == sum(pod.phase == "finished" for pod in result.pods)


# -------------------------------------------------------------------------------------------------------------- budgets


def test_budgets_the_budget_decides_which_pod_makes_room():
    result = run("budgets/scenario.yaml", "kube-default")
    pods = {pod.pod.removeprefix("default/"): pod for pod in result.pods}
    removed = [(pod.ended, name.rpartition("-")[0]) for name, pod in pods.items() if pod.phase == "removed"]

    assert [(67.0, 68.0), (77.0, 78.0)] == [(pods[name].bound, pods[name].started) for name in ("db-0", "db-1")]
    assert [(63.0, "shop"), (73.0, "report"), (76.0, "shop")] == sorted(removed)
    assert 3 == summary(result)["preemptions"]


# ------------------------------------------------------------------------------------------------------------------ qos


def test_qos_priorities_let_the_least_important_controller_wait():
    classes = summary(run("qos/sanity.yaml", "kube-default"))["qos"]["classes"]

    assert {"lower": 0.0, "free": 1.0, "batch": 1.0, "prod": 1.0} == {name: one["met"] for name, one in classes.items()}
    assert {"preempted": 2} == classes["lower"]["disruptions"]


# --------------------------------------------------------------------------------------------------------- gang and drf


@pytest.mark.parametrize(
    ("profile", "together"),
    [pytest.param("gang", True, id="gang"), pytest.param("lamina-balanced", False, id="others")],
)
def test_gang_all_pods_of_a_gang_are_bound_at_once(profile, together):
    result = run("gang/scenario.yaml", profile)
    bound: dict[int, set[float | None]] = {}
    for pod in result.pods:
        if pod.pod.startswith("default/train"):
            bound.setdefault((int(pod.pod.removeprefix("default/train")) - 1) // 12, set()).add(pod.bound)

    assert {"finished"} == {pod.phase for pod in result.pods}
    assert together == all(len(times) == 1 for times in bound.values())


@pytest.mark.parametrize(
    ("profile", "started"),
    [pytest.param("drf", (6, 4), id="equal shares"), pytest.param("kube-default", (9, 0), id="first come")],
)
def test_drf_both_jobs_get_the_same_share_of_what_they_need_most(profile, started):
    first = [pod.pod.removeprefix("default/") for pod in run("drf/scenario.yaml", profile).pods if pod.bound == 0.0]

    assert started == (sum(name.startswith("memory") for name in first), sum(name.startswith("cpu") for name in first))
