"""
Reads the promise of a controller from its pod, its namespace and the plugin's arguments.

The first source that states a valid value wins:

    SLO                   annotation `slo` → label → the namespace's annotation `slo` → argument → 0.8
    importance            label → the namespace's annotation `lamina.dev/importance` → argument → the SLO
    approach              annotation `qosMeasuring` → argument → by owner: none independent, Job aggregate, average
    overhead limit        annotation `acceptablePreemptionOverhead` → argument → 1; never above 1 - SLO

An invalid value is skipped, and a message names it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from lamina.model.plain import shown
from lamina.model.pod import Pod
from lamina.qos.owner_directory import ControllerFacts
from lamina.qos.promise import DEFAULT_SLO, ControllerKey, Promise, QosApproach

CONTROLLER: Final = "controller"
SLO: Final = "slo"
MEASURING: Final = "qosMeasuring"
OVERHEAD: Final = "acceptablePreemptionOverhead"
ANNOTATIONS: Final = frozenset({CONTROLLER, SLO, MEASURING, OVERHEAD})
"""Annotations of pods that are read; namespaces can have the SLO as well."""
NAMESPACE_IMPORTANCE: Final = "lamina.dev/importance"
MOST_IMPORTANT: Final = 1e12
"""Largest importance; the smallest is its negative."""
LONGEST_NAME: Final = 253
"""Most characters of a controller's name, as of names in the API."""
APPROACHES: Final = ", ".join(QosApproach)


class PromiseDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of the plugin that concern promises."""

    slo: float = DEFAULT_SLO
    importance: float | None = None
    """None: the SLO is the importance, as in the original plugin."""
    approach: QosApproach | None = None
    """None: the kind of the owner decides."""
    overhead_limit: float = 1.0
    slo_label: str = "lamina.dev/slo"
    """Pod label with an SLO; empty: none."""
    importance_label: str = "lamina.dev/importance"
    """Pod label with an importance; empty: none."""


class ResolvedPromise(NamedTuple):
    """The result of `resolve_promise`."""

    controller: ControllerKey
    promise: Promise
    problems: tuple[str, ...]
    """One line for each invalid value: what is wrong, where, and what is used instead."""


class Written(NamedTuple):
    """One place where a value may be written."""

    place: str
    text: str | None


def resolve_promise(
    pod: Pod, facts: ControllerFacts, namespace: Mapping[str, str], defaults: PromiseDefaults
) -> ResolvedPromise:
    """Return a pod's controller and its promise. *namespace* are the annotations of the pod's namespace."""
    problems: list[str] = []
    where = f"pod {pod.key}"
    around = f"namespace {pod.namespace}: annotation"
    slo = _share(
        [
            Written(f"{where}: annotation {SLO}", pod.annotations.get(SLO)),
            _label(pod, where, defaults.slo_label),
            Written(f"{around} {SLO}", namespace.get(SLO)),
        ],
        defaults.slo,
        problems,
    )
    importance = _importance(
        [
            _label(pod, where, defaults.importance_label),
            Written(f"{around} {NAMESPACE_IMPORTANCE}", namespace.get(NAMESPACE_IMPORTANCE)),
        ],
        slo if defaults.importance is None else defaults.importance,
        problems,
    )
    limit = _share(
        [Written(f"{where}: annotation {OVERHEAD}", pod.annotations.get(OVERHEAD))], defaults.overhead_limit, problems
    )
    approach = _approach(
        Written(f"{where}: annotation {MEASURING}", pod.annotations.get(MEASURING)), facts, defaults, problems
    )
    controller = _controller(
        Written(f"{where}: annotation {CONTROLLER}", pod.annotations.get(CONTROLLER)), facts, problems
    )
    return ResolvedPromise(controller, Promise(slo, importance, approach, min(1 - slo, limit)), tuple(problems))


def default_approach(facts: ControllerFacts) -> QosApproach:
    """Return the approach of a controller that states none."""
    if not facts.owned:
        return QosApproach.INDEPENDENT
    return QosApproach.AGGREGATE if facts.of_job else QosApproach.AVERAGE


def _controller(source: Written, facts: ControllerFacts, problems: list[str]) -> ControllerKey:
    if not source.text:
        return facts.key
    if len(source.text) <= LONGEST_NAME and source.text.isprintable():
        return ControllerKey(facts.key.namespace, "", source.text)
    expected = f"one line of at most {LONGEST_NAME} printable characters"
    problems.append(f"{source.place}: {shown(source.text)} is not {expected}; {facts.key.name} is used instead")
    return facts.key


def _label(pod: Pod, where: str, key: str) -> Written:
    return Written(f"{where}: label {key}", pod.labels.get(key) if key else None)


def _share(sources: Iterable[Written], default: float, problems: list[str]) -> float:
    return _number(sources, default, problems, (0.0, 1.0), "a number from 0 to 1")


def _importance(sources: Iterable[Written], default: float, problems: list[str]) -> float:
    limits = (-MOST_IMPORTANT, MOST_IMPORTANT)
    return _number(sources, default, problems, limits, f"a number from {-MOST_IMPORTANT:g} to {MOST_IMPORTANT:g}")


def _number(
    sources: Iterable[Written], default: float, problems: list[str], limits: tuple[float, float], expected: str
) -> float:
    """Return the first valid number; *default* if there is none."""
    wrong: list[Written] = []
    found = default
    for source in sources:
        if source.text is None:
            continue
        number = _parsed(source.text)
        if math.isfinite(number) and limits[0] <= number <= limits[1]:
            found = number
            break
        wrong.append(source)
    problems += [f"{one.place}: {shown(one.text)} is not {expected}; {found:g} is used instead" for one in wrong]
    return found


def _parsed(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _approach(source: Written, facts: ControllerFacts, defaults: PromiseDefaults, problems: list[str]) -> QosApproach:
    found = defaults.approach or default_approach(facts)
    if source.text is None:
        return found
    if source.text in set(QosApproach):
        return QosApproach(source.text)
    problems.append(f"{source.place}: {shown(source.text)} is not one of {APPROACHES}; {found} is used instead")
    return found
