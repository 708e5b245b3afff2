"""Load: everything wrong with a configuration is told at once, where it stands, with what to try."""

from typing import Any, ClassVar

import pytest

from lamina.model.errors import InputError
from lamina.scheduling.config.loader import load
from lamina.scheduling.plugins.in_tree import registry

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Fifo:
    """Another order of the queue."""

    name: ClassVar = "Fifo"
    changes_with_time: ClassVar = False

    def __init__(self, *_: Any) -> None: ...

    def sort_key(self, queued, now): ...


KNOWN = registry(entry_points=False)
KNOWN.register(Fifo)
FIRST_TWELVE = ", ".join(list(KNOWN)[:12])


def mistakes(text: str, head: str = HEAD) -> list[str]:
    """Return what is wrong, line by line, without the file's name."""
    with pytest.raises(InputError) as caught:
        load(head + text, "c.yaml", KNOWN)
    return [str(mistake).removeprefix("c.yaml:") for mistake in caught.value.mistakes]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        # -- names of fields
        pytest.param(
            "podMaxBackofSeconds: 5\n",
            "3: podMaxBackofSeconds: unknown field 'podMaxBackofSeconds'; did you mean 'podMaxBackoffSeconds'?",
            id="a misspelt field",
        ),
        pytest.param(
            "profiles:\n- scheduler_name: x\n",
            "4: profiles[0].scheduler_name: unknown field 'scheduler_name'; did you mean 'schedulerName'?",
            id="a field in snake case",
        ),
        pytest.param(
            "profiles:\n- plugins:\n    scores: {}\n",
            "5: profiles[0].plugins.scores: unknown field 'scores'; did you mean 'score'?",
            id="a misspelt extension point",
        ),
        pytest.param(
            "leaderElection:\n  zzz: 1\n",
            "4: leaderElection.zzz: unknown field 'zzz'; choose from leaderElect, leaseDuration, renewDeadline, "
            "retryPeriod, resourceLock, resourceName, resourceNamespace",
            id="a field like no other",
        ),
        # -- values
        pytest.param(
            "podInitialBackoffSeconds: 0\n",
            "3: podInitialBackoffSeconds: must be at least 1, found 0",
            id="too small",
        ),
        pytest.param(
            "percentageOfNodesToScore: 101\n", "3: percentageOfNodesToScore: must be at most 100, found 101", id="large"
        ),
        pytest.param(
            "parallelism: many\n", "3: parallelism: expected a whole number, found text 'many'", id="no number"
        ),
        pytest.param(
            "profiles:\n- plugins: {score: {enabled: [{name: ImageLocality, weight: -1}]}}\n",
            "4: profiles[0].plugins.score.enabled[0].weight: must be at least 0, found -1",
            id="a negative weight",
        ),
        pytest.param("parallelism: 0\n", "3: parallelism: must be at least 1, found 0", id="nobody at work"),
        pytest.param(
            "profiles:\n- percentageOfNodesToScore: 101\n",
            "4: profiles[0].percentageOfNodesToScore: must be at most 100, found 101",
            id="a share above all nodes",
        ),
        pytest.param(
            "profiles:\n- schedulerName: ''\n",
            "4: profiles[0].schedulerName: must have at least 1 character, found 0",
            id="a profile without a name",
        ),
        pytest.param(
            "profiles:\n- schedulerName: [a]\n",
            "4: profiles[0].schedulerName: expected text, found a list",
            id="a name that is a list",
        ),
        pytest.param(
            "podInitialBackoffSeconds: 20\n",
            "3: podInitialBackoffSeconds: must not be more than podMaxBackoffSeconds, which is 10",
            id="a first rest longer than the longest by default",
        ),
        pytest.param(
            "podInitialBackoffSeconds: 8\npodMaxBackoffSeconds: 7\n",
            "4: podMaxBackoffSeconds: must not be less than podInitialBackoffSeconds",
            id="back-off upside down",
        ),
        # -- extenders
        pytest.param(
            "extenders:\n- urlPrefix: http://extender\n  weight: heavy\n",
            "5: extenders[0].weight: expected a whole number, found text 'heavy'",
            id="an extender with a weight in words",
        ),
        # -- plugins
        pytest.param(
            "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ImageLocalty\n",
            "7: profiles[0].plugins.score.enabled[0].name: there is no plugin 'ImageLocalty'; "
            "did you mean 'ImageLocality'?",
            id="a misspelt plugin",
        ),
        pytest.param(
            "profiles:\n- plugins:\n    multiPoint:\n      disabled:\n      - name: Xyz\n",
            f"7: profiles[0].plugins.multiPoint.disabled[0].name: there is no plugin 'Xyz'; choose from {FIRST_TWELVE} "
            f"and {len(list(KNOWN)) - 12} more",
            id="a plugin nobody knows, disabled",
        ),
        pytest.param(
            "profiles:\n- plugins:\n    multiPoint:\n      enabled:\n      - name: DynamicResources\n",
            "7: profiles[0].plugins.multiPoint.enabled[0].name: plugin 'DynamicResources' is part of kube-scheduler "
            "and not implemented here yet; remove it",
            id="a plugin of upstream's that is not in tree",
        ),
        *(
            pytest.param(
                f"profiles:\n- plugins:\n    {point}:\n      disabled:\n      - name: UnmetDemands\n",
                f"7: profiles[0].plugins.{point}.disabled[0].name: plugin 'UnmetDemands' cannot be disabled: it refuses "
                "pods that need features which are not implemented yet and that would otherwise be placed without them; "
                "remove this entry",
                id=f"what stays, disabled at {point}",
            )
            for point in ("multiPoint", "preFilter")
        ),
        pytest.param(
            "profiles:\n- plugins:\n    filter:\n      enabled:\n      - name: ImageLocality\n",
            "7: profiles[0].plugins.filter.enabled[0].name: plugin 'ImageLocality' does not extend filter: it extends "
            "score",
            id="a plugin where it cannot be",
        ),
        pytest.param(
            "profiles:\n- plugins:\n    multiPoint:\n      enabled:\n      - name: NodeName\n      - name: NodeName\n",
            "8: profiles[0].plugins.multiPoint.enabled[1].name: plugin 'NodeName' is enabled twice",
            id="a plugin twice",
        ),
        pytest.param(
            "profiles:\n- plugins: {queueSort: {disabled: [{name: '*'}]}}\n",
            "4: profiles[0].plugins: exactly one queueSort plugin is needed, e.g. PrioritySort",
            id="no order",
        ),
        pytest.param(
            "profiles:\n- plugins: {queueSort: {enabled: [{name: Fifo}]}}\n",
            "4: profiles[0].plugins: exactly one queueSort plugin is needed, e.g. PrioritySort",
            id="two orders",
        ),
        pytest.param(
            "profiles:\n- plugins: {bind: {disabled: [{name: DefaultBinder}]}}\n",
            "4: profiles[0].plugins: at least one bind plugin is needed, e.g. DefaultBinder",
            id="no binder",
        ),
        # -- arguments
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategi: {}\n",
            "7: profiles[0].pluginConfig[0].args.scoringStrategi: unknown field 'scoringStrategi'; "
            "did you mean 'scoringStrategy'?",
            id="a misspelt argument",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n"
            "        type: BestAllocated\n",
            "8: profiles[0].pluginConfig[0].args.scoringStrategy.type: 'BestAllocated' is not allowed; "
            "did you mean 'LeastAllocated'?",
            id="a strategy that is not there",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n"
            "        resources:\n        - name: cpu\n          weight: heavy\n",
            "10: profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: expected a whole number, "
            "found text 'heavy'",
            id="an argument of another kind",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: LayerLocality\n    args: {mode: megabytes}\n",
            "6: profiles[0].pluginConfig[0].args.mode: 'megabytes' is not allowed; did you mean 'bytes'?",
            id="a mode that is not there",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeName\n    args: {strict: true}\n",
            "6: profiles[0].pluginConfig[0].args.strict: unknown field 'strict'; choose from apiVersion, kind",
            id="arguments for a plugin that takes none",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: [1]\n",
            "6: profiles[0].pluginConfig[0].args: expected a mapping, found a list",
            id="arguments that are a list",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: DynamicResources\n    args: {filterTimeout: 5s}\n",
            "5: profiles[0].pluginConfig[0].name: plugin 'DynamicResources' is part of kube-scheduler and not "
            "implemented here yet; remove it",
            id="arguments for a plugin that is not in tree",
        ),
        # -- profiles
        pytest.param(
            "profiles: []\n",
            "3: profiles: at least one profile is needed: omit the field for the default one",
            id="no profile",
        ),
        pytest.param(
            "profiles:\n- schedulerName: a\n- schedulerName: b\n- schedulerName: a\n",
            "6: profiles[2].schedulerName: two profiles for schedulerName 'a'; rename one",
            id="two profiles of one name",
        ),
        pytest.param(
            "profiles:\n- {}\n- schedulerName: default-scheduler\n",
            "5: profiles[1].schedulerName: two profiles for schedulerName 'default-scheduler'; rename one",
            id="two profiles of one name, once unsaid",
        ),
        pytest.param(
            "profiles:\n- {}\n- schedulerName: b\n"
            "  plugins: {queueSort: {disabled: [{name: '*'}], enabled: [{name: Fifo}]}}\n",
            "3: profiles: all profiles share one queue and must use the same queueSort plugin",
            id="two orders in two profiles",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_its_field_and_what_to_try(text, want):
    """One sentence, starting with where."""
    assert [want] == mistakes(text)


@pytest.mark.parametrize(
    ("head", "want"),
    [
        pytest.param("", ["1: nothing in it: the file is empty or holds only comments"], id="nothing at all"),
        pytest.param(
            "apiVersion: kubescheduler.config.k8s.io/v1alpha2\nkind: KubeSchedulerConfiguration\n",
            [
                (
                    "1: apiVersion: 'kubescheduler.config.k8s.io/v1alpha2' is not allowed; choose from "
                    "kubescheduler.config.k8s.io/v1"
                )
            ],
            id="a version that is too old",
        ),
        pytest.param(
            "apiVersion:\nkind: KubeSchedulerConfiguration\n",
            ["1: apiVersion: expected one of 'kubescheduler.config.k8s.io/v1', found nothing"],
            id="no value",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Pod\n",
            [
                "1: apiVersion: 'v1' is not allowed; choose from kubescheduler.config.k8s.io/v1",
                "2: kind: 'Pod' is not allowed; choose from KubeSchedulerConfiguration",
            ],
            id="something else",
        ),
        pytest.param("- a\n- b\n", ["1: expected a mapping, found a list"], id="a list"),
    ],
)
def test_what_is_no_such_configuration_is_told_so(head, want):
    """Before anything else."""
    assert want == mistakes("", head)


def test_all_mistakes_are_told_at_once_in_the_order_of_their_lines():
    """A misspelt field in one place does not hide a wrong plugin in another."""
    text = """\
podMaxBackofSeconds: 5
extenders:
- urlPrefix: extender
profiles:
- schedulerName: a
  plugins:
    scor: {}
    score:
      enabled:
      - name: ImageLocalty
        weight: much
    filter:
      enabled:
      - name: ImageLocality
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignored: []
- schedulerName: a
"""
    told = [mistake.partition(":") for mistake in mistakes(text)]

    assert [3, 5, 9, 12, 13, 16, 20, 21] == [int(line) for line, _, _ in told]
    assert [
        "podMaxBackofSeconds",
        "extenders[0].urlPrefix",
        "profiles[0].plugins.scor",
        "profiles[0].plugins.score.enabled[0].name",
        "profiles[0].plugins.score.enabled[0].weight",
        "profiles[0].plugins.filter.enabled[0].name",
        "profiles[0].pluginConfig[0].args.ignored",
        "profiles[1].schedulerName",
    ] == [rest.split(":")[0].strip() for _, _, rest in told]


def test_what_is_wrong_as_yaml_is_told_with_the_rest():
    """A field written twice, say."""
    assert [
        "4: podMaxBackoffSeconds: written twice in one mapping, first on line 3",
        "5: paralelism: unknown field 'paralelism'; did you mean 'parallelism'?",
    ] == mistakes("podMaxBackoffSeconds: 5\npodMaxBackoffSeconds: 6\nparalelism: 1\n")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n"
            "        resources:\n        - name: cpu\n          weight: -1\n",
            id="a weight below 1",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n"
            "        resources:\n        - name: cpu\n          weight: 101\n",
            id="a weight above 100",
        ),
        pytest.param(
            "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n  - name: NodeResourcesFit\n",
            id="arguments twice for one plugin",
        ),
    ],
)
def test_what_upstream_refuses_is_refused(text):
    """Its own validation has these rules."""
    assert mistakes(text)
