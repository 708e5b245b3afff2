"""PromQL: what is asked by default, what replaces it, and which matchers are taken."""

from urllib.parse import quote_plus

import pytest

from lamina.services.informers.usage.queries import Forecast, Queries, checked_matchers, promql

BY = "node, nodename, kubernetes_node, instance"


def test_cores_in_use_are_those_not_idle_and_each_counts_once():
    assert (
        f"(sum by ({BY}) (max by ({BY}, cpu) (clamp(1001 - (sum without (mode) "
        '(deriv(node_cpu_seconds_total{mode=~"idle|iowait",cluster="a"}[120s])) >= -0.1 <= 1.1), 1000, 1001)))'
        f" - 1000 * sum by ({BY}) (max by ({BY}, cpu) "
        '(1 + resets(node_cpu_seconds_total{mode="idle",cluster="a"}[120s])))) >= 0'
    ) == Queries(matchers='cluster="a"').cpu_used


def test_every_query_fits_where_proxies_take_it():
    queries = Queries(matchers='cluster="a-long-name-of-a-cluster",job="node-exporter"', forecast=Forecast())
    for expression in (queries.cpu_used, queries.memory_used):
        assert 2000 > len(quote_plus(queries.a_season_ago(expression)))


def test_bytes_in_use_are_those_not_available():
    assert f"max by ({BY}) (node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes)" == Queries().memory_used


def test_a_recording_rule_replaces_the_expression():
    queries = Queries(cpu="my:cores", memory="my:bytes")

    assert (f"max by ({BY}) (my:cores)", f"max by ({BY}) (my:bytes)") == (queries.cpu_used, queries.memory_used)


@pytest.mark.parametrize(
    ("forecast", "query"),
    [
        pytest.param(None, "", id="none"),
        pytest.param(Forecast(method="linear"), "", id="a straight line, which needs nothing more"),
        # From a day ago until ten minutes later: 86400 - 600 = 85800.
        pytest.param(Forecast(), "avg_over_time((x)[600s:30s] offset 85800s)", id="the same time a day ago"),
    ],
)
def test_a_season_ago_is_asked_for(forecast, query):
    assert query == Queries(forecast=forecast).a_season_ago("x")


@pytest.mark.parametrize(("seconds", "written"), [(900.0, "900s"), (0.5, "500ms"), (1.25, "1250ms")])
def test_durations_are_written_exactly(seconds, written):
    assert written == promql(seconds)


@pytest.mark.parametrize("text", ['cluster="a"', 'a="b", c=~"d.*"', 'a!="\\"x"'])
def test_label_matchers_are_taken(text):
    assert text == checked_matchers(text)


@pytest.mark.parametrize("text", ["", "a", "a=b", 'a="b"}', 'a="b" or vector(1)', 'a="b",', 'a="b"c="d"', '="b"'])
def test_what_is_no_label_matcher_is_refused(text):
    with pytest.raises(ValueError, match="not valid label matchers"):
        checked_matchers(text)
