"""Load: what a sound configuration comes to."""

from typing import Any

import pytest

from lamina.model import events
from lamina.model.errors import InputError
from lamina.scheduling.config.loader import Configuration, load
from lamina.scheduling.contract.commands import Bind
from lamina.scheduling.loop.loop import Loop
from lamina.scheduling.plugins.in_tree import registry
from lamina.testing import a_node, a_pod, an_image
from tests.unit.scheduling.bench import Bench

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def read(text: str) -> Configuration:
    return load(HEAD + text, "c.yaml", registry(entry_points=False))


EVERYTHING = """\
parallelism: 16
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceLock: leases
  resourceName: kube-scheduler
  resourceNamespace: kube-system
clientConnection:
  kubeconfig: /etc/kubernetes/scheduler.conf
  acceptContentTypes: ""
  contentType: application/vnd.kubernetes.protobuf
  qps: 50
  burst: 100
enableProfiling: true
enableContentionProfiling: true
percentageOfNodesToScore: 0
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 10
delayCacheUntilActive: false
extenders: []
profiles:
- schedulerName: mine
  percentageOfNodesToScore: 30
  plugins:
    multiPoint: {enabled: [{name: NodeName, weight: 0}], disabled: [{name: VolumeZone}]}
    preEnqueue: {}
    queueSort: {enabled: [{name: PrioritySort}]}
    preFilter: {enabled: []}
    filter: {}
    postFilter: {disabled: [{name: "*"}]}
    preScore: {}
    score: {enabled: [{name: ImageLocality, weight: 2}], disabled: [{name: TaintToleration}]}
    reserve: {}
    permit: {}
    preBind: {}
    bind: {}
    postBind: {}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesFitArgs
      ignoredResources: [example.com/foo]
      ignoredResourceGroups: [example.com]
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 2}, {name: memory, weight: 1}]
  - name: NodeResourcesBalancedAllocation
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesBalancedAllocationArgs
      resources: [{name: cpu, weight: 1}, {name: memory}, {name: example.com/foo, weight: 0}]
  - name: PodTopologySpread
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: PodTopologySpreadArgs
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
      - maxSkew: 2
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        minDomains: 2
        nodeAffinityPolicy: Honor
        nodeTaintsPolicy: Honor
        matchLabelKeys: [app]
  - name: NodeAffinity
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeAffinityArgs
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: pool, operator: In, values: [batch]}]
            matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]
        preferredDuringSchedulingIgnoredDuringExecution:
        - {weight: 5, preference: {matchExpressions: [{key: disk, operator: Exists}]}}
  - name: InterPodAffinity
    args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: InterPodAffinityArgs
      hardPodAffinityWeight: 1
      ignorePreferredTermsOfExistingPods: false
  - name: ImageLocality
    args: {}
"""


def test_every_field_upstream_knows_is_understood():
    """A file that works there works here."""
    profiles = read(EVERYTHING).profiles(Bench().context)

    assert ["mine"] == list(profiles)
    assert [
        ("ImageLocality", 2),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("NodeResourcesBalancedAllocation", 1),
    ] == [(part.name, part.weight) for part in profiles["mine"].scorers]


@pytest.mark.parametrize("point", ["placementGenerate", "placementScore"])
def test_the_points_for_groups_of_pods_are_understood_too(point):
    """Upstream has them since 1.36."""
    read(f"profiles:\n- plugins:\n    {point}: {{}}\n")


def test_the_head_alone_is_a_configuration():
    """One profile, named as pods call the default scheduler, and upstream's back-off."""
    configuration = read("")

    assert ["default-scheduler"] == list(configuration.profiles(Bench().context))
    assert (1.0, 10.0) == (configuration.backoff.first, configuration.backoff.longest)


def test_back_off_is_taken_over():
    """In seconds."""
    backoff = read("podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 3\n").backoff

    assert (3.0, 3.0) == (backoff.first, backoff.longest)


def test_arguments_reach_their_plugin():
    """Merged with its defaults."""
    text = (
        "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: {type: MostAllocated}}\n"
    )
    plugin: Any = read(text).profiles(Bench().context)["default-scheduler"].plugins["NodeResourcesFit"]

    assert (True, (("cpu", 1), ("memory", 1))) == (plugin._most, plugin._resources)


