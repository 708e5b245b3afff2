"""Random objects and changes of them, for the comparison of the façade with a real API server."""

import random
from typing import Any, Final

import msgspec

from tests.integration.facade.differential_values import (
    DEPLOYMENT_CHANGES,
    NODE_CHANGES,
    NODE_STATUSES,
    POD_CHANGES,
    POD_FIELD_VALUES,
    POD_STATUSES,
)

Watch = tuple[str, str, dict[str, str], dict[str, Any], str]
"""Label selector, field selector; labels, merge patch and phase of the object that ends the watch."""

PLAIN_WATCHES: Final[tuple[Watch, ...]] = (
    ("", "", {}, {}, ""),
    ("app=web", "", {"app": "web"}, {}, ""),
    ("app!=web", "", {}, {}, ""),
    ("tier in (x,y)", "", {"tier": "x"}, {}, ""),
)
POD_WATCHES: Final[tuple[Watch, ...]] = (
    *PLAIN_WATCHES,
    ("", "status.phase!=Succeeded,status.phase!=Failed", {}, {}, ""),
    ("", "spec.nodeName=", {}, {}, ""),
    ("", "spec.nodeName=n1", {}, {"spec": {"nodeName": "n1"}}, ""),
    ("", "spec.schedulerName=other", {}, {"spec": {"schedulerName": "other"}}, ""),
    ("", "spec.schedulerName!=other", {}, {}, ""),
    ("", "status.phase=Running", {}, {}, "Running"),
)


