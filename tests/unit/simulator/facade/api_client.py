"""
A client of the façade without a transport, and a façade whose cluster only takes notes.

    facade = NotedFacade()
    status, pod = facade.post(PODS, a_pod_object("p"))
    events = facade.watch(PODS)
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from lamina.simulator.facade.api_handler import ApiHandler
from lamina.simulator.facade.api_messages import ApiRequest, FacadeResponse, WatchResponse
from lamina.simulator.facade.api_state import ApiState
from lamina.simulator.facade.resource_types import ResourceTypes
from lamina.simulator.facade.system_objects import ensure_namespace, ensure_priority_classes
from lamina.simulator.facade.watches import Watch

JSON: Final = "application/json"
JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
PODS: Final = "/api/v1/namespaces/default/pods"
NODES: Final = "/api/v1/nodes"
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
EPOCH: Final = 1_767_225_600.0
"""2026-01-01T00:00:00Z."""

Object = dict[str, Any]


class WatchedEvents:
    """The events of one watch so far."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.watch: Watch | None = None

    def add(self, data: bytes) -> None:
        """Take complete lines."""
        self.lines += data.splitlines(keepends=True)

    @property
    def all(self) -> list[Object]:
        """All events, decoded."""
        return [json.loads(line) for line in self.lines]

    @property
    def seen(self) -> list[tuple[str, str]]:
        """Type and name of each event."""
        return [(one["type"], one["object"]["metadata"].get("name", "")) for one in self.all]

    def take(self) -> list[tuple[str, str]]:
        """Return type and name of the events since the last call."""
        found, self.lines = self.seen, []
        return found


class ApiClient:
    """Sends requests to a handler."""

    def __init__(self, handler: ApiHandler) -> None:
        self.handler = handler

    def answer(self, method: str, path: str, body: Any = None, **more: str) -> FacadeResponse | WatchResponse:
        """Send a request; the path may have a query. More: content_type, accept, agent."""
        path, _, query = path.partition("?")
        headers = {"content-type": more.get("content_type", JSON), "user-agent": more.get("agent", "test/1")}
        if "accept" in more:
            headers["accept"] = more["accept"]
        data = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        return self.handler.handle(ApiRequest(method, path, query, headers, data))

    def send(self, method: str, path: str, body: Any = None, **more: str) -> tuple[int, Object]:
        """Send a request; return the status and the decoded body."""
        found = self.answer(method, path, body, **more)
        assert isinstance(found, FacadeResponse)
        return found.status, json.loads(found.body)

    def get(self, path: str, **more: str) -> Object:
        """Return an object or a list, which must exist."""
        status, found = self.send("GET", path, **more)
        assert 200 == status, found
        return found

    def names(self, path: str) -> list[str]:
        """Return the names of the objects of a list."""
        return [one["metadata"]["name"] for one in self.get(path)["items"]]

    def post(self, path: str, body: Any, **more: str) -> tuple[int, Object]:
        """Create an object."""
        return self.send("POST", path, body, **more)

    def put(self, path: str, body: Any, **more: str) -> tuple[int, Object]:
        """Replace an object."""
        return self.send("PUT", path, body, **more)

    def patch(self, path: str, body: Any, content_type: str = MERGE) -> tuple[int, Object]:
        """Patch an object."""
        return self.send("PATCH", path, body, content_type=content_type)

    def delete(self, path: str, body: Any = None) -> tuple[int, Object]:
        """Delete an object or a collection."""
        return self.send("DELETE", path, body)

    def made(self, path: str, body: Any) -> Object:
        """Create an object that must be accepted; return it."""
        status, found = self.post(path, body)
        assert 201 == status, found
        return found

    def bind(self, pod: str, node: str, namespace: str = "default") -> tuple[int, Object]:
        """Bind a pod."""
        body = {"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}}
        return self.post(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)

    def watch(self, path: str) -> WatchedEvents:
        """Begin a watch; the path has the query besides ``watch=true``."""
        found = self.answer("GET", f"{path}{'&' if '?' in path else '?'}watch=true")
        assert isinstance(found, WatchResponse), found
        events = WatchedEvents()
        events.watch = found.open(events.add)
        return events


class NotedInputs:
    """A cluster that does nothing but note its inputs. Implements `ClusterInputs`."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, ...]] = []

    def take(self) -> list[tuple[str, ...]]:
        """Return the inputs since the last call."""
        found, self.noted = self.noted, []
        return found

    def pod_created(self, pod: Object) -> None:
        self.noted.append(("created", pod["metadata"]["name"]))

    def pod_bound(self, pod: Object, node: str) -> None:
        self.noted.append(("bound", pod["metadata"]["name"], node))

    def pod_refused(self, pod: Object, message: str) -> None:
        self.noted.append(("refused", pod["metadata"]["name"], message))

    def pod_deleted(self, pod: Object, grace: float) -> None:
        self.noted.append(("stopping", pod["metadata"]["name"], f"{grace:g}"))

    def pod_removed(self, pod: Object) -> None:
        self.noted.append(("removed", pod["metadata"]["name"]))

    def node_written(self, node: Object) -> None:
        self.noted.append(("node", node["metadata"]["name"]))

    def node_deleted(self, name: str) -> None:
        self.noted.append(("node left", name))

    def workload_written(self, found: Object) -> None:
        self.noted.append(("workload", found["kind"], found["metadata"]["name"]))

    def workload_deleted(self, found: Object) -> None:
        self.noted.append(("workload gone", found["kind"], found["metadata"]["name"]))


class NotedFacade(ApiClient):
    """A façade in front of a cluster that does nothing; its clock is `now`."""

    def __init__(self, namespaces: Sequence[str] = ("default", "kube-system")) -> None:
        self.now = 0.0
        self.inputs = NotedInputs()
        self.state = ApiState(ResourceTypes(), lambda: self.now, self.inputs, EPOCH)
        for name in namespaces:
            ensure_namespace(self.state, name)
        ensure_priority_classes(self.state)
        super().__init__(ApiHandler(self.state))

    @property
    def revision(self) -> int:
        """The newest resource version."""
        return self.state.store.revision


def a_pod_object(name: str, **spec: Any) -> Object:
    """Return a pod to create."""
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def labelled(found: Object, **labels: str) -> Object:
    """Return an object with labels."""
    return {**found, "metadata": {**found["metadata"], "labels": labels}}


def a_config_map(name: str, **data: str) -> Object:
    """Return a config map to create."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def a_node_object(name: str, **spec: Any) -> Object:
    """Return a node to create: 4 cores."""
    capacity = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"capacity": capacity, "allocatable": capacity, "conditions": conditions},
    }


def a_deployment(name: str, replicas: int = 2, image: str = "registry.example/web:1") -> Object:
    """Return a Deployment to create."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": "1"}}}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
