"""
The story that every client library plays, as data, and the checks of its steps.

The programs that play it (`_client_official` and others) run in an environment of their own, which has the client's
packages and not Lamina's. So this module imports the standard library only.
"""

import contextlib
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final

NODES: Final = ["node-0", "node-1", "node-2"]
NAMESPACE: Final = "story"
POD: Final = "web"
NODE: Final = "node-1"
SECONDS: Final = 60.0
"""Longest wait for one change, in real seconds; a busy machine needs a few."""

POD_OBJECT: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": POD, "namespace": NAMESPACE, "labels": {"app": POD}},
    "spec": {
        # Lamina schedules pods of the default scheduler; this one waits for the story's own binding.
        "schedulerName": "story",
        "terminationGracePeriodSeconds": 5,
        "containers": [
            {"name": "main", "image": "nginx:1.27", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
        ],
    },
}
BINDING: Final[dict[str, Any]] = {
    "apiVersion": "v1",
    "kind": "Binding",
    "metadata": {"name": POD, "namespace": NAMESPACE},
    "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
}
DEPLOYMENT: Final[dict[str, Any]] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "shop", "namespace": NAMESPACE},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {
            "metadata": {"labels": {"app": "shop"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.27"}]},
        },
    },
}
CUSTOM_TYPE: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.story.example"},
    "spec": {
        "group": "story.example",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
CUSTOM_OBJECT: Final[dict[str, Any]] = {
    "apiVersion": "story.example/v1",
    "kind": "Widget",
    "metadata": {"name": "w", "namespace": NAMESPACE},
    "spec": {"size": 1},
}


class StepError(Exception):
    """A step had another result than the story says."""


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Print the name of a step that holds, or what differed; a step that fails ends the program."""
    try:
        yield
    except Exception as error:
        told = " ".join(str(error).split()) or repr(error)
        print(f"    FAILED {name}: {type(error).__name__}: {told[:600]}", flush=True)
        if not isinstance(error, StepError):
            raise
        sys.exit(1)
    print(f"    {name}", flush=True)


def expect(what: str, found: object, wanted: object) -> None:
    """Raise StepError if two values differ."""
    if found != wanted:
        raise StepError(f"{what} is {found!r}, not {wanted!r}")


def expect_error(what: str, code: int, codes: tuple[type[Exception], ...], action: Callable[[], object]) -> None:
    """Raise StepError if an action does not fail with an HTTP status; *codes* are the exceptions of the client."""
    try:
        action()
    except codes as error:
        expect(what, status_code(error), code)
        return
    raise StepError(f"{what} succeeds, and does not fail with {code}")


def status_code(error: Any) -> int:
    """Return the HTTP status of an exception of any client."""
    for found in (getattr(error, "status", None), getattr(error, "response", None)):
        code = getattr(found, "code", getattr(found, "status_code", found))
        if isinstance(code, int):
            return code
    raise StepError(f"{error!r} has no status")


def until(what: str, ask: Callable[[], bool]) -> None:
    """Ask again and again until the answer is yes."""
    end = time.monotonic() + SECONDS
    while not ask():
        if time.monotonic() > end:
            raise StepError(f"{what}: not within {SECONDS:g} s")
        time.sleep(0.05)


async def until_async(what: str, ask: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again until the answer is yes."""
    import asyncio

    end = time.monotonic() + SECONDS
    while not await ask():
        if time.monotonic() > end:
            raise StepError(f"{what}: not within {SECONDS:g} s")
        await asyncio.sleep(0.05)


def check_events(events: list[tuple[str, str, str]]) -> None:
    """
    Check what a watch saw of the pod, as (type, phase, node).

    It is added as Pending without a node, runs on the node, and is deleted; other changes may lie between.
    """
    wanted = [("ADDED", "Pending", ""), ("MODIFIED", "Running", NODE), ("DELETED", "", NODE)]
    left = iter(events)
    for kind, phase, node in wanted:
        if not any(kind == one[0] and phase in {"", one[1]} and node == one[2] for one in left):
            raise StepError(f"the watch did not see {kind} {phase} {node}; it saw {events}")
