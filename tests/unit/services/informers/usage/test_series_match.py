"""Which series is whose: by which labels, by which names, and what is said when nothing fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.services.informers.usage.series_match import (
    NodeDirectory,
    SeriesMatch,
    describe_unmatched,
    host_part,
    merge_matches,
    plain,
    series_owner,
)
from lamina.testing import a_node


def nodes(*names_and_more):
    return {node.name: node for node in names_and_more}


N1 = a_node("n1", addresses=["10.0.0.1", "fd00::1"], labels={"kubernetes.io/hostname": "host-1"})
N2 = a_node("n2", addresses=["10.0.0.2"])


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param({"node": "n1"}, id="node"),
        pytest.param({"nodename": "n1"}, id="nodename"),
        pytest.param({"kubernetes_node": "n1"}, id="kubernetes_node"),
        pytest.param({"instance": "n1:9100"}, id="name and port"),
        pytest.param({"instance": "n1"}, id="name alone"),
        pytest.param({"instance": "N1.:9100"}, id="capitals and a dot"),
        pytest.param({"instance": "10.0.0.1:9100"}, id="address and port"),
        pytest.param({"instance": "10.0.0.1"}, id="address alone"),
        pytest.param({"instance": "[fd00:0::1]:9100"}, id="IPv6"),
        pytest.param({"instance": "https://10.0.0.1:9100/metrics"}, id="a whole address"),
        pytest.param({"node": "host-1"}, id="host name"),
        pytest.param({"node": "exporter-x7", "kubernetes_node": "n1"}, id="the second of two names"),
    ],
)
def test_a_series_is_matched_by(labels):
    found = NodeDirectory(nodes(N1, N2)).match([series_owner(labels)])

    assert {"n1": series_owner(labels)} == found.series
    assert (("n2",), ()) == (found.unmatched_nodes, found.unmatched_series)


@pytest.mark.parametrize("label", ["node", "nodename", "kubernetes_node"])
def test_a_series_that_names_a_node_of_somewhere_else_is_a_stranger_whatever_its_address(label):
    one = series_owner({label: "other-cluster-worker", "instance": "10.0.0.1:9100"})
    found = NodeDirectory(nodes(N1, N2)).match([one], {"10.0.0.1:9100": "n1"})

    assert ({}, (one,)) == (found.series, found.unmatched_series)


def test_a_node_is_lacking_together_when_every_question_lacks_it():
    directory = NodeDirectory(nodes(N1, N2))
    by_name, by_address, odd = (
        series_owner({"node": "n1"}),
        series_owner({"instance": "10.0.0.1:9100"}),
        series_owner({"node": "x"}),
    )
    found = merge_matches([directory.match([by_name]), directory.match([by_address, odd])])

    assert SeriesMatch({"n1": by_name}, ("n2",), (odd,)) == found


def test_what_machines_call_themselves_helps_where_labels_do_not():
    one = series_owner({"instance": "172.16.5.5:9100"})
    directory = NodeDirectory(nodes(N1, N2))
    assert {} == directory.match([one]).series

    assert {"n2": one} == directory.match([one], {"172.16.5.5:9100": "n2"}).series


def test_a_name_that_two_nodes_go_by_says_nothing():
    first, second = a_node("a", addresses=["10.0.0.9"]), a_node("b", addresses=["10.0.0.9"])
    found = NodeDirectory(nodes(first, second)).match([series_owner({"instance": "10.0.0.9:9100"})])

    assert ({}, ("a", "b"), 1) == (found.series, found.unmatched_nodes, len(found.unmatched_series))


def test_a_nodes_own_name_is_nobody_elses():
    impostor = a_node("x", labels={"kubernetes.io/hostname": "n1"}, addresses=["n1"])
    one = series_owner({"node": "n1"})

    assert {"n1": one} == NodeDirectory(nodes(N1, impostor)).match([one]).series


def test_of_two_series_of_a_node_the_one_with_the_better_label_counts():
    relabelled, plain_one = series_owner({"node": "n1", "instance": "x:1"}), series_owner({"instance": "10.0.0.1:9100"})
    found = NodeDirectory(nodes(N1)).match([plain_one, relabelled])

    assert ({"n1": relabelled}, 1, ()) == (found.series, found.doubled, found.unmatched_series)


@pytest.mark.parametrize(
    ("instance", "host"),
    [
        pytest.param("h:9100", "h", id="port"),
        pytest.param("h:name", "h:name", id="no port"),
        pytest.param("::1", "::1", id="bare IPv6"),
        pytest.param("[::1]:1", "::1", id="IPv6 and port"),
        pytest.param("http://h:1/x", "h", id="scheme"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_the_host_part(instance, host):
    assert host == host_part(instance)


def test_nothing_that_fits_names_what_was_seen_and_what_was_wanted():
    directory = NodeDirectory(nodes(N1, N2))
    found = directory.match([series_owner({"instance": f"192.168.0.{n}:9100"}) for n in range(9)])
    words = describe_unmatched(found, nodes(N1, N2))

    assert 'got instance="192.168.0.0:9100"' in words
    assert "and 4 more" in words
    assert "expected n1 (10.0.0.1/fd00::1), n2 (10.0.0.2)" in words
    assert "label `node`" in words


def test_some_that_do_not_fit_are_counted_and_named():
    directory = NodeDirectory(nodes(N1, N2))
    found = directory.match([series_owner({"node": "n1"}), series_owner({"node": "evil\n\x1b[0m"})])

    assert '1 of 2 nodes are measured; no series for n2; series without a node: node="evil??[0m"' == describe_unmatched(
        found, nodes(N1, N2)
    )
    assert "" == describe_unmatched(
        directory.match([series_owner({"node": "n1"}), series_owner({"node": "n2"})]), nodes(N1, N2)
    )
    assert "returned no series" in describe_unmatched(directory.match([]), nodes(N1))


NAMES = st.sampled_from(["a", "b", "c", "10.0.0.1", "10.0.0.2", ""])


@given(st.lists(st.tuples(NAMES, NAMES, NAMES, NAMES), max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_series_never_matters_and_every_series_is_accounted_for(seen, rng):
    known = nodes(a_node("a", addresses=["10.0.0.1"]), a_node("b", addresses=["10.0.0.2"]))
    found = NodeDirectory(known).match(seen)
    shuffled = list(seen)
    rng.shuffle(shuffled)

    assert found == NodeDirectory(known).match(shuffled)
    assert len(set(seen)) == len(found.series) + len(found.unmatched_series) + found.doubled
    assert set(known) == {*found.series, *found.unmatched_nodes}


def test_a_series_without_any_of_the_labels_is_a_stranger():
    found = NodeDirectory(nodes(N1)).match([series_owner({})])

    assert "got no such label" in describe_unmatched(found, nodes(N1))
    assert "" == plain(" ")