def test_a_shape_reaches_its_plugin():
    """As the points for each percentage of use: 10 · score, and straight between 0 and 50, 50 and 100."""
    text = (
        "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args:\n      scoringStrategy:\n"
        "        type: RequestedToCapacityRatio\n        requestedToCapacityRatio:\n          shape:\n"
        "          - {utilization: 0, score: 0}\n          - {utilization: 50, score: 10}\n"
        "          - {utilization: 100, score: 5}\n"
    )
    plugin: Any = read(text).profiles(Bench().context)["default-scheduler"].plugins["NodeResourcesFit"]

    assert [0, 50, 100, 75, 50] == plugin._shape[[0, 25, 50, 75, 100]].tolist()


def test_a_plugin_at_several_points_is_one_plugin():
    """What it learns at one it knows at the next."""
    profile = read("").profiles(Bench().context)["default-scheduler"]
    fits = [plugin for plugin in (*profile.pre_filter, *profile.pre_score) if plugin.name == "NodeResourcesFit"]
    fits += [part.plugin for part in profile.filters if part.name == "NodeResourcesFit"]
    fits += [part.plugin for part in profile.scorers if part.name == "NodeResourcesFit"]

    assert 4 == len(fits)
    assert 1 == len({id(plugin) for plugin in fits})


def test_several_profiles_may_share_a_queue():
    """Each has its plugins; an unnamed one is the default scheduler's."""
    text = "profiles:\n- {}\n- schedulerName: images\n  plugins: {score: {disabled: [{name: NodeResourcesFit}]}}\n"
    profiles = read(text).profiles(Bench().context)

    assert {
        "default-scheduler": [
            "TaintToleration",
            "NodeAffinity",
            "NodeResourcesFit",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation",
            "ImageLocality",
        ],
        "images": [
            "TaintToleration",
            "NodeAffinity",
            "PodTopologySpread",
            "InterPodAffinity",
            "NodeResourcesBalancedAllocation",
            "ImageLocality",
        ],
    } == {name: [part.name for part in profile.scorers] for name, profile in profiles.items()}


def test_each_call_makes_profiles_of_its_own():
    """Two loops never share a plugin."""
    configuration = read("")
    one, two = (configuration.profiles(Bench().context)["default-scheduler"] for _ in range(2))

    assert one.plugins["NodeResourcesFit"] is not two.plugins["NodeResourcesFit"]


@pytest.mark.parametrize(
    "args",
    [
        pytest.param("{scoringStrategy: {resources: [{name: cpu, weight: 0}]}}", id="a weight of 0 is 1"),
        pytest.param("{scoringStrategy: {resources: []}}", id="no resources are the default ones"),
    ],
)
def test_arguments_left_empty_get_upstreams_defaults(args):
    """So does a list without entries, and a weight of 0."""
    text = f"profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {args}\n"
    plugin: Any = read(text).profiles(Bench().context)["default-scheduler"].plugins["NodeResourcesFit"]

    assert {1} == {weight for _, weight in plugin._resources}


@pytest.mark.parametrize(
    "plugins",
    [
        pytest.param("{score: {enabled: [{name: LayerLocality}]}}", id="score without preScore"),
        pytest.param("{preScore: {disabled: [{name: '*'}]}}", id="preScore taken away"),
        pytest.param("{preFilter: {disabled: [{name: NodeResourcesFit}]}}", id="preFilter taken away"),
    ],
)
def test_a_plugin_without_the_point_that_prepares_it_is_refused_or_manages(plugins):
    """Either is fine, as long as pods are decided."""
    try:
        configuration = read(f"profiles:\n- plugins: {plugins}\n")
    except InputError:
        return
    loop = Loop(configuration.profiles, lambda count: 0)
    loop.feed(events.ImagesLearned((an_image("app:1", {"app": 5}),)), events.NodeSeen(a_node()))

    assert [Bind] == [type(command) for command in loop.feed(events.PodSeen(a_pod()))]
