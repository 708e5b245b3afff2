"""`lamina doctor` against a real API server: before anything is installed, and after."""

import json
import os
import subprocess
import sys

import pytest

from lamina.model.digest import Digest
from testbed import Testbed, made
from tests.e2e._live import Reporter
from tests.integration.scheduler.live import DEPLOY, install

pytestmark = [pytest.mark.realtime, pytest.mark.testbed("kubectl")]


def doctor(bed: Testbed, *words: str) -> tuple[int, dict[str, dict[str, str]]]:
    """Run it; return its exit code and the findings by subject."""
    command = [sys.executable, "-m", "lamina.cli.main", "doctor", "-o", "json", "--kubeconfig", str(bed.admin), *words]
    environment = {**os.environ, "HOME": str(bed.folder)}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert "" == ran.stderr
    return ran.returncode, {one["subject"]: one for one in json.loads(ran.stdout)}


def test_what_is_missing_is_named_and_what_was_installed_is_not(bed_factory):
    bed = bed_factory()

    code, before = doctor(bed, "--no-ask-registries")
    install(bed)
    bed.kubectl("apply", "-f", str(DEPLOY / "policy"))
    bed.add_nodes([{"name": "n1"}])
    silent_code, installed = doctor(bed, "--no-ask-registries")

    verdicts = {subject: one["verdict"] for subject, one in before.items() if subject != "runtime"}
    assert 1 == code
    assert {
        "API server": "ok",
        "kinds": "fix",
        "policy": "fix",
        "agent's rights": "fix",
        "scheduler's rights": "fix",
        "clock": "ok",
        "reports": "skip",
    } == verdicts
    assert "kubectl apply --server-side -f deploy/crds" == before["kinds"]["advice"]
    wanted = ("API server", "kinds", "policy", "agent's rights", "scheduler's rights", "clock")
    assert dict.fromkeys(wanted, "ok") == {subject: installed[subject]["verdict"] for subject in wanted}
    assert (1, "0 of 1 node reports; silent: n1") == (silent_code, installed["reports"]["told"])


def test_an_api_server_that_is_gone_is_one_finding(bed_factory):
    bed = bed_factory()
    bed.parts["kube-apiserver"].stop()

    code, found = doctor(bed, "--no-ask-registries")

    assert (1, "fix") == (code, found["API server"]["verdict"])
    assert {"runtime", "API server"} == set(found) | {"runtime"}


@pytest.mark.needs(root=True)
@pytest.mark.testbed("containerd", "registry")
def test_a_runtime_and_its_registry_are_looked_at(bed_factory, containerd_factory, registry_server):
    """On a node: what runs there, and whether registries that it pulled from answer."""
    bed = bed_factory()
    install(bed)
    image = made.image([made.layer({"a": b"a" * 1000}), made.layer({"b": b"b"})])
    reference = made.push(registry_server.host, "shop/web:1", image)
    runtime = containerd_factory(registry=registry_server.host)
    runtime.pull(reference)
    bed.add_nodes([{"name": "n1"}])
    Reporter(bed).report("n1", {Digest(image.digest): (reference,)})
    rules = bed.folder / "registries.yaml"
    rules.write_text(f"registries:\n- host: {registry_server.host}\n  plainHttp: true\n  private: true\n")

    socket = ("--runtime", "containerd", "--socket", str(runtime.socket))
    _, found = doctor(bed, *socket, "--registries", str(rules))
    _, careful = doctor(bed, *socket)

    verdicts = {subject: found[subject]["verdict"] for subject in ("runtime", "CRI", "reuse mode", "reports")}
    assert dict.fromkeys(("runtime", "CRI", "reuse mode", "reports"), "ok") == verdicts
    assert (f"at {runtime.socket}, 1 image") in found["runtime"]["told"]
    assert "any layer held here is reused" == found["reuse mode"]["told"]
    registry = f"registry {registry_server.host}"
    assert ("ok", f"returned the manifest of {reference} (2 layers)") == (
        found[registry]["verdict"],
        found[registry]["told"],
    )
    # A loopback address is asked only where somebody configured it.
    assert "fix" == careful[registry]["verdict"]


def test_a_socket_that_is_none_is_one_line(bed_factory, tmp_path):
    code, found = doctor(bed_factory(), "--socket", str(tmp_path / "none.sock"), "--no-cluster", "--no-ask-registries")

    assert (1, ["runtime"], "fix") == (code, list(found), found["runtime"]["verdict"])
