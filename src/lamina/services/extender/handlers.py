"""
Handlers of extender requests: from request body to response body, for each path.

No handler blocks. Before the caches are synced, and when a scheduling agent fails, the answer is neutral: every node
passes and all have the same score. Only an invalid request gets an error.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol
from zlib import crc32

from lamina.model.events import NodeGone, NodeSeen
from lamina.model.node import Node
from lamina.model.pod import Pod
from lamina.scheduling.loop.extender_core import AgentError, ExtenderCore
from lamina.scheduling.loop.extender_core import NodeVictims as Candidate
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.services.extender.configuration import ReplyMode as How
from lamina.services.extender.request_recognizer import PodLookup, RequestRecognizer, no_pod
from lamina.services.log_lines import verbose
from lamina.serving.request import Body
from lamina.serving.response import HttpResponse, text_response
from lamina.serving.routes import GetHandler, Routes
from lamina.wire.errors import WireError
from lamina.wire.extender.arguments import ExtenderArgs, decode_extender_args, read_nodes
from lamina.wire.extender.preemption_arguments import decode_preemption_args
from lamina.wire.extender.results import (
    encode_bind_error,
    encode_filter_error,
    encode_filter_result,
    encode_preemption_result,
    encode_priority_list,
)

ANSWERS: Final = 2
"""Verbosity from which on every answer is logged."""
LEVELS: Final = 10
"""Verbosity from which on the score of every node is logged."""
MOST_NODES: Final = 40_000
"""Most nodes known from requests; beyond that, the least recently requested ones are forgotten."""
MOST_NAMED: Final = 100
"""Nodes in an answer that names only the best; kube-scheduler never compares fewer."""
NO_BINDING: Final = "this extender does not bind pods; remove bindVerb from the scheduler's configuration"
NO_SCORES: Final = b"[]"
"""The same score for every node."""
NOTHING: Final = "neutral"
"""Logged for a neutral answer."""
PREDICATES: Final = "/scheduler/predicates/"
PRIORITIES: Final = "/scheduler/priorities/"
PREEMPTION: Final = "/scheduler/preemption/"

log = logging.getLogger(__name__)


class HandlerMetrics(Protocol):
    """Receives the outcome of each request; the metrics implement it."""

    def answered(self, verb: str, result: str) -> None:
        """Record the outcome of one request."""

    def unknown(self, nodes: int) -> None:
        """Record that *nodes* nodes of a request were not known."""

    def full_nodes(self) -> None:
        """Record a request with whole nodes instead of names."""


class Handlers:
    """Handles requests with an `ExtenderCore`."""

    def __init__(  # noqa: PLR0913 - the parts of an extender, and what differs between its modes
        self,
        core: ExtenderCore,
        metrics: HandlerMetrics,
        bypass_detector: BypassDetector,
        ready: Callable[[], bool],
        *,
        reply: How = "sparse",
        from_bodies: bool = False,
        pods: PodLookup = no_pod,
    ) -> None:
        """
        Answer from *core* once *ready* returns true; with *from_bodies*, all nodes come from the requests.

        *pods* returns a pod that is known in exactly the version of a request.
        """
        self._core = core
        self._metrics = metrics
        self._bypass_detector = bypass_detector
        self._ready = ready
        self._sparse = reply != "full"
        self._most = MOST_NAMED if reply == "best" else 0
        self._from_bodies = from_bodies
        self._recognizer = RequestRecognizer(core.cluster.columns, pods)
        self._warned = False
        self._known_nodes: OrderedDict[str, None] = OrderedDict()
        """Nodes known from requests, least recently requested first."""
        self._failures: dict[str, type[BaseException] | None] = {}
        """Handlers whose scheduling agent failed at the last request, with the exception type."""

    def routes(self, gets: Mapping[str, GetHandler]) -> Routes:
        """Return all routes; *gets* are the other endpoints."""
        posts: dict[str, Callable[[Body], HttpResponse]] = {"/scheduler/bind": self.bind}
        for verb in self._core.predicates:
            posts[PREDICATES + verb] = self._about(self.predicate, verb)
        for verb in self._core.priorities:
            posts[PRIORITIES + verb] = self._about(self.priority, verb)
        for verb in (*self._core.predicates, *self._core.priorities):
            posts[PREEMPTION + verb] = self._about(self.preemption, verb)
        return Routes(posts=posts, gets=gets)

    @staticmethod
    def _about(answer: Callable[[str, Body], HttpResponse], verb: str) -> Callable[[Body], HttpResponse]:
        return lambda body: answer(verb, body)

    # -- handlers ----------------------------------------------------------------------------------------------------

    def predicate(self, verb: str, body: Body) -> HttpResponse:
        """Return the nodes that cannot run the pod, each with a reason."""
        name = f"predicates/{verb}"
        try:
            asked = decode_extender_args(body)
        except WireError as error:
            return self._malformed(name, error, encode_filter_error(str(error)))
        self._use_whole_nodes(asked)
        failed: dict[str, str] = {}
        final: dict[str, str] = {}
        unread: Callable[[], None] | None = None
        if self._may_answer(name):
            try:
                for place, refusal in self._core.filter(verb, asked.pod, asked.names):
                    (final if refusal.final else failed)[asked.names[place]] = ", ".join(refusal.reasons)
                unread = self._answered(name, asked.pod)
            except AgentError as error:
                self._agent_failed(name, error)
        self._log_answer(name, asked, NOTHING if unread is None else f"refused={len(failed) + len(final)}")
        return HttpResponse(pieces=tuple(encode_filter_result(asked, failed, final)), unread=unread)

    def priority(self, verb: str, body: Body) -> HttpResponse:
        """Return a score for each node."""
        name = f"priorities/{verb}"
        recognized = self._recognized_priority(verb, name, body)
        if recognized is not None:
            return recognized
        try:
            asked = decode_extender_args(body)
        except WireError as error:
            return self._malformed(name, error)
        self._use_whole_nodes(asked)
        levels: list[int] = []
        unread: Callable[[], None] | None = None
        if self._may_answer(name):
            try:
                levels = self._core.prioritize(verb, asked.pod, asked.names)
                unread = self._answered(name, asked.pod)
            except AgentError as error:
                self._agent_failed(name, error)
        if verbose(ANSWERS):
            self._log_scores(name, asked, levels)
        text = encode_priority_list(
            asked.names,
            levels or [0] * len(asked.names),
            sparse=self._sparse,
            most=self._most,
            turn=crc32(asked.pod.uid.encode()) if self._most else 0,
        )
        return HttpResponse(pieces=(text,), unread=unread)

    def _recognized_priority(self, verb: str, name: str, body: Body) -> HttpResponse | None:
        """Answer a request in kube-scheduler's form about a known pod and known nodes, without decoding it."""
        if not self._sparse or self._most or verbose(ANSWERS) or not self._ready():
            return None
        asked = self._recognizer.recognize(body)
        if asked is None:
            return None
        unread: Callable[[], None] | None = None
        text: bytes | None = NO_SCORES
        try:
            levels = self._core.prioritize_rows(verb, asked.pod, asked.rows)
            if levels is not None:
                text = asked.roster.encode(asked.places, levels)
            if text is None:
                return None
            unread = self._answered(name, asked.pod)
        except AgentError as error:
            self._agent_failed(name, error)
        return HttpResponse(pieces=(text or NO_SCORES,), unread=unread)

    def preemption(self, verb: str, body: Body) -> HttpResponse:
        """Return the nodes on which a preemption would help the pod."""
        name = f"preemption/{verb}"
        try:
            asked = decode_preemption_args(body)
        except WireError as error:
            return self._malformed(name, error)
        kept = dict(asked.victims)
        if self._may_answer(name):
            try:
                candidates = [Candidate(node, victims.uids) for node, victims in asked.victims.items()]
                stay = self._core.preempt(verb, asked.pod, candidates)
                kept = {node: asked.victims[node] for node in stay}
                self._counted(name)
            except AgentError as error:
                self._agent_failed(name, error)
        if verbose(ANSWERS):
            fields = {"pod": asked.pod.key, "candidates": len(asked.victims), "kept": len(kept)}
            log.info("answered %s", name, extra={"fields": fields})
        return HttpResponse(pieces=(encode_preemption_result(kept),))

    def bind(self, _: Body) -> HttpResponse:
        """Reject: kube-scheduler binds pods itself."""
        self._metrics.answered("bind", "refused")
        return HttpResponse(pieces=(encode_bind_error(NO_BINDING),))

    # -- helpers -----------------------------------------------------------------------------------------------------

    def _use_whole_nodes(self, asked: ExtenderArgs) -> None:
        """Count requests with whole nodes; use these nodes if there is no other source."""
        if asked.items is None:
            return
        self._metrics.full_nodes()
        if self._from_bodies:
            unread: list[WireError] = []
            self._add_nodes(read_nodes(asked, unread))
            if unread:
                log.warning("%d nodes of a request cannot be read; the first: %s", len(unread), unread[0])
        elif not self._warned:
            self._warned = True
            log.warning("requests contain whole nodes; set nodeCacheCapable: true to send names only")

    def _add_nodes(self, nodes: list[Node]) -> None:
        self._core.take(*[NodeSeen(node) for node in nodes])
        for node in nodes:
            self._known_nodes[node.name] = None
            self._known_nodes.move_to_end(node.name)
        # No request reports a deleted node, so old ones are dropped by count.
        while len(self._known_nodes) > MOST_NODES:
            self._core.take(NodeGone(self._known_nodes.popitem(last=False)[0]))

    def _may_answer(self, name: str) -> bool:
        if self._ready():
            return True
        self._metrics.answered(name, "neutral")
        return False

    def _answered(self, name: str, pod: Pod) -> Callable[[], None]:
        """Count an answer; return the function that revokes it if the client has disconnected."""
        self._counted(name)
        if self._core.unknown:
            self._metrics.unknown(self._core.unknown)
        self._bypass_detector.answered(pod)
        return partial(self._bypass_detector.unanswered, pod.uid)

    def _counted(self, name: str) -> None:
        self._metrics.answered(name, "answered")
        if self._failures:
            self._failures.pop(name, None)

    def _malformed(self, name: str, error: WireError, body: bytes = b"") -> HttpResponse:
        """Return the error; a filter response has a field for it."""
        self._metrics.answered(name, "malformed")
        log.warning("%s: %s", name, error)
        return HttpResponse(status=400, pieces=(body,)) if body else text_response(400, str(error))

    def _agent_failed(self, name: str, error: AgentError) -> None:
        """Count the failure; log the traceback only at the first of several equal failures."""
        self._metrics.answered(name, "failed")
        how = type(error.__cause__) if error.__cause__ is not None else None
        known = name in self._failures and self._failures[name] is how
        self._failures[name] = how
        log.error("%s; the answer is neutral", error, exc_info=None if known else error.__cause__)

    def _log_answer(self, name: str, asked: ExtenderArgs, result: str) -> None:
        if verbose(ANSWERS):
            log.info(
                "answered %s %s", name, result, extra={"fields": {"pod": asked.pod.key, "nodes": len(asked.names)}}
            )

    def _log_scores(self, name: str, asked: ExtenderArgs, levels: list[int]) -> None:
        if not levels:
            self._log_answer(name, asked, NOTHING)
            return
        best = max(levels)
        said = {"pod": asked.pod.key, "nodes": len(asked.names), "best": best, "at_best": levels.count(best)}
        if best > min(levels):
            said["first_best"] = asked.names[levels.index(best)]
        log.info("answered %s", name, extra={"fields": said})
        if verbose(LEVELS):
            for node, level in zip(asked.names, levels, strict=False):
                log.info("score of %s", name, extra={"fields": {"pod": asked.pod.key, "node": node, "score": level}})
