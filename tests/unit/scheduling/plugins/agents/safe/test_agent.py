"""The agent `safe`: its verbs, its arguments, its old environment variables, and its plugins in a scheduler."""

import msgspec
import pytest

from lamina.model import events
from lamina.model.node_usage import NodeUsage, ResourceUsage
from lamina.model.pod import PodUid
from lamina.scheduling.contract.plugin_registry import PluginArgs
from lamina.scheduling.contract.scheduling_agent import SchedulingAgentRegistry, agent_faults
from lamina.scheduling.loop.extender_core import ExtenderCore, NodeVictims
from lamina.scheduling.plugins.agents.safe import (
    AGENT,
    BalanceArgs,
    OverCommitmentArgs,
    OverloadArgs,
    PackingArgs,
)
from lamina.testing import LoopHarness, a_loop, a_node, a_pod
from tests.unit.scheduling.plugins.agents.safe.usage import annotated, measured, plain


def test_it_can_be_served():
    assert [] == agent_faults(AGENT)
    assert AGENT is SchedulingAgentRegistry(AGENT)["safe"]


def test_its_verbs_are_those_of_the_original_and_two_more():
    assert ["safe-overload"] == list(AGENT.predicates)
    assert [
        "safe-overload",
        "safe-balance",
        "low-risk-overcommitment",
        "target-load-packing",
    ] == list(AGENT.priorities)


# ------------------------------------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("args", "written"),
    [
        pytest.param(
            OverloadArgs(threshold=80, tolerance=10, forecast_weight=0, source="measured"),
            {"threshold": 80, "tolerance": 10, "forecastWeight": 0, "source": "measured"},
            id="SafeOverload",
        ),
        pytest.param(
            BalanceArgs(margin=2, sensitivity=1, compatible=True),
            {"margin": 2, "sensitivity": 1, "compatible": True},
            id="SafeBalance",
        ),
        pytest.param(
            OverCommitmentArgs(smoothing_window_size=1),
            {"smoothingWindowSize": 1, "riskLimitWeights": {"cpu": 0.5, "memory": 0.5}},
            id="LowRiskOverCommitment",
        ),
        pytest.param(
            PackingArgs(target_utilization=50, default_requests_multiplier=2),
            {"targetUtilization": 50, "defaultRequestsMultiplier": 2},
            id="TargetLoadPacking",
        ),
    ],
)
def test_arguments_are_written_as_upstream_writes_its_own(args, written):
    assert args == msgspec.convert(written, type(args))


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        (OverloadArgs, {"threshold": 101}),
        (OverloadArgs, {"tolerance": -1}),
        (OverloadArgs, {"forecastWeight": "many"}),
        (OverloadArgs, {"source": "guess"}),
        (OverloadArgs, {"compatible": True, "source": "measured"}),
        (BalanceArgs, {"sensitivity": 0}),
        (BalanceArgs, {"margin": -1}),
        (OverCommitmentArgs, {"smoothingWindowSize": 0}),
        (OverCommitmentArgs, {"riskLimitWeights": {"cpu": 1.1}}),
        (PackingArgs, {"targetUtilization": 0}),
        (PackingArgs, {"targetUtilization": 100}),
    ],
    ids=str,
)
def test_arguments_out_of_range_are_refused(kind: type[PluginArgs], written):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(written, kind)


# ---------------------------------------------------------------------------------------------------------- environment


def read(**variables: str):
    assert AGENT.environment is not None
    return AGENT.environment(variables)


def test_variables_set_what_they_set_before():
    assert (
        {
            "SafeOverload": {"threshold": 80, "tolerance": 0, "forecastWeight": 100},
            "SafeBalance": {"forecastWeight": 100},
        },
        [],
    ) == read(SAFEUTILIZATION="80", SAFEPERCENTILE="0", SAFEFORECASTWEIGHT="100", SAFEPRINTTABLE="false")


def test_what_they_set_can_be_set():
    settings, _ = read(SAFEUTILIZATION="80", SAFEPERCENTILE="5", SAFEFORECASTWEIGHT="10")
    args: dict[str, type[PluginArgs]] = {"SafeOverload": OverloadArgs, "SafeBalance": BalanceArgs}

    made = {plugin: msgspec.convert(values, args[plugin]) for plugin, values in settings.items()}

    assert {
        "SafeOverload": OverloadArgs(threshold=80, tolerance=5, forecast_weight=10),
        "SafeBalance": BalanceArgs(forecast_weight=10),
    } == made


@pytest.mark.parametrize("variables", [{}, {"SAFEUTILIZATION": "", "PATH": "/bin", "SAFEPRINTTABLE": "TRUE"}], ids=str)
def test_without_them_nothing_is_set(variables):
    assert ({}, []) == read(**variables)


@pytest.mark.parametrize("said", ["101", "-1", "0.9", "ninety", " 90", "9" * 100, "٩٠"])
def test_a_bad_value_leaves_the_default_and_is_complained_about(said):
    settings, complaints = read(SAFEUTILIZATION=said, SAFEPERCENTILE="40")

    assert {"SafeOverload": {"tolerance": 40}} == settings
    assert [f"SAFEUTILIZATION is {said[:40]!r}; write an integer from 0 to 100; 90 is used"] == complaints


