"""
Checks of the permissions of Lamina's service accounts: each has what it needs, and nothing dangerous beyond.

Each check is a SubjectAccessReview on behalf of the account. If the user lacks permission to create these reviews, the
check is skipped and the finding says so.
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
    """A service account of an installation: the permissions it needs, and those it must not have."""

    subject: str
    """Subject of the finding."""
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
            Permission("watch", "services"),
            Permission("watch", "replicationcontrollers"),
            Permission("watch", "replicasets", "apps"),
            Permission("watch", "statefulsets", "apps"),
            Permission("create", "pods/binding"),
            Permission("patch", "pods/status"),
            Permission("create", "events", "events.k8s.io"),
            Permission("watch", "nodelayers", LAMINA),
            Permission("watch", "imagelayers", LAMINA),
            Permission("delete", "imagelayers", LAMINA),
            Permission("create", "leases", "coordination.k8s.io", "lamina-system"),
        ),
        # Access to pull secrets is granted per namespace, with a RoleBinding.
        (
            Permission("get", "secrets"),
            Permission("list", "secrets"),
            Permission("update", "nodes"),
            Permission("create", "pods"),
        ),
    ),
)


async def check_permissions(client: KubeClient) -> list[Finding]:
    """Check the permissions of every service account."""
    return [await _account(client, account) for account in ACCOUNTS]


async def _account(client: KubeClient, account: ServiceAccountPermissions) -> Finding:
    account_name = f"{account.namespace}/{account.name}"
    try:
        missing = [permission for permission in account.needs if not await _allowed(client, account, permission)]
        surplus = [permission for permission in account.forbidden if await _allowed(client, account, permission)]
    except ApiError as error:
        if error.status == 403:
            told = f"you have no permission to review what {account_name} may do"
            return unseen(account.subject, told, "run this as a user with permission to create subjectaccessreviews")
        raise
    if missing:
        told = f"{account_name} may not {_listed(missing)}"
        return broken(account.subject, told, f"kubectl apply --server-side -f {account.manifest}")
    if surplus:
        told = f"{account_name} may {_listed(surplus)}, which it never needs"
        return warned(account.subject, told, "find the binding that grants it: kubectl get clusterrolebindings -o wide")
    return fine(account.subject, f"{account_name} has the permissions it needs and none that it must not have")


async def _allowed(client: KubeClient, account: ServiceAccountPermissions, permission: Permission) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": _spec(account, permission),
    }
    answer = await client.request("POST", REVIEWS, body=msgspec.json.encode(review))
    return decode_allowed(answer)


def _spec(account: ServiceAccountPermissions, permission: Permission) -> dict[str, Any]:
    resource, _, part = permission.resource.partition("/")
    return {
        "user": f"system:serviceaccount:{account.namespace}:{account.name}",
        "groups": [*GROUPS, f"system:serviceaccounts:{account.namespace}"],
        "resourceAttributes": {
            "verb": permission.verb,
            "group": permission.group,
            "resource": resource,
            "subresource": part,
            "namespace": permission.namespace,
        },
    }


def _listed(permissions: list[Permission]) -> str:
    def told() -> Iterator[str]:
        yield from map(str, permissions[:3])
        if len(permissions) > 3:
            yield f"{len(permissions) - 3} more things"

    return ", ".join(told())
