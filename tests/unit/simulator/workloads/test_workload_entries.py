"""Catalogs and generated pods in scenario files, and what else a pod may say there."""

from pathlib import Path

import pytest

from lamina.model.digest import digest_of
from lamina.model.errors import InputError
from lamina.model.image import Image, Layer, Platform
from lamina.model.pod import Owner, SpreadConstraint
from lamina.model.resources import amounts
from lamina.model.selectors import LabelSelector
from lamina.simulator.workloads import Scenario, load_scenario
from lamina.wire.catalog_file import encode_catalog

NODES = "nodes: [{name: n, count: 10, cpu: 4, memory: 16Gi}]\n"
WORKLOAD = """\
workload:
  pods: 2000
  arrivals: {every: 10s}
  duration: {mean: 5m}
  cpu: [{amount: 500m}, {amount: 1, share: 2}]
"""


def an_image(name: str, *layers: str, platform: Platform | None = None) -> Image:
    made = tuple(Layer(digest_of(layer.encode()), 1000) for layer in layers)
    return Image(digest_of(f"{name} {platform}".encode()), made, (name,), platform or Platform())


WEB, API = an_image("registry.example/web:1", "base", "web"), an_image("registry.example/api:1", "base", "api")
ON_ARM = an_image("registry.example/arm:1", "arm", platform=Platform("linux", "arm64"))


@pytest.fixture
def load(tmp_path):
    """Write a catalog of three images and files by name; load the first of them."""
    (tmp_path / "images.jsonl.gz").write_bytes(encode_catalog([WEB, API, ON_ARM], "images.jsonl.gz"))

    def load(seed: int = 0, **files: str) -> Scenario:
        for name, text in files.items():
            (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        return load_scenario(Path(tmp_path) / f"{next(iter(files))}.yaml", seed)

    return load


@pytest.fixture
def told(load, tmp_path):
    """Load what cannot be loaded; return the message without the folder."""

    def told(**files: str) -> str:
        with pytest.raises(InputError) as caught:
            load(**files)
        return str(caught.value).replace(f"{tmp_path}/", "")

    return told


# --------------------------------------------------------------------------------------------------------- catalogs


def test_images_of_a_catalog_are_used_by_name(load):
    scenario = load(
        main="""
catalog: images.jsonl.gz
images: {'local:1': {mine: 5MB}}
nodes: [{name: n1, cpu: 4, memory: 16Gi, holds: ['registry.example/web:1']}]
pods:
- {name: p, images: ['registry.example/api:1', 'local:1']}
"""
    )

    # The one for another platform is not for these nodes.
    assert [WEB.digest, API.digest, digest_of(b"image docker.io/library/local:1")] == [
        image.digest for image in scenario.images
    ]
    assert (WEB,) == scenario.nodes[0].holds


def test_an_image_may_be_asked_for_by_digest(load):
    pinned = f"registry.example/web@{WEB.digest}"
    scenario = load(main=f"catalog: images.jsonl.gz\n{NODES}pods: [{{name: p, image: '{pinned}'}}]\n")

    assert (pinned,) == scenario.arrivals[0].pod.images


def test_a_generated_catalog_is_the_same_in_every_run(load):
    text = "catalog: {generate: {images: 50, seed: 3}}\n" + NODES

    assert 50 == len(load(main=text).images)
    assert load(1, main=text).images == load(2, main=text).images
    assert load(main=text).images != load(main=text.replace("seed: 3", "seed: 4")).images


def test_catalogs_of_several_files_are_joined(load, tmp_path):
    third = an_image("registry.example/third:1", "base", "third")
    (tmp_path / "more.jsonl").write_bytes(encode_catalog([WEB, third], "more.jsonl"))
    scenario = load(main="include: [other.yaml]\ncatalog: images.jsonl.gz\n" + NODES, other="catalog: more.jsonl\n")

    assert [WEB, third, API] == list(scenario.images)


def test_a_catalog_is_read_once_however_many_files_name_it(load):
    scenario = load(
        main="include: [other.yaml]\ncatalog: images.jsonl.gz\n" + NODES, other="catalog: images.jsonl.gz\n"
    )

    assert [WEB, API] == list(scenario.images)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            "catalog: image.jsonl.gz\n",
            "main.yaml:1: catalog: there is no such file; did you mean 'images.jsonl.gz'?",
            id="a file that is not there",
        ),
        pytest.param("catalog: /x.jsonl\n", "main.yaml:1: catalog: must be relative to this file", id="absolute"),
        pytest.param("catalog: main.yaml\n", "main.yaml:1: is not a catalog; the first line", id="no catalog"),
        pytest.param(
            "catalog: images.jsonl.gz\nimages: {'registry.example/web:1': {L: 5}}\n",
            "main.yaml:2: images['registry.example/web:1']: is in the catalog with other layers; leave it out",
            id="listed with other layers",
        ),
        pytest.param(
            "catalog: images.jsonl.gz\npods: [{name: p, image: 'registry.example/arm:1'}]\n",
            "main.yaml:2: pods[0].image: image 'registry.example/arm:1' is there for linux/arm64 only, "
            "and nodes are linux/amd64",
            id="for another platform",
        ),
        pytest.param(
            "catalog: images.jsonl.gz\npods: [{name: p, image: 'registry.example/wbe:1'}]\n",
            "main.yaml:2: pods[0].image: there is no image 'registry.example/wbe:1'; "
            "did you mean 'registry.example/web:1'?",
            id="no such image",
        ),
        pytest.param(
            "catalog: {generate: {images: 600}}\npods: [{name: p, image: 'registry.example/app-01:99'}]\n",
            "main.yaml:2: pods[0].image: there is no image 'registry.example/app-01:99'; did you mean "
            "'registry.example/app-01:",
            id="no such version, of very many",
        ),
        pytest.param(
            "catalog: {generat: 5}\npods: [{name: p, image: 'registry.example/app-01:1'}]\n",
            "main.yaml:1: catalog.generat: unknown field 'generat'; did you mean 'generate'?",
            id="misspelt",
        ),
        pytest.param("catalog: [a]\n", "main.yaml:1: catalog: expected ", id="a list"),
        pytest.param(
            "catalog: {generate: {images: 0}}\n",
            "main.yaml:1: catalog.generate.images: must be at least 1, found 0",
            id="no images",
        ),
    ],
)
def test_what_is_wrong_with_a_catalog_is_told_once(told, text, words):
    assert told(main=text + NODES).startswith(words)
    assert 1 == len(told(main=text + NODES).splitlines())


