"""
Laws of the imbalance figures: kept up to date change by change, they are what one gets by looking at every moment.

On the crowded little scenarios of `simulated_scenarios`, with nodes that leave and pods that are removed while pods come.
"""

import itertools
import math
import statistics

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.resources import CPU
from lamina.simulator.run.load_imbalance import arrival_window
from lamina.simulator.workloads import Scenario, ScenarioEvent
from lamina.trace.trace_records import NodeLeft
from tests.property.simulated_scenarios import PROFILES, Run, run, scenarios

# A run takes ten times as long as other examples; many remain under `make soak`.
FEWER = settings(max_examples=settings().max_examples * 2 // 5)


@st.composite
def eventful(draw: st.DrawFn) -> Scenario:
    """A scenario in which things happen while pods still come."""
    scenario = draw(scenarios(calm=True))
    first, last = arrival_window(scenario)
    times = st.integers(int(4 * first), int(4 * last)).map(lambda quarters: quarters / 4)
    pods, nodes = [one.pod.name for one in scenario.arrivals], [spec.name for spec in scenario.nodes]
    events = st.lists(
        st.builds(ScenarioEvent, times, st.just("remove"), st.sampled_from(pods))
        | st.builds(ScenarioEvent, times, st.just("drop"), st.sampled_from(nodes)),
        min_size=1,
        max_size=4,
    )
    until = draw(st.none() | st.integers(1, 20).map(float))
    ordered = sorted(draw(events), key=lambda happening: happening.at)
    return msgspec.structs.replace(scenario, events=tuple(ordered), until=until)


def looked_at(scenario: Scenario, drawn: Run) -> tuple[float | None, float | None]:
    """Peak load and imbalance the slow way: every node and every pod at every moment between two changes."""
    first, last = arrival_window(scenario)
    left = {record.node: record.at for record in drawn.trace if isinstance(record, NodeLeft)}
    asks = {arrival.pod.key: dict(arrival.pod.requests)[CPU] for arrival in scenario.arrivals}
    pods = [
        (one.node, one.bound, math.inf if one.ended is None else one.ended, asks[one.pod])
        for one in drawn.result.pods
        if one.bound is not None
    ]
    changes = {*left.values(), *(pod[1] for pod in pods), *(pod[2] for pod in pods)}
    moments = sorted({first, last, *(at for at in changes if first < at < last)})
    spans = list(itertools.pairwise(moments)) or [(first, first + 1.0)]
    weighed = []
    for begin, end in spans:
        shares = [
            sum(cpu for node, bound, ended, cpu in pods if node == spec.name and bound <= begin < ended)
            / dict(spec.allocatable)[CPU]
            for spec in scenario.nodes
            if begin < left.get(spec.name, math.inf)
        ]
        if shares and sum(shares) > 0:
            mean = statistics.fmean(shares)
            weighed.append((end - begin, max(shares) / mean, statistics.pstdev(shares) / mean))
    busy = sum(length for length, _, _ in weighed)
    if not busy:
        return None, None
    return sum(one[0] * one[1] for one in weighed) / busy, sum(one[0] * one[2] for one in weighed) / busy


@FEWER
@given(eventful(), PROFILES, st.integers(0, 3))
def test_figures_kept_up_to_date_are_those_of_looking_at_every_moment(scenario, profile, seed):
    drawn = run(scenario, profile, seed)
    peak_load, imbalance = looked_at(scenario, drawn)

    assert pytest.approx((peak_load, imbalance), abs=1e-9) == (drawn.result.peak_load, drawn.result.imbalance)


@FEWER
@given(scenarios(), PROFILES)
def test_peak_load_and_imbalance_stay_within_what_the_number_of_nodes_allows(scenario, profile):
    """All load on one of n nodes gives n and √(n - 1); nothing gives more."""
    result = run(scenario, profile).result
    nodes = len(scenario.nodes)
    if result.peak_load is None or result.imbalance is None:
        assert result.peak_load is result.imbalance
        return

    assert 1.0 - 1e-9 <= result.peak_load <= nodes + 1e-9
    assert 0.0 <= result.imbalance <= math.sqrt(nodes - 1) + 1e-9