def test_the_table_is_no_more():
    settings, complaints = read(SAFEPRINTTABLE="true")

    assert {} == settings
    assert ["SAFEPRINTTABLE has no effect"] == [complaint.split(":")[0] for complaint in complaints]


# ------------------------------------------------------------------------------------------------------- in a scheduler


def test_a_pod_waits_while_every_node_would_risk_overload_and_goes_when_one_does_not():
    desk = LoopHarness(a_loop(["PrioritySort", "NodeResourcesFit", "SafeOverload", "SafeBalance", "DefaultBinder"]))
    desk.tell(events.NodeSeen(plain("n1")), events.NodeSeen(plain("n2")))
    desk.tell(events.UsageReported((measured("n1", (0.85, 0.10)), measured("n2", (0.85, 0.10)))))

    desk.see(a_pod("web", cpu="10m"))

    assert "0/2 nodes are available: 2 node(s) would risk cpu overload." in desk.pending["web"]

    desk.tell(events.UsageReported((measured("n2", (0.3, 0.05), until=60.0),)))
    desk.at(100.0)

    assert {"web": "n2"} == desk.bound


JUDGES = ["PrioritySort", "NodeResourcesFit", "SafeOverload", "SafeBalance", "DefaultBinder"]
BUSY = a_pod("busy", cpu="500m", on="n1", started=True)


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param([events.NodeSeen(annotated("n1", (0.3, 0.0)))], id="the node says something else"),
        pytest.param([events.PodGone(PodUid("busy"))], id="somebody leaves"),
        pytest.param([events.UsageReported((measured("n1", (0.3, 0.0), until=10.0),))], id="it was measured again"),
        pytest.param([events.NodeSeen(a_node("n1", cpu=2))], id="the node is larger"),
        pytest.param([events.NodeSeen(plain("n2"))], id="another node joins"),
    ],
)
def test_a_pod_that_was_refused_is_tried_again_when(happened):
    said = isinstance(happened[0], events.NodeSeen) and happened[0].node.annotations
    desk = LoopHarness(a_loop(JUDGES))
    desk.at(10.0)
    desk.tell(events.NodeSeen(annotated("n1", (0.85, 0.0)) if said else plain("n1")), events.PodSeen(BUSY))
    if not said:
        desk.tell(events.UsageReported((measured("n1", (0.85, 0.0), until=10.0),)))
    desk.see(a_pod("web", cpu="100m"))
    assert {} == desk.bound

    desk.at(11.0)
    desk.tell(*happened)
    # Whoever was refused waits for a second before it is tried again, and is left alone for minutes if nothing happens.
    desk.at(15.0)

    assert ["web"] == list(desk.bound)


def test_a_pod_that_was_refused_is_tried_again_when_its_node_is_not_believed_any_more():
    """Due after 60 s, and believed in full for 120."""
    desk = LoopHarness(a_loop(JUDGES))
    desk.at(10.0)
    desk.tell(events.NodeSeen(plain("n1")), events.UsageReported((measured("n1", (0.95, 0.0), until=10.0, renews=60),)))
    desk.see(a_pod("web", cpu="10m"))
    tried = []
    for now in (60.0, 100.0, 140.0, 180.0):
        desk.at(now)
        tried.append("web" in desk.bound)

    assert [False, False, True, True] == tried


def test_nobody_is_evicted_for_what_one_that_may_be_idle_asked_for():
    """Two of four cores are in use, by one pod or the other: with one of them gone it may be one, and there is none for 3."""
    panel = ExtenderCore([AGENT])
    panel.take(events.TimePassed(100.0), events.NodeSeen(a_node("n1")))
    panel.take(*(events.PodSeen(a_pod(name, cpu=2, on="n1", started=True)) for name in ("idle", "busy")))
    panel.take(events.UsageReported((NodeUsage("n1", cpu=ResourceUsage(2000.0), since=0.0, until=100.0),)))
    victims = [NodeVictims("n1", ("idle",))]

    assert [] == panel.preempt("safe-overload", a_pod("p", cpu=3), victims)
    assert ["n1"] == panel.preempt("safe-overload", a_pod("p", cpu="2500m"), victims)


def test_pods_that_are_not_measured_yet_are_counted():
    """Two nodes alike: what was just placed on one counts there before it is measured, so the next goes to the other."""
    desk = LoopHarness(a_loop(["PrioritySort", "NodeResourcesFit", "SafeOverload", "SafeBalance", "DefaultBinder"]))
    desk.tell(events.NodeSeen(plain("n1")), events.NodeSeen(plain("n2")))
    desk.tell(events.UsageReported((measured("n1", (0.3, 0.05)), measured("n2", (0.3, 0.05)))))

    desk.see(*(a_pod(f"web-{number}", cpu="200m") for number in range(4)))

    assert {"web-0": "n1", "web-1": "n2", "web-2": "n1", "web-3": "n2"} == desk.bound
