"""Promises come from annotations, labels, the namespace and the arguments, in this order."""

import pytest

from lamina.model.pod import Owner
from lamina.qos.owner_directory import OwnerDirectory
from lamina.qos.promise import QosApproach
from lamina.qos.promise_sources import PromiseDefaults, resolve_promise
from lamina.testing.builders import a_pod

JOB = Owner("Job", "sums")
SET = Owner("ReplicaSet", "web-1")


def resolved(*, annotations=None, labels=None, owner=SET, namespace=None, defaults=None):
    pod = a_pod("p1", annotations=annotations, labels=labels, owner=owner)
    return resolve_promise(pod, OwnerDirectory().controller_of(pod), namespace or {}, defaults or PromiseDefaults())


@pytest.mark.parametrize(
    ("sources", "slo"),
    [
        pytest.param({}, 0.8, id="nothing"),
        pytest.param({"annotations": {"slo": "0.95"}}, 0.95, id="annotation"),
        pytest.param({"labels": {"lamina.dev/slo": "0.7"}}, 0.7, id="label"),
        pytest.param({"namespace": {"slo": "0.6"}}, 0.6, id="namespace"),
        pytest.param({"defaults": PromiseDefaults(slo=0.3)}, 0.3, id="argument"),
        pytest.param(
            {"annotations": {"slo": "1"}, "labels": {"lamina.dev/slo": "0.7"}, "namespace": {"slo": "0.6"}},
            1.0,
            id="the pod's annotation wins",
        ),
    ],
)
def test_the_slo(sources, slo):
    found = resolved(**sources)

    assert found.promise.slo == slo
    assert found.promise.importance == slo
    assert found.problems == ()


@pytest.mark.parametrize(
    ("sources", "importance"),
    [
        pytest.param({"labels": {"lamina.dev/importance": "7"}}, 7.0, id="label"),
        pytest.param({"namespace": {"lamina.dev/importance": "-3"}}, -3.0, id="namespace"),
        pytest.param({"defaults": PromiseDefaults(importance=2)}, 2.0, id="argument"),
    ],
)
def test_importance_can_differ_from_the_slo(sources, importance):
    assert resolved(**sources).promise.importance == importance


@pytest.mark.parametrize(
    ("sources", "approach"),
    [
        pytest.param({"owner": None}, QosApproach.INDEPENDENT, id="no owner"),
        pytest.param({"owner": JOB}, QosApproach.AGGREGATE, id="Job"),
        pytest.param({"owner": Owner("StatefulSet", "db")}, QosApproach.AVERAGE, id="StatefulSet"),
        pytest.param({"annotations": {"qosMeasuring": "concurrent"}}, QosApproach.CONCURRENT, id="annotation"),
        pytest.param(
            {"owner": JOB, "defaults": PromiseDefaults(approach=QosApproach.AVERAGE)},
            QosApproach.AVERAGE,
            id="argument",
        ),
    ],
)
def test_the_approach(sources, approach):
    assert resolved(**sources).promise.approach is approach


@pytest.mark.parametrize(
    ("annotations", "limit"),
    [
        pytest.param({"slo": "0.75"}, 0.25, id="never above 1 - SLO"),
        pytest.param({"slo": "0.75", "acceptablePreemptionOverhead": "0.05"}, 0.05, id="annotation"),
    ],
)
def test_the_overhead_limit(annotations, limit):
    assert resolved(annotations=annotations).promise.overhead_limit == pytest.approx(limit)


def test_the_controller_annotation_groups_pods_of_a_namespace():
    assert str(resolved(annotations={"controller": "shop"}).controller) == "shop"
    assert str(resolved(annotations={"controller": "x" * 253}).controller) == "x" * 253
    assert str(resolved().controller) == "web-1"
    assert str(resolved(annotations={"controller": "web\nforged"}).controller) == "web-1"


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        pytest.param(
            {"annotations": {"slo": "high"}},
            "pod default/p1: annotation slo: 'high' is not a number from 0 to 1; 0.8 is used instead",
            id="no number",
        ),
        pytest.param(
            {"annotations": {"slo": "95"}, "namespace": {"slo": "0.9"}},
            "pod default/p1: annotation slo: '95' is not a number from 0 to 1; 0.9 is used instead",
            id="a percentage",
        ),
        pytest.param(
            {"labels": {"lamina.dev/importance": "nan"}},
            "pod default/p1: label lamina.dev/importance: 'nan' is not a number from -1e+12 to 1e+12; "
            "0.8 is used instead",
            id="not a number",
        ),
        pytest.param(
            {"labels": {"lamina.dev/importance": "1e13"}, "namespace": {"lamina.dev/importance": "-1e12"}},
            "pod default/p1: label lamina.dev/importance: '1e13' is not a number from -1e+12 to 1e+12; "
            "-1e+12 is used instead",
            id="too important",
        ),
        pytest.param(
            {"annotations": {"controller": "web\nforged"}},
            "pod default/p1: annotation controller: 'web\\nforged' is not one line of at most 253 printable characters; "
            "web-1 is used instead",
            id="a controller of two lines",
        ),
        pytest.param(
            {"annotations": {"controller": "x" * 254}},
            f"pod default/p1: annotation controller: '{'x' * 57}...' is not one line of at most 253 printable characters; "
            "web-1 is used instead",
            id="a controller with a long name",
        ),
        pytest.param(
            {"namespace": {"slo": ""}},
            "namespace default: annotation slo: '' is not a number from 0 to 1; 0.8 is used instead",
            id="empty",
        ),
        pytest.param(
            {"annotations": {"qosMeasuring": "mean"}},
            "pod default/p1: annotation qosMeasuring: 'mean' is not one of independent, average, concurrent, aggregate; "
            "average is used instead",
            id="unknown approach",
        ),
    ],
)
def test_an_invalid_value_is_skipped_and_named(sources, problem):
    assert resolved(**sources).problems == (problem,)
