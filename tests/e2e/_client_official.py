"""The story with the official Python client, `kubernetes`: `python -m tests.e2e._client_official KUBECONFIG`."""

import contextlib
import sys
import threading
from typing import Any

from kubernetes import client, config, dynamic, utils, watch  # type: ignore[import-not-found,unused-ignore]
from kubernetes.client.exceptions import ApiException  # type: ignore[import-not-found,unused-ignore]
from kubernetes.dynamic.exceptions import NotFoundError  # type: ignore[import-not-found,unused-ignore]

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
    StepError,
    check_events,
    expect,
    expect_error,
    step,
    until,
)

FAILED = (ApiException,)


def main(kubeconfig: str) -> None:
    """Play the story."""
    config.load_kube_config(kubeconfig)
    core = client.CoreV1Api()
    with step("reads the version"):
        expect("major", client.VersionApi().get_code().major, "1")
    with step("lists nodes"):
        expect("nodes", [one.metadata.name for one in core.list_node().items], NODES)
        expect("kubelet", bool(core.read_node(NODE).status.node_info.kubelet_version), True)
    with step("lists in pages"):
        page = core.list_node(limit=2)
        more = core.list_node(limit=2, _continue=page.metadata._continue)
        expect("pages", [one.metadata.name for one in (*page.items, *more.items)], NODES)
    with step("creates a namespace"):
        core.create_namespace({"metadata": {"name": NAMESPACE}})
        expect("phase", core.read_namespace(NAMESPACE).status.phase, "Active")
    pod_story(core)
    workloads()
    custom_objects(client.ApiClient())
    with step("deletes the namespace"):
        core.delete_namespace(NAMESPACE)
        until("it is gone", lambda: NAMESPACE not in [one.metadata.name for one in core.list_namespace().items])


def pod_story(core: Any) -> None:
    """Create, bind, watch, patch and delete a pod."""
    seen: list[tuple[str, str, str]] = []
    # From the version of a list on, a watch misses nothing, however late it begins.
    version = core.list_namespaced_pod(NAMESPACE).metadata.resource_version
    thread = threading.Thread(target=follow, args=(core, version, seen), daemon=True)
    thread.start()
    with step("creates a pod"):
        made = core.create_namespaced_pod(NAMESPACE, POD_OBJECT)
        expect("phase", made.status.phase, "Pending")
    with step("a second pod of the same name is a conflict"):
        expect_error("create", 409, FAILED, lambda: core.create_namespaced_pod(NAMESPACE, POD_OBJECT))
    with step("binds it, and the client's own quirk is the only complaint"):
        # The response is a Status, and the client wants a Binding: it raises after the pod is bound.
        with contextlib.suppress(ValueError):
            core.create_namespaced_pod_binding(POD, NAMESPACE, BINDING)
        expect("node", core.read_namespaced_pod(POD, NAMESPACE).spec.node_name, NODE)
        expect_error(
            "bind again",
            409,
            FAILED,
            lambda: core.create_namespaced_binding(NAMESPACE, BINDING, _preload_content=False),
        )
    with step("it runs"):
        until("Running", lambda: core.read_namespaced_pod(POD, NAMESPACE).status.phase == "Running")
        ready = {one.type: one.status for one in core.read_namespaced_pod(POD, NAMESPACE).status.conditions}
        expect("Ready", ready["Ready"], "True")
    with step("patches labels in every form"):
        core.patch_namespaced_pod(POD, NAMESPACE, {"metadata": {"labels": {"tier": "front"}}})
        core.patch_namespaced_pod(POD, NAMESPACE, [{"op": "add", "path": "/metadata/labels/json", "value": "yes"}])
        labels = core.read_namespaced_pod(POD, NAMESPACE).metadata.labels
        expect("labels", labels, {"app": POD, "tier": "front", "json": "yes"})
    with step("replaces it, and an old version is a conflict"):
        old = core.read_namespaced_pod(POD, NAMESPACE)
        new = core.read_namespaced_pod(POD, NAMESPACE)
        new.metadata.annotations = {"note": "new"}
        core.replace_namespaced_pod(POD, NAMESPACE, new)
        expect_error("replace", 409, FAILED, lambda: core.replace_namespaced_pod(POD, NAMESPACE, old))
    with step("selects by label and field"):
        found = core.list_pod_for_all_namespaces(
            label_selector="tier in (front)", field_selector=f"spec.nodeName={NODE}"
        )
        expect("pods", [one.metadata.name for one in found.items], [POD])
    with step("deletes it"):
        core.delete_namespaced_pod(POD, NAMESPACE)
        until("gone", lambda: not core.list_namespaced_pod(NAMESPACE).items)
        expect_error("read", 404, FAILED, lambda: core.read_namespaced_pod(POD, NAMESPACE))
    with step("the watch saw it come, run and go"):
        thread.join(SECONDS)
        check_events(seen)


