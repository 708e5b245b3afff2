"""Which platforms nodes have and which registries they pull from, whoever comes, reports and goes."""

import msgspec
import pytest

from lamina.model.image import Platform
from lamina.model.layer_report import HeldImage, LayerReport
from lamina.model.node import Node
from lamina.services.informers.node_image_facts import MOST_OF_A_NODE, MOST_PLATFORMS, MOST_REGISTRIES, NodeImageFacts
from lamina.testing import a_digest, a_node

AMD = Platform()
ARM = Platform("linux", "arm64", "")


def on(name: str, platform: Platform = AMD) -> Node:
    return msgspec.structs.replace(a_node(name), platform=platform)


def report(node: str, *names: str) -> LayerReport:
    return LayerReport(node=node, images=tuple(HeldImage(a_digest(name), 0, (name,)) for name in names))


def test_platforms_are_those_of_the_nodes_the_commonest_first():
    nodes = NodeImageFacts()
    for name, platform in (("a", Platform()), ("b", ARM), ("c", ARM)):
        nodes.node(on(name, platform))
    assert [ARM, AMD] == list(nodes.platforms)

    nodes.gone("b")
    nodes.gone("c")
    assert [AMD] == list(nodes.platforms)


def test_a_node_may_tell_its_platform_later_than_its_name():
    nodes = NodeImageFacts()
    nodes.node(on("a"))
    nodes.node(on("a", ARM))
    assert (ARM,) == nodes.platforms


def test_there_are_only_so_many_platforms():
    nodes = NodeImageFacts()
    for number in range(MOST_PLATFORMS + 5):
        nodes.node(on(f"n{number}", Platform("linux", f"made-up-{number}")))
    assert MOST_PLATFORMS == len(nodes.platforms)


@pytest.mark.parametrize(
    ("name", "registries"),
    [
        pytest.param("nginx:1", ("docker.io",), id="Docker Hub unsaid"),
        pytest.param("quay.io/a/b:1", ("quay.io",), id="a tag"),
        pytest.param(f"quay.io/a/b@{a_digest('x')}", ("quay.io",), id="a digest alone"),
        pytest.param("registry.example:5000/a:1", ("registry.example:5000",), id="a port"),
        pytest.param("not a name", (), id="no reference"),
        pytest.param("", (), id="nothing"),
    ],
)
def test_registries_are_read_from_the_names_of_images(name, registries):
    nodes = NodeImageFacts()
    nodes.reported(report("n1", name))
    assert registries == nodes.registries


def test_a_registry_counts_while_some_node_names_it():
    nodes = NodeImageFacts()
    nodes.reported(report("n1", "quay.io/a:1", "gcr.io/a:1"))
    nodes.reported(report("n2", "quay.io/a:1"))
    assert ["quay.io", "gcr.io"] == list(nodes.registries)

    nodes.reported(report("n1", "quay.io/b:1"))
    assert ["quay.io"] == list(nodes.registries)
    nodes.withdrawn("n1")
    assert ["quay.io"] == list(nodes.registries)
    nodes.gone("n2")
    assert [] == list(nodes.registries)


def test_a_report_that_changes_no_registry_changes_nothing():
    nodes = NodeImageFacts()
    nodes.reported(report("n1", "quay.io/a:1"))
    version = nodes.version
    nodes.reported(report("n1", "quay.io/a:2", "quay.io/b:1"))
    nodes.withdrawn("n2")
    assert version == nodes.version


def test_one_node_names_only_so_many_and_what_most_nodes_name_stays():
    nodes = NodeImageFacts()
    for node in ("n1", "n2"):
        nodes.reported(report(node, "quay.io/a:1"))
    for number in range(20):
        names = [f"r{number}-{other}.example/a:1" for other in range(200)]
        nodes.reported(report(f"evil-{number}", *names))
    assert ("quay.io", MOST_REGISTRIES) == (nodes.registries[0], len(nodes.registries))

    one = NodeImageFacts()
    one.reported(report("evil", *(f"r{other}.example/a:1" for other in range(200))))
    assert MOST_OF_A_NODE == len(one.registries)
