"""
Whether the accounts of an installation may do what they must, and no more than they should.

The API server is asked on behalf of each account (SubjectAccessReview). Who may not ask that asks about itself only, and
is told that this is all that was learned.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from lamina.clients.kube.errors import ApiError
from lamina.clients.kube.transport import KubeClient
from lamina.services.doctor.finding import Finding, broken, fine, unseen, warned
from lamina.wire.kube.server_info import decode_allowed

REVIEWS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
GROUPS: Final = ["system:serviceaccounts", "system:authenticated"]


class Permission(msgspec.Struct, frozen=True):
    """One verb on one resource."""

    verb: str
    resource: str
    group: str = ""
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


class ServiceAccountPermissions(msgspec.Struct, frozen=True):
    """A service account that an installation has."""

    subject: str
    """What the finding is called."""
    namespace: str
    name: str
    manifest: str
    needs: tuple[Permission, ...]
    forbidden: tuple[Permission, ...]


LAMINA: Final = "lamina.dev"

ACCOUNTS: Final = (
    ServiceAccountPermissions(
        "agent's rights",
        "lamina-agents",
        "lamina-agent",
        "deploy/rbac/node-agent.yaml",
        (
            Permission("create", "nodelayers", LAMINA),
            Permission("patch", "nodelayers/status", LAMINA),
            Permission("create", "imagelayers", LAMINA),
        ),
        (Permission("list", "secrets"), Permission("list", "pods"), Permission("delete", "imagelayers", LAMINA)),
    ),
    ServiceAccountPermissions(
        "scheduler's rights",
        "lamina-system",
        "lamina-scheduler",
        "deploy/rbac/scheduler.yaml",
        (
            Permission("watch", "pods"),
            Permission("watch", "nodes"),
            Permission("watch", "namespaces"),
            Permission("create", "pods/binding"),
            Permission("patch", "pods/status"),
            Permission("create", "events", "events.k8s.io"),
            Permission("watch", "nodelayers", LAMINA),
            Permission("watch", "imagelayers", LAMINA),
            Permission("delete", "imagelayers", LAMINA),
            Permission("create", "leases", "coordination.k8s.io", "lamina-system"),
        ),
        # Pull secrets are for single namespaces to open, by a RoleBinding.
        (
            Permission("get", "secrets"),
            Permission("list", "secrets"),
            Permission("update", "nodes"),
            Permission("create", "pods"),
        ),
    ),
)


async def check_permissions(client: KubeClient) -> list[Finding]:
    """Look at the rights of every account."""
    return [await _account(client, account) for account in ACCOUNTS]


async def _account(client: KubeClient, account: ServiceAccountPermissions) -> Finding:
    who = f"{account.namespace}/{account.name}"
    try:
        lacking = [right for right in account.needs if not await _allowed(client, account, right)]
        surplus = [right for right in account.forbidden if await _allowed(client, account, right)]
    except ApiError as error:
        if error.status == 403:
            told = f"you may not ask what {who} may do"
            return unseen(account.subject, told, "run this as somebody who may create subjectaccessreviews")
        raise
    if lacking:
        told = f"{who} may not {_listed(lacking)}"
        return broken(account.subject, told, f"kubectl apply --server-side -f {account.manifest}")
    if surplus:
        told = f"{who} may {_listed(surplus)}, which it never needs"
        return warned(account.subject, told, "see who gave it that: kubectl get clusterrolebindings -o wide")
    return fine(account.subject, f"{who} may do what it must, and not what it should not")


async def _allowed(client: KubeClient, account: ServiceAccountPermissions, right: Permission) -> bool:
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": _spec(account, right)}
    answer = await client.request("POST", REVIEWS, body=msgspec.json.encode(review))
    return decode_allowed(answer)


def _spec(account: ServiceAccountPermissions, right: Permission) -> dict[str, Any]:
    resource, _, part = right.resource.partition("/")
    return {
        "user": f"system:serviceaccount:{account.namespace}:{account.name}",
        "groups": [*GROUPS, f"system:serviceaccounts:{account.namespace}"],
        "resourceAttributes": {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": part,
            "namespace": right.namespace,
        },
    }


def _listed(rights: list[Permission]) -> str:
    def told() -> Iterator[str]:
        yield from map(str, rights[:3])
        if len(rights) > 3:
            yield f"{len(rights) - 3} more things"

    return ", ".join(told())
