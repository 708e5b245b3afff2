"""Parts of a testbed can be killed, stopped, paused and started again; what they stored stays."""

import os
import socket
import time

import pytest

from testbed import PartError, RefusedError, TestbedError, fixtures, ports
from testbed.requests import Requests
from tests.integration.testbed.waiting import eventually

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def bed():
    """Most tests here put a part back that they have ended, so one testbed serves them all."""
    with fixtures.started() as own:
        yield own


@pytest.mark.parametrize("part", ["etcd", "kube-apiserver"])
@pytest.mark.parametrize("end", ["kill", "stop"])
def test_what_was_stored_is_there_after_a_restart(bed, part, end):
    name = f"{end}-{part}"
    bed.api("POST", CONFIG_MAPS, {"metadata": {"name": name}})
    before = bed.parts[part].pid

    getattr(bed.parts[part], end)()
    assert not bed.parts[part].running
    bed.parts[part].start()

    assert bed.parts[part].pid != before
    assert eventually(lambda: kept(bed, name))


def kept(bed, name):
    """The server needs a moment after its store came back."""
    try:
        return bed.api("GET", f"{CONFIG_MAPS}/{name}")["metadata"]["name"] == name
    except (RefusedError, OSError):
        return False


def test_a_restarted_server_keeps_its_address_and_its_certificates(bed):
    url, kubeconfig = bed.url, bed.admin.read_bytes()

    bed.parts["kube-apiserver"].restart()

    assert (bed.url, bed.admin.read_bytes()) == (url, kubeconfig)
    assert bed.api("GET", "/version")["gitVersion"] == "v1.36.3"


def test_a_paused_part_is_silent_and_answers_when_resumed(bed):
    server = bed.parts["kube-apiserver"]

    server.pause()
    assert server.running
    used = server.cpu_seconds()
    time.sleep(0.3)
    assert server.cpu_seconds() == used
    server.resume()

    assert bed.api("GET", "/version")["gitVersion"] == "v1.36.3"


def test_a_paused_part_can_be_stopped(bed):
    bed.parts["etcd"].pause()

    bed.parts["etcd"].stop(within=20)

    assert not bed.parts["etcd"].running
    bed.parts["etcd"].start()


def test_a_part_tells_what_it_uses(bed):
    server = bed.parts["kube-apiserver"]

    assert server.cpu_seconds() > 0
    assert 50_000_000 < server.rss() < 2_000_000_000
    server.kill()
    with pytest.raises(PartError, match="kube-apiserver is not running"):
        server.cpu_seconds()
    server.start()


