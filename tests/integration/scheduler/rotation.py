"""
Credentials that change while pods are being placed: tokens replaced and the old ones made worthless, a plugin that fails
for a while, a server with a certificate of another authority.
"""

import shutil
import stat
import sys
import time
from pathlib import Path
from typing import Any, Final

from testbed import Testbed
from testbed.certificates import Authority
from tests.integration.scheduler.faults import cluster, judged
from tests.integration.scheduler.live import ACCOUNT, NAMESPACE, Lamina, kubeconfig, until
from tests.integration.scheduler.truth import Arrivals, Witness, add_pods, pod

# The server itself remembers for 10 s that a token was good.
TOKEN_SECONDS: Final = 600
SECRETS: Final = f"/api/v1/namespaces/{NAMESPACE}/secrets"

PLUGIN: Final = """#!{python} -S
import json, pathlib, sys, time
folder = pathlib.Path({folder!r})
with open(folder / "calls", "a") as calls:
    calls.write("x")
if (folder / "broken").exists():
    sys.exit("the vault is sealed")
until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + {good_for}))
status = {{"token": (folder / "token").read_text(), "expirationTimestamp": until}}
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}}))
"""


def new_token(bed: Testbed, number: int) -> str:
    """A token that is good as long as a secret of its own exists."""
    name = f"token-{number}"
    bed.api("POST", SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
    bound = {"apiVersion": "v1", "kind": "Secret", "name": name}
    spec = {"expirationSeconds": TOKEN_SECONDS, "boundObjectRef": bound}
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    token: str = bed.api("POST", path, {"spec": spec})["status"]["token"]
    return token


def replace(path: Path, text: str) -> None:
    """Put a new file in the place of an old one, in one step."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def refusals(bed: Testbed) -> int:
    """How many requests the server could not tell the author of."""
    text = bed.kubectl("get", "--raw", "/metrics")
    lines = [line for line in text.splitlines() if line.startswith("authentication_attempts{")]
    return int(sum(float(line.rpartition(" ")[2]) for line in lines if 'result="success"' not in line))


def tokens_rotated(bed: Testbed, *, rotations: int, every: float, per_second: float) -> dict[str, Any]:
    """The token file is replaced again and again, and what it held before is worth nothing from then on."""
    pods = int(rotations * every * per_second)
    cluster(bed, pods)
    path = bed.folder / "token"
    path.write_text(new_token(bed, 0), encoding="utf-8")
    access = kubeconfig(bed, bed.folder / "lamina.kubeconfig", {"tokenFile": str(path)})
    before = refusals(bed)
    with Witness(bed) as witness, Lamina(bed, access=access) as scheduler:
        arrivals = Arrivals(bed, [pod(f"p{number:04}") for number in range(pods)], over=rotations * every)
        slowest = 0.0
        for number in range(1, rotations + 1):
            time.sleep(every)
            replace(path, new_token(bed, number))
            bed.api("DELETE", f"{SECRETS}/token-{number - 1}")
        arrivals.wait(rotations * every + 60.0)
        until(lambda: witness.bound() == pods, 60.0, f"{pods} pods bound")
        figures = judged(bed, witness, scheduler, pods)
        slowest = max(seen.bound_at - seen.created_at for seen in witness.all())
    figures["rotations"], figures["refusals"] = rotations, refusals(bed) - before
    figures["slowest_binding_s"] = round(slowest, 2)
    assert figures["refusals"] <= rotations
    assert 0 == figures["failed_bindings"]
    return figures


def plugin_failing(bed: Testbed, *, good_for: float, broken_for: float, per_second: float) -> dict[str, Any]:
    """An exec plugin whose tokens last for seconds fails for a while."""
    over = broken_for + 20.0
    pods = int(over * per_second)
    cluster(bed, pods)
    folder = bed.folder / "plugin"
    folder.mkdir()
    (folder / "token").write_text(bed.service_account_token(NAMESPACE, ACCOUNT), encoding="utf-8")
    program = folder / "plugin"
    program.write_text(PLUGIN.format(python=sys.executable, folder=str(folder), good_for=good_for), encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    exec_ = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(program),
        "interactiveMode": "Never",
        "provideClusterInfo": False,
    }
    access = kubeconfig(bed, bed.folder / "lamina.kubeconfig", {"exec": exec_})
    with Witness(bed) as witness, Lamina(bed, access=access) as scheduler:
        arrivals = Arrivals(bed, [pod(f"p{number:04}") for number in range(pods)], over=over)
        time.sleep(10.0)
        calls = (folder / "calls").stat().st_size
        (folder / "broken").touch()
        time.sleep(broken_for)
        meanwhile = (folder / "calls").stat().st_size - calls
        (folder / "broken").unlink()
        healed_at = time.monotonic()
        arrivals.wait(over + 60.0)
        until(lambda: witness.bound() == pods, 60.0, f"{pods} pods bound")
        overdue = [seen.bound_at - healed_at for seen in witness.all() if seen.created_at < healed_at < seen.bound_at]
        figures = judged(bed, witness, scheduler, pods)
    return {
        **figures,
        "broken_s": broken_for,
        "calls_while_broken": meanwhile,
        "calls": (folder / "calls").stat().st_size,
        "waited_for_the_plugin": len(overdue),
        "caught_up_s": round(max(overdue, default=0.0), 2),
    }


def authority_changed(bed: Testbed, *, pods: int) -> dict[str, Any]:
    """The server comes back with a certificate of another authority, and the file that says whom to trust changes."""
    cluster(bed, 3 * pods)
    ca_file = bed.folder / "trusted.crt"
    shutil.copy(bed.ca_file, ca_file)
    token = {"token": bed.service_account_token(NAMESPACE, ACCOUNT)}
    access = kubeconfig(bed, bed.folder / "lamina.kubeconfig", token, ca_file=ca_file)
    with Witness(bed) as witness, Lamina(bed, access=access) as scheduler:
        add_pods(bed, [pod(f"before-{number:03}") for number in range(pods)])
        until(lambda: witness.bound() == pods, 30.0, "pods bound before")
        other = Authority(bed.folder / "other-authority")
        serve_as(bed, other)
        changed_at = time.monotonic()
        add_pods(bed, [pod(f"after-{number:03}") for number in range(pods)])
        time.sleep(5.0)
        distrusted = witness.bound() == pods
        shutil.copy(other.ca_file, ca_file)
        trusted_at = time.monotonic()
        took = until(lambda: witness.bound() == 2 * pods, 60.0, "pods bound after")
        figures = judged(bed, witness, scheduler, 2 * pods)
    assert distrusted, "a server with a certificate of a stranger was believed"
    return {**figures, "picked_up_s": round(took, 1), "away_s": round(trusted_at - changed_at, 1)}


def serve_as(bed: Testbed, other: Authority) -> None:
    """Start the API server again with a certificate of *other*; the testbed's own clients trust both from then on."""
    server = bed.parts["kube-apiserver"]
    server.stop()
    certificate, key = other.server()
    shutil.copy(certificate, bed.site.authority.folder / "server.crt")
    shutil.copy(key, bed.site.authority.folder / "server.key")
    with bed.ca_file.open("ab") as file:
        file.write(other.ca_file.read_bytes())
    bed._requests = None
    requests = bed.site.requests()
    server._ready = lambda: requests.answers("/readyz")
    server.start()
    requests.close()