def test_catalogs_that_contradict_each_other_are_told(told, tmp_path):
    other = Image(digest_of(b"other"), (Layer(digest_of(b"base"), 999),), ("registry.example/other:1",))
    (tmp_path / "more.jsonl").write_bytes(encode_catalog([other], "more.jsonl"))

    assert (
        f"main.yaml:2: catalog: layer {digest_of(b'base')[:19]} has a size of 1000 here and a size of 999 in "
        "other.yaml:1; keep one of them"
    ) == told(main="include: [other.yaml]\ncatalog: images.jsonl.gz\n" + NODES, other="catalog: more.jsonl\n")


# ------------------------------------------------------------------------------------------------------ what pods say


def test_pods_have_labels_annotations_owners_and_spread(load):
    scenario = load(
        main="""
images: {'web:1': {L: 5MB}}
nodes: [{name: n1, cpu: 4, memory: 16Gi}]
pods:
- name: a
  image: web:1
  labels: {app: web}
  annotations: {note: hello}
  owner: web
  spread:
  - {key: kubernetes.io/hostname, maxSkew: 2, when: ScheduleAnyway, labels: {tier: front, app: web}}
  - {key: zone}
- {name: b, image: web:1, owner: web}
- {name: c, image: web:1}
"""
    )
    a, b, c = (arrival.pod for arrival in scenario.arrivals)

    assert ({"app": "web"}, {"note": "hello"}, Owner("ReplicaSet", "web", "web")) == (a.labels, a.annotations, a.owner)
    assert (a.owner, None) == (b.owner, c.owner)
    assert (
        SpreadConstraint(
            2, "kubernetes.io/hostname", "ScheduleAnyway", LabelSelector((("app", "web"), ("tier", "front")))
        ),
        SpreadConstraint(1, "zone", "DoNotSchedule", LabelSelector((("app", "web"),))),
    ) == a.spread
    assert ({}, {}, ()) == (c.labels, c.annotations, c.spread)


