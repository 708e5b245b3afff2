"""Arguments of upstream's plugins: what kube-scheduler's validation refuses is refused, with the path of the field."""

from typing import Any

import pytest
import yaml

from lamina.model.errors import InputError
from lamina.scheduling.config.loader import load
from lamina.scheduling.plugins.in_tree import registry

KNOWN = registry(entry_points=False)
HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
ARGS = "profiles[0].pluginConfig[0].args"
CPU = {"name": "cpu", "weight": 1}
ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
RATIO = "RequestedToCapacityRatio"


def mistakes(document: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        load(yaml.safe_dump({**HEAD, **document}), "f", KNOWN)
    return [(one.path, one.message) for one in caught.value.mistakes]


def strategy(**fields) -> dict[str, Any]:
    return {"scoringStrategy": fields}


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    listed = [{"utilization": utilization, "score": score} for utilization, score in points]
    return strategy(type=RATIO, requestedToCapacityRatio={"shape": listed})


def spread(**fields) -> dict[str, Any]:
    return {"defaultingType": "List", "defaultConstraints": [{**ZONE, **fields}]}


def required(**requirement) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.mark.parametrize(
    ("plugin", "args", "path", "words"),
    [
        pytest.param("NodeResourcesFit", {"ignoredResources": ["a", "b c"]}, ".ignoredResources[1]", "is not the name", id="a resource with a space"),
        pytest.param("NodeResourcesFit", {"ignoredResourceGroups": ["a/b"]}, ".ignoredResourceGroups[0]", "is not a group", id="a group with a slash"),
        pytest.param("NodeResourcesFit", {"ignoredResourceGroups": [""]}, ".ignoredResourceGroups[0]", "is not a group", id="an empty group"),
        pytest.param("NodeResourcesFit", strategy(type="Best"), ".scoringStrategy.type", "is not allowed", id="a strategy"),
        pytest.param("NodeResourcesFit", strategy(resources=[CPU, {"name": "memory", "weight": 101}]), ".scoringStrategy.resources[1].weight", "must be at most 100", id="a weight above 100"),
        pytest.param("NodeResourcesFit", strategy(resources=[{"name": "cpu", "weight": -1}]), ".scoringStrategy.resources[0].weight", "must be at least 0", id="a negative weight"),
        pytest.param("NodeResourcesFit", strategy(type=RATIO), ".scoringStrategy", "needs requestedToCapacityRatio", id="a strategy without its shape"),
        pytest.param("NodeResourcesFit", strategy(requestedToCapacityRatio={"shape": [{"utilization": 0}]}), ".scoringStrategy", f"requires type {RATIO}", id="a shape without its strategy"),
        pytest.param("NodeResourcesFit", shape(), ".scoringStrategy.requestedToCapacityRatio.shape", "at least 1 item", id="a shape without points"),
        pytest.param("NodeResourcesFit", shape((0, 0), (101, 10)), ".scoringStrategy.requestedToCapacityRatio.shape[1].utilization", "at most 100", id="a utilization above 100"),
        pytest.param("NodeResourcesFit", shape((0, 11)), ".scoringStrategy.requestedToCapacityRatio.shape[0].score", "at most 10", id="a score above 10"),
        pytest.param("NodeResourcesFit", shape((50, 0), (50, 1)), ".scoringStrategy.requestedToCapacityRatio", "must increase", id="a utilization twice"),
        pytest.param("NodeResourcesFit", {"kind": "NodeAffinityArgs"}, ".kind", "write NodeResourcesFitArgs", id="arguments of another plugin"),
        pytest.param("NodeResourcesFit", {"apiVersion": "v1"}, ".apiVersion", "write kubescheduler.config.k8s.io/v1", id="another version"),
        pytest.param("NodeResourcesBalancedAllocation", {"resources": [{"name": "cpu", "weight": 2}]}, ".resources[0].weight", "must be at most 1", id="a weight where there is none"),
        pytest.param("NodeResourcesBalancedAllocation", {"resources": [CPU, CPU]}, "", "listed twice", id="a resource twice"),
        pytest.param("DefaultPreemption", {"minCandidateNodesPercentage": 101}, ".minCandidateNodesPercentage", "must be at most 100", id="a share of candidates above 100"),
        pytest.param("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, ".minCandidateNodesAbsolute", "must be at least 0", id="a negative number of candidates"),
        pytest.param("DefaultPreemption", {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}, "", "", id="no candidates at all"),
        pytest.param("InterPodAffinity", {"hardPodAffinityWeight": 101}, ".hardPodAffinityWeight", "must be at most 100", id="a hard weight above 100"),
        pytest.param("InterPodAffinity", {"hardPodAffinityWeight": -1}, ".hardPodAffinityWeight", "must be at least 0", id="a negative hard weight"),
        pytest.param("PodTopologySpread", {"defaultConstraints": [ZONE]}, "", "need defaultingType List", id="constraints with system defaults"),
        pytest.param("PodTopologySpread", {"defaultingType": "Some"}, ".defaultingType", "is not allowed", id="another type of defaults"),
        pytest.param("PodTopologySpread", spread(maxSkew=0), ".defaultConstraints[0].maxSkew", "must be at least 1", id="a skew of 0"),
        pytest.param("PodTopologySpread", spread(topologyKey=""), ".defaultConstraints[0]", "is not a valid label key", id="an empty topology key"),
        pytest.param("PodTopologySpread", spread(whenUnsatisfiable=""), ".defaultConstraints[0].whenUnsatisfiable", "is not allowed", id="an empty action"),
        pytest.param("PodTopologySpread", spread(labelSelector={}), ".defaultConstraints[0]", "labelSelector is not allowed", id="a selector"),
        pytest.param("PodTopologySpread", {"defaultingType": "List", "defaultConstraints": [ZONE, ZONE]}, "", "twice", id="a constraint twice"),
        pytest.param("NodeAffinity", required(key="a", operator="Near"), ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator", "is not allowed", id="an operator"),
        pytest.param("NodeAffinity", required(key="a", operator="In"), ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]", "is not a valid node selector requirement", id="no values"),
        pytest.param("NodeAffinity", required(key="a b", operator="Exists"), ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]", "is not a valid node selector requirement", id="a key with a space"),
    ],
)  # fmt: skip
def test_an_argument_that_upstream_refuses_is_refused_with_its_path(plugin, args, path, words):
    ((where, message),) = mistakes({"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]})

    assert ARGS + path == where
    assert words in message


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param({"clientConnection": {"burst": -1}}, "clientConnection.burst", id="a negative burst"),
        pytest.param({"clientConnection": {"qps": float("inf")}}, "clientConnection.qps", id="endless requests"),
        pytest.param(
            {"leaderElection": {"resourceName": ""}}, "leaderElection.resourceName", id="a lease without a name"
        ),
        pytest.param(
            {"leaderElection": {"resourceNamespace": ""}}, "leaderElection.resourceNamespace", id="no namespace"
        ),
        pytest.param({"parallelism": 0}, "parallelism", id="no parallelism"),
        pytest.param({"parallelism": 2**31}, "parallelism", id="a parallelism of 33 bits"),
        pytest.param({"percentageOfNodesToScore": -1}, "percentageOfNodesToScore", id="a negative share"),
        pytest.param({"podMaxBackoffSeconds": 2**63}, "podMaxBackoffSeconds", id="a back-off of 65 bits"),
    ],
)
def test_a_field_of_the_file_that_upstream_refuses_is_refused(document, path):
    ((where, _),) = mistakes(document)

    assert path == where