class ObjectKind(msgspec.Struct, frozen=True):
    """One resource that sequences use."""

    resource: str
    kind: str
    api_version: str
    namespaced: bool = True
    has_status: bool = False
    field_selectors: tuple[str, ...] = ("metadata.name=a", "metadata.name!=a", "spec.nope=1", "metadata.name")
    watches: tuple[Watch, ...] = PLAIN_WATCHES

    def path(self, namespace: str) -> str:
        """Return the path of the collection."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        return f"{root}/namespaces/{namespace}/{self.resource}" if self.namespaced else f"{root}/{self.resource}"


POD_FIELDS: Final = (
    "metadata.name=a",
    "spec.nodeName=n1",
    "spec.nodeName=",
    "spec.nodeName!=n1",
    "status.phase=Pending",
    "status.phase==Running",
    "status.phase!=Succeeded,status.phase!=Failed",
    "spec.schedulerName=other",
    "spec.restartPolicy=Never",
    "spec.host=n1",
    "spec.nope=1",
)
KINDS: Final = (
    ObjectKind("pods", "Pod", "v1", has_status=True, field_selectors=POD_FIELDS, watches=POD_WATCHES),
    ObjectKind(
        "nodes",
        "Node",
        "v1",
        namespaced=False,
        has_status=True,
        field_selectors=("spec.unschedulable=true", "spec.unschedulable=false", "spec.nope=x"),
    ),
    ObjectKind("configmaps", "ConfigMap", "v1"),
    ObjectKind("leases", "Lease", "coordination.k8s.io/v1"),
    ObjectKind("priorityclasses", "PriorityClass", "scheduling.k8s.io/v1", namespaced=False),
    ObjectKind("poddisruptionbudgets", "PodDisruptionBudget", "policy/v1", has_status=True),
    ObjectKind("deployments", "Deployment", "apps/v1", has_status=True),
)


class RandomObjects:
    """Draws objects, changes and patches."""

    label_selectors: Final = (
        "app=web",
        "app==web",
        "app!=web",
        "app",
        "!app",
        "app in (web,db)",
        "tier notin (x)",
        "app=web,tier=x",
        "app=!",
        "app in ()",
        "app in",
    )

    def __init__(self, dice: random.Random, prefix: str) -> None:
        """Draw with *dice*; *prefix* is the label of cluster-scoped objects."""
        self._dice = dice
        self._prefix = prefix

    # -- whole objects -----------------------------------------------------------------------------------------------

    def plain(self, kind: ObjectKind, name: str) -> Any:
        """Return a valid object with few fields."""
        metadata: dict[str, Any] = {"name": name}
        if not kind.namespaced:
            metadata["labels"] = {"sequence": self._prefix}
        found: dict[str, Any] = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
        return {**found, **self._content(kind, plain=True)}

    def new(self, kind: ObjectKind, name: str) -> Any:
        """Return an object to create; some are not valid."""
        dice, found = self._dice, self.plain(kind, name)
        found.update(self._content(kind, plain=False))
        metadata = found["metadata"]
        if dice.random() < 0.6:
            metadata["labels"] = {**metadata.get("labels", {}), **self._labels()}
        if dice.random() < 0.3:
            metadata["annotations"] = {"note": dice.choice(("one", "two", ""))}
        if dice.random() < 0.12:
            metadata["finalizers"] = [dice.choice(("example.com/hold", "example.com/keep"))]
        if dice.random() < 0.12:
            self._spoil(kind, found)
        return found

    def _labels(self) -> dict[str, str]:
        dice = self._dice
        found = {"app": dice.choice(("web", "db", ""))} if dice.random() < 0.8 else {}
        return {**found, "tier": dice.choice(("x", "y"))} if dice.random() < 0.4 else found

    def _spoil(self, kind: ObjectKind, found: Any) -> None:
        """Make an object invalid, or unusual."""
        metadata = found["metadata"]
        match self._dice.randrange(12):
            case 0:
                metadata["name"] = "Not_A_Name"
            case 1:
                metadata["labels"] = {**metadata.get("labels", {}), "app": "no spaces allowed"}
            case 2:
                metadata["labels"] = {**metadata.get("labels", {}), "-bad": "x"}
            case 3:
                metadata["resourceVersion"] = "7"
            case 4:
                metadata["namespace"] = "elsewhere"
            case 5:
                metadata.pop("name")
            case 6:
                found["kind"] = "Secret"
            case 7:
                metadata["annotations"] = {"bad key": "x"}
            case 8:
                metadata["uid"] = "11111111-2222-4333-8444-555555555555"
                metadata["generation"] = 7
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
                metadata["creationTimestamp"] = None
            case 9:
                metadata["finalizers"] = ["noslash"]
            case 10:
                found["nonsense"] = {"x": 1}
            case _:
                found.pop("apiVersion")
                found.pop("kind")

    def _content(self, kind: ObjectKind, *, plain: bool) -> Any:
        match kind.resource:
            case "pods":
                return {"spec": self._pod_spec(plain=plain)}
            case "nodes":
                return {} if plain else self._node()
            case "configmaps":
                return {"data": {"k": "v"}} if plain else self._data()
            case "leases":
                return {"spec": {} if plain else self._lease()}
            case "priorityclasses":
                return {"value": 10} if plain else self._priority_class()
            case "poddisruptionbudgets":
                return {
                    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
                    if plain
                    else self._budget()
                }
            case _:
                return {"spec": self._deployment(plain=plain)}

    def _pod_spec(self, *, plain: bool) -> Any:
        dice = self._dice
        container: dict[str, Any] = {"name": "main", "image": "registry.example/app:1"}
        spec: dict[str, Any] = {"containers": [container]}
        if plain:
            return spec
        if dice.random() < 0.5:
            container["resources"] = dice.choice(
                (
                    {"requests": {"cpu": "100m"}},
                    {"requests": {"cpu": "0.5", "memory": "64Mi"}},
                    {"limits": {"cpu": "1", "memory": "1Gi"}},
                    {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}},
                    {"requests": {"cpu": "100m", "memory": "1e6"}, "limits": {"cpu": "100m", "memory": "1000000"}},
                    {"requests": {"cpu": "-1"}},
                    {"requests": {"cpu": 1}, "limits": {"example.com/gpu": 1}},
                    {"requests": {"cpu": "much"}},
                )
            )
        if dice.random() < 0.15:
            container["ports"] = [{"containerPort": 80, "hostPort": dice.choice((0, 8080))}]
        if dice.random() < 0.2:
            spec["containers"].append({"name": dice.choice(("side", "main")), "image": "registry.example/side"})
        for field, chance, values in POD_FIELD_VALUES:
            if dice.random() < chance:
                spec[field] = dice.choice(values)
        return spec

    def _node(self) -> Any:
        dice = self._dice
        found: dict[str, Any] = {}
        if dice.random() < 0.6:
            found["spec"] = dice.choice(
                (
                    {"unschedulable": True},
                    {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
                    {"taints": [{"key": "gpu", "effect": "Never"}]},
                    {"providerID": "x://1"},
                    {"podCIDR": "10.1.0.0/24"},
                )
            )
        if dice.random() < 0.6:
            found["status"] = {
                "capacity": {"cpu": dice.choice(("4", "4000m", 4)), "memory": "8Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            }
        return found

    def _data(self) -> Any:
        return self._dice.choice(
            (
                {"data": {"k": "v", "l": ""}},
                {"data": {}},
                {},
                {"data": {"k": "v"}, "immutable": True},
                {"data": {"k": 3}},
                {"data": {"bad key": "v"}},
                {"binaryData": {"k": "AAEC"}},
            )
        )

    def _lease(self) -> Any:
        return self._dice.choice(
            (
                {"holderIdentity": "me", "leaseDurationSeconds": 15},
                {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseTransitions": 0},
                {"leaseDurationSeconds": 0},
                {"leaseTransitions": -1},
                {},
            )
        )

    def _priority_class(self) -> Any:
        return self._dice.choice(
            (
                {"value": 1000, "description": "some"},
                {"value": 5, "preemptionPolicy": "Never"},
                {"value": 5, "preemptionPolicy": "Sometimes"},
                {"value": 2_000_000_001},
                {"value": 0},
                {},
            )
        )

    def _budget(self) -> Any:
        selector = {"matchLabels": {"app": "web"}}
        return self._dice.choice(
            (
                {"minAvailable": 2, "selector": selector},
                {"minAvailable": "50%", "selector": selector},
                {"maxUnavailable": 1, "selector": selector},
                {"maxUnavailable": 1, "minAvailable": 1, "selector": selector},
                {"minAvailable": "half", "selector": selector},
                {"minAvailable": 1},
                {"maxUnavailable": 0, "selector": {}, "unhealthyPodEvictionPolicy": "AlwaysAllow"},
            )
        )

    def _deployment(self, *, plain: bool) -> Any:
        dice, labels = self._dice, {"app": "web"}
        template: dict[str, Any] = {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "example/app:1"}]},
        }
        spec: dict[str, Any] = {"selector": {"matchLabels": labels}, "template": template}
        if plain:
            return spec
        if dice.random() < 0.6:
            spec["replicas"] = dice.choice((0, 1, 3, -1))
        if dice.random() < 0.3:
            spec["strategy"] = dice.choice(
                (
                    {"type": "Recreate"},
                    {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "0%"}},
                    {"type": "Other"},
                )
            )
        if dice.random() < 0.15:
            template["metadata"] = {"labels": {"app": "other"}}
        if dice.random() < 0.15:
            template["spec"] = {**template["spec"], "restartPolicy": dice.choice(("Always", "Never"))}
        return spec

    # -- changes -----------------------------------------------------------------------------------------------------

    def change(self, kind: ObjectKind, name: str) -> Any:
        """Return a merge patch; some change nothing, some are refused."""
        dice = self._dice
        if dice.random() < 0.45:
            return self._metadata_change(name)
        match kind.resource:
            case "pods":
                return dice.choice(POD_CHANGES)
            case "nodes":
                return dice.choice(NODE_CHANGES)
            case "configmaps":
                return dice.choice(
                    ({"data": {"k": "w"}}, {"data": {"k": None}}, {"data": None}, {"immutable": True}, {})
                )
            case "leases":
                return {"spec": self._lease()}
            case "priorityclasses":
                return dice.choice(({"description": "new"}, {"value": 11}, {"globalDefault": False}, {"value": 10}))
            case "poddisruptionbudgets":
                return dice.choice(
                    (
                        {"spec": {"minAvailable": 3}},
                        {"spec": {"minAvailable": None, "maxUnavailable": "10%"}},
                        {"spec": self._budget()},
                    )
                )
            case _:
                return dice.choice(DEPLOYMENT_CHANGES)

    def _metadata_change(self, name: str) -> Any:
        return {
            "metadata": self._dice.choice(
                (
                    {"labels": {"app": "web"}},
                    {"labels": {"app": "db", "tier": "y"}},
                    {"labels": {"app": None}},
                    {"labels": {"app": "not allowed"}},
                    {"annotations": {"note": "new"}},
                    {"annotations": {"note": None}},
                    {"annotations": {"note": 5}},
                    {"finalizers": ["example.com/hold"]},
                    {"finalizers": None},
                    {"finalizers": []},
                    {"name": name},
                    {"name": "other"},
                    {"namespace": "elsewhere"},
                    {"generation": 9},
                    {"creationTimestamp": None},
                    {"deletionTimestamp": "2026-01-01T00:00:00Z"},
                    {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-1"}]},
                    {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n"}]},
                    {},
                )
            )
        }

    def status(self, kind: ObjectKind) -> Any:
        """Return a merge patch of the status."""
        dice = self._dice
        match kind.resource:
            case "pods":
                return {"status": dice.choice(POD_STATUSES)}
            case "nodes":
                return {"status": dice.choice(NODE_STATUSES)}
            case "poddisruptionbudgets":
                figures = {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1}
                return {"status": {**figures, "observedGeneration": dice.choice((1, 2))}}
            case _:
                return {
                    "status": dice.choice(
                        ({"replicas": 2, "readyReplicas": 1}, {"observedGeneration": 1}, {"replicas": -1})
                    )
                }

    def operations(self, kind: ObjectKind, name: str) -> Any:
        """Return the operations of a JSON patch."""
        dice = self._dice
        common: list[Any] = [
            [{"op": "add", "path": "/metadata/labels", "value": {"app": "web", "sequence": self._prefix}}],
            [{"op": "replace", "path": "/metadata/labels/app", "value": "db"}],
            [{"op": "remove", "path": "/metadata/annotations"}],
            [{"op": "test", "path": "/metadata/name", "value": name}],
            [{"op": "test", "path": "/metadata/name", "value": "other"}],
            [
                {"op": "add", "path": "/metadata/annotations", "value": {"note": "new"}},
                {"op": "remove", "path": "/metadata/annotations/note"},
            ],
            [{"op": "copy", "from": "/metadata/name", "path": "/metadata/labels/app"}],
            [{"op": "jump", "path": "/metadata"}],
            [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/hold"}],
            [{"op": "remove", "path": "/metadata/finalizers"}],
            [],
            {"op": "add"},
        ]
        own: dict[str, list[Any]] = {
            "pods": [
                [{"op": "replace", "path": "/spec/containers/0/image", "value": "registry.example/app:2"}],
                [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "k", "operator": "Exists"}}],
                [{"op": "add", "path": "/spec/nodeName", "value": "n2"}],
            ],
            "nodes": [
                [{"op": "add", "path": "/spec/unschedulable", "value": True}],
                [{"op": "add", "path": "/spec/taints", "value": [{"key": "a", "effect": "NoExecute"}]}],
            ],
            "deployments": [[{"op": "replace", "path": "/spec/replicas", "value": 4}]],
        }
        return dice.choice(common + own.get(kind.resource, []) * 3)

    def applied(self, kind: ObjectKind, name: str) -> Any:
        """Return a configuration for server-side apply."""
        dice = self._dice
        found = self.plain(kind, name) if dice.random() < 0.7 else self.new(kind, name)
        if dice.random() < 0.5:
            metadata = found["metadata"]
            metadata["labels"] = {**metadata.get("labels", {}), **self._labels()}
        return found
