"""Turns an evaluation into a `Decision`: the chosen node, the runner-up, and the reasons for refusals."""

from typing import Literal

import msgspec
import numpy as np

from lamina.model.decision import Decision, DecisionOutcome, NodeVerdict, PluginScore, Refusal, pending_message
from lamina.model.pod import Pod
from lamina.scheduling.contract.points import ExplainPlugin, FactsPlugin
from lamina.scheduling.contract.status import Code, Status
from lamina.scheduling.runtime.shape_evaluation import OUT, ShapeEvaluation
from lamina.scheduling.state.columns import Bools
from lamina.scheduling.state.view import everything

Detail = Literal["none", "brief", "savings", "full"]
"""brief: chosen node and runner-up. savings: also the plugins' own parts. full: every node, and complete parts."""


def node_name(evaluation: ShapeEvaluation, row: int) -> str:
    """Return the name of the node in a row."""
    node = evaluation.columns.nodes[row]
    assert node is not None, "only living rows are explained"
    return node.name


def scored(evaluation: ShapeEvaluation, row: int) -> NodeVerdict:
    """Return the total and each plugin's score for a node that passed the filters."""
    scores = evaluation.scores[:, row].tolist()
    given = tuple(
        [
            part.plugin_score(score)
            for part, score, skip in zip(evaluation.profile.scorers, scores, evaluation.skips, strict=True)
            if not skip
        ]
    )
    given += tuple([PluginScore(one.extender, scores.get(row, 0), one.weight) for one, scores in evaluation.extended])
    return NodeVerdict(node_name(evaluation, row), int(evaluation.totals.item(row)), given)


def runner_up(evaluation: ShapeEvaluation, chosen: int) -> int:
    """Return the best row apart from the chosen one; -1 if there is none."""
    totals = evaluation.totals
    own = totals[chosen]
    totals[chosen] = OUT
    second = int(totals.argmax())
    found = totals[second] > OUT
    totals[chosen] = own
    return second if found else -1


def refusal_of(evaluation: ShapeEvaluation, row: int) -> Refusal | None:
    """Return the first refusal of a node; None if it passed."""
    if evaluation.stop is not None:
        stop = evaluation.stop
        return Refusal(stop.plugin, stop.reasons, stop.code is Code.UNRESOLVABLE)
    if evaluation.narrowed_out is not None and evaluation.narrowed_out[row]:
        return _narrowed(evaluation)
    for codes, tell in zip(evaluation.codes, evaluation.tells, strict=True):
        if codes is not None and codes[row] and tell is not None:
            return tell(int(codes[row]))
    return evaluation.withheld.get(row)


def _narrowed(evaluation: ShapeEvaluation) -> Refusal:
    names = evaluation.narrowed_by
    return Refusal(names[0], (f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(names))}]",), final=True)


def groups(evaluation: ShapeEvaluation) -> list[tuple[Bools, Refusal]]:
    """Return the refused nodes as flags over rows, grouped by their first refusal."""
    if evaluation.grouped is not None:
        return evaluation.grouped
    left = evaluation.columns.alive[: len(evaluation.totals)].copy()
    found: list[tuple[Bools, Refusal]] = []
    if evaluation.narrowed_out is not None:
        out = left & evaluation.narrowed_out
        if out.any():
            found.append((out, _narrowed(evaluation)))
        left &= ~out
    for codes, tell in zip(evaluation.codes, evaluation.tells, strict=True):
        if codes is None or tell is None:
            continue
        refused = left & (codes != 0)
        found.extend((refused & (codes == code), tell(int(code))) for code in np.unique(codes[refused]))
        left &= ~refused
    rows: dict[Refusal, list[int]] = {}
    for row, refusal in evaluation.withheld.items():
        rows.setdefault(refusal, []).append(row)
    for refusal, alike in rows.items():
        refused = np.zeros(len(left), dtype=np.bool_)
        refused[alike] = True
        found.append((refused, refusal))
    evaluation.grouped = found
    return found


def resolvable_rows(evaluation: ShapeEvaluation) -> Bools:
    """Return the rows that could run the pod once other pods have left: no filter refuses them for good."""
    resolvable = everything(evaluation.columns).alive.copy()
    for flags, refusal in groups(evaluation):
        if refusal.final:
            resolvable &= ~flags
    if evaluation.stop is not None:
        resolvable[:] = evaluation.stop.code is not Code.UNRESOLVABLE
    return resolvable


class Attempt(msgspec.Struct, frozen=True):
    """Data about an attempt that the evaluation does not have."""

    at: float
    number: int
    row: int = -1
    """The chosen row, or -1."""
    tied: int = 0
    after: str = ""
    """Result of the post filters, in words."""
    stop: Status | None = None
    """A refusal of the whole pod that did not come from the evaluation."""