def test_a_compacted_store_has_forgotten_the_past(bed):
    """A watch from then is answered by "gone" once the server's own memory of it is gone too."""
    first = bed.api("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})["metadata"]["resourceVersion"]
    for number in range(5):
        bed.api("POST", CONFIG_MAPS, {"metadata": {"name": f"b{number}"}})

    revision = bed.compact_etcd()
    bed.parts["kube-apiserver"].restart()

    assert revision > int(first)
    watched = f"{CONFIG_MAPS}?watch=true&resourceVersion={first}&timeoutSeconds=1"
    try:
        answer = bed.api("GET", watched)
    except RefusedError as refused:
        code = refused.status
    else:
        code = answer["object"]["code"]
    assert code == 410


def test_two_testbeds_run_side_by_side(bed, control_plane):
    bed.api("POST", CONFIG_MAPS, {"metadata": {"name": "mine"}})

    assert bed.url != control_plane.url
    assert bed.folder != control_plane.folder
    assert kept(bed, "mine")
    assert not kept(control_plane, "mine")


def test_the_admin_of_one_testbed_is_a_stranger_to_another(bed, control_plane):
    with pytest.raises(OSError, match="certificate verify failed"):
        Requests(control_plane.url, bed.site.requests()._context).send("GET", "/version")


@pytest.mark.testbed("kube-scheduler", "kube-controller-manager")
def test_a_deployment_comes_to_nodes(bed_factory):
    bed = bed_factory(parts=("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager"))
    bed.add_nodes([{"name": "n1"}, {"name": "n2"}])

    bed.kubectl("create", "deployment", "web", "--image=example.com/web:1", "--replicas=3")

    def bound():
        pods = bed.api("GET", PODS)["items"]
        return [pod for pod in pods if pod["spec"].get("nodeName")] if len(pods) == 3 else []

    pods = eventually(lambda: found if len(found := bound()) == 3 else None)
    # Admission insists on service accounts here, because somebody makes them.
    assert {pod["spec"]["serviceAccountName"] for pod in pods} == {"default"}


@pytest.mark.testbed("kube-scheduler")
def test_a_second_scheduler_has_a_name_and_a_configuration_of_its_own(bed_factory, tmp_path):
    bed = bed_factory()
    bed.add_node("n1")
    config = tmp_path / "config.yaml"
    config.write_text("profiles: [{schedulerName: second}]\n")
    bed.start_part("kube-scheduler", config={"profiles": [{"schedulerName": "first"}]})
    bed.start_part("kube-scheduler", name="second", config=config)

    for name in ("first", "second", "nobody"):
        containers = [{"name": "c", "image": "example.com/none:1"}]
        body = {"metadata": {"name": name}, "spec": {"schedulerName": name, "containers": containers}}
        bed.api("POST", PODS, body)

    def bound():
        return {pod["metadata"]["name"] for pod in bed.api("GET", PODS)["items"] if pod["spec"].get("nodeName")}

    assert eventually(lambda: bound() if len(bound()) == 2 else None) == {"first", "second"}


def test_a_part_that_does_not_start_says_why(bed_factory):
    with pytest.raises(PartError, match=r"kube-apiserver ended with exit code 1; .*\n.*unknown flag: --no-such-flag"):
        bed_factory(flags={"kube-apiserver": ["--no-such-flag"]})


def test_a_part_is_started_once(bed):
    with pytest.raises(TestbedError, match="already has a part 'etcd'"):
        bed.start_part("etcd")
    with pytest.raises(PartError, match="etcd is running already"):
        bed.parts["etcd"].start()


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        pytest.param(
            {"parts": ["kube-proxy"]}, "kube-proxy cannot be started; choose from etcd, kube-apiserver", id="part"
        ),
        pytest.param(
            {"version": "1.2.3"}, "kube-apiserver does not exist in version 1.2.3; choose from 1.36.3", id="version"
        ),
    ],
)
def test_what_there_is_not_is_refused_before_anything_starts(bed_factory, keywords, words):
    with pytest.raises(TestbedError, match=words):
        bed_factory(**keywords)


def test_a_taken_port_is_no_reason_to_give_up(bed_factory, monkeypatch):
    """Somebody may take a port between choosing and using it."""
    with socket.socket() as taken:
        taken.bind((ports.LOOPBACK, 0))
        taken.listen()
        offered = [taken.getsockname()[1]]
        free = ports.free
        monkeypatch.setattr(ports, "free", lambda: offered.pop() if offered else free())
        bed = bed_factory()

    assert offered == []
    assert bed.api("GET", "/version")["gitVersion"] == "v1.36.3"


@pytest.mark.testbed("registry")
def test_a_registry_serves_what_was_pushed(bed):
    pushed = bed.push_image("app/web:1", [{"data/a": b"a" * 1000}, {"data/b": b"b"}])

    requests = Requests(f"http://{bed.registry}")
    manifest = requests.send(
        "GET", f"/v2/app/web/manifests/{pushed.digest}", headers={"Accept": pushed.manifest["mediaType"]}
    )
    tags = requests.send("GET", "/v2/app/web/tags/list")
    requests.close()

    assert pushed.reference == f"{bed.registry}/app/web:1"
    assert manifest == pushed.manifest
    assert len(manifest["layers"]) == 3
    assert tags["tags"] == ["1"]


def test_parts_have_a_process_group_of_their_own(bed):
    """Ctrl-C in a terminal is for the driver, which then ends the parts in its own order."""
    assert {os.getpgid(part.pid) for part in bed.parts.values()} == {part.pid for part in bed.parts.values()}
