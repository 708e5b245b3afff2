"""Where the placement does not help: figures without a gain, and the pods that gained nothing or lost."""

from collections.abc import Sequence
from typing import Final

from lamina.evaluation.comparison import ProfileComparison
from lamina.evaluation.report.html_tables import against
from lamina.evaluation.report.run_record import PodTimes, RunRecord
from lamina.evaluation.run_metrics import metric_of
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes

SLOWEST: Final = 5
"""Number of pods to name."""
MARGIN: Final = 0.01
"""Seconds by which a start must differ to count as later."""


def weak_points(runs: Sequence[RunRecord], compared: ProfileComparison, metrics: Sequence[str]) -> list[str]:
    """Return one sentence for each finding; the runs with pods in detail are used for those about pods."""
    return [*_figures(compared, metrics), *_pods(runs, compared.baseline)]


def _figures(compared: ProfileComparison, metrics: Sequence[str]) -> list[str]:
    said = []
    for profile in compared.profiles:
        if profile == compared.baseline:
            continue
        rows = [compared.row(profile, name) for name in metrics if metric_of(name).better != "neither"]
        worse = [f"{metric_of(row.metric).title} {against(row)}" for row in rows if row.verdict == "worse"]
        open_ = [metric_of(row.metric).title for row in rows if row.verdict is None]
        if worse:
            said.append(f"{profile} is worse than {compared.baseline} in: {'; '.join(worse)}.")
        if open_:
            said.append(f"No difference between {profile} and {compared.baseline} is shown in: {', '.join(open_)}.")
        if not worse:
            said.append(f"No figure above shows {profile} to be worse than {compared.baseline}.")
    return said


def _pods(runs: Sequence[RunRecord], baseline: str) -> list[str]:
    detailed = [run for run in runs if run.pods]
    said = []
    for run in detailed:
        started = [pod for pod in run.pods if pod.node and not pod.unknown]
        if not started:
            continue
        cold = [pod for pod in started if pod.bytes_wanted and pod.bytes_pulled >= pod.bytes_wanted]
        said.append(
            f"{run.profile}, seed {run.seed}: {len(cold):,} of {plural(len(started), 'listed pod')} that started found no "
            f"byte of their images on the node. Slowest: {_slowest(started)}."
        )
        said += _later(run, detailed, baseline)
    return said


def _slowest(pods: Sequence[PodTimes]) -> str:
    slowest = sorted(pods, key=lambda pod: (-pod.started_after, pod.pod))[:SLOWEST]
    return ", ".join(f"{pod.pod} {pod.started_after:,.1f} s ({human_bytes(pod.bytes_pulled)})" for pod in slowest)


def _later(run: RunRecord, detailed: Sequence[RunRecord], baseline: str) -> list[str]:
    """Return how many listed pods started later than under the baseline; only pods that both runs list count."""
    other = next((one for one in detailed if one.profile == baseline and one.seed == run.seed), None)
    if other is None or run.profile == baseline:
        return []
    before = {pod.pod: pod.started_after for pod in other.pods if pod.node and not pod.unknown}
    pairs = [
        (pod.started_after - before[pod.pod], pod)
        for pod in run.pods
        if pod.pod in before and pod.node and not pod.unknown
    ]
    later = [pair for pair in pairs if pair[0] > MARGIN]
    if not pairs:
        return []
    worst = sorted(later, key=lambda pair: (-pair[0], pair[1].pod))[:SLOWEST]
    names = ", ".join(f"{pod.pod} {more:,.1f} s" for more, pod in worst)
    share = f"{len(later):,} of {len(pairs):,}"
    return [
        f"{run.profile}, seed {run.seed}: of the pods that this report lists under both profiles, {share} started later "
        f"than under {baseline}" + (f", most of all {names}." if worst else ".")
    ]
