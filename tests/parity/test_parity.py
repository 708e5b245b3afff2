"""
Lamina's core answers as the real kube-scheduler did, in cases that were recorded from it.

These tests replay a sample without kube-scheduler; `make parity` replays all cases. A difference that
`known_differences` does not list fails here.
"""

from collections import Counter
from typing import Final

import pytest

from tests.parity.case_files import recordings
from tests.parity.comparison import CaseComparison
from tests.parity.parity_report import ParityReport, compare_files

SAMPLE: Final = 8
"""Every eighth case of each family, so that the suite takes seconds."""
LEAST_CASES: Final = 5000
LEAST_PER_PLUGIN: Final = 200
PLUGINS: Final = (
    "DefaultPreemption",
    "ImageLocality",
    "InterPodAffinity",
    "NodeAffinity",
    "NodeDeclaredFeatures",
    "NodePorts",
    "NodeResourcesBalancedAllocation",
    "NodeResourcesFit",
    "NodeUnschedulable",
    "NodeVolumeLimits",
    "PodTopologySpread",
    "TaintToleration",
    "VolumeBinding",
    "VolumeRestrictions",
    "VolumeZone",
)
"""All plugins of kube-scheduler's default profile that are recorded."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sample() -> list[CaseComparison]:
    return list(compare_files(recordings(), SAMPLE))


@pytest.fixture(scope="module")
def figures(sample) -> ParityReport:
    found = ParityReport()
    for one in sample:
        found.add(one)
    return found


def test_there_are_enough_cases_and_every_plugin_matters_in_enough_of_them(figures):
    assert figures.cases >= LEAST_CASES / SAMPLE
    least = LEAST_PER_PLUGIN / SAMPLE / 2  # half of the expected number: the sample is small
    assert {name: figures.by_plugin[name].cases for name in PLUGINS if figures.by_plugin[name].cases < least} == {}


def test_no_node_is_feasible_for_lamina_only(sample):
    assert [(one.family, one.number, one.unsound) for one in sample if one.unsound] == []


def test_no_node_is_feasible_for_kube_scheduler_only(sample):
    assert [(one.family, one.number, one.missing) for one in sample if one.missing] == []


def test_every_difference_is_a_known_one(sample):
    assert [(one.family, one.number, one.differences) for one in sample if one.unknown] == []


def test_totals_and_choices_are_equal_apart_from_known_differences(sample):
    compared = [one for one in sample if not one.unequal]

    assert Counter(one.totals_equal for one in compared)[False] == 0
    assert Counter(one.chosen_equal for one in compared)[False] == 0


def test_refusals_have_the_same_words_apart_from_known_differences(sample, figures):
    assert [(one.family, one.number) for one in sample if one.message_equal is False and not one.set_apart] == []
    assert figures.messages[True] > 0


def test_only_pods_with_unimplemented_requirements_are_not_compared(figures):
    assert set(figures.not_compared) <= {"InterPodAffinity"}
