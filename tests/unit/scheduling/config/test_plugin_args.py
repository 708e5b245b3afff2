"""Load: what upstream's validation refuses in the arguments of a plugin is refused, with the place and what to try."""

import pytest

from lamina.model.errors import InputError
from lamina.scheduling.config.loader import load
from lamina.scheduling.plugins.in_tree import registry

TEXT = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: {plugin}
    args:
"""
RATIO = "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: "
SOFT = "whenUnsatisfiable: ScheduleAnyway"
HARD = "whenUnsatisfiable: DoNotSchedule"


def mistakes(plugin: str, args: str) -> list[str]:
    """Return what is wrong with arguments, without the path to them."""
    with pytest.raises(InputError) as caught:
        load(TEXT.format(plugin=plugin) + f"      {args}\n", "c.yaml", registry(entry_points=False))
    return [str(one).split(": profiles[0].pluginConfig[0].args", 1)[1] for one in caught.value.mistakes]


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param(
            "scoringStrategy: {type: RequestedToCapacityRatio}",
            ".scoringStrategy: type RequestedToCapacityRatio needs requestedToCapacityRatio.shape, a list of points",
            id="without a shape",
        ),
        pytest.param(
            "scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {shape: [{utilization: 1, score: 1}]}}",
            ".scoringStrategy: requestedToCapacityRatio requires type RequestedToCapacityRatio; change the type "
            "or remove it",
            id="a shape for another strategy",
        ),
        pytest.param(
            RATIO + "{}}",
            ".scoringStrategy.requestedToCapacityRatio.shape: required field is missing",
            id="a ratio that says nothing",
        ),
        pytest.param(
            RATIO + "{shape: []}}",
            ".scoringStrategy.requestedToCapacityRatio.shape: must have at least 1 item, found 0",
            id="a shape without points",
        ),
        pytest.param(
            RATIO + "{shape: [{utilization: 101, score: 1}]}}",
            ".scoringStrategy.requestedToCapacityRatio.shape[0].utilization: must be at most 100, found 101",
            id="more use than there is",
        ),
        pytest.param(
            RATIO + "{shape: [{utilization: -1, score: 1}]}}",
            ".scoringStrategy.requestedToCapacityRatio.shape[0].utilization: must be at least 0, found -1",
            id="less use than none",
        ),
        pytest.param(
            RATIO + "{shape: [{utilization: 1, score: 11}]}}",
            ".scoringStrategy.requestedToCapacityRatio.shape[0].score: must be at most 10, found 11",
            id="more points than there are",
        ),
        pytest.param(
            RATIO + "{shape: [{utilization: 5}, {utilization: 5, score: 1}]}}",
            ".scoringStrategy.requestedToCapacityRatio: utilization must increase from point to point: 5 follows 5",
            id="a shape that stands still",
        ),
        pytest.param(
            RATIO + "{shape: [{utilization: 5}, {utilization: 4, score: 1}]}}",
            ".scoringStrategy.requestedToCapacityRatio: utilization must increase from point to point: 4 follows 5",
            id="a shape that goes back",
        ),
    ],
)
def test_a_ranking_of_ones_own_is_a_shape_that_goes_forward(args, want):
    """From 0 to 100 percent of use, with 0 to 10 points."""
    assert [want] == mistakes("NodeResourcesFit", args)


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param(
            "resources: [{name: cpu}, {name: memory}, {name: cpu}]",
            ": resource 'cpu' is listed twice; keep one of them",
            id="a resource twice",
        ),
        pytest.param(
            "resources: [{name: cpu, weight: 2}]",
            ".resources[0].weight: must be at most 1, found 2",
            id="a weight",
        ),
    ],
)
def test_resources_are_balanced_once_and_alike(args, want):
    """Upstream takes no weight but 1."""
    assert [want] == mistakes("NodeResourcesBalancedAllocation", args)


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param(
            f"defaultConstraints: [{{maxSkew: 1, topologyKey: a, {SOFT}}}]",
            ": defaultConstraints need defaultingType List; set it, or remove them",
            id="constraints beside the system's",
        ),
        pytest.param(
            "defaultingType: Lst", ".defaultingType: 'Lst' is not allowed; did you mean 'List'?", id="misspelt"
        ),
    ],
)
def test_default_constraints_come_from_the_system_or_from_a_list(args, want):
    """Not from both."""
    assert [want] == mistakes("PodTopologySpread", args)


@pytest.mark.parametrize(
    ("constraints", "want"),
    [
        pytest.param(
            f"{{maxSkew: 0, topologyKey: a, {HARD}}}", "[0].maxSkew: must be at least 1, found 0", id="no skew"
        ),
        pytest.param(
            f"{{maxSkew: 1, topologyKey: '', {HARD}}}",
            "[0]: topologyKey '' is not a valid label key",
            id="an empty key",
        ),
        pytest.param(
            f"{{maxSkew: 1, topologyKey: a/b/c, {HARD}}}",
            "[0]: topologyKey 'a/b/c' is not a valid label key",
            id="no label",
        ),
        pytest.param(
            "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Sometimes}",
            "[0].whenUnsatisfiable: 'Sometimes' is not allowed; choose from DoNotSchedule, ScheduleAnyway",
            id="neither hard nor soft",
        ),
        pytest.param(
            f"{{maxSkew: 1, topologyKey: a, {HARD}, labelSelector: {{}}}}",
            "[0]: labelSelector is not allowed here: Services and controllers determine the counted pods",
            id="a selector",
        ),
        pytest.param(
            f"{{maxSkew: 1, topologyKey: a, {HARD}}}, {{maxSkew: 2, topologyKey: b, {HARD}}}, "
            f"{{maxSkew: 3, topologyKey: a, {HARD}}}",
            " has 'a' with DoNotSchedule twice; keep one of them",
            id="one twice",
        ),
    ],
)
def test_a_default_constraint_is_checked_like_a_pods(constraints, want):
    """And has no selector, because every pod has its own."""
    (told,) = mistakes("PodTopologySpread", f"{{defaultingType: List, defaultConstraints: [{constraints}]}}")

    assert want == told.replace(".defaultConstraints", "", 1).replace(": defaultConstraints", "", 1)


def test_hard_and_soft_defaults_for_one_topology_are_two_constraints():
    """Only the pair of both must not repeat."""
    both = f"{{maxSkew: 1, topologyKey: a, {HARD}}}, {{maxSkew: 1, topologyKey: a, {SOFT}}}"
    args = f"      {{defaultingType: List, defaultConstraints: [{both}]}}\n"

    load(TEXT.format(plugin="PodTopologySpread") + args, "c.yaml", registry(entry_points=False))


REQUIRED = "addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
PREFERRED = "addedAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
IN_REQUIRED = ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
IN_PREFERRED = ".addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
NO_CONDITION = "is not a valid node selector requirement; check key, operator and values"


@pytest.mark.parametrize(
    ("args", "want"),
    [
        pytest.param(
            REQUIRED + "[{matchExpressions: [{key: disk, operator: In}]}]}}",
            f"{IN_REQUIRED}.nodeSelectorTerms[0]: 'disk' In [] {NO_CONDITION}",
            id="in no values",
        ),
        pytest.param(
            REQUIRED + "[{matchExpressions: [{key: disk, operator: Is, values: [ssd]}]}]}}",
            f"{IN_REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator: 'Is' is not allowed; "
            "choose from DoesNotExist, Exists, Gt, In, Lt, NotIn",
            id="an operator there is not",
        ),
        pytest.param(
            REQUIRED + "[{}, {matchFields: [{key: metadata.name, operator: Exists}]}]}}",
            f"{IN_REQUIRED}.nodeSelectorTerms[1]: 'metadata.name' Exists [] {NO_CONDITION}",
            id="an operator there is not for fields",
        ),
        pytest.param(
            REQUIRED + "[{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]}}",
            f"{IN_REQUIRED}.nodeSelectorTerms[0]: 'metadata.name' In ['a', 'b'] {NO_CONDITION}",
            id="two names at once",
        ),
        pytest.param(
            REQUIRED + "[{matchExpressions: [{key: cores, operator: Gt, values: [many]}]}]}}",
            f"{IN_REQUIRED}.nodeSelectorTerms[0]: 'cores' Gt ['many'] {NO_CONDITION}",
            id="more than what is no number",
        ),
        pytest.param(
            PREFERRED + "[{weight: 1, preference: {matchExpressions: [{key: a b, operator: Exists}]}}]}",
            f"{IN_PREFERRED}[0].preference: 'a b' Exists [] {NO_CONDITION}",
            id="a label nobody can have",
        ),
        pytest.param(
            PREFERRED + "[{weight: -1, preference: {}}]}",
            f"{IN_PREFERRED}[0].weight: must be at least 0, found -1",
            id="less than nothing",
        ),
        pytest.param(
            PREFERRED + "[{weight: 1}]}", f"{IN_PREFERRED}[0].preference: required field is missing", id="of what"
        ),
    ],
)
def test_an_affinity_that_is_added_has_to_make_sense(args, want):
    """Nobody would find out otherwise: it holds for every pod."""
    assert [want] == mistakes("NodeAffinity", args)
