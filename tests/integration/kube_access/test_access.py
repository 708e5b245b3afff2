"""All the ways to be known to a real API server, each read from a kubeconfig."""

import json
import shutil
import sys

import pytest
import yaml

from lamina.clients.kube.access import load_access
from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.transport import KubeClient
from tests.integration.kube_access.rotating_server import RotatingServer
from tests.unit.clients.kube.kubeconfigs import authority_pem, config, encoded, saved

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
V1BETA1 = "client.authentication.k8s.io/v1beta1"


async def who(path) -> tuple[str, list[str]]:
    """Whom the server takes us for."""
    client = KubeClient(load_access(path))
    try:
        body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
        user = json.loads(await client.request("POST", WHO, body=body))["status"]["userInfo"]
    finally:
        await client.close()
    return user["username"], user["groups"]


@pytest.fixture
def pair(control_plane, tmp_path):
    """The files of a certificate, as the testbed made them for a user."""
    user = yaml.safe_load(control_plane.kubeconfig("ada", ["dev"]).read_text())["users"][0]["user"]
    folder = control_plane.kubeconfig("ada", ["dev"]).parent
    parts = []
    for name in ("client-certificate", "client-key"):
        if data := user.get(f"{name}-data"):
            import base64

            (tmp_path / name).write_bytes(base64.b64decode(data))
        else:
            shutil.copy(folder / user[name], tmp_path / name)
        parts.append((tmp_path / name).read_bytes())
    return tuple(parts)


@pytest.fixture
def of(control_plane, tmp_path):
    """A kubeconfig for a user of the real server."""

    def make(user, **cluster):
        cluster = {"server": control_plane.url, "certificate-authority": str(control_plane.ca_file), **cluster}
        return saved(tmp_path / "config", config(user=user, cluster=cluster))

    return make


async def test_by_a_certificate_in_files(of, pair):
    assert "ada" == (await who(of({"client-certificate": "client-certificate", "client-key": "client-key"})))[0]


async def test_by_a_certificate_in_the_kubeconfig(of, pair):
    user = {"client-certificate-data": encoded(pair[0]), "client-key-data": encoded(pair[1])}

    assert ("ada", ["dev", "system:authenticated"]) == await who(of(user))


async def test_by_a_certificate_from_a_plugin(of, pair, tmp_path):
    status = {"clientCertificateData": pair[0].decode(), "clientKeyData": pair[1].decode()}
    answer = json.dumps({"apiVersion": V1BETA1, "kind": "ExecCredential", "status": status})
    (tmp_path / "plugin").write_text(f"#!{sys.executable} -S\nprint({answer!r})\n")
    (tmp_path / "plugin").chmod(0o755)
    plugin = {"apiVersion": V1BETA1, "command": "./plugin", "provideClusterInfo": True}

    assert "ada" == (await who(of({"exec": plugin})))[0]


async def test_by_a_token(control_plane, of, namespace):
    control_plane.api("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "a"}})
    token = control_plane.service_account_token(namespace, "a")

    assert f"system:serviceaccount:{namespace}:a" == (await who(of({"token": token})))[0]


async def test_as_somebody_else(control_plane, of):
    admin = yaml.safe_load(control_plane.admin.read_text())
    user = admin["users"][0]["user"] | {"as": "ben", "as-groups": ["ops"], "as-user-extra": {"team/Name": ["x"]}}
    path = control_plane.admin.parent / "as-ben"
    saved(path, admin | {"users": [{**admin["users"][0], "user": user}]})

    assert ("ben", ["ops", "system:authenticated"]) == await who(path)


async def test_a_wrong_token_is_refused_in_one_line_that_does_not_show_it(of):
    with pytest.raises(ApiError) as caught:
        await who(of({"token": "canary-secret"}))

    assert 401 == caught.value.status
    assert "canary" not in str(caught.value) + repr(caught.value)


async def test_a_server_that_nobody_vouches_for_is_not_spoken_to(of, control_plane):
    (control_plane.folder / "other-ca.crt").write_bytes(authority_pem(5))
    path = of({"token": "canary-secret"}, **{"certificate-authority": str(control_plane.folder / "other-ca.crt")})

    with pytest.raises(UnreachableError, match="certificate"):
        await who(path)


async def test_a_server_behind_another_name_is_verified_by_that_name(tmp_path):
    async with RotatingServer() as server:
        await server.stop()
        await server.start(0, "api.example")
        cluster = {"server": server.address, "certificate-authority-data": encoded(authority_pem(0))}
        good = saved(
            tmp_path / "good", config(user={"token": "first"}, cluster={**cluster, "tls-server-name": "api.example"})
        )
        bad = saved(tmp_path / "bad", config(user={"token": "first"}, cluster=cluster))
        insecure = saved(
            tmp_path / "insecure",
            config(user={"token": "first"}, cluster={"server": server.address, "insecure-skip-tls-verify": True}),
        )
        for path in (good, insecure):
            client = KubeClient(load_access(path))
            assert b"{}" == await client.request("GET", "/api")
            await client.close()
        client = KubeClient(load_access(bad))
        with pytest.raises(UnreachableError, match="certificate"):
            await client.request("GET", "/api")
        await client.close()
