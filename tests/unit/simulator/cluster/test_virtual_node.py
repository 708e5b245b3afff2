"""A virtual node: room, and what its status and its reports say."""

import pytest

from lamina.model.image import Image
from lamina.model.node import NodeImage
from lamina.model.resources import amounts
from lamina.simulator.cluster import VirtualNode, VirtualNodeSpec, VirtualPod
from lamina.simulator.cluster.pod_lifecycle import RUNS_FOREVER
from lamina.testing import a_digest, a_pod, an_image

GPU = "nvidia.com/gpu"


def a_virtual_node(*holds: Image, **resources: str | int) -> VirtualNode:
    given = {"cpu": 4, "memory": "8Gi", "pods": 3, **resources}
    return VirtualNode(VirtualNodeSpec(name="n1", allocatable=amounts(given), bandwidth=100.0, holds=holds))


def a_virtual_pod(name: str = "p", cpu: str | int | None = None, memory: str | None = None, **more: int) -> VirtualPod:
    return VirtualPod(a_pod(name, cpu, memory, more=more), (), 0.0, RUNS_FOREVER)


@pytest.mark.parametrize(
    ("there", "comes", "short_of"),
    [
        pytest.param([], a_virtual_pod(cpu=4, memory="8Gi"), "", id="a pod that fills the node"),
        pytest.param([], a_virtual_pod(cpu="4001m"), "cpu", id="a thousandth too much"),
        pytest.param([a_virtual_pod("q", cpu=3)], a_virtual_pod(cpu=2), "cpu", id="what is used counts"),
        pytest.param([a_virtual_pod("q", memory="5Gi")], a_virtual_pod(memory="4Gi"), "memory", id="memory"),
        pytest.param([a_virtual_pod(name) for name in "abc"], a_virtual_pod(), "pods", id="one pod too many"),
        pytest.param([], a_virtual_pod(**{GPU: 1}), GPU, id="a resource the node does not have"),
        pytest.param([], a_virtual_pod(**{GPU: 0}), "", id="nothing of a resource the node does not have"),
    ],
)
def test_a_node_is_short_of_the_first_resource_that_does_not_suffice(there, comes, short_of):
    node = a_virtual_node()
    for pod in there:
        node.take(pod)

    assert short_of == node.short_of(comes.pod.requests)


def test_what_a_pod_used_is_free_again_and_only_once():
    node = a_virtual_node()
    pod = a_virtual_pod(cpu=4, memory="8Gi")
    node.take(pod)
    node.free(pod)
    node.free(pod)

    assert {"cpu": 0, "memory": 0, "pods": 0} == node.used


def test_the_status_lists_full_names_with_digests_first():
    """As a runtime spells them; ImageLocality, which compares text, depends on it."""
    node = a_virtual_node(an_image("nginx", {"base": 60}), an_image("registry.example/app:1", {"app": 70}))

    assert (
        NodeImage(
            (f"registry.example/app@{a_digest('manifest of registry.example/app:1')}", "registry.example/app:1"), 70
        ),
        NodeImage(
            (f"docker.io/library/nginx@{a_digest('manifest of nginx')}", "docker.io/library/nginx:latest"),
            60,
        ),
    ) == node.seen().images


def test_the_status_lists_the_fifty_largest_images():
    node = a_virtual_node(*(an_image(f"app:{size}", {f"layer {size}": size}) for size in range(1, 61)))

    assert list(range(60, 10, -1)) == [image.size for image in node.images_to_list()]


def test_a_report_names_all_images_and_is_newer_than_the_one_before():
    image = an_image("app:1", {"base": 60})
    node = a_virtual_node(image)
    first, second = node.report(1.0), node.report(2.0)

    assert [(image.digest, 60, ("app:1",))] == [(one.digest, one.size, one.names) for one in first.images]
    assert "set" == first.reuse
    assert (1, 1.0, 2, 2.0) == (first.sequence, first.observed_at, second.sequence, second.observed_at)


@pytest.mark.parametrize(
    ("said", "labels"),
    [
        pytest.param({}, {"kubernetes.io/hostname": "n1"}, id="given"),
        pytest.param({"zone": "a"}, {"kubernetes.io/hostname": "n1", "zone": "a"}, id="beside others"),
        pytest.param({"kubernetes.io/hostname": "x"}, {"kubernetes.io/hostname": "x"}, id="set by itself"),
    ],
)
def test_a_node_is_labelled_with_its_name_unless_it_says_otherwise(said, labels):
    node = VirtualNode(VirtualNodeSpec(name="n1", allocatable=(), bandwidth=1.0, labels=said))

    assert labels == node.seen().labels