# --------------------------------------------------------------------------------------------------------- workloads


def test_a_workload_is_drawn_from_the_seed(load):
    text = f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}"

    assert load(1, main=text) == load(1, main=text)
    assert load(1, main=text).arrivals != load(2, main=text).arrivals


def test_pods_of_a_workload_ask_for_cpu_and_memory_in_proportion(load):
    scenario = load(main=f"images: {{'web:1': {{L: 5MB}}}}\n{NODES}{WORKLOAD}  memoryPerCpu: 3Gi\n  scheduler: mine\n")

    assert {amounts({"cpu": "500m", "memory": "1536Mi"}), amounts({"cpu": 1, "memory": "3Gi"})} == {
        arrival.pod.requests for arrival in scenario.arrivals
    }
    assert {"mine"} == {arrival.pod.scheduler_name for arrival in scenario.arrivals}


def test_an_application_is_a_repository_and_its_versions_are_in_catalog_order(load):
    scenario = load(
        main=f"""
layers: {{L: 5MB, M: 6MB, N: 7MB}}
images: {{'a.example/web:2': [L], 'b.example/web:1': [M], 'a.example/web:1': [N]}}
{NODES}{WORKLOAD}  updates: 1
"""
    )
    asked: dict[str, list[str]] = {}
    for arrival in scenario.arrivals:
        asked.setdefault(arrival.pod.labels["app"], []).append(arrival.pod.images[0])

    assert {
        "web": ["a.example/web:2", "a.example/web:1"],
        "web-2": ["b.example/web:1"],
    } == {name: list(dict.fromkeys(images)) for name, images in asked.items()}


@pytest.mark.parametrize("bursts", ["", "  bursts: {of: [2, 6]}\n"], ids=["one by one", "in bursts"])
def test_a_load_is_the_share_of_cpu_that_is_asked_for(load, bursts):
    """Ten nodes with 4 cpu each; what pods ask for, each as long as it runs, is 60 % of that."""
    text = f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}{bursts}".replace("every: 10s", "load: 0.6")
    arrivals = load(main=text.replace("pods: 2000", "pods: 8000")).arrivals
    asked = sum(dict(arrival.pod.requests)["cpu"] * arrival.duration for arrival in arrivals)

    assert 0.6 == pytest.approx(asked / (10 * 4000 * arrivals[-1].at), rel=0.06)


def test_listed_pods_and_drawn_ones_come_together_in_order_and_can_be_removed(load):
    scenario = load(
        main=f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}  at: 5s\n"
        "pods: [{name: p, count: 3, every: 20s, image: 'registry.example/web:1'}]\n"
        "events: [{at: 10h, remove: w1999}]\n"
    )
    times = [arrival.at for arrival in scenario.arrivals]

    assert (2003, sorted(times)) == (len(times), times)
    assert ["w1999"] == [happening.name for happening in scenario.events]


