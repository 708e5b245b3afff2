"""
Runs a program as if it ran in a pod: it finds the API server and its service account where client-go looks for them.

client-go's InClusterConfig reads two environment variables, and two files at a fixed path. The program runs in its own
mount namespace, in which only those files are at that path; the machine's own files do not change. Without root this
needs user namespaces.
"""

import os
import shutil
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from testbed.errors import MissingError, RefusedError
from testbed.requests import Requests
from testbed.site import Command, Site

NAMESPACE: Final = "default"
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS: Final = 24 * 3600
CONFLICT: Final = 409

# The first argument is the folder with the files, the others are the command. The files are reached through the working
# directory, because the mount may hide their path. The shell becomes the program, so both have one pid.
SCRIPT: Final = f"""cd "$1" && shift &&
mount -n -t tmpfs -o mode=755 in-cluster /var/run &&
mkdir -p {ACCOUNT} && cp token ca.crt namespace {ACCOUNT}/ &&
cd / && exec "$@"
"""


def command(files: Path, words: Command) -> list[str]:
    """Return *words* as a command that runs with *files* as its service account. Raises MissingError."""
    unshare = shutil.which("unshare")
    if unshare is None:
        raise MissingError("unshare is not installed; try `apt-get install util-linux`")
    as_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return [unshare, *as_root, "--mount", "sh", "-c", SCRIPT, "in-cluster", str(files), *map(str, words)]


def environment(url: str) -> dict[str, str]:
    """Return the variables that name the API server at *url*."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    return {"KUBERNETES_SERVICE_HOST": parts.hostname, "KUBERNETES_SERVICE_PORT": str(parts.port)}


def account(site: Site, name: str, role: str) -> Path:
    """Return a folder with token and CA of a service account that has the cluster role *role*."""
    requests = site.requests()
    try:
        token = token_of(requests, name, role)
    finally:
        requests.close()
    folder = site.folder / f"{name}.account"
    folder.mkdir(exist_ok=True)
    shutil.copy(site.authority.ca_file, folder / "ca.crt")
    (folder / "namespace").write_text(NAMESPACE, encoding="utf-8")
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text(token, encoding="utf-8")
    return folder


def token_of(requests: Requests, name: str, role: str) -> str:
    """Return a token of the service account *name*, which is created with its role binding if it does not exist."""
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    binding = {
        "metadata": {"name": f"account-{name}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
    }
    create(requests, accounts, {"metadata": {"name": name}})
    create(requests, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    body = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
    token = requests.send("POST", f"{accounts}/{name}/token", body)["status"]["token"]
    assert isinstance(token, str)
    return token


def create(requests: Requests, path: str, body: object) -> None:
    """Create an object, unless it exists."""
    try:
        requests.send("POST", path, body)
    except RefusedError as refused:
        if refused.status != CONFLICT:
            raise
