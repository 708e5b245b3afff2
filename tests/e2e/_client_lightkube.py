"""The story with lightkube: `python -m tests.e2e._client_lightkube KUBECONFIG`."""

import contextlib
import sys
import threading
from typing import Any

from lightkube import ApiError, Client, KubeConfig  # type: ignore[import-not-found,unused-ignore]
from lightkube.codecs import from_dict  # type: ignore[import-not-found,unused-ignore]
from lightkube.generic_resource import create_namespaced_resource  # type: ignore[import-not-found,unused-ignore]
from lightkube.resources.apiextensions_v1 import (  # type: ignore[import-not-found,unused-ignore]
    CustomResourceDefinition,
)
from lightkube.resources.apps_v1 import Deployment  # type: ignore[import-not-found,unused-ignore]
from lightkube.resources.core_v1 import Namespace, Node, Pod, PodBinding  # type: ignore[import-not-found,unused-ignore]
from lightkube.types import PatchType  # type: ignore[import-not-found,unused-ignore]

from tests.e2e._client_steps import (
    BINDING,
    CUSTOM_OBJECT,
    CUSTOM_TYPE,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    NODES,
    POD,
    POD_OBJECT,
    SECONDS,
    check_events,
    expect,
    expect_error,
    step,
    until,
)

FAILED = (ApiError,)


def main(kubeconfig: str) -> None:
    """Play the story."""
    client = Client(KubeConfig.from_file(kubeconfig), field_manager="story")
    with step("lists nodes"):
        expect("nodes", [one.metadata.name for one in client.list(Node)], NODES)
        expect("pages", [one.metadata.name for one in client.list(Node, chunk_size=2)], NODES)
    with step("creates a namespace"):
        made = client.create(from_dict({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
    pod_story(client, made.metadata.resourceVersion)
    workloads(client)
    custom_objects(client)
    with step("deletes the namespace"):
        client.delete(Namespace, NAMESPACE)
        until("it is gone", lambda: NAMESPACE not in [one.metadata.name for one in client.list(Namespace)])


def pod_story(client: Any, version: str) -> None:
    """Create, bind, watch, patch and delete a pod; the watch begins at *version*, however late it is opened."""
    seen: list[tuple[str, str, str]] = []
    thread = threading.Thread(target=follow, args=(client, version, seen), daemon=True)
    thread.start()
    with step("creates a pod"):
        expect("phase", client.create(from_dict(POD_OBJECT)).status.phase, "Pending")
        expect_error("create again", 409, FAILED, lambda: client.create(from_dict(POD_OBJECT)))
    with step("binds it"):
        # The response is a Status, and the client wants a Binding: it raises after the pod is bound.
        with contextlib.suppress(ValueError):
            client.create(PodBinding.from_dict(BINDING), POD, namespace=NAMESPACE)
        expect("node", client.get(Pod, POD, namespace=NAMESPACE).spec.nodeName, NODE)
    with step("waits until it is ready"):
        client.wait(Pod, POD, namespace=NAMESPACE, for_conditions=["Ready"])
        expect("phase", client.get(Pod, POD, namespace=NAMESPACE).status.phase, "Running")
    with step("patches labels in every form"):
        for number, kind in enumerate((PatchType.STRATEGIC, PatchType.MERGE)):
            body = {"metadata": {"labels": {f"b{number}": "1"}}}
            client.patch(Pod, POD, body, namespace=NAMESPACE, patch_type=kind)
        added = [{"op": "add", "path": "/metadata/labels/a", "value": "1"}]
        client.patch(Pod, POD, added, namespace=NAMESPACE, patch_type=PatchType.JSON)
        labels = client.get(Pod, POD, namespace=NAMESPACE).metadata.labels
        expect("labels", labels, {"app": POD, "a": "1", "b0": "1", "b1": "1"})
    with step("selects by label and field"):
        found = client.list(Pod, namespace="*", labels={"a": "1"}, fields={"spec.nodeName": NODE})
        expect("pods", [one.metadata.name for one in found], [POD])
    with step("deletes it"):
        client.delete(Pod, POD, namespace=NAMESPACE)
        until("gone", lambda: not list(client.list(Pod, namespace=NAMESPACE)))
        expect_error("read", 404, FAILED, lambda: client.get(Pod, POD, namespace=NAMESPACE))
    with step("the watch saw it come, run and go"):
        thread.join(SECONDS)
        check_events(seen)


def follow(client: Any, version: str, seen: list[tuple[str, str, str]]) -> None:
    """Watch the pods of the namespace until one is deleted."""
    for kind, pod in client.watch(Pod, namespace=NAMESPACE, resource_version=version, server_timeout=int(SECONDS)):
        seen.append((kind, pod.status.phase, pod.spec.nodeName or ""))
        if kind == "DELETED":
            return


def workloads(client: Any) -> None:
    """Apply a deployment on the server's side, scale it and delete it."""
    with step("applies and scales a deployment"):
        client.apply(from_dict(DEPLOYMENT))
        client.wait(Deployment, "shop", namespace=NAMESPACE, for_conditions=["Available"])
        scale = Deployment.Scale.from_dict(
            {"metadata": {"name": "shop", "namespace": NAMESPACE}, "spec": {"replicas": 3}}
        )
        client.replace(scale, "shop", namespace=NAMESPACE)
        until("3 ready", lambda: client.get(Deployment, "shop", namespace=NAMESPACE).status.readyReplicas == 3)
        client.delete(Deployment, "shop", namespace=NAMESPACE)


def custom_objects(client: Any) -> None:
    """Define a resource, and use it."""
    with step("defines a resource and uses it"):
        client.create(from_dict(CUSTOM_TYPE))
        widget = create_namespaced_resource("story.example", "v1", "Widget", "widgets")
        client.create(widget.from_dict(CUSTOM_OBJECT))
        client.patch(widget, "w", {"spec": {"size": 2}}, namespace=NAMESPACE, patch_type=PatchType.MERGE)
        expect("size", client.get(widget, "w", namespace=NAMESPACE).spec["size"], 2)
        client.delete(widget, "w", namespace=NAMESPACE)
        expect("widgets", list(client.list(widget, namespace=NAMESPACE)), [])
        client.delete(CustomResourceDefinition, CUSTOM_TYPE["metadata"]["name"])


if __name__ == "__main__":
    main(sys.argv[1])
