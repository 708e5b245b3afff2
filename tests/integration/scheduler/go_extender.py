"""
The testbed's extender in Go as a process beside a testbed: its flags, its entry in a configuration, its own account.

It answers from the labels of nodes, so that a test changes its answers by labelling nodes. It prints every call, and
this module reads them.
"""

import json
from pathlib import Path
from typing import Any, Final

import yaml

from testbed import Testbed, building, ports
from testbed.certificates import write
from testbed.processes import Program

POWER: Final = "power.example"
"""The default prefix of the labels."""
USER: Final = "foreign-extender"
PERMISSIONS: Final = [
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
]


def now(prefix: str = POWER) -> str:
    """Return the reason with which it refuses nodes that may become free."""
    return f"node(s) were refused by {prefix}"


def for_good(prefix: str = POWER) -> str:
    """Return the reason with which it refuses nodes for which preemption has no use."""
    return f"node(s) were refused by {prefix} for good"


class GoExtender(Program):
    """One process of it."""

    def __init__(self, bed: Testbed, name: str = "extender", *, prefix: str = POWER, tls: bool = False) -> None:
        """Prepare; *tls* with certificates of the testbed's authority for both sides."""
        folder = bed.site.authority.folder
        self._bed, self._tls = bed, tls
        self.prefix, self.port = prefix, ports.free()
        words: list[str | Path] = [
            building.ensure("foreign-extender"),
            f"--listen=127.0.0.1:{self.port}",
            f"--prefix={prefix}",
            f"--kubeconfig={account(bed)}",
        ]
        if tls:
            # The API server's certificate is valid for every server on this machine.
            words += [f"--cert={folder / 'server.crt'}", f"--key={folder / 'server.key'}", f"--client-ca={bed.ca_file}"]
        log = bed.site.logs / f"{name}.log"
        super().__init__(name, words, log, ready=lambda: True, port=self.port, environment=bed.site.environment())

    def __enter__(self) -> "GoExtender":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def entry(self, **fields: Any) -> dict[str, Any]:
        """Return its entry under ``extenders``; *fields* are added, or replace those that are there."""
        found: dict[str, Any] = {
            "urlPrefix": f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            # More than all that a scheduler's own plugins can give together.
            "weight": 100,
            "httpTimeout": "20s",
        }
        if self._tls:
            found |= {"enableHTTPS": True, "tlsConfig": client_files(self._bed)}
        return found | fields

    def label(self, key: str, value: str) -> dict[str, str]:
        """Return a label of a node that it reads."""
        return {f"{self.prefix}/{key}": value}

    def calls(self, verb: str = "", pod: str = "") -> list[dict[str, Any]]:
        """Return the calls that it has answered since its first start, of a verb and about a pod if these are given."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
        return [one for one in found if verb in ("", one["verb"]) and pod in ("", one["pod"])]


def account(bed: Testbed) -> Path:
    """Return a kubeconfig of a user that may list nodes and bind pods."""
    metadata = {"name": USER}
    rbac = "rbac.authorization.k8s.io"
    user = {"kind": "User", "name": USER, "apiGroup": rbac}
    role = {"kind": "ClusterRole", "name": USER, "apiGroup": rbac}
    manifests = [
        {"kind": "ClusterRole", "metadata": metadata, "rules": PERMISSIONS},
        {"kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": role, "subjects": [user]},
    ]
    complete = [{"apiVersion": f"{rbac}/v1", **one} for one in manifests]
    bed.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(complete))
    return bed.kubeconfig(USER)


def client_files(bed: Testbed) -> dict[str, str]:
    """Write what a scheduler needs to connect over TLS; return it as ``tlsConfig``."""
    paths = [bed.folder / f"calls-extenders.{end}" for end in ("crt", "key")]
    for path, data in zip(paths, bed.site.authority.client("calls-extenders"), strict=True):
        write(path, data)
    return {"caFile": str(bed.ca_file), "certFile": str(paths[0]), "keyFile": str(paths[1])}
