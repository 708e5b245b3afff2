"""Gangs of a scenario: which copies of an entry belong together."""

import pytest

from lamina.model.errors import InputError
from lamina.model.pod_groups import group_of
from lamina.simulator.workloads import load_scenario

TEXT = """
name: gangs
images: {registry.example/a:1: {a: 1MB}}
nodes: [{name: n, cpu: 64, memory: 64Gi}]
objects:
- {kind: PodGroup, apiVersion: scheduling.volcano.sh/v1beta1, metadata: {name: g}, spec: {minMember: 2}}
- {kind: Queue, metadata: {name: gold}, spec: {weight: 3}}
pods:
- {name: w, count: %d, image: registry.example/a:1, cpu: 1, duration: 1m, gang: {%s}}
"""


@pytest.mark.parametrize(
    ("count", "gang", "want"),
    [
        pytest.param(3, "", [("default/w", 3)] * 3, id="all copies"),
        pytest.param(3, "min: 2", [("default/w", 2)] * 3, id="a minimum"),
        pytest.param(
            5,
            "size: 2, timeout: 10s",
            [("default/w-gang1", 2)] * 2 + [("default/w-gang2", 2)] * 2 + [("default/w-gang3", 1)],
            id="several gangs, and a rest",
        ),
    ],
)
def test_copies_of_an_entry_are_gangs(tmp_path, count, gang, want):
    (tmp_path / "s.yaml").write_text(TEXT % (count, gang))
    scenario = load_scenario(tmp_path / "s.yaml")
    refs = [group_of(arrival.pod) for arrival in scenario.arrivals]

    assert want == [(ref.key, ref.min_member) for ref in refs if ref is not None]
    assert ["PodGroup", "Queue"] == sorted(type(one.found).__name__ for one in scenario.objects)


def test_a_gang_in_an_unknown_dialect_is_a_mistake(tmp_path):
    (tmp_path / "s.yaml").write_text(TEXT.replace("volcano.sh/v1beta1", "example.com/v1") % (1, ""))

    with pytest.raises(InputError, match=r"has no PodGroup; write scheduling\.x-k8s\.io/v1alpha1 or"):
        load_scenario(tmp_path / "s.yaml")
