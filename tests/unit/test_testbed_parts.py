"""The catalog of the testbed: which parts are built when, and what their programs are called."""

import pytest

from testbed import TestbedError, parts

EVERYDAY = {
    "etcd",
    "kube-apiserver",
    "kubectl",
    "kube-scheduler",
    "kube-controller-manager",
    "kubelet",
    "containerd",
    "runc",
    "cni",
    "registry",
    "cri-o",
    "idle",
    "foreign-extender",
}
REQUESTED = {"random-scheduler", "kube-batch", "volcano", "kwok", "helm"}


def told(chosen):
    return [(part.name, part.version) for part in chosen]


def test_every_part_is_built_every_day_or_on_request():
    assert set(parts.names()) == EVERYDAY | REQUESTED
    assert {part.name for part in parts.CATALOG if part.on_request} == REQUESTED


def test_a_build_without_names_makes_the_default_control_plane_and_its_nodes():
    chosen = parts.select((), (parts.KUBERNETES,))

    assert {part.name for part in chosen} == EVERYDAY
    assert {part.version for part in chosen if part.is_kubernetes} == {parts.KUBERNETES}


@pytest.mark.parametrize("version", parts.SKEWED)
def test_another_version_is_an_api_server_a_scheduler_and_kubectl(version):
    chosen = [part for part in parts.select((), (version,)) if part.is_kubernetes]

    assert told(chosen) == [(name, version) for name in ("kube-apiserver", "kubectl", "kube-scheduler")]


@pytest.mark.parametrize(
    ("names", "versions", "chosen"),
    [
        pytest.param(["kwok"], ["1.36.3"], [("kwok", "0.8.0")], id="on request"),
        pytest.param(
            ["kwok", "kubectl"],
            ["1.37.1", "1.30.14"],
            [("kwok", "0.8.0"), ("kubectl", "1.37.1"), ("kubectl", "1.30.14")],
            id="two versions, and a part that has one",
        ),
        pytest.param(["etcd", "etcd"], ["1.36.3"], [("etcd", "3.6.16")], id="named twice"),
    ],
)
def test_named_parts_are_chosen_once_and_in_the_order_of_their_names(names, versions, chosen):
    assert told(parts.select(names, versions)) == chosen


@pytest.mark.parametrize(
    ("name", "version", "words"),
    [
        pytest.param("kube-proxy", "1.36.3", "there is no part 'kube-proxy'; choose from etcd, .*, kwok", id="part"),
        pytest.param(
            "kubelet", "1.37.1", r"kubelet does not exist in version 1\.37\.1; choose from 1\.36\.3", id="version"
        ),
    ],
)
def test_what_there_is_not_is_told_with_what_there_is(name, version, words):
    with pytest.raises(TestbedError, match=words):
        parts.select([name], [version])


@pytest.mark.parametrize(
    ("name", "programs"),
    [
        pytest.param("kube-batch", ("kube-batch",), id="the end of its package"),
        pytest.param("containerd", ("containerd", "containerd-shim-runc-v2", "ctr"), id="several"),
        pytest.param("volcano", ("vc-scheduler",), id="a name of its own"),
    ],
)
def test_programs_have_the_names_that_their_projects_give_them(name, programs):
    assert parts.find(name).programs == programs


@pytest.mark.parametrize("part", parts.CATALOG, ids=lambda part: f"{part.name}-{part.version}")
def test_a_part_has_a_name_for_every_package(part):
    assert len(part.programs) == len(part.packages)
    assert part.folder.is_dir()