def explain(evaluation: ShapeEvaluation, pod: Pod, attempt: Attempt, detail: Detail) -> Decision:
    """Return the decision of an attempt."""
    row, stop = attempt.row, attempt.stop or evaluation.stop
    columns = evaluation.columns
    refusals: dict[str, int] = {}
    if row < 0 or detail == "full":
        for flags, refusal in groups(evaluation):
            for reason in refusal.reasons:
                refusals[reason] = refusals.get(reason, 0) + int(np.count_nonzero(flags))
    outcome: DecisionOutcome = "placed"
    message = ""
    if row < 0:
        broken = stop is not None and stop.code is Code.ERROR
        outcome = "failed" if broken else "unschedulable"
        note = "" if stop is None else stop.message
        message = note if broken else pending_message(columns.count, refusals, note, attempt.after)
    second = runner_up(evaluation, row) if row >= 0 and detail != "none" and columns.count > 1 else -1
    verdicts = _all_verdicts(evaluation, pod) if detail == "full" else {}
    decision = Decision(
        pod=pod.key,
        uid=pod.uid,
        at=attempt.at,
        attempt=attempt.number,
        profile=evaluation.profile.name,
        outcome=outcome,
        nodes=columns.count,
        feasible=int(np.count_nonzero(evaluation.feasible)),
        chosen=None if row < 0 else verdicts.get(row) or _chosen(evaluation, row, detail),
        runner_up=None if second < 0 else verdicts.get(second) or scored(evaluation, second),
        tied=attempt.tied,
        refusals=refusals,
        verdicts=tuple(verdicts.values()),
        message=message,
        notes=_notes(evaluation, pod) if detail != "none" else (),
    )
    parts = _parts(evaluation, pod, row, second, detail) if row >= 0 and detail in ("savings", "full") else None
    return decision.with_parts(parts) if parts else decision


def broken(pod: Pod, status: Status, *, at: float, attempt: int, profile: str) -> Decision:
    """Return the decision of an attempt that failed before an evaluation existed."""
    return Decision(
        pod=pod.key,
        uid=pod.uid,
        at=at,
        attempt=attempt,
        profile=profile,
        outcome="failed",
        nodes=0,
        feasible=0,
        message=status.message,
    )


def _chosen(evaluation: ShapeEvaluation, row: int, detail: Detail) -> NodeVerdict:
    return NodeVerdict(node_name(evaluation, row)) if detail == "none" else scored(evaluation, row)


def _all_verdicts(evaluation: ShapeEvaluation, pod: Pod) -> dict[int, NodeVerdict]:
    rows = [int(row) for row in np.flatnonzero(evaluation.columns.alive[: len(evaluation.totals)])]
    facts = _facts(evaluation, pod)
    verdicts: dict[int, NodeVerdict] = {}
    for row in rows:
        refusal = refusal_of(evaluation, row)
        if refusal is not None:
            verdicts[row] = NodeVerdict(node_name(evaluation, row), refusal=refusal)
            continue
        plain = scored(evaluation, row)
        with_facts = tuple(
            PluginScore(one.plugin, one.score, one.weight, facts[one.plugin][row]) if one.plugin in facts else one
            for one in plain.scores
        )
        verdicts[row] = NodeVerdict(plain.node, plain.total, with_facts)
    return verdicts


def _facts(evaluation: ShapeEvaluation, pod: Pod) -> dict[str, list[dict[str, int]]]:
    if evaluation.stop is not None:
        return {}
    nodes = everything(evaluation.columns)
    return {
        part.name: list(part.plugin.facts(evaluation.state, pod, nodes))
        for part, skip in zip(evaluation.profile.scorers, evaluation.skips, strict=True)
        if not skip and isinstance(part.plugin, FactsPlugin)
    }


def _parts(
    evaluation: ShapeEvaluation, pod: Pod, chosen: int, second: int, detail: Detail
) -> dict[str, msgspec.Struct]:
    nodes = everything(evaluation.columns)
    parts: dict[str, msgspec.Struct] = {}
    for part, skip in zip(evaluation.profile.scorers, evaluation.skips, strict=True):
        # hasattr first: it is faster than the check against the protocol.
        if not skip and hasattr(part.plugin, "explain") and isinstance(part.plugin, ExplainPlugin):
            best = (chosen, second)
            own = part.plugin.explain(evaluation.state, pod, nodes, best, evaluation.feasible, full=detail == "full")
            if own is not None:
                parts[part.name] = own
    return parts


def _notes(evaluation: ShapeEvaluation, pod: Pod) -> tuple[str, ...]:
    return tuple(filter(None, [plugin.notes(pod) for plugin in evaluation.profile.noting]))
