"""`lamina image` on a real registry and a real API server: layers, sizes, and which nodes hold what."""

import json
import time

import pytest

from lamina.model.digest import Digest
from testbed import made
from tests.e2e._live import Reporter, publish_image
from tests.e2e.test_command_line import lamina
from tests.integration.scheduler.live import install, kubeconfig

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

LOCAL = ("--registry", "--private", "--plain-http")


@pytest.fixture
def shelf(registry_server):
    """A place of its own in the registry, where images are pushed under a name."""
    place = f"image-{time.time_ns()}"
    return lambda name, image: made.push(registry_server.host, f"{place}/{name}", image)


def an_image(*names, **more):
    layers = [made.layer({name: name.encode() * 100}) for name in names]
    return made.image(layers, **{"architecture": "amd64", **more})


def data(*words):
    ended = lamina("image", *words, "-o", "json")
    assert (0, "") == (ended.returncode, ended.stderr)
    return json.loads(ended.stdout)


@pytest.mark.testbed("registry")
def test_a_registry_tells_layers_and_sizes(shelf):
    image = an_image("base", "app")
    name = shelf("app:1", image)
    told = data(name, *LOCAL)

    assert (image.digest, [name], "linux/amd64", None) == (
        told["image"],
        told["names"],
        told["platform"],
        told["nodes"],
    )
    assert [(one.digest, one.size) for one in image.layers] == [(one["digest"], one["bytes"]) for one in told["layers"]]
    assert "in 2 layers" in lamina("image", name, *LOCAL).stdout


@pytest.mark.testbed("registry")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param((":1", ":2"), LOCAL, id="no such tag"),
        pytest.param(("", ""), ("--registry",), id="a private address without --private"),
    ],
)
def test_a_registry_that_cannot_answer_ends_with_1_and_one_line(shelf, change, words):
    name = shelf("app:1", an_image("base")).replace(*change)
    ended = lamina("image", name, *words)
    (line,) = ended.stderr.splitlines()

    assert (1, "") == (ended.returncode, ended.stdout)
    assert line.startswith(f"{name}: ")


@pytest.mark.testbed("registry")
def test_an_image_that_exists_for_another_platform_only_is_not_shown_as_the_one_asked_for(shelf):
    name = shelf("app:1", an_image("base"))
    ended = lamina("image", name, *LOCAL, "--platform", "linux/s390x")

    assert (2, "") == (ended.returncode, ended.stdout)
    assert f"REF: {name} exists for linux/amd64; use --platform linux/amd64\n" == ended.stderr


@pytest.mark.testbed("kubectl", "registry")
def test_a_cluster_tells_which_nodes_hold_what(bed_factory, shelf):
    bed = bed_factory()
    install(bed)
    bed.add_nodes({"name": name} for name in ("n1", "n2", "n3", "silent"))
    one, two, plain = an_image("base", "one"), an_image("base", "two"), an_image("plain")
    first, second = shelf("app:1", one), shelf("app:2", two)
    publish_image(bed, one.manifest)
    reporter = Reporter(bed)
    for node in ("n1", "n2"):
        reporter.report(node, {Digest(one.digest): (first,)})
    reporter.report("n3", {Digest(plain.digest): ("team.example/plain:1",)})
    cluster = ("--kubeconfig", bed.admin)

    told = data(first, *cluster)
    assert ["n1", "n2", "n3", "silent"] == [node["node"] for node in told["nodes"]]
    assert [[0, 1], [0, 1], [], []] == [node["layers"] for node in told["nodes"]]
    assert [True, True, True, False] == [node["reported"] for node in told["nodes"]]
    assert [2, 2] == [layer["nodes"] for layer in told["layers"]]

    unknown = lamina("image", second, *cluster)
    assert (2, "") == (unknown.returncode, unknown.stdout)
    assert f"REF: there is no image {second!r}" in unknown.stderr

    # The registry knows what the cluster does not; the base of the version before is there already.
    new = data(second, *cluster, *LOCAL)
    base = two.layers[0].size
    assert [(False, base), (False, base), (False, 0), (False, 0)] == [(n["whole"], n["present"]) for n in new["nodes"]]

    undescribed = lamina("image", "team.example/plain:1", *cluster)
    assert 2 == undescribed.returncode
    assert "1 node holds team.example/plain:1, and no node agent has described its layers; " in undescribed.stderr
    assert "--registry" in undescribed.stderr

    # Another machine under the same name: what the one before it reported says nothing about it.
    bed.api("DELETE", "/api/v1/nodes/n2")
    bed.add_node("n2")
    reported = {node["node"]: node["reported"] for node in data(first, *cluster)["nodes"]}
    assert {"n1": True, "n2": False, "n3": True, "silent": False} == reported


@pytest.mark.testbed("kubectl")
def test_a_cluster_that_does_not_let_us_look_says_which_role_is_missing(bed_factory, tmp_path):
    bed = bed_factory()
    install(bed)
    # A node agent may create NodeLayers and ImageLayers, not list them.
    stranger = kubeconfig(
        bed, tmp_path / "kubeconfig", {"token": bed.service_account_token("lamina-agents", "lamina-agent")}
    )
    ended = lamina("image", "app:1", "--kubeconfig", stranger)
    (line,) = ended.stderr.splitlines()

    assert 2 == ended.returncode
    assert "403 Forbidden" in line
    assert line.endswith("bind the role of deploy/rbac/viewer.yaml to this user")
