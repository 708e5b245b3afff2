"""
From the body of a question to the body of an answer: what each address does.

Nothing here waits. While not everything was seen that answers are made from, and when an agent breaks, the answer is one
that changes nothing: every node passes, and none is better than another. Only what cannot be understood is answered with
an error.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable
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
from lamina.services.extender.http.response import Body, HttpResponse, Routes, text_response
from lamina.services.log_lines import verbose
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
"""The verbosity from which on every answer is told."""
LEVELS: Final = 10
"""The verbosity from which on every level is told."""
MOST_NODES: Final = 40_000
"""Nodes that are known from questions; beyond that those are forgotten that were not asked about for longest."""
MOST_NAMED: Final = 100
"""Nodes in an answer that names only the best; fewer kube-scheduler itself never compares."""
NO_BINDING: Final = "this extender does not bind pods; leave bindVerb out of the scheduler's configuration"
NOTHING: Final = "without an opinion"
"""What is told of an answer that changes nothing."""
PREDICATES: Final = "/scheduler/predicates/"
PRIORITIES: Final = "/scheduler/priorities/"
PREEMPTION: Final = "/scheduler/preemption/"

log = logging.getLogger(__name__)


class HandlerMetrics(Protocol):
    """Whoever counts questions."""

    def answered(self, verb: str, result: str) -> None:
        """A question came to this."""

    def unknown(self, nodes: int) -> None:
        """So many nodes were not known."""

    def full_nodes(self) -> None:
        """Whole nodes were sent instead of names."""


class Handlers:
    """Answers for a panel."""

    def __init__(
        self,
        panel: ExtenderCore,
        tally: HandlerMetrics,
        attendance: BypassDetector,
        ready: Callable[[], bool],
        *,
        reply: How = "sparse",
        from_bodies: bool = False,
    ) -> None:
        """Answer from *panel* once it is *ready*; *from_bodies*: nodes are known only from the questions themselves."""
        self._panel = panel
        self._tally = tally
        self._attendance = attendance
        self._ready = ready
        self._sparse = reply != "full"
        self._most = MOST_NAMED if reply == "best" else 0
        self._from_bodies = from_bodies
        self._warned = False
        self._told: OrderedDict[str, None] = OrderedDict()
        """The nodes that questions told of, longest not asked about first."""
        self._broken: dict[str, type[BaseException] | None] = {}
        """The addresses whose agent broke last time, and how."""

    def routes(self, gets: dict[str, Callable[[], HttpResponse]]) -> Routes:
        """List who answers what; *gets* are the pages beside."""
        posts: dict[str, Callable[[Body], HttpResponse]] = {"/scheduler/bind": self.bind}
        for verb in self._panel.predicates:
            posts[PREDICATES + verb] = self._about(self.predicate, verb)
        for verb in self._panel.priorities:
            posts[PRIORITIES + verb] = self._about(self.priority, verb)
        for verb in (*self._panel.predicates, *self._panel.priorities):
            posts[PREEMPTION + verb] = self._about(self.preemption, verb)
        return Routes(posts=posts, gets=gets)

    @staticmethod
    def _about(answer: Callable[[str, Body], HttpResponse], verb: str) -> Callable[[Body], HttpResponse]:
        return lambda body: answer(verb, body)

    # -- the verbs ---------------------------------------------------------------------------------------------------

    def predicate(self, verb: str, body: Body) -> HttpResponse:
        """Say which nodes cannot have the pod, each with a reason."""
        name = f"predicates/{verb}"
        try:
            asked = decode_extender_args(body)
        except WireError as error:
            return self._malformed(name, error, encode_filter_error(str(error)))
        self._look(asked)
        failed: dict[str, str] = {}
        final: dict[str, str] = {}
        unread: Callable[[], None] | None = None
        if self._may_answer(name):
            try:
                for place, refusal in self._panel.filter(verb, asked.pod, asked.names):
                    (final if refusal.final else failed)[asked.names[place]] = ", ".join(refusal.reasons)
                unread = self._answered(name, asked.pod)
            except AgentError as error:
                self._broke(name, error)
        self._tell(name, asked, NOTHING if unread is None else f"refused={len(failed) + len(final)}")
        return HttpResponse(pieces=tuple(encode_filter_result(asked, failed, final)), unread=unread)

    def priority(self, verb: str, body: Body) -> HttpResponse:
        """Give each node a level."""
        name = f"priorities/{verb}"
        try:
            asked = decode_extender_args(body)
        except WireError as error:
            return self._malformed(name, error)
        self._look(asked)
        levels: list[int] = []
        unread: Callable[[], None] | None = None
        if self._may_answer(name):
            try:
                levels = self._panel.prioritize(verb, asked.pod, asked.names)
                unread = self._answered(name, asked.pod)
            except AgentError as error:
                self._broke(name, error)
        if verbose(ANSWERS):
            self._tell_levels(name, asked, levels)
        text = encode_priority_list(
            asked.names,
            levels or [0] * len(asked.names),
            sparse=self._sparse,
            most=self._most,
            turn=crc32(asked.pod.uid.encode()) if self._most else 0,
        )
        return HttpResponse(pieces=(text,), unread=unread)

    def preemption(self, verb: str, body: Body) -> HttpResponse:
        """Say which nodes are worth evicting somebody from."""
        name = f"preemption/{verb}"
        try:
            asked = decode_preemption_args(body)
        except WireError as error:
            return self._malformed(name, error)
        kept = dict(asked.victims)
        if self._may_answer(name):
            try:
                candidates = [Candidate(node, victims.uids) for node, victims in asked.victims.items()]
                stay = self._panel.preempt(verb, asked.pod, candidates)
                kept = {node: asked.victims[node] for node in stay}
                self._counted(name)
            except AgentError as error:
                self._broke(name, error)
        if verbose(ANSWERS):
            fields = {"pod": asked.pod.key, "candidates": len(asked.victims), "kept": len(kept)}
            log.info("answered %s", name, extra={"fields": fields})
        return HttpResponse(pieces=(encode_preemption_result(kept),))

    def bind(self, _: Body) -> HttpResponse:
        """Refuse: whoever binds is the scheduler."""
        self._tally.answered("bind", "refused")
        return HttpResponse(pieces=(encode_bind_error(NO_BINDING),))

    # -- parts -------------------------------------------------------------------------------------------------------

    def _look(self, asked: ExtenderArgs) -> None:
        """Notice whole nodes, and take them in if there is no other source."""
        if asked.items is None:
            return
        self._tally.full_nodes()
        if self._from_bodies:
            unread: list[WireError] = []
            self._take_in(read_nodes(asked, unread))
            if unread:
                log.warning("%d nodes of a question cannot be read; of the first: %s", len(unread), unread[0])
        elif not self._warned:
            self._warned = True
            log.warning("whole nodes are sent with every question; set nodeCacheCapable: true, names are enough here")

    def _take_in(self, nodes: list[Node]) -> None:
        self._panel.take(*[NodeSeen(node) for node in nodes])
        for node in nodes:
            self._told[node.name] = None
            self._told.move_to_end(node.name)
        # Nobody tells that a node is gone.
        while len(self._told) > MOST_NODES:
            self._panel.take(NodeGone(self._told.popitem(last=False)[0]))

    def _may_answer(self, name: str) -> bool:
        if self._ready():
            return True
        self._tally.answered(name, "neutral")
        return False

    def _answered(self, name: str, pod: Pod) -> Callable[[], None]:
        """Count an answer; return what takes it back if nobody is there to read it."""
        self._counted(name)
        if self._panel.unknown:
            self._tally.unknown(self._panel.unknown)
        self._attendance.answered(pod)
        return partial(self._attendance.unanswered, pod.uid)

    def _counted(self, name: str) -> None:
        self._tally.answered(name, "answered")
        if self._broken:
            self._broken.pop(name, None)

    def _malformed(self, name: str, error: WireError, body: bytes = b"") -> HttpResponse:
        """Say what is wrong; for a filter in the words of the protocol, which has some."""
        self._tally.answered(name, "malformed")
        log.warning("%s: %s", name, error)
        return HttpResponse(status=400, pieces=(body,)) if body else text_response(400, str(error))

    def _broke(self, name: str, error: AgentError) -> None:
        """Count it; where it broke is told when it begins to, not for every pod."""
        self._tally.answered(name, "failed")
        how = type(error.__cause__) if error.__cause__ is not None else None
        known = name in self._broken and self._broken[name] is how
        self._broken[name] = how
        log.error("%s; the answer changes nothing", error, exc_info=None if known else error.__cause__)

    def _tell(self, name: str, asked: ExtenderArgs, result: str) -> None:
        if verbose(ANSWERS):
            log.info(
                "answered %s %s", name, result, extra={"fields": {"pod": asked.pod.key, "nodes": len(asked.names)}}
            )

    def _tell_levels(self, name: str, asked: ExtenderArgs, levels: list[int]) -> None:
        if not levels:
            self._tell(name, asked, NOTHING)
            return
        best = max(levels)
        said = {"pod": asked.pod.key, "nodes": len(asked.names), "best": best, "at_best": levels.count(best)}
        if best > min(levels):
            said["first_best"] = asked.names[levels.index(best)]
        log.info("answered %s", name, extra={"fields": said})
        if verbose(LEVELS):
            for node, level in zip(asked.names, levels, strict=False):
                log.info("level of %s", name, extra={"fields": {"pod": asked.pod.key, "node": node, "score": level}})
