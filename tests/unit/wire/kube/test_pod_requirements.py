"""Pods from Kubernetes JSON: ports of the node, and what they ask for that cannot be done yet."""

import json

import pytest

from lamina.model.pod import HostPort, Pod, PodTerm, PreferredPods
from lamina.model.pod_volumes import PodVolume
from lamina.model.selectors import LabelSelector
from lamina.wire.errors import WireError
from lamina.wire.kube.codec import decode_pod

REQUIRED, PREFERRED = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))


def read(**spec: object) -> Pod:
    """The pod that *spec* describes."""
    return decode_pod(json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode())


def container(*ports: dict[str, object], **more: object) -> dict[str, object]:
    return {"name": "c", "image": "app", "ports": list(ports), **more}


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"containers": [container()]}, [], id="no ports"),
        pytest.param({"containers": [container({"containerPort": 80})]}, [], id="a port of the pod only"),
        pytest.param({"containers": [container({"hostPort": 80})]}, [HostPort(80, "TCP", "0.0.0.0")], id="a port"),
        pytest.param({"containers": [container({"hostPort": 0}, {"hostPort": None})]}, [], id="0 is none"),
        pytest.param({"containers": [container({"hostPort": -1})]}, [], id="nor is less"),
        pytest.param(
            {"containers": [container({"hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"})]},
            [HostPort(53, "UDP", "10.0.0.1")],
            id="of a protocol, on an address",
        ),
        pytest.param(
            {"containers": [container({"hostPort": 1, "protocol": "", "hostIP": ""})]}, [HostPort(1)], id="empty"
        ),
        pytest.param(
            {"containers": [container({"hostPort": 1}, {"hostPort": 2}), container({"hostPort": 3})]},
            [HostPort(1), HostPort(2), HostPort(3)],
            id="of every container",
        ),
        pytest.param(
            {"initContainers": [container({"hostPort": 1})], "containers": [container({"hostPort": 2})]},
            [HostPort(2)],
            id="not of a container that is gone before the pod runs",
        ),
        pytest.param(
            {
                "initContainers": [container({"hostPort": 1}, {"hostPort": 0}, restartPolicy="Always")],
                "containers": [container({"hostPort": 2})],
            },
            [HostPort(1), HostPort(2)],
            id="of a sidecar",
        ),
    ],
)
def test_the_ports_of_a_node_that_a_pod_holds_while_it_runs_are_read(spec, want):
    assert tuple(want) == read(**spec).host_ports


ANYWHERE = ["emptyDir", "hostPath", "configMap", "secret", "projected", "downwardAPI", "nfs", "csi", "cephfs", "fc"]


@pytest.mark.parametrize("kind", [*ANYWHERE, "flexVolume", "azureFile", "glusterfs"])
def test_a_volume_that_a_kubelet_can_make_anywhere_asks_nothing_of_a_scheduler(kind):
    pod = read(volumes=[{"name": "v", kind: {}}, {"name": "i", "image": {"reference": "model:1"}}])

    assert ((), ()) == (pod.unmet, pod.volumes)


VOLUMES = [
    ({"persistentVolumeClaim": {"claimName": "data", "readOnly": True}}, PodVolume("persistentVolumeClaim", "data")),
    ({"persistentVolumeClaim": {"claimName": None}}, PodVolume("persistentVolumeClaim", "")),
    ({"ephemeral": {"volumeClaimTemplate": {}}}, PodVolume("ephemeral", "v")),
    ({"gcePersistentDisk": {"pdName": "d"}}, PodVolume("gcePersistentDisk", "d")),
    ({"awsElasticBlockStore": {"volumeID": "d", "readOnly": True}}, PodVolume("awsElasticBlockStore", "d", True)),
    ({"iscsi": {"iqn": "d", "readOnly": None}}, PodVolume("iscsi", "d")),
    ({"azureDisk": {"diskName": "n", "diskURI": "d"}}, PodVolume("azureDisk", "d")),
    ({"cinder": {"volumeID": "d"}}, PodVolume("cinder", "d")),
    ({"portworxVolume": {"volumeID": "d"}}, PodVolume("portworxVolume", "d")),
    (
        {"rbd": {"image": "d", "pool": "rbd", "monitors": ["a", "b"]}},
        PodVolume("rbd", "d", pool="rbd", monitors=("a", "b")),
    ),
]


@pytest.mark.parametrize(("source", "want"), VOLUMES, ids=[next(iter(source)) for source, _ in VOLUMES])
def test_a_claim_or_disk_that_restricts_where_a_pod_runs_is_read(source, want):
    assert (want,) == read(volumes=[{"name": "logs", "emptyDir": {}}, {"name": "v", **source}]).volumes


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"resourceClaims": [{"name": "gpu", "resourceClaimName": "x"}, {"name": "nic"}]},
            ['resource claim "gpu"', 'resource claim "nic"'],
            id="devices",
        ),
        pytest.param({"affinity": {"podAffinity": {REQUIRED: [{}] * 128}}}, [], id="128 affinity terms"),
        pytest.param(
            {"affinity": {"podAffinity": {REQUIRED: [{}] * 129}}},
            ["more than 128 inter-pod affinity terms"],
            id="129 affinity terms",
        ),
        pytest.param(
            {"affinity": {"podAntiAffinity": {REQUIRED: [{}] * 129}}},
            ["more than 128 inter-pod anti-affinity terms"],
            id="129 anti-affinity terms",
        ),
        pytest.param(
            {
                "affinity": {"podAffinity": {REQUIRED: [{}]}, "podAntiAffinity": {REQUIRED: [{}]}},
                "volumes": [{"persistentVolumeClaim": {"claimName": "data"}}],
                "resourceClaims": [{"name": "gpu"}],
            },
            ['resource claim "gpu"'],
            id="all sorts",
        ),
    ],
)
def test_what_cannot_be_done_yet_is_put_into_words(spec, want):
    assert tuple(want) == read(**spec).unmet


