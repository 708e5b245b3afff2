"""Container runtimes and registries without a control plane pull for real, can be treated badly, and leave nothing."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed import RootError, TestbedError, access_log, containerd, cri, leftovers, made
from testbed.registry_server import RegistryServer
from testbed.runtimes import Containerd
from testbed.slow_proxy import SlowProxy
from tests.integration.testbed.waiting import eventually

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).resolve().parents[3]
BASE = made.layer({"lib/base": made.noise(1, 300_000)})
ZSTD = made.layer({"lib/zstd": made.noise(2, 200_000)}, "zstd")
PLAIN = made.layer({"lib/plain": made.noise(3, 100_000)}, "none")
IMAGE = made.image([BASE, ZSTD, PLAIN])
OTHER = made.index([made.image([BASE, PLAIN]), made.image([ZSTD], architecture="s390x")], attestations=True)

VERSIONS = [
    pytest.param("2.4.2", id="our own build"),
    pytest.param("debian", marks=pytest.mark.needs("containerd", root=True), id="the installed one"),
]


def fetched(registry, since):
    return sorted(access_log.blobs(registry.requests()[since:]))


def config_of(image):
    return made.digest(image.config)


@pytest.mark.parametrize("discard", [False, True], ids=["blobs kept", "blobs dropped"])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.testbed("containerd", "registry")
@pytest.mark.needs(root=True)
def test_a_runtime_pulls_what_it_lacks(registry_server, containerd_factory, version, discard):
    """Every compression, a plain image and an index; a second image costs what is new in it."""
    runtime = containerd_factory(registry=registry_server.host, version=version, discard=discard)
    first = made.push(registry_server.host, "runtimes/first:1", IMAGE)
    second = made.push(registry_server.host, "runtimes/second:1", OTHER)
    start = len(registry_server.requests())

    assert config_of(IMAGE) == runtime.pull(first)
    assert sorted([BASE.digest, ZSTD.digest, PLAIN.digest, config_of(IMAGE)]) == fetched(registry_server, start)

    # What is dropped lies there until somebody clears up, which the removal of any image brings about.
    third = made.push(registry_server.host, "runtimes/third:1", made.image([ZSTD]))
    runtime.pull(third)
    runtime.remove(third)
    between = len(registry_server.requests())
    assert config_of(OTHER.images[0]) == runtime.pull(second)
    # Whoever drops blobs knows a layer by all that lies below it, and the plain one lies elsewhere now.
    new = [config_of(OTHER.images[0]), *([PLAIN.digest] if discard else [])]
    assert sorted(new) == fetched(registry_server, between)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.testbed("containerd", "registry")
@pytest.mark.needs(root=True)
def test_a_removed_image_is_pulled_again_also_by_a_runtime_that_was_killed(
    registry_server, containerd_factory, version
):
    runtime = containerd_factory(registry=registry_server.host, version=version)
    reference = made.push(registry_server.host, "runtimes/again:1", IMAGE)
    runtime.pull(reference)
    runtime.remove(reference)

    runtime.program.kill()
    runtime.program.start()
    start = len(registry_server.requests())
    runtime.pull(reference)

    assert 4 == len(fetched(registry_server, start))


@pytest.mark.testbed("containerd", "registry")
@pytest.mark.needs(root=True)
def test_what_is_not_there_is_said_in_one_line(registry_server, containerd_factory):
    runtime = containerd_factory(registry=registry_server.host)

    with pytest.raises(TestbedError, match=r"^PullImage at \S+: NOT_FOUND: .*nowhere:1: not found$"):
        runtime.pull(f"{registry_server.host}/nowhere:1")


@pytest.mark.testbed("containerd", "registry")
@pytest.mark.needs(root=True)
def test_names_of_another_host_may_be_served_by_ours(registry_server, containerd_factory):
    runtime = containerd_factory(registries={"registry.example": registry_server.host})
    made.push(registry_server.host, "runtimes/named:1", IMAGE)

    assert config_of(IMAGE) == runtime.pull("registry.example/runtimes/named:1")


@pytest.mark.slow
@pytest.mark.testbed("containerd", "registry")
@pytest.mark.needs(root=True)
def test_a_slow_road_makes_a_pull_last(registry_server, containerd_factory):
    with SlowProxy(registry_server.host, bytes_per_second=600_000) as road:
        runtime = containerd_factory(registry=road.host)
        made.push(registry_server.host, "runtimes/slow:1", IMAGE)
        began = time.monotonic()

        runtime.pull(f"{road.host}/runtimes/slow:1")

        assert 0.9 < time.monotonic() - began < 10


def test_a_road_that_is_cut_breaks_what_is_on_its_way():
    with RegistryServer() as registry, SlowProxy(registry.host, bytes_per_second=10_000) as road:
        made.push(registry.host, "slow:1", IMAGE)
        curl = [sys.executable, "-c", FETCH, f"http://{road.host}/v2/slow/blobs/{BASE.digest}"]
        with subprocess.Popen(curl, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
            client.stdout.readline()
            road.cut()

        assert 0 != client.returncode


FETCH = """
import sys, urllib.request
answer = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1])
print(flush=True)
sys.exit(len(answer.read()) and 0)
"""


@pytest.mark.needs(root=True)
@pytest.mark.testbed("containerd", "registry")
def test_nothing_of_a_runtime_is_left(registry_server, containerd_factory, tmp_path):
    runtime = containerd_factory(folder=tmp_path, registry=registry_server.host)
    runtime.pull(made.push(registry_server.host, "runtimes/gone:1", IMAGE))
    mark, folder = runtime.site.mark, runtime.site.folder
    assert folder.exists()
    assert runtime.socket.is_socket()

    runtime.stop()

    assert not folder.exists()
    assert not list(leftovers.members(mark))
    assert not [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(folder) in line]


DRIVER = """
import time
from testbed.registry_server import RegistryServer
from testbed.runtimes import Containerd
with RegistryServer() as registry, Containerd(registry=registry.host) as runtime:
    for one in (registry, runtime):
        print(one.site.mark, one.site.folder, flush=True)
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.needs(root=True)
@pytest.mark.testbed("containerd", "registry")
def test_a_driver_that_is_killed_takes_them_with_it():
    with subprocess.Popen([sys.executable, "-c", DRIVER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as driver:
        told = [driver.stdout.readline().split() for _ in range(2)]
        assert [1, 1] == [sum(1 for _ in leftovers.members(mark)) for mark, _ in told]

        driver.send_signal(signal.SIGKILL)

    assert eventually(lambda: not any(is_left(mark, Path(folder)) for mark, folder in told))


def is_left(mark, folder):
    return any(leftovers.members(mark)) or folder.exists()


def test_somebody_who_is_not_root_is_told_so(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(RootError, match=r"^needs root: container runtimes"), Containerd():
        pass


def test_a_folder_too_deep_for_a_socket_is_refused(tmp_path):
    setup = containerd.Setup(tmp_path / ("deep" * 25), {})

    with pytest.raises(TestbedError, match="too long a path for a socket"):
        containerd.write(setup, 3)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_383, 16_384, 300_000])
def test_messages_of_any_length_are_read_as_they_were_written(size):
    assert "x" * size == cri.told(cri.field(b"x" * size))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            '127.0.0.1 - - [16/Nov/2026:05:00:00 +0000] "GET /v2/a/b/blobs/x?ns=y HTTP/1.1" 200 5 "" "containerd"',
            [("GET", "/v2/a/b/blobs/x", 200)],
            id="a request",
        ),
        pytest.param('time="2026-11-16" level=warning msg="GET /v2/ HTTP/1.1"', [], id="another line"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_the_access_log_is_read_line_by_line(tmp_path, line, expected):
    log = tmp_path / "log"
    log.write_text(f"{line}\n")

    assert expected == access_log.read(log)


def test_one_client_of_a_registry_is_told_from_another(tmp_path):
    log = tmp_path / "log"
    lines = [f'127.0.0.1 - - [now] "GET /v2/{who} HTTP/1.1" 200 5 "" "{who}/1"\n' for who in ("containerd", "lamina")]
    log.write_text("".join(lines))

    assert [("GET", "/v2/lamina", 200)] == access_log.read(log, "lamina")
    assert 2 == len(access_log.read(log))


def test_only_blobs_that_were_delivered_count_as_fetched():
    digest = f"sha256:{'a' * 64}"
    path = f"/v2/web/blobs/{digest}"
    asked = [("HEAD", path, 200), ("GET", path, 404), ("GET", "/v2/web/manifests/1", 200), ("GET", path, 200)]

    assert [digest] == access_log.blobs(access_log.Asked(*each) for each in asked)
