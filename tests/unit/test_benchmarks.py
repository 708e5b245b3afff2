"""What is logic in the benchmarks of the live scheduler: the cluster they write, and what they make of their figures."""

import importlib
import json
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from lamina.wire.custom_resources.image_layers import decode_image_layers
from lamina.wire.custom_resources.node_layers import decode_node_layers
from lamina.wire.kube.codec import decode_node, decode_pod
from lamina.wire.kube.namespace import decode_namespace

ROOT = Path(__file__).resolve().parents[2]
LAMINA = "/apis/lamina.dev/v1alpha1"
DECODERS = {
    "/api/v1/nodes": decode_node,
    "/api/v1/pods": decode_pod,
    "/api/v1/namespaces": decode_namespace,
    f"{LAMINA}/nodelayers": decode_node_layers,
    f"{LAMINA}/imagelayers": decode_image_layers,
}
NODES, PODS, IMAGES = 12, 90, 30


@pytest.fixture
def benchmark(monkeypatch):
    """Import a module of benchmarks/, where they find one another."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module


@pytest.fixture
def cluster(benchmark):
    """A small large cluster."""
    return benchmark("_large_cluster").LargeCluster(NODES, PODS, IMAGES, 1_000_000.0)


def objects(cluster, path):
    """What a streamed list carries, each as the decoder of its kind takes it."""
    events = [json.loads(line) for line in cluster.events(path)]
    return [json.dumps(event["object"]).encode() for event in events if event["type"] == "ADDED"]


# ---------------------------------------------------------------------------------------------------- the large cluster


@pytest.mark.parametrize(
    ("path", "count"),
    [
        pytest.param("/api/v1/nodes", NODES, id="nodes"),
        pytest.param("/api/v1/pods", PODS, id="pods"),
        pytest.param("/api/v1/namespaces", 25, id="namespaces"),
        pytest.param(f"{LAMINA}/nodelayers", NODES, id="what nodes hold"),
        pytest.param(f"{LAMINA}/imagelayers", IMAGES, id="what images consist of"),
    ],
)
def test_every_object_of_the_large_cluster_can_be_read_and_is_there_once(cluster, path, count):
    written = objects(cluster, path)
    read = [DECODERS[path](data) for data in written]
    names = {(meta.get("namespace"), meta["name"]) for meta in (json.loads(data)["metadata"] for data in written)}

    assert count == len(read)
    assert count == len(names)


def test_a_streamed_list_ends_with_the_bookmark_that_says_so(cluster):
    last = [json.loads(line) for line in cluster.events("/api/v1/namespaces")][-1]

    assert last["type"] == "BOOKMARK"
    assert last["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_the_large_cluster_is_the_same_every_time(benchmark, cluster):
    again = benchmark("_large_cluster").LargeCluster(NODES, PODS, IMAGES, 1_000_000.0)

    assert all(list(cluster.events(path)) == list(again.events(path)) for path in cluster.paths)


def test_pods_of_the_large_cluster_are_as_large_as_real_ones_and_run_on_nodes_that_exist(cluster):
    written = objects(cluster, "/api/v1/pods")
    nodes = {decode_node(data).name for data in objects(cluster, "/api/v1/nodes")}
    pods = [decode_pod(data) for data in written]

    assert 4_000 < sum(map(len, written)) / PODS < 6_000
    assert {pod.node_name for pod in pods} <= nodes
    assert all(pod.started for pod in pods)
    assert len({pod.owner.kind for pod in pods}) > 1


def test_what_a_node_holds_is_described(cluster):
    described = {decode_image_layers(data).digest for data in objects(cluster, f"{LAMINA}/imagelayers")}
    reports = [decode_node_layers(data) for data in objects(cluster, f"{LAMINA}/nodelayers")]

    assert {len(report.images) for report in reports} == {IMAGES}
    assert {held.digest for report in reports for held in report.images} == described


# ---------------------------------------------------------------------------------------------------------- the figures


def test_a_rate_leaves_out_how_it_began_and_ended(benchmark):
    # A hundred in ten seconds, after a slow start and before a slow end.
    times = [-50.0, *(number / 10 for number in range(1, 99)), 500.0]

    assert benchmark("_contest").rate(times) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("contender", "expected"),
    [
        pytest.param(("kube-scheduler",), {}, id="kube-scheduler"),
        pytest.param(("lamina", "kube-default"), {}, id="Lamina with the same plugins"),
        pytest.param(("lamina", "kube-default", True), {"percentageOfNodesToScore": 100}, id="every node"),
    ],
)
def test_contenders_may_send_as_much_as_the_other_and_elect_nobody(benchmark, contender, expected):
    made = benchmark("_contest").Contender(*contender).configuration()
    common = {"clientConnection": {"qps": 10_000, "burst": 10_000}, "leaderElection": {"leaderElect": False}}

    assert made["profiles"][0]["schedulerName"] == contender[0]
    assert {**common, **expected}.items() <= made.items()
    assert ("percentageOfNodesToScore" in made) == ("percentageOfNodesToScore" in expected)


def test_a_profile_of_ours_keeps_its_plugins(benchmark):
    made = benchmark("_contest").Contender("lamina", "lamina-balanced").configuration()

    assert [one["name"] for one in made["profiles"][0]["plugins"]["multiPoint"]["enabled"]] == ["LayerLocality"]


def a_trial(contest, rate, cpu, events=100):
    return contest.Trial(
        pods=100,
        pods_per_second=rate,
        with_events=rate / 2,
        cpu_us=cpu,
        cpu_us_after_first=cpu / 2,
        server_us=1.0,
        etcd_us=1.0,
        own_us=1.0,
        first_after=1.0,
        events=events,
    )


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("", {}, id="all rounds"),
        pytest.param("large", {"large": 0}, id="with its usual number of pairs"),
        pytest.param("large:2, churn", {"large": 2, "churn": 0}, id="with another number of pairs"),
        pytest.param("balanced", {"balanced": 0}, id="the trials of Lamina alone"),
    ],
)
def test_rounds_of_the_pair_benchmark_can_be_chosen(benchmark, monkeypatch, words, expected):
    monkeypatch.setenv("LAMINA_ROUNDS", words)

    assert expected == benchmark("scheduler_pair").chosen()


@pytest.mark.parametrize("word", ["larg", "large:", "large:two", "large:-1", "large:0"])
def test_a_round_that_does_not_exist_ends_the_benchmark_with_the_names_of_those_that_do(benchmark, monkeypatch, word):
    monkeypatch.setenv("LAMINA_ROUNDS", word)

    with pytest.raises(SystemExit, match=r"LAMINA_ROUNDS: '.*' is not a round; choose from all_nodes, balanced, churn"):
        benchmark("scheduler_pair").chosen()


def test_only_chosen_rounds_are_run(benchmark):
    pair = benchmark("scheduler_pair")
    rounds = (pair.Round("large", 5, 2_000), pair.Round("churn", 1, 2_000))

    assert [("churn", 3)] == [(one.label, one.pairs) for one in pair.narrowed(rounds, {"churn": 3})]
    assert [("large", 5), ("churn", 1)] == [(one.label, one.pairs) for one in pair.narrowed(rounds, {})]


def test_a_ratio_is_the_median_of_the_pairs_with_the_worst_and_the_best(benchmark):
    contest, pair = benchmark("_contest"), benchmark("scheduler_pair")
    rates = [(200.0, 100.0), (300.0, 100.0), (100.0, 100.0)]
    pairs = [pair.Pair("large", a_trial(contest, mine, 1.0), a_trial(contest, theirs, 4.0)) for mine, theirs in rates]
    other = pair.Pair("small", a_trial(contest, 1.0, 1.0), a_trial(contest, 9.0, 1.0))

    found = pair.summary([*pairs, other], "large", "")

    assert {"pairs": 3, "throughput_ratio": 2.0, "throughput_ratio_spread": [1.0, 3.0]}.items() <= found.items()
    assert {"cpu_ratio": 0.25, "lamina_pods_per_second": 200.0, "kube_cpu_us": 4.0}.items() <= found.items()


def test_events_that_never_landed_are_counted(benchmark):
    contest, pair = benchmark("_contest"), benchmark("scheduler_pair")
    pairs = [pair.Pair("large", a_trial(contest, 1.0, 1.0), a_trial(contest, 1.0, 1.0, events=97))]

    found = pair.summary(pairs, "large", "_5")

    assert (found["lamina_events_missing_5"], found["kube_events_missing_5"]) == (0, 3)


def test_a_page_of_metrics_is_read_by_name_and_labels(benchmark):
    page = '# HELP cache What it holds.\ncache{type="pods"} 15000.0\nup 1.0\n'

    assert benchmark("cold_start").counts(page) == {'cache{type="pods"}': 15000.0, "up": 1.0}


def test_a_scripted_server_streams_what_the_cluster_has(benchmark, cluster):
    """Nothing else is written of pods before somebody asks than what they have in common."""
    server = benchmark("_scripted_server").Server.events
    stand = SimpleNamespace(written={"/api/v1/namespaces": [b"one", b"two"]}, cluster=cluster)

    assert list(server(stand, "/api/v1/namespaces")) == [b"one", b"two"]
    assert list(islice(server(stand, "/api/v1/pods"), 3)) == list(islice(cluster.events("/api/v1/pods"), 3))


# ------------------------------------------------------------------------------------------------------ what reports weigh


def test_heartbeats_come_as_often_as_agents_promise(benchmark):
    beats = benchmark("node_layers_objects").beats(600, 1.0)

    assert sorted(beats) == beats
    # Ten minutes each, give or take a fifth: none within the first eight, and one a second of 600 nodes after that.
    assert 480.0 <= beats[0]
    assert 6 * 600 * 0.75 <= len(beats) <= 6 * 600


def test_the_reports_that_are_weighed_name_each_image_as_a_runtime_does(benchmark):
    reports = benchmark("node_layers_objects").Reports(2)
    status = reports.status(1, 7)["status"]
    held = {image.digest for image in reports.cluster.held_by(1)}

    assert held == {image["digest"] for image in status["images"]}
    assert (7, len(held)) == (status["sequence"], status["imageCount"])
    assert all(image["names"][0].startswith("registry.example.com/shop/") for image in status["images"])


def test_losses_to_an_extender_are_taken_within_each_round(benchmark):
    contest, pair = benchmark("_contest"), benchmark("extender_pair")
    rates = [(400.0, 200.0, 160.0, 120.0), (100.0, 100.0, 50.0, 40.0), (100.0, 100.0, 90.0, 90.0)]
    rounds = [pair.Round(1_000, *(a_trial(contest, rate, 1.0) for rate in each), 9.0, 10.0) for each in rates]

    found = pair.summary(rounds, "_x")

    assert {
        "throughput_loss_x": 0.6,
        "batching_off_loss_x": 0.0,
        "asking_loss_x": 0.2,
        "beyond_batching_x": 0.4,
        "loss_vs_null_x": 0.2,
        "loss_vs_null_x_spread": [0.0, 0.25],
        "extender_cpu_us_in_all_x": 9.0,
    }.items() <= found.items()


def test_one_who_says_nothing_answers_each_question_once_in_however_many_pieces_it_comes(benchmark):
    null = benchmark("_null_extender")
    wire = b"POST /x HTTP/1.1\r\ncontent-length: 5\r\n\r\nabcde" * 2
    sent = []
    # As uvloop's: one that does not say that it is a transport.
    transport = type("Wire", (), {"write": lambda _, data: sent.append(data)})()
    protocol = null.NullProtocol()
    protocol.connection_made(transport)

    for place in range(len(wire)):
        protocol.data_received(wire[place : place + 1])

    assert [null.ANSWER] * 2 == sent


def test_what_a_short_answer_gains_is_taken_within_each_round(benchmark):
    contest, reply = benchmark("_contest"), benchmark("extender_reply")
    found = {
        kind: [a_trial(contest, rate, 1.0) for rate in rates]
        for kind, rates in {"nobody": (90.0, 80.0), "sparse": (40.0, 20.0), "best": (50.0, 30.0)}.items()
    }

    told = reply.summary(found, "_x")

    assert {
        "rounds_x": 2,
        "gain_x": 0.375,
        "gain_x_spread": [0.25, 0.5],
        "pods_per_second_best_x": 40.0,
    }.items() <= told.items()


# -------------------------------------------------------------------------------------------------- the façade's clients


def test_a_watcher_counts_every_event_once_wherever_its_bytes_are_divided(benchmark):
    condition = {"conditions": [{"type": "Ready", "status": "True"}]}
    line = json.dumps({"type": "ADDED", "object": {"status": condition}}, separators=(",", ":")).encode() + b"\n"
    chunk = b"%x\r\n%b\r\n" % (2 * len(line), 2 * line)
    stream = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + 2 * chunk

    counted = set()
    for cut in range(len(stream)):
        watch = benchmark("_facade_client").WatchConnection(b"")
        for piece in (stream[:cut], stream[cut:]):
            if piece:
                watch.data_received(piece)
        counted.add(watch.count)

    assert {4} == counted
