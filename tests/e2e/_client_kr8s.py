"""The story with kr8s: `python -m tests.e2e._client_kr8s KUBECONFIG`."""

import sys
import threading
from typing import Any

import kr8s  # type: ignore[import-not-found,unused-ignore]
from kr8s.objects import (  # type: ignore[import-not-found,unused-ignore]
    CustomResourceDefinition,
    Deployment,
    Namespace,
    Node,
    Pod,
    new_class,
)

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

FAILED = (kr8s.ServerError, kr8s.NotFoundError)


def main(kubeconfig: str) -> None:
    """Play the story."""
    api = kr8s.api(kubeconfig=kubeconfig)
    with step("reads the version"):
        expect("major", api.version()["major"], "1")
    with step("lists nodes"):
        expect("nodes", [one.name for one in api.get("nodes")], NODES)
    with step("creates a namespace"):
        made = Namespace({"metadata": {"name": NAMESPACE}}, api=api)
        made.create()
    pod_story(api, made.metadata.resourceVersion)
    with step("cordons a node"):
        node = Node.get(NODE, api=api)
        node.cordon()
        expect("unschedulable", Node.get(NODE, api=api).unschedulable, True)
        node.uncordon()
    workloads(api)
    custom_objects(api)
    with step("deletes the namespace"):
        namespace = Namespace.get(NAMESPACE, api=api)
        namespace.delete()
        namespace.wait("delete", timeout=int(SECONDS))


def pod_story(api: Any, version: str) -> None:
    """Create, bind, watch, patch and delete a pod; the watch begins at *version*, however late it is opened."""
    seen: list[tuple[str, str, str]] = []
    thread = threading.Thread(target=follow, args=(api, version, seen), daemon=True)
    thread.start()
    pod = Pod(POD_OBJECT, api=api)
    with step("creates a pod"):
        pod.create()
        expect("phase", pod.status.phase, "Pending")
        expect_error("create again", 409, FAILED, Pod(POD_OBJECT, api=api).create)
    with step("binds it"):
        binding_class = new_class(kind="Binding", version="v1", namespaced=True, plural="bindings")
        binding_class(BINDING, api=api).create()
    with step("waits until it is ready"):
        pod.wait("condition=Ready", timeout=int(SECONDS))
        pod.refresh()
        expect("phase and node", (pod.status.phase, pod.spec.nodeName), ("Running", NODE))
    with step("patches labels in every form"):
        pod.label(tier="front")
        pod.patch([{"op": "add", "path": "/metadata/labels/a", "value": "1"}], type="json")
        pod.annotate(note="hello")
        pod.refresh()
        expect("labels", dict(pod.labels), {"app": POD, "tier": "front", "a": "1"})
    with step("selects by label and field"):
        found = api.get("pods", namespace=kr8s.ALL, label_selector={"a": "1"}, field_selector={"spec.nodeName": NODE})
        expect("pods", [one.name for one in found], [POD])
    with step("deletes it"):
        pod.delete()
        pod.wait("delete", timeout=int(SECONDS))
        expect("exists", pod.exists(), False)
    with step("the watch saw it come, run and go"):
        thread.join(SECONDS)
        check_events(seen)


def follow(api: Any, version: str, seen: list[tuple[str, str, str]]) -> None:
    """Watch the pods of the namespace until one is deleted."""
    for kind, pod in api.watch("pods", namespace=NAMESPACE, since=version):
        seen.append((kind, pod.status.phase, pod.spec.get("nodeName", "")))
        if kind == "DELETED":
            return


def workloads(api: Any) -> None:
    """Create a deployment, scale it and delete it."""
    with step("creates and scales a deployment"):
        shop = Deployment(DEPLOYMENT, api=api)
        shop.create()
        shop.scale(3)
        until("3 ready", shop.ready)
        expect("pods", len(shop.pods()), 3)
        shop.delete()


def custom_objects(api: Any) -> None:
    """Define a resource, and use it."""
    with step("defines a resource and uses it"):
        definition = CustomResourceDefinition(CUSTOM_TYPE, api=api)
        definition.create()
        widget_class = new_class(kind="Widget", version="story.example/v1", namespaced=True, plural="widgets")
        widget = widget_class(CUSTOM_OBJECT, api=api)
        widget.create()
        widget.patch({"spec": {"size": 2}})
        widget.refresh()
        expect("size", widget.spec.size, 2)
        widget.delete()
        until("gone", lambda: not widget.exists())
        definition.delete()


if __name__ == "__main__":
    main(sys.argv[1])