def test_the_including_file_has_the_last_word_about_the_workload(load):
    other = f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}"
    changed = WORKLOAD.replace("pods: 2000", "pods: 7")

    assert 7 == len(load(main="include: [other.yaml]\n" + changed, other=other).arrivals)
    assert 0 == len(load(main="include: [other.yaml]\nworkload: null\n", other=other).arrivals)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(("every: 10s", "evry: 10s"), "workload.arrivals.evry: unknown field", id="misspelt"),
        pytest.param(("{every: 10s}", "{}"), "workload.arrivals: say exactly one of every and load", id="no rate"),
        pytest.param(
            ("every: 10s", "every: 10s, load: 1"),
            "workload.arrivals: say exactly one of every and load",
            id="two rates",
        ),
        pytest.param(("every: 10s", "every: 0"), "workload.arrivals.every: must be more than 0", id="no gaps"),
        pytest.param(("every: 10s", "load: 0"), "workload.arrivals.load: must be more than 0", id="no load"),
        pytest.param(
            ("every: 10s", "every: 40000h"),
            "workload.arrivals: the pods would come over 3333333 days; at most ten years are simulated",
            id="for ever",
        ),
        pytest.param(("mean: 5m", "mean: 0"), "workload.duration.mean: must be more than 0", id="no time at all"),
        pytest.param(
            ("mean: 5m", "mean: 5m, spread: normal"), "workload.duration.spread: 'normal' is not allowed", id="a spread"
        ),
        pytest.param(("amount: 500m", "amount: x"), "workload.cpu[0].amount: 'x' is not a quantity", id="no quantity"),
        pytest.param(
            ("amount: 1", "amount: 8"),
            "workload.cpu[1].amount: the pod asks for 8 cpu, but the largest node, n1, has 4",
            id="a pod too large",
        ),
        pytest.param(
            ("  pods", "  memoryPerCpu: 20Gi\n  pods"),
            "workload.memoryPerCpu: the pod asks for 20Gi memory, but the largest node, n1, has 16Gi",
            id="too much memory",
        ),
        pytest.param(("share: 2", "share: 0"), "workload.cpu[1].share: must be more than 0", id="no share"),
        pytest.param(("pods: 2000", "pods: 0"), "workload.pods: must be at least 1", id="no pods"),
        pytest.param(
            ("  pods", "  bursts: {of: [5, 2]}\n  pods"),
            "workload.bursts.of: the smaller number comes first",
            id="bursts the wrong way round",
        ),
        pytest.param(("  pods", "  bursts: {of: [5]}\n  pods"), "workload.bursts.of: must have at least 2", id="half"),
        pytest.param(
            ("  pods", "  updates: 9\n  pods"),
            "workload.updates: the images have 0 next versions in all; write at most that",
            id="nothing to update to",
        ),
        pytest.param(
            ("  pods", "  name: n\n  popularity: {zipf: -1}\n  pods"), "workload.popularity.zipf: must be", id="zipf"
        ),
        pytest.param(
            ("  pods", "  popularity: {zipf: 1, weights: [1]}\n  pods"),
            "workload.popularity: say zipf or weights, not both",
            id="two kinds of popularity",
        ),
        pytest.param(
            ("  pods", "  popularity: {weights: [0, 0]}\n  pods"),
            "workload.popularity.weights: at least one must be more than 0",
            id="no application is popular",
        ),
        pytest.param(
            ("  pods", "  popularity: {weights: [1, 2, 3]}\n  pods"),
            "workload.popularity.weights: the images are of 2 applications; write at most that many",
            id="a weight too many",
        ),
        pytest.param(
            ("  pods", "  diurnal: {period: 0}\n  pods"), "workload.diurnal.period: must be more than 0", id="no day"
        ),
        pytest.param(
            ("  pods", "  diurnal: {depth: 1.5}\n  pods"), "workload.diurnal.depth: must be at most 1", id="too deep"
        ),
        pytest.param(
            ("every: 10s}", "load: 1}\n  serverless: {requests: 9}"),
            "workload.arrivals.load: requests make no load that could be known before; say every",
            id="a load of requests",
        ),
        pytest.param(
            ("  pods", "  serverless: {requests: 1, concurrency: 0}\n  pods"),
            "workload.serverless.concurrency: must be at least 1",
            id="nothing at once",
        ),
        pytest.param(
            ("  pods", "  rollouts: {of: [2, 3], every: 1m}\n  pods"),
            "workload.rollouts: no image has a next version to roll to; name a catalog with versions",
            id="nothing to roll to",
        ),
        pytest.param(
            ("workload:", "pods: [{name: w7, image: 'registry.example/web:1'}]\nworkload:"),
            "workload.name: there is a second pod 'w7', the first is in main.yaml:3",
            id="a name that is taken",
        ),
        pytest.param(
            ("catalog: images.jsonl.gz", "about: nothing"),
            "workload: there is no image to run; name a catalog, or list images",
            id="no images",
        ),
    ],
)
def test_what_is_wrong_with_a_workload_is_told_with_its_field(told, change, words):
    message = told(main=f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}".replace(*change))

    assert 1 == len(message.splitlines())
    assert words in message


