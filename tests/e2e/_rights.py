"""Which rights of a service account its program has used, by the API server's audit log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

from testbed import Testbed

Right: TypeAlias = tuple[str, str, str]
"""Verb, API group, and resource with its subresource."""

POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:lamina-system"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:lamina-agents"]},
        {"level": "None"},
    ],
}


def flags(folder: Path) -> list[str]:
    """Write the policy into *folder*; return the API server's flags."""
    policy = folder / "audit.json"
    policy.write_text(json.dumps(POLICY), encoding="utf-8")
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={folder / 'audit.log'}",
        "--audit-log-mode=blocking-strict",
    ]


def used(folder: Path) -> dict[str, set[Right]]:
    """Return what each account has been allowed to do, by the name of its user."""
    found: dict[str, set[Right]] = {}
    for line in (folder / "audit.log").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        named = entry.get("objectRef")
        if named and entry["annotations"].get("authorization.k8s.io/decision") == "allow":
            resource = "/".join(filter(None, [named["resource"], named.get("subresource")]))
            right = (entry["verb"], named.get("apiGroup", ""), resource)
            found.setdefault(entry["user"]["username"], set()).add(right)
    return found


def granted(bed: Testbed) -> dict[str, set[Right]]:
    """Return what the roles of Lamina grant to its accounts."""
    found: dict[str, set[Right]] = {}
    for binding, role in _bindings(bed):
        for subject in binding.get("subjects", ()):
            user = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
            for rule in role["rules"]:
                found.setdefault(user, set()).update(
                    (verb, group, resource)
                    for verb in rule["verbs"]
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                )
    return found


def _bindings(bed: Testbed) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    base, label = "/apis/rbac.authorization.k8s.io/v1", "?labelSelector=app.kubernetes.io/part-of=lamina"
    for kind in ("clusterrolebindings", "rolebindings"):
        for binding in bed.api("GET", f"{base}/{kind}{label}")["items"]:
            where = "" if kind == "clusterrolebindings" else f"/namespaces/{binding['metadata']['namespace']}"
            plural = {"ClusterRole": "clusterroles", "Role": "roles"}[binding["roleRef"]["kind"]]
            yield (
                binding,
                bed.api("GET", f"{base}{where if plural == 'roles' else ''}/{plural}/{binding['roleRef']['name']}"),
            )
