"""`lamina catalog from-registry` and `from-cluster` on a real registry and a real API server."""

import json
import time

import pytest

from lamina.model.digest import Digest
from lamina.model.image import Platform
from lamina.wire.catalog_file import read_catalog
from testbed import made
from tests.e2e._live import Reporter, make_pod, publish_image
from tests.e2e.test_command_line import lamina
from tests.integration.scheduler.live import install

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

LOCAL = ("--private", "--plain-http")


@pytest.fixture
def shelf(registry_server):
    """A place of its own in the registry, where images are pushed under a name."""
    place = f"shelf-{time.time_ns()}"
    return lambda name, image: made.push(registry_server.host, f"{place}/{name}", image)


def an_image(*names: str, **more):
    return made.image([made.layer({name: name.encode() * 100}) for name in names], architecture="amd64", **more)


@pytest.mark.testbed("registry")
def test_images_are_asked_for_and_collected_and_what_is_missing_is_told(tmp_path, shelf):
    file = tmp_path / "images.jsonl.zst"
    one, two = an_image("base", "one"), an_image("base", "two")
    both = made.index([two, made.image(two.layers, architecture="arm64")], attestations=True)
    first, second, missing = shelf("one:1", one), shelf("two:1", both), shelf("one:1", one).replace(":1", ":2")

    told = lamina("catalog", "from-registry", file, first, second, missing, *LOCAL)
    assert (1, f"{file}: 2 images, 2 of them new\n") == (told.returncode, told.stdout)
    (line,) = told.stderr.splitlines()
    assert line.startswith(f"{missing}: ")
    images = read_catalog(file)
    assert [(first,), (second,)] == [image.names for image in images]
    assert [one.digest, two.digest] == [image.digest for image in images]
    assert [layer.diff_id for layer in one.layers] == [layer.diff_id for layer in images[0].layers]

    again = lamina("catalog", "from-registry", file, second, "--platform", "linux/arm64", *LOCAL)
    assert (0, f"{file}: 3 images, 1 of them new\n", "") == (again.returncode, again.stdout, again.stderr)
    assert Platform("linux", "arm64") == read_catalog(file)[-1].platform


@pytest.mark.testbed("registry")
def test_the_same_input_gives_the_same_file(tmp_path, shelf):
    names = [shelf(f"app-{number}:1", an_image("base", str(number))) for number in range(6)]
    files = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for file in files:
        assert 0 == lamina("catalog", "from-registry", file, *names, *LOCAL).returncode

    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.testbed("kubectl", "registry")
def test_a_cluster_tells_what_its_nodes_hold_and_registries_what_its_pods_want(tmp_path, bed_factory, shelf):
    bed = bed_factory()
    install(bed)
    bed.add_nodes({"name": name} for name in ("n1", "n2"))
    held, wanted = an_image("base", "held"), an_image("base", "wanted")
    held_name, wanted_name = shelf("held:1", held), shelf("wanted:1", wanted)
    publish_image(bed, held.manifest)
    reporter = Reporter(bed)
    for node in ("n1", "n2"):
        reporter.report(node, {Digest(held.digest): (held_name, "quay.io/team/held:1")})
    make_pod(bed, "p1", wanted_name, {})
    make_pod(bed, "p2", held_name, {})
    rules = tmp_path / "registries.yaml"
    host = held_name.partition("/")[0]
    rules.write_text(json.dumps({"registries": [{"host": host, "private": True, "plainHttp": True}]}), encoding="utf-8")
    asked = ("--kubeconfig", bed.admin)

    file = tmp_path / "cluster.jsonl"
    told = lamina("catalog", "from-cluster", file, *asked)
    assert (0, f"{file}: 1 image, 1 of them new\n", "") == (told.returncode, told.stdout, told.stderr)
    assert [(held_name, "quay.io/team/held:1")] == [image.names for image in read_catalog(file)]

    resolved = lamina("catalog", "from-cluster", file, *asked, "--resolve", "--registries", rules)
    assert (0, f"{file}: 2 images, 1 of them new\n", "") == (resolved.returncode, resolved.stdout, resolved.stderr)
    assert (wanted_name,) == read_catalog(file)[-1].names


@pytest.mark.testbed("kubectl")
def test_a_cluster_without_our_kinds_is_told_of_in_one_line(tmp_path, bed_factory):
    told = lamina("catalog", "from-cluster", tmp_path / "c.jsonl", "--kubeconfig", bed_factory().admin)

    assert 2 == told.returncode
    (line,) = told.stderr.splitlines()
    assert line.startswith("the cluster: does not have ImageLayers and NodeLayers; install Lamina's custom resources")
