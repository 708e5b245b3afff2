"""A decision in sentences: where a pod was placed, by which margin, with which scores, and what the node saves."""

from lamina.model.decision import Decision
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes


def reasons(decision: Decision) -> tuple[str, ...]:
    """Return the explanation of one decision, a sentence for each line."""
    if decision.chosen is None or decision.outcome != "placed":
        return (decision.message or "not placed",)
    said = [
        f"{decision.feasible:,} of {plural(decision.nodes, 'node')} fitted; {_chosen(decision)}.",
        *_scores(decision),
        *_layers(decision),
    ]
    return (*said, *decision.notes)


def _chosen(decision: Decision) -> str:
    assert decision.chosen is not None, "only a placed pod has a node"
    node = decision.chosen.node
    if decision.tied > 1:
        return f"{node} is one of {decision.tied} equally good nodes, drawn at random"
    if decision.runner_up is None or decision.margin is None:
        return f"{node} is the only node that fits" if decision.feasible == 1 else f"{node} was chosen"
    return f"{node} leads {decision.runner_up.node} by {plural(decision.margin, 'point')}"


def _scores(decision: Decision) -> list[str]:
    """Return the points of each plugin on the chosen node and on the runner-up."""
    chosen, other = decision.chosen, decision.runner_up
    if chosen is None or not chosen.scores:
        return []
    theirs = {} if other is None else {score.plugin: score.points for score in other.scores}
    parts = [
        f"{score.plugin} {score.points:,}" + (f" ({theirs[score.plugin]:,})" if score.plugin in theirs else "")
        for score in sorted(chosen.scores, key=lambda one: (-one.points, one.plugin))
    ]
    against = "" if other is None else f"; in brackets those of {other.node}"
    return [f"Points of {chosen.node}: {', '.join(parts)}{against}."]


def _layers(decision: Decision) -> list[str]:
    """Return what the chosen node had to download, and what that saves."""
    story, chosen = decision.locality, decision.chosen
    if story is None or chosen is None:
        return []
    ready = f"images ready on {chosen.node} after {story.seconds:,.1f} s"
    said = [f"Estimate at the decision: {ready}, {human_bytes(story.download)} to download."]
    if story.against_mean is not None:
        saved = story.against_mean
        when = "sooner" if saved.seconds >= 0 else "later"
        what = "less" if saved.bytes >= 0 else "more"
        said.append(
            f"Against the mean node that fits: {abs(saved.seconds):,.1f} s {when}, "
            f"{human_bytes(abs(saved.bytes))} {what} to download."
        )
    return said
