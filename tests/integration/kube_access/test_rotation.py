"""
Credentials that change while requests go on: tokens in files, certificate authorities, plugins that fail.

Times are scaled down; what is asserted does not depend on how fast the machine is.
"""

import asyncio
import itertools
import json
import sys

import pytest

from lamina.clients.kube import tls_contexts
from lamina.clients.kube.access import load_access
from lamina.clients.kube.credentials import NoCredentialError
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.transport import KubeClient
from tests.integration.kube_access.rotating_server import RotatingServer
from tests.unit.clients.kube.kubeconfigs import authority_pem, config, saved

pytestmark = [pytest.mark.realtime, pytest.mark.slow]


@pytest.fixture
async def server():
    async with RotatingServer() as server:
        yield server


@pytest.fixture
async def client(server, tmp_path):
    """A client with a token file and a file for the authority."""
    replace(tmp_path / "token", "first")
    (tmp_path / "ca.crt").write_bytes(authority_pem(0))
    made = []

    def make(user=None) -> KubeClient:
        cluster = {"server": server.address, "certificate-authority": "ca.crt"}
        path = saved(tmp_path / "config", config(user=user or {"tokenFile": "token"}, cluster=cluster))
        made.append(KubeClient(load_access(path)))
        return made[-1]

    yield make
    for one in made:
        await one.close()


def replace(path, text: str) -> None:
    """Replace a file as the kubelet does: a new one under the old name."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


class Requests:
    """Requests one after the other, without an end, and what became of them."""

    def __init__(self, client, pause=0.0):
        self.client, self.pause = client, pause
        self.good = 0
        self.errors: list[Exception] = []
        self.task = asyncio.create_task(self._run())

    async def _run(self):
        while True:
            try:
                await self.client.request("GET", "/api", timeout=10)
                self.good += 1
            except (ApiError, UnreachableError) as error:
                self.errors.append(error)
                await asyncio.sleep(0.02)
            await asyncio.sleep(self.pause)

    async def more(self, count: int) -> None:
        """Wait until so many more have gone well."""
        wanted = self.good + count
        async with asyncio.timeout(120):
            while self.good < wanted:
                assert not self.task.done(), "requests ended"
                await asyncio.sleep(0.01)

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_a_token_that_is_replaced_costs_one_401_at_most(server, client, tmp_path):
    """The server takes a new token at once and the old one no more: nobody could know before asking."""
    requests = Requests(client())
    for number in range(20):
        await requests.more(20)
        server.token = f"token-{number}"
        replace(tmp_path / "token", server.token)
        await requests.more(20)
    await requests.stop()

    assert [] == requests.errors
    assert max(server.refused.values()) <= 1


async def test_requests_at_the_same_time_are_refused_once_each_at_most(server, client, tmp_path):
    """Eight are under way with the old token when it ends. Every one of them is answered in the end."""
    shared = client()
    requests = [Requests(shared) for _ in range(8)]
    for number in range(10):
        await requests[0].more(20)
        server.token = f"token-{number}"
        replace(tmp_path / "token", server.token)
        await requests[0].more(20)
    for one in requests:
        await one.stop()

    assert [] == list(itertools.chain(*(one.errors for one in requests)))
    assert max(server.refused.values()) <= 8


async def test_while_the_old_token_is_good_for_a_little_longer_nobody_is_refused(server, client, tmp_path):
    """As a pod's token is: there is a new one long before the old one ends. It is looked for every second."""
    shared = client()
    requests = [Requests(shared) for _ in range(8)]
    for number in range(3):
        server.older, server.token = server.token, f"token-{number}"
        replace(tmp_path / "token", server.token)
        await asyncio.sleep(1.5)
        server.older = ""
        await requests[0].more(20)
    for one in requests:
        await one.stop()

    assert [] == list(itertools.chain(*(one.errors for one in requests)))
    assert {} == server.refused


async def test_a_token_file_that_is_missing_or_empty_for_a_while_does_no_harm(server, client, tmp_path):
    requests = Requests(client())
    for spoil in ((tmp_path / "token").unlink, lambda: (tmp_path / "token").write_text("")):
        spoil()
        await asyncio.sleep(1.1)  # it is looked at every second
        await requests.more(20)
        replace(tmp_path / "token", "first")
    await requests.stop()

    assert ([], {}) == (requests.errors, server.refused)
    assert requests.client._access.troubles >= 2


async def test_a_new_authority_is_picked_up_when_its_file_is_there(server, client, tmp_path, monkeypatch):
    """The server comes back with a certificate of another authority; then the file follows."""
    monkeypatch.setattr(tls_contexts, "LOOK_SECONDS", 0.2)
    requests = Requests(client())
    await requests.more(20)
    for number in (1, 2, 0):
        await server.stop()
        await server.start(number)
        failed = len(requests.errors)
        async with asyncio.timeout(30):
            while len(requests.errors) < failed + 2:
                await asyncio.sleep(0.02)
        (tmp_path / "ca.crt").write_bytes(b"-----BEGIN CERT")
        await asyncio.sleep(0.4)
        replace(tmp_path / "ca.crt", authority_pem(number).decode())
        await requests.more(20)
    await requests.stop()

    assert all(isinstance(error, UnreachableError) for error in requests.errors)
    assert requests.client._access.troubles >= 3


