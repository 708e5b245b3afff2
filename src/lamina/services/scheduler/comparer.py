"""
Comparison of the scheduler's cache with the API server.

The cluster changes during the comparison. So differences are checked again after `SECOND_LOOK_AFTER` seconds, and only
those that remain are reported.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from lamina.clients.kube import paged_list
from lamina.clients.kube.transport import KubeClient
from lamina.model.node import Node
from lamina.model.pod import Pod, PodUid
from lamina.scheduling.loop.loop import Loop
from lamina.services.informers.watched_resources import UNFINISHED
from lamina.wire.kube.codec import decode_node, decode_pod

MOST: Final = 1000
"""Most differences in a comparison; further ones are counted."""
PAGE: Final = 5000
SECOND_LOOK_AFTER: Final = 2.0


class CacheDifference(msgspec.Struct, frozen=True, order=True):
    """An object that differs between cache and API server."""

    kind: str
    name: str
    cached: str
    served: str


class CacheComparison(msgspec.Struct, frozen=True):
    """Result of a comparison."""

    nodes: int
    pods: int
    differences: tuple[CacheDifference, ...]
    more: int = 0
    """Differences beyond those that are listed."""


async def compare(
    client: KubeClient,
    loop: Loop,
    *,
    observing: bool = False,
    held: Callable[[], Iterable[PodUid]] = lambda: (),
) -> CacheComparison:
    """
    List nodes and pods and compare them with the cache, twice if they differ.

    With *observing*, a pod in the cache on its shadow node is not a difference. Nor is a pod that the image gate has
    *held*.
    """
    nodes, pods, first = await _look(client, loop, observing, held)
    if first:
        await asyncio.sleep(SECOND_LOOK_AFTER)
        nodes, pods, second = await _look(client, loop, observing, held)
        first &= second
    found = sorted(first)
    return CacheComparison(nodes, pods, tuple(found[:MOST]), max(len(found) - MOST, 0))


async def _look(
    client: KubeClient, loop: Loop, observing: bool, held: Callable[[], Iterable[PodUid]]
) -> tuple[int, int, set[CacheDifference]]:
    nodes = [node async for node in paged_list.list_objects(client, "/api/v1/nodes", decode_node, size=PAGE)]
    unfinished = {"fieldSelector": UNFINISHED}
    pods = [
        pod
        async for pod in paged_list.list_objects(client, "/api/v1/pods", decode_pod, selectors=unfinished, size=PAGE)
    ]
    outside = frozenset(held())
    inside = [pod for pod in pods if pod.uid not in outside]
    return len(nodes), len(pods), {*_nodes(nodes, loop), *_pods(inside, loop, observing)}


def _nodes(served: Iterable[Node], loop: Loop) -> Iterable[CacheDifference]:
    left = dict.fromkeys(loop.cluster.columns.rows)
    for node in served:
        left.pop(node.name, None)
        row = loop.cluster.columns.rows.get(node.name)
        known = None if row is None else loop.cluster.columns.nodes[row]
        if known is None:
            yield CacheDifference("Node", node.name, "not there", "there")
        elif not _same_but_images(known, node):
            yield CacheDifference("Node", node.name, "another version", "newest version")
    for name in left:
        yield CacheDifference("Node", name, "there", "not there")


def _same_but_images(one: Node, other: Node) -> bool:
    return msgspec.structs.replace(one, images=()) == msgspec.structs.replace(other, images=())


def _pods(served: Iterable[Pod], loop: Loop, observing: bool) -> Iterable[CacheDifference]:
    placed = {one.pod.uid: one.node for one in loop.cluster.cache}
    binding = {one.queued.pod.uid for one in loop.bindings}
    waiting = {one.pod.uid for one in loop.queue} | {one.queued.pod.uid for one in loop.waits}
    names = {one.pod.uid: one.pod.key for one in loop.cluster.cache}
    names.update((one.pod.uid, one.pod.key) for one in loop.queue)
    names.update((one.queued.pod.uid, one.queued.pod.key) for one in loop.waits)
    for pod in served:
        where = placed.pop(pod.uid, "")
        waits = pod.uid in waiting
        waiting.discard(pod.uid)
        if pod.node_name:
            if where != pod.node_name:
                yield CacheDifference("Pod", pod.key, f"on {where}" if where else "on no node", f"on {pod.node_name}")
        elif where and pod.uid not in binding and not observing:
            yield CacheDifference("Pod", pod.key, f"on {where}", "on no node")
        elif not where and not waits and not pod.deleting and pod.scheduler_name in loop.profiles:
            yield CacheDifference("Pod", pod.key, "not waiting", "waits for a node")
    for uid, node in placed.items():
        yield CacheDifference("Pod", names[uid], f"on {node}", "not there")
    for uid in waiting:
        yield CacheDifference("Pod", names[uid], "waiting", "not there")