@pytest.mark.parametrize(
    ("affinity", "want"),
    [
        pytest.param({"podAffinity": {PREFERRED: [{"weight": 1}] * 128}}, [], id="128 preferred terms"),
        pytest.param(
            {"podAffinity": {PREFERRED: [{"weight": 1}] * 129}},
            ["more than 128 preferred inter-pod affinity terms"],
            id="129 preferred terms",
        ),
        pytest.param(
            {"podAntiAffinity": {PREFERRED: [{"weight": 1}] * 129}},
            ["more than 128 preferred inter-pod anti-affinity terms"],
            id="129 avoided",
        ),
        pytest.param(
            {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": {}}]}}, [], id="nodes, which are ranked"
        ),
    ],
)
def test_what_nothing_is_made_of_is_put_into_words_and_asks_nothing(affinity, want):
    pod = read(affinity=affinity)

    assert (tuple(want), ()) == (pod.ignored, pod.unmet)


@pytest.mark.parametrize(
    ("term", "want"),
    [
        pytest.param({"topologyKey": "zone"}, PodTerm("zone"), id="no selector is none"),
        pytest.param({"topologyKey": "zone", "labelSelector": {}}, PodTerm("zone", LabelSelector()), id="an empty one"),
        pytest.param({"topologyKey": "z", "namespaces": ["a"]}, PodTerm("z", None, ("a",)), id="namespaces"),
        pytest.param(
            {"topologyKey": "z", "namespaceSelector": {"matchLabels": {"b": "2", "a": "1"}}},
            PodTerm("z", None, (), LabelSelector((("a", "1"), ("b", "2")))),
            id="namespaces by their labels",
        ),
    ],
)
def test_a_pod_affinity_term_is_read_wherever_it_stands(term, want):
    terms = {REQUIRED: [term], PREFERRED: [{"weight": 7, "podAffinityTerm": term}]}
    pod = read(affinity={"podAffinity": terms, "podAntiAffinity": terms})

    assert ((want,), (want,)) == (pod.required_pods, pod.repels)
    assert ((PreferredPods(7, want),), (PreferredPods(7, want),)) == (pod.preferred_pods, pod.avoided_pods)


def test_of_very_many_terms_the_first_are_kept():
    """A placed pod of another scheduler must not take memory without limit."""
    many = [{"topologyKey": f"k{number}"} for number in range(1000)]
    pod = read(affinity={"podAntiAffinity": {REQUIRED: many, PREFERRED: [{"podAffinityTerm": one} for one in many]}})

    assert ["k0", "k127"] == [pod.repels[0].topology_key, pod.repels[-1].topology_key]
    assert (128, 128) == (len(pod.repels), len(pod.avoided_pods))


def test_a_name_is_cut_where_no_name_goes_on():
    """Whatever was sent, a message stays a message."""
    (words,) = read(resourceClaims=[{"name": "x" * 100_000}]).unmet

    assert f'resource claim "{"x" * 253}"' == words


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"containers": [container({"hostPort": "80"})]}, id="a port in words"),
        pytest.param({"containers": [{"ports": {}}]}, id="ports that are no list"),
        pytest.param({"volumes": [{"persistentVolumeClaim": "data"}]}, id="a claim that is a word"),
        pytest.param({"affinity": {"podAntiAffinity": {REQUIRED: {}}}}, id="terms that are no list"),
        pytest.param({"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 2**40}]}}}, id="a weight too large"),
        pytest.param({"resourceClaims": [7]}, id="a claim that is a number"),
    ],
)
def test_what_makes_no_sense_is_refused(spec):
    with pytest.raises(WireError, match="cannot read Pod"):
        read(**spec)


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"hostNetwork": True, "hostUsers": False}, ("UserNamespacesHostNetworkSupport",), id="users"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, (), id="the host's users"),
        pytest.param({"hostNetwork": True}, (), id="the host's users by default"),
        pytest.param({"hostUsers": False}, (), id="users and a network of its own"),
        *(
            pytest.param(
                {where: [container(restartPolicyRules=[{"action": "Restart"}, {"action": "RestartAllContainers"}])]},
                ("RestartAllContainersOnContainerExits",),
                id=f"all or nothing: {where}",
            )
            for where in ("containers", "initContainers")
        ),
        *(
            pytest.param(
                {where: [container(volumeMounts=[{"name": "a"}, {"name": "b", "bindMountOptions": ["noexec"]}])]},
                ("VolumeBindMountOptions",),
                id=f"options of a bind mount: {where}",
            )
            for where in ("containers", "initContainers", "ephemeralContainers")
        ),
        pytest.param(
            {"containers": [container(volumeMounts=[{"name": "bindMountOptions", "bindMountOptions": []}])]},
            (),
            id="a bind mount without options",
        ),
        pytest.param({"containers": [container(restartPolicyRules=[{"action": "Restart"}])]}, (), id="restarting one"),
    ],
)
def test_required_features_are_inferred_from_the_spec(spec, want):
    pod = read(**spec)

    assert (want, ()) == (pod.required_features, pod.unmet)


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param({"schedulingGroup": {"podGroupName": "training"}}, "training", id="a group"),
        pytest.param(
            {"workloadRef": {"name": "training", "podGroup": "w", "podGroupReplicaKey": "2"}},
            "training/w/2",
            id="a replica of a workload's group",
        ),
        pytest.param({}, "", id="none"),
    ],
)
def test_a_pod_group_of_the_api_is_read(spec, want):
    assert want == read(**spec).group
