"""Recorder of scheduling attempts: counts them, keeps their decisions, and logs them by verbosity."""

import logging
from typing import Final

from lamina.model.decision import Decision, NodeVerdict
from lamina.scheduling.contract.commands import Bind, Command, ReportUnschedulable
from lamina.services.scheduler import logs
from lamina.services.scheduler.decision_journal import DecisionJournal
from lamina.services.scheduler.logs import verbose
from lamina.services.scheduler.metrics import SchedulerMetrics
from lamina.services.scheduler.qos.qos_metrics import QosMetrics

log = logging.getLogger(__name__)

MOST_NOTES: Final = 10_000
"""Notes on pods that are remembered as logged; then all are forgotten, and some are logged again."""


class AttemptRecorder:
    """Listener of the host and of the executor."""

    def __init__(
        self, metrics: SchedulerMetrics, journal: DecisionJournal, qos_metrics: QosMetrics | None = None
    ) -> None:
        """Count in *metrics*, and evictions in *qos_metrics*; keep decisions in *journal*."""
        self._metrics = metrics
        self._journal = journal
        self._qos_metrics = qos_metrics
        self._noted: set[tuple[str, str]] = set()
        """Pods (by uid) and notes that were logged."""

    def unchanged(self, seconds: float, profile: str) -> None:
        """Record an attempt that failed with the same message as the last one."""
        self._metrics.tried(seconds, "unschedulable", profile)

    def attempted(self, seconds: float, commands: list[Command]) -> None:
        """Record an attempt and its commands."""
        self._metrics.attempted(seconds, commands)
        if self._qos_metrics is not None:
            self._qos_metrics.evicted(commands)
        self._journal.note(commands)
        if not verbose(logs.BINDINGS):
            return
        for command in commands:
            if isinstance(command, Bind | ReportUnschedulable) and command.decision is not None:
                _say(command.decision, seconds)
                self._say_notes(command.decision)

    def _say_notes(self, decision: Decision) -> None:
        """Log what is odd about a pod once, not at every attempt."""
        for note in decision.notes:
            said = decision.uid, note
            if said in self._noted:
                continue
            if len(self._noted) >= MOST_NOTES:
                self._noted.clear()
            self._noted.add(said)
            log.info("Pod asks for something odd", extra={"fields": {"pod": decision.pod, "note": note}})

    def bound(self, command: Bind) -> None:
        """Record a bound pod."""
        self._metrics.bound(command)
        if verbose(logs.BINDINGS):
            decision = command.decision
            fields = {"pod": command.pod.key, "node": command.node}
            if decision is not None:
                fields |= {"evaluatedNodes": str(decision.nodes), "feasibleNodes": str(decision.feasible)}
            log.info("Successfully bound pod to node", extra={"fields": fields})

    def not_bound(self, command: Bind, reason: str) -> None:
        """Record a failed binding."""
        self._metrics.not_bound(command, reason)
        fields = {"pod": command.pod.key, "node": command.node, "reason": reason}
        log.warning("bind failed", extra={"fields": fields})


def _say(decision: Decision, seconds: float) -> None:
    if verbose(logs.ATTEMPTS):
        fields = {"pod": decision.pod, "attempt": decision.attempt, "ms": round(1000 * seconds, 3)}
        log.info("Attempting to schedule pod", extra={"fields": fields})
    if decision.outcome != "placed":
        fields = {"pod": decision.pod, "err": decision.message}
        log.info("Unable to schedule pod; no fit; waiting", extra={"fields": fields})
    if verbose(logs.SCORES):
        for verdict in decision.verdicts:
            _say_scores(decision.pod, verdict)


def _say_scores(pod: str, verdict: NodeVerdict) -> None:
    for score in verdict.scores:
        fields = {"pod": pod, "plugin": score.plugin, "node": verdict.node, "score": score.score}
        log.info("Plugin scored node for pod", extra={"fields": fields})
    if verdict.total is not None:
        fields = {"pod": pod, "node": verdict.node, "score": verdict.total}
        log.info("Calculated node's final score for pod", extra={"fields": fields})
