"""Converts the loop's commands to outcomes, for recordings and for the comparison of two runs."""

import msgspec

from lamina.model.command_outcome import CommandOutcome
from lamina.model.decision import Decision
from lamina.scheduling.contract.commands import (
    AskExtenders,
    Bind,
    Command,
    DoWork,
    Evict,
    Nominate,
    ReportPluginError,
    ReportUnschedulable,
    WakeAt,
)


def outcome(command: Command) -> CommandOutcome:
    """Return the outcome record of a command."""
    match command:
        case Bind(pod, node, decision, extender):
            return _decided(CommandOutcome(kind="bind", pod=pod.key, uid=pod.uid, node=node, plugin=extender), decision)
        case AskExtenders(pod, attempt, _, nodes, extenders, proposed):
            return CommandOutcome(
                kind="ask",
                pod=pod.key,
                uid=pod.uid,
                attempt=attempt,
                nodes=len(nodes),
                plugin=", ".join(extenders),
                message=", ".join([f"{victim.key} on {one.node}" for one in proposed for victim in one.victims]),
            )
        case ReportUnschedulable(pod, decision):
            return _decided(CommandOutcome(kind="pending", pod=pod.key, uid=pod.uid), decision)
        case DoWork(pod, node, plugin, attempt):
            return CommandOutcome(kind="work", pod=pod.key, uid=pod.uid, node=node, plugin=plugin, attempt=attempt)
        case Evict(pod, preemptor, node):
            return CommandOutcome(kind="evict", pod=pod.key, uid=pod.uid, node=node, message=f"for {preemptor.key}")
        case Nominate(pod, node):
            return CommandOutcome(kind="nominate", pod=pod.key, uid=pod.uid, node=node)
        case ReportPluginError(plugin, point, message, pod_or_none):
            key, uid = ("", "") if pod_or_none is None else (pod_or_none.key, pod_or_none.uid)
            return CommandOutcome(kind="plugin-error", pod=key, uid=uid, plugin=f"{plugin}.{point}", message=message)
        case WakeAt(at):
            return CommandOutcome(kind="wake", at=at)


def _decided(outcome: CommandOutcome, decision: Decision | None) -> CommandOutcome:
    if decision is None:
        return outcome
    return msgspec.structs.replace(
        outcome,
        attempt=decision.attempt,
        total=None if decision.chosen is None else decision.chosen.total,
        tied=decision.tied,
        feasible=decision.feasible,
        nodes=decision.nodes,
        message=decision.message,
    )
