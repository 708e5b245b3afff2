"""
Calls of other vendors' extenders: from an `AskExtenders` command to its `ExtendersAnswered` event.

    filter       one extender after the other, each about the nodes that the previous ones left
    prioritize   all at once, if several nodes are left
    preempt      one extender after the other, each about the victims that the previous ones left

The rules for failures are kube-scheduler's. A failed filter or preempt is skipped if the extender is ignorable; otherwise
the pod's attempt fails. A failed prioritize gives no scores. Whole nodes and victims are sent from the loop's state; the
pod is read from the API server, because extenders may need fields that Lamina does not keep.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, Protocol

import msgspec

from lamina.clients.kube.errors import ApiError, UnreachableError
from lamina.clients.kube.extender_client import ExtenderError
from lamina.clients.kube.pod_writes import WriteClient
from lamina.model.errors import LaminaError
from lamina.model.events import Event, ExtendersAnswered
from lamina.model.extender_answer import ExtenderAnswer, ExtenderRefusal, ExtenderScores
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.scheduling.config.extenders import named
from lamina.scheduling.config.loader import Configuration
from lamina.scheduling.contract.commands import AskExtenders
from lamina.services.scheduler.extender_endpoint import ExtenderEndpoint
from lamina.services.scheduler.known_cluster import KnownCluster
from lamina.services.scheduler.pod_status import key_of
from lamina.services.scheduler.victim_negotiation import VictimNegotiation
from lamina.wire.errors import WireError
from lamina.wire.extender.calls import FilterReply, without_managed_fields
from lamina.wire.kube.node_encoder import encode_node
from lamina.wire.kube.pod_location import decode_pod_location

WORKERS: Final = 32
"""Pods about which extenders are asked at the same time; the loop lets no more pods wait."""
POD_TIMEOUT: Final = 10.0
"""Seconds to read a pod from the API server."""
REPLACED: Final = "the pod was replaced by another one of the same name"

log = logging.getLogger(__name__)


class ExtenderListener(Protocol):
    """Receives the outcome of each call."""

    def called(self, extender: str, verb: str, *, failed: bool) -> None:
        """Record a call."""


class ExtenderCalls:
    """Calls the extenders of a configuration."""

    def __init__(
        self,
        configuration: Configuration,
        client: WriteClient,
        answer: Callable[[Event], None],
        listener: ExtenderListener,
        cluster: KnownCluster,
    ) -> None:
        """
        Report answers as events with *answer*; *cluster* is what the loop knows.

        Raises InputError if a certificate or key of an extender is unusable.
        """
        configs = named(configuration.config.extenders)
        places = {name: f"extenders[{index}].tlsConfig" for index, name in enumerate(configs)}
        self._endpoints = {
            rules.name: ExtenderEndpoint(rules, configs[rules.name], places[rules.name])
            for rules in configuration.extenders
        }
        self._client = client
        self._answer = answer
        self._listener = listener
        self._cluster = cluster
        self._encoded: dict[str, tuple[Node, bytes]] = {}
        self._waiting: asyncio.Queue[AskExtenders] = asyncio.Queue()

    def ask(self, command: AskExtenders) -> None:
        """Queue a command."""
        self._waiting.put_nowait(command)

    def ignores(self, extender: str) -> bool:
        """Return whether a failure of this extender to bind a pod is ignored."""
        return self._endpoints[extender].rules.ignorable

    async def bind(self, extender: str, pod: Pod, node: str) -> str:
        """Let an extender bind a pod; return the reason of a failure, or an empty text."""
        problem = ""
        try:
            await self._endpoints[extender].bind(pod, node)
        except ExtenderError as error:
            problem = str(error)
        self._listener.called(extender, "bind", failed=bool(problem))
        return problem

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for number in range(WORKERS if self._endpoints else 0):
                tasks.create_task(self._work(), name=f"extenders {number}")

    async def close(self) -> None:
        """Close all connections."""
        for endpoint in self._endpoints.values():
            await endpoint.close()

    async def _work(self) -> None:
        while True:
            command = await self._waiting.get()
            try:
                answer = await self.answer_to(command)
            except LaminaError as error:
                answer = ExtenderAnswer(error=str(error))
            except Exception as error:
                # The loop waits for an answer in any case.
                log.exception("asking extenders failed: %s", command.pod.key)
                answer = ExtenderAnswer(error=f"{type(error).__name__}: {error}")
            self._answer(ExtendersAnswered(command.pod.uid, command.number, answer))

    async def answer_to(self, command: AskExtenders) -> ExtenderAnswer:
        """Ask the extenders. Raises LaminaError if the pod cannot be read."""
        pod = await self._read_pod(command.pod)
        endpoints = [self._endpoints[name] for name in command.extenders]
        if command.proposed:
            return await self._negotiate(command, pod, endpoints)
        left: tuple[str, ...] = command.nodes
        refusals: list[ExtenderRefusal] = []
        for endpoint in endpoints:
            if not endpoint.rules.filters or not left:
                continue
            try:
                reply = await endpoint.filter(pod, left, self._whole(endpoint, left))
            except ExtenderError as error:
                self._failed(endpoint, "filter", command.pod, error)
                if endpoint.rules.ignorable:
                    continue
                return ExtenderAnswer(error=str(error))
            self._listener.called(endpoint.rules.name, "filter", failed=False)
            passed = frozenset(reply.passed)
            refusals += refused_by(reply, [name for name in left if name not in passed])
            left = tuple([name for name in left if name in passed])
        scorers = [one for one in endpoints if one.rules.prioritizes] if len(left) > 1 else []
        given = await asyncio.gather(*(self._prioritize(one, pod, command.pod, left) for one in scorers))
        return ExtenderAnswer(refusals=tuple(refusals), scores=tuple([one for one in given if one is not None]))

    async def _negotiate(
        self, command: AskExtenders, pod: bytes, endpoints: Sequence[ExtenderEndpoint]
    ) -> ExtenderAnswer:
        """Ask which victims may be evicted."""
        victims = VictimNegotiation(command.proposed, self._cluster)
        for endpoint in endpoints:
            if not victims.left:
                break
            try:
                whole = None if endpoint.names else await victims.whole()
                victims.use(endpoint.rules, await endpoint.preempt(pod, victims.left, whole))
            except ExtenderError as error:
                self._failed(endpoint, "preempt", command.pod, error)
                if endpoint.rules.ignorable:
                    continue
                return ExtenderAnswer(error=str(error))
            self._listener.called(endpoint.rules.name, "preempt", failed=False)
        return ExtenderAnswer(victims=victims.allowed())

    async def _prioritize(
        self, endpoint: ExtenderEndpoint, text: bytes, pod: Pod, names: tuple[str, ...]
    ) -> ExtenderScores | None:
        try:
            scores = await endpoint.prioritize(text, names, self._whole(endpoint, names))
        except ExtenderError as error:
            self._failed(endpoint, "prioritize", pod, error)
            return None
        self._listener.called(endpoint.rules.name, "prioritize", failed=False)
        known = frozenset(names)
        return ExtenderScores(
            endpoint.rules.name,
            endpoint.rules.scale,
            {name: score for name, score in scores.items() if score and name in known},
        )

    def _failed(self, endpoint: ExtenderEndpoint, verb: str, pod: Pod, error: ExtenderError) -> None:
        self._listener.called(endpoint.rules.name, verb, failed=True)
        fields = {"extender": endpoint.rules.name, "verb": verb, "pod": pod.key, "error": str(error)}
        log.warning("extender failed", extra={"fields": fields})

    async def _read_pod(self, pod: Pod) -> bytes:
        try:
            text = await self._client.request("GET", key_of(pod).path, timeout=POD_TIMEOUT)
            if decode_pod_location(text).uid != pod.uid:
                raise ExtenderError(REPLACED)
            return without_managed_fields(text)
        except (ApiError, UnreachableError, WireError) as error:
            raise ExtenderError(f"the pod cannot be read for the extenders: {error}") from None

    def _whole(self, endpoint: ExtenderEndpoint, names: Collection[str]) -> list[bytes] | None:
        """Return the nodes as JSON, for extenders that do not know them; nodes that were deleted meanwhile by name."""
        if endpoint.names:
            return None
        nodes = self._cluster.nodes()
        if len(self._encoded) > 2 * len(nodes):
            self._encoded.clear()
        return [self._encode(nodes.get(name) or Node(name=name)) for name in names]

    def _encode(self, node: Node) -> bytes:
        known = self._encoded.get(node.name)
        if known is None or known[0] is not node:
            known = self._encoded[node.name] = node, msgspec.json.encode(encode_node(node))
        return known[1]


def refused_by(reply: FilterReply, refused: Collection[str]) -> list[ExtenderRefusal]:
    """
    Group refused nodes by reason.

    A node with two reasons is unresolvable. As upstream, one without a reason adds nothing to the pod's message, and
    preemption does not consider it.
    """
    groups: dict[tuple[tuple[str, ...], bool], list[str]] = {}
    for name in refused:
        final = name in reply.unresolvable or name not in reply.failed
        reason = reply.unresolvable.get(name, reply.failed.get(name))
        groups.setdefault(((reason,) if reason is not None else (), final), []).append(name)
    return [ExtenderRefusal(tuple(names), reasons, final) for (reasons, final), names in groups.items()]
