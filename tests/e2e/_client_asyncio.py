"""
The story with an asynchronous Python client: `python -m tests.e2e._client_asyncio KUBECONFIG [MODULE]`.

MODULE is `kubernetes_asyncio`, or `kubernetes.aio` of the official client, which has the same interface.
"""

import asyncio
import contextlib
import importlib
import sys
from typing import Any

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
    status_code,
    step,
    until_async,
)


class AsyncioStory:
    """The story of one client module."""

    def __init__(self, module: str) -> None:
        """Use *module*."""
        self._client = importlib.import_module(f"{module}.client")
        self._config = importlib.import_module(f"{module}.config")
        self._watch = importlib.import_module(f"{module}.watch")
        self._dynamic = importlib.import_module(f"{module}.dynamic")
        self._failed: type[Exception] = self._client.exceptions.ApiException

    async def play(self, kubeconfig: str) -> None:
        """Play the story."""
        await self._config.load_kube_config(kubeconfig)
        async with self._client.ApiClient() as api:
            core = self._client.CoreV1Api(api)
            with step("lists nodes"):
                expect("nodes", [one.metadata.name for one in (await core.list_node()).items], NODES)
            with step("creates a namespace"):
                await core.create_namespace({"metadata": {"name": NAMESPACE}})
            await self._pod(core)
            await self._workloads(api)
            await self._custom(api)
            with step("deletes the namespace"):
                await core.delete_namespace(NAMESPACE)

                async def gone() -> bool:
                    return NAMESPACE not in [one.metadata.name for one in (await core.list_namespace()).items]

                await until_async("it is gone", gone)

    async def _pod(self, core: Any) -> None:
        seen: list[tuple[str, str, str]] = []
        # From the version of a list on, a watch misses nothing, however late it begins.
        version = (await core.list_namespaced_pod(NAMESPACE)).metadata.resource_version
        following = asyncio.create_task(self._follow(core, version, seen))
        with step("creates a pod"):
            expect("phase", (await core.create_namespaced_pod(NAMESPACE, POD_OBJECT)).status.phase, "Pending")
            await self._fails("create again", 409, core.create_namespaced_pod(NAMESPACE, POD_OBJECT))
        with step("binds it"):
            # The response is a Status, and the client wants a Binding: it raises after the pod is bound.
            with contextlib.suppress(ValueError):
                await core.create_namespaced_pod_binding(POD, NAMESPACE, BINDING)
            expect("node", (await core.read_namespaced_pod(POD, NAMESPACE)).spec.node_name, NODE)
        with step("it runs"):

            async def runs() -> bool:
                return bool((await core.read_namespaced_pod(POD, NAMESPACE)).status.phase == "Running")

            await until_async("Running", runs)
        with step("patches labels in every form"):
            await core.patch_namespaced_pod(POD, NAMESPACE, [{"op": "add", "path": "/metadata/labels/a", "value": "1"}])
            for number, kind in enumerate(("merge-patch", "strategic-merge-patch")):
                body = {"metadata": {"labels": {f"b{number}": "1"}}}
                await core.patch_namespaced_pod(POD, NAMESPACE, body, _content_type=f"application/{kind}+json")
            labels = (await core.read_namespaced_pod(POD, NAMESPACE)).metadata.labels
            expect("labels", labels, {"app": POD, "a": "1", "b0": "1", "b1": "1"})
        with step("selects by label"):
            found = await core.list_pod_for_all_namespaces(label_selector="a=1")
            expect("pods", [one.metadata.name for one in found.items], [POD])
        with step("deletes it"):
            await core.delete_namespaced_pod(POD, NAMESPACE)

            async def gone() -> bool:
                return not (await core.list_namespaced_pod(NAMESPACE)).items

            await until_async("gone", gone)
            await self._fails("read", 404, core.read_namespaced_pod(POD, NAMESPACE))
        with step("the watch saw it come, run and go"):
            await asyncio.wait_for(following, SECONDS)
            check_events(seen)

    async def _follow(self, core: Any, version: str, seen: list[tuple[str, str, str]]) -> None:
        options = {"resource_version": version, "timeout_seconds": int(SECONDS)}
        async with self._watch.Watch() as following:
            async for event in following.stream(core.list_namespaced_pod, NAMESPACE, **options):
                pod = event["object"]
                seen.append((event["type"], pod.status.phase, pod.spec.node_name or ""))
                if event["type"] == "DELETED":
                    return

    async def _workloads(self, api: Any) -> None:
        apps = self._client.AppsV1Api(api)
        with step("creates and scales a deployment"):
            await apps.create_namespaced_deployment(NAMESPACE, DEPLOYMENT)
            await apps.patch_namespaced_deployment_scale("shop", NAMESPACE, {"spec": {"replicas": 3}})

            async def ready() -> bool:
                found = await apps.read_namespaced_deployment("shop", NAMESPACE)
                return bool(found.status.ready_replicas == 3)

            await until_async("3 ready", ready)
            await apps.delete_namespaced_deployment("shop", NAMESPACE)

    async def _custom(self, api: Any) -> None:
        with step("the dynamic client defines a resource and uses it"):
            dynamic = await self._dynamic.DynamicClient(api)
            types = await dynamic.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
            await types.create(body=CUSTOM_TYPE)
            await dynamic.resources.invalidate_cache()
            widgets = await dynamic.resources.get(api_version="story.example/v1", kind="Widget")
            await widgets.create(body=CUSTOM_OBJECT, namespace=NAMESPACE)
            await widgets.patch(
                body={"metadata": {"name": "w"}, "spec": {"size": 2}},
                namespace=NAMESPACE,
                content_type="application/merge-patch+json",
            )
            expect("size", (await widgets.get(name="w", namespace=NAMESPACE)).spec.size, 2)
            await widgets.delete(name="w", namespace=NAMESPACE)
            expect("widgets", list((await widgets.get(namespace=NAMESPACE)).items), [])
            await types.delete(name=CUSTOM_TYPE["metadata"]["name"])

    async def _fails(self, what: str, code: int, action: Any) -> None:
        try:
            await action
        except self._failed as error:
            expect(what, status_code(error), code)
            return
        raise StepError(f"{what} succeeds, and does not fail with {code}")


if __name__ == "__main__":
    asyncio.run(AsyncioStory(sys.argv[2] if len(sys.argv) > 2 else "kubernetes_asyncio").play(sys.argv[1]))