async def test_both_authorities_in_one_file_bridge_the_change_without_an_error(server, client, tmp_path, monkeypatch):
    """How it is done in practice: first trust both, then change the server."""
    monkeypatch.setattr(tls_contexts, "LOOK_SECONDS", 0.2)
    requests = Requests(client())
    await requests.more(20)
    replace(tmp_path / "ca.crt", (authority_pem(0) + authority_pem(1)).decode())
    await asyncio.sleep(0.5)
    await requests.more(1)
    await server.stop()
    await server.start(1)
    await requests.more(20)
    await requests.stop()

    assert not any("certificate" in str(error).lower() for error in requests.errors)


# ----------------------------------------------------------------------------------------------------------- plugins


PLUGIN = """#!{python} -S
import json, pathlib, sys
here = pathlib.Path({folder!r})
(here / "runs").open("a").write("x")
token = (here / "token").read_text()
if not token:
    sys.exit("nobody is logged in")
answer = {{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {{"token": token}}}}
print(json.dumps(answer))
"""


@pytest.fixture
def plugin(tmp_path):
    """A plugin that prints the token in the file, and fails if it is empty."""
    (tmp_path / "plugin").write_text(PLUGIN.format(python=sys.executable, folder=str(tmp_path)))
    (tmp_path / "plugin").chmod(0o755)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "interactiveMode": "IfAvailable",
            "installHint": "get it",
        }
    }


async def test_a_plugin_that_fails_for_a_while_is_not_run_in_a_loop_and_all_is_well_afterwards(
    server, client, plugin, tmp_path
):
    requests = Requests(client(plugin))
    await requests.more(50)
    assert 1 == len((tmp_path / "runs").read_text())

    replace(tmp_path / "token", "")
    server.token = "second"
    begun = asyncio.get_running_loop().time()
    async with asyncio.timeout(60):
        while len(requests.errors) < 100:
            await asyncio.sleep(0.02)
    replace(tmp_path / "token", "second")
    await requests.more(50)
    took = asyncio.get_running_loop().time() - begun
    await requests.stop()

    runs = len((tmp_path / "runs").read_text())
    assert all(isinstance(error, NoCredentialError) for error in requests.errors)
    assert "nobody is logged in" in str(requests.errors[-1])
    assert runs <= 3 + took  # one a second at the very most, and far fewer when it lasts
    assert max(server.refused.values()) <= 1


async def test_a_token_that_rotates_at_the_server_is_fetched_anew_after_one_401(server, client, plugin, tmp_path):
    shared = client(plugin)
    requests = Requests(shared)
    for number in range(3):
        await requests.more(20)
        # Longer in use than a credential that was bad from the start.
        identity = shared._access._credentials
        identity._active = type(identity._active)(
            identity._active.given, identity._active.made - 60.0, identity._active.renew, identity._active.end
        )
        identity._not_before = 0.0
        server.token = f"token-{number}"
        replace(tmp_path / "token", server.token)
        await requests.more(20)
    await requests.stop()

    assert ([], 4) == (requests.errors, len((tmp_path / "runs").read_text()))
    assert {f"token-{number}": 1 for number in range(3)} == server.refused


async def test_a_token_of_a_real_server_that_is_revoked_and_replaced(control_plane, tmp_path):
    """The token is bound to a pod; when the pod goes, so does the token, and the file gets another."""
    bed, namespace = control_plane, "revoked"
    bed.api("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    bed.api("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "a"}})
    for name in ("one", "two"):
        spec = {"serviceAccountName": "a", "containers": [{"name": "c", "image": "x"}], "schedulerName": "nobody"}
        bed.api("POST", f"/api/v1/namespaces/{namespace}/pods", {"metadata": {"name": name}, "spec": spec})
    tokens = [bed.service_account_token(namespace, "a", pod=name) for name in ("one", "two")]
    replace(tmp_path / "token", tokens[0])
    cluster = {"server": bed.url, "certificate-authority": str(bed.ca_file)}
    access = load_access(saved(tmp_path / "config", config(user={"tokenFile": "token"}, cluster=cluster)))
    client = KubeClient(access)
    whoami = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    try:
        said = json.loads(await client.request("POST", path, body=whoami))
        assert "system:serviceaccount:revoked:a" == said["status"]["userInfo"]["username"]

        bed.api("DELETE", f"/api/v1/namespaces/{namespace}/pods/one")
        async with asyncio.timeout(60):
            while True:
                try:
                    await client.request("POST", path, body=whoami)
                except ApiError as error:
                    assert 401 == error.status  # noqa: PT017  the loop ends here
                    break
                await asyncio.sleep(0.5)
        replace(tmp_path / "token", tokens[1])
        said = json.loads(await client.request("POST", path, body=whoami))
        assert ["two"] == said["status"]["userInfo"]["extra"]["authentication.kubernetes.io/pod-name"]
    finally:
        await client.close()