@pytest.mark.parametrize(
    ("rollouts", "words"),
    [
        pytest.param("of: [3, 2], every: 1m", "of: the smaller number comes first", id="the wrong way round"),
        pytest.param("of: [2, 3], every: 0", "every: must be more than 0", id="all at once"),
        pytest.param("of: [2, 3], every: 1m, batches: 0", "batches: must be more than 0", id="in no steps"),
        pytest.param("every: 1m", "of: required field is missing", id="of what"),
        pytest.param(
            "of: [1, 1000], every: 1m, deployments: 1001",
            "deployments: too many: all together may have at most 1000000 replicas",
            id="too many",
        ),
        pytest.param(
            "of: [2, 3], every: 1000h, count: 100",
            " the rollouts would go on over 4167 days; at most ten years",
            id="ages",
        ),
    ],
)
def test_what_is_wrong_with_rollouts_is_told(told, rollouts, words):
    text = f"catalog: {{generate: {{images: 60}}}}\n{NODES}{WORKLOAD}  rollouts: {{{rollouts}}}\n"

    assert words in told(main=text)
    assert 1 == len(told(main=text).splitlines())


def test_a_workload_may_have_a_time_of_day_weights_and_requests_instead_of_pods(load):
    scenario = load(
        main=f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}"
        "  diurnal: {period: 1h}\n  popularity: {weights: [0, 1]}\n  serverless: {requests: 500, idle: 1m}\n"
    )

    assert {"api"} == {arrival.pod.labels["app"] for arrival in scenario.arrivals}
    assert 10 < len(scenario.arrivals) < 500
    assert all(arrival.duration > 60.0 for arrival in scenario.arrivals)


def test_rollouts_of_a_workload_are_deployments_and_their_updates(load):
    scenario = load(
        main=f"catalog: {{generate: {{images: 60}}}}\n{NODES}{WORKLOAD}"
        "  rollouts: {of: [2, 3], every: 10m, deployments: 2, count: 3}\n"
    )

    assert ["Deployment", "Deployment"] == [one.kind for one in scenario.controllers]
    assert ["update"] * 3 == [one.kind for one in scenario.events]
    assert {one.name for one in scenario.controllers} >= {one.name for one in scenario.events}


def test_pods_may_ask_for_nothing_where_that_decides_nothing(load):
    text = f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}".replace(
        "{amount: 500m}, {amount: 1, share: 2}", "{amount: 0}"
    )

    assert 2000 == len(load(main=text).arrivals)


def test_pods_that_ask_for_no_cpu_make_no_load(told):
    text = f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}".replace("every: 10s", "load: 0.5")

    assert "workload.arrivals.load: pods that ask for no cpu make no load" in told(
        main=text.replace("[{amount: 500m}, {amount: 1, share: 2}]", "[{amount: 0}]")
    )


def test_events_about_pods_that_were_not_drawn_are_not_told_on_top(told):
    text = f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}events: [{{at: 1m, remove: w5}}]\n"

    assert 1 == len(told(main=text.replace("mean: 5m", "mean: 0")).splitlines())
    assert 1 == len(told(main=text.replace("mean: 5m", "maen: 5m")).splitlines())


def test_more_pods_than_can_be_simulated_are_told(told):
    text = f"catalog: images.jsonl.gz\n{NODES}{WORKLOAD}pods: [{{name: p, image: 'registry.example/web:1'}}]\n"

    assert "workload.pods: too many: with the pods that are listed, at most 1000000 are simulated" in told(
        main=text.replace("pods: 2000", "pods: 1000000")
    )
