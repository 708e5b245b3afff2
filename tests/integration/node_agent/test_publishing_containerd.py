"""Nothing but real parts: a registry, a containerd, an agent as it ships, and an API server that gets to know what was pulled."""

import json

import pytest

from lamina.wire.custom_resources.image_layers import decode_image_layers
from lamina.wire.custom_resources.node_layers import decode_node_layers
from testbed import made
from testbed.registry_server import RegistryServer
from testbed.runtimes import Containerd
from tests.integration.custom_resources.people import IMAGE_LAYERS
from tests.integration.node_agent.halves import Half, an_agent, install
from tests.integration.scheduler.live import until

pytestmark = [
    pytest.mark.realtime,
    pytest.mark.slow,
    pytest.mark.testbed("containerd", "registry"),
    pytest.mark.needs(root=True),
]

BASE = made.layer({"lib/base": made.noise(1, 300_000)})
WEB = made.image([BASE, made.layer({"srv/web": made.noise(2, 100_000)})])
JOB = made.image([BASE, made.layer({"srv/job": made.noise(3, 200_000)})])


@pytest.fixture(scope="module")
def bed(control_plane):
    return install(control_plane)


@pytest.fixture(scope="module")
def registry():
    with RegistryServer() as registry:
        yield registry


@pytest.fixture
def runtime(registry):
    with Containerd(registry=registry.host) as runtime:
        yield runtime


def looking_at(runtime, *words):
    command = ["-m", "lamina.cli.main", "node-agent", *words, "-v", "3", "--runtime", "containerd"]
    return [*command, "--socket", runtime.socket, "--disk", runtime.root]


def described(bed):
    return {
        image.digest: image
        for image in (decode_image_layers(json.dumps(one).encode()) for one in bed.api("GET", IMAGE_LAYERS)["items"])
    }


@pytest.mark.parametrize("shape", ["two halves", "both in one"])
def test_what_is_pulled_is_known_to_the_cluster_and_what_is_removed_is_not(bed, registry, runtime, tmp_path, shape):
    web = made.push(registry.host, "web:1", WEB)
    runtime.pull(web)
    with an_agent(bed, tmp_path, f"real-{shape.split()[0]}") as agent:
        if shape == "two halves":
            agent.reader = Half("reader", looking_at(runtime, "--role", "reader", "--pipe", agent.pipe), tmp_path)
            agent.reader.start()
        else:
            agent.publisher = Half("publisher", looking_at(runtime, "--kubeconfig", agent.access), tmp_path)
        agent.publisher.start()
        until(lambda: agent.count() == 1, 30, "the first report")
        runtime.pull(made.push(registry.host, "job:1", JOB))
        until(lambda: agent.count() == 2, 30, "the second image")
        until(lambda: {WEB.digest, JOB.digest} <= described(bed).keys(), 90, "the descriptions")
        report = decode_node_layers(json.dumps(agent.stored()).encode())

        assert {WEB.digest, JOB.digest} == {image.digest for image in report.images}
        assert {(web,), (f"{registry.host}/job:1",)} == {image.names for image in report.images}
        assert ("containerd", "linux", "set") == (report.runtime.name, report.platform.os, report.reuse)
        assert 3 == agent.status()["layerCount"]
        assert report.disk > report.disk_free > 0
        for image in (WEB, JOB):
            found = described(bed)[image.digest].layers
            assert [(one.digest, one.size, one.diff_id) for one in image.layers] == [
                (one.digest, one.size, one.diff_id) for one in found
            ]
            assert all(one.unpacked for one in found)

        runtime.remove(web)
        until(lambda: agent.count() == 1, 60, "one image less")


def test_a_runtime_that_is_killed_and_comes_back_is_a_trouble_and_its_end(bed, registry, runtime, tmp_path):
    runtime.pull(made.push(registry.host, "web:1", WEB))
    with an_agent(bed, tmp_path, "real-killed") as agent:
        agent.reader = Half("reader", looking_at(runtime, "--role", "reader", "--pipe", agent.pipe), tmp_path)
        agent.start()
        until(lambda: agent.count() == 1, 30, "the first report")
        runtime.program.kill()
        until(lambda: agent.condition("RuntimeReachable")[0] == "False", 60, "the trouble")
        assert 1 == agent.count()
        runtime.program.start()

        until(lambda: agent.condition("RuntimeReachable")[0] == "True", 90, "its end")
        assert "Traceback" not in agent.reader.said()