def follow(core: Any, version: str, seen: list[tuple[str, str, str]]) -> None:
    """Watch the pods of the namespace until one is deleted."""
    following = watch.Watch()
    options = {"resource_version": version, "timeout_seconds": int(SECONDS)}
    for event in following.stream(core.list_namespaced_pod, NAMESPACE, **options):
        pod = event["object"]
        seen.append((event["type"], pod.status.phase, pod.spec.node_name or ""))
        if event["type"] == "DELETED":
            return


def workloads() -> None:
    """Create a deployment from a dictionary, scale it and delete it."""
    apps = client.AppsV1Api()
    with step("creates a deployment, which becomes available"):
        utils.create_from_dict(client.ApiClient(), DEPLOYMENT)
        until("2 ready", lambda: apps.read_namespaced_deployment("shop", NAMESPACE).status.ready_replicas == 2)
    with step("scales it"):
        apps.patch_namespaced_deployment_scale("shop", NAMESPACE, {"spec": {"replicas": 3}})
        expect("replicas", apps.read_namespaced_deployment_scale("shop", NAMESPACE).spec.replicas, 3)
        until("3 ready", lambda: apps.read_namespaced_deployment("shop", NAMESPACE).status.ready_replicas == 3)
    with step("evicts a pod, which is replaced"):
        core = client.CoreV1Api()
        name = core.list_namespaced_pod(NAMESPACE).items[0].metadata.name
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        core.create_namespaced_pod_eviction(name, NAMESPACE, eviction)
        until("gone", lambda: name not in [one.metadata.name for one in core.list_namespaced_pod(NAMESPACE).items])
        until("3 ready", lambda: apps.read_namespaced_deployment("shop", NAMESPACE).status.ready_replicas == 3)
    with step("deletes it, and its pods go"):
        apps.delete_namespaced_deployment("shop", NAMESPACE)
        until("no pods", lambda: not client.CoreV1Api().list_namespaced_pod(NAMESPACE).items)


def custom_objects(api: Any) -> None:
    """Define a resource, and use it with the dynamic client."""
    with step("the dynamic client lists nodes"):
        dynamic_client = dynamic.DynamicClient(api)
        nodes = dynamic_client.resources.get(api_version="v1", kind="Node")
        expect("nodes", [one.metadata.name for one in nodes.get().items], NODES)
    with step("the dynamic client defines a resource"):
        types = dynamic_client.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
        types.create(body=CUSTOM_TYPE)
        dynamic_client.resources.invalidate_cache()
        widgets = dynamic_client.resources.get(api_version="story.example/v1", kind="Widget")
    with step("the dynamic client creates, patches, applies, watches and deletes a custom object"):
        widgets.create(body=CUSTOM_OBJECT, namespace=NAMESPACE)
        widgets.patch(
            body={"metadata": {"name": "w"}, "spec": {"size": 2}},
            namespace=NAMESPACE,
            content_type="application/merge-patch+json",
        )
        expect("size", widgets.get(name="w", namespace=NAMESPACE).spec.size, 2)
        widgets.server_side_apply(
            body={**CUSTOM_OBJECT, "spec": {"colour": "red"}},
            name="w",
            namespace=NAMESPACE,
            field_manager="story",
            force_conflicts=True,
        )
        spec = widgets.get(name="w", namespace=NAMESPACE).spec.to_dict()
        expect("spec", spec, {"size": 2, "colour": "red"})
        first = next(iter(widgets.watch(namespace=NAMESPACE, timeout=int(SECONDS))))
        expect("event", (first["type"], first["object"].metadata.name), ("ADDED", "w"))
        widgets.delete(name="w", namespace=NAMESPACE)
        try:
            widgets.get(name="w", namespace=NAMESPACE)
        except NotFoundError:
            pass
        else:
            raise StepError("the custom object is still there")
    with step("the custom objects API lists them, and the resource is removed"):
        listed = client.CustomObjectsApi().list_namespaced_custom_object("story.example", "v1", NAMESPACE, "widgets")
        expect("widgets", listed["items"], [])
        types.delete(name=CUSTOM_TYPE["metadata"]["name"])


if __name__ == "__main__":
    main(sys.argv[1])
