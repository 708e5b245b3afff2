"""
Laws of requests that are answered without decoding them: every answer equals that of the ordinary path.

Two handlers share one core. One may look pods up, the other decodes every body. Requests are well formed and odd:
repeated, escaped and unknown names, other spellings, stale versions, unknown pods, cut bodies; nodes join and leave in
between. The only difference allowed is how JSON is spaced.
"""

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model.events import ImagesLearned, LayersReported, NodeGone, NodeSeen, PodSeen
from lamina.model.pod import Pod
from lamina.scheduling.loop.extender_core import ExtenderCore
from lamina.scheduling.plugins.in_tree import AGENTS
from lamina.services.extender.bypass_detector import BypassDetector
from lamina.services.extender.handlers import Handlers
from lamina.services.extender.metrics import ExtenderMetrics
from lamina.services.extender.name_roster import NameRoster
from lamina.testing.builders import a_node, an_image, held
from lamina.wire.kube.codec import decode_pod

IMAGES = [
    an_image(f"app:{number}", {"base": 400_000_000, f"own-{number}": 50_000_000 * number}) for number in (1, 4, 20)
]
EQUAL = [f"node-{number:02}" for number in range(12)]
UNEQUAL = ["a", "b-2", "worker.example.com", "worker.example.co", "n" * 60, "node-1", "node-10"]
ODD = ["käse", 'quo"te', "back\\slash", "a,b", "line\nend", "nul\0", "", " a"]
VERBS = [verb for agent in AGENTS for verb in agent.priorities]
POD: dict[str, Any] = {
    "spec": {"containers": [{"name": "c", "image": "app:4", "resources": {"requests": {"cpu": "1"}}}]}
}


class Twins:
    """A handler that recognises requests and one that decodes them, over one core."""

    def __init__(self, names: list[str]) -> None:
        self.core = ExtenderCore(AGENTS)
        self.known: dict[tuple[str, str, str], Pod] = {}
        self.looked_up = 0
        metrics = ExtenderMetrics()
        self.detectors = BypassDetector(metrics), BypassDetector(metrics)
        ordinary = Handlers(self.core, metrics, self.detectors[0], lambda: True)
        quick = Handlers(self.core, metrics, self.detectors[1], lambda: True, pods=self.look_up)
        self.posts = ordinary.routes({}).posts, quick.routes({}).posts
        self.recognizer = quick._recognizer
        self.core.take(ImagesLearned(tuple(IMAGES)))
        for name in names:
            self.join(name)
        for number in range(4):
            self.see(number, 7)

    def look_up(self, name: str, uid: str, version: str) -> Pod | None:
        self.looked_up += 1
        return self.known.get((name, uid, version))

    def join(self, name: str) -> None:
        number = sum(name.encode())
        annotations = {
            "congestion-factor": str(number % 100),
            "mean-free-cpu": str(20 * (number % 90)),
            "std-free-cpu": str(number % 50),
            "mean-free-memory": str(10**5 * (number % 60)),
            "std-free-memory": str(10**3 * (number % 7)),
        }
        images = [image for place, image in enumerate(IMAGES) if number >> place & 1]
        self.core.take(NodeSeen(a_node(name, annotations=annotations)), LayersReported(held(name, *images)))

    def leave(self, name: str) -> None:
        if name in self.core.cluster.columns.rows:
            self.core.take(NodeGone(name))

    def see(self, number: int, version: int) -> None:
        pod = decode_pod(json.dumps(a_pod(number, version)).encode())
        self.known = {key: one for key, one in self.known.items() if key[1] != f"u-{number}"}
        self.known[f"default/p-{number}", f"u-{number}", str(version)] = pod

    def bind(self, number: int, name: str) -> None:
        bound = a_pod(100 + number, 9)
        bound["spec"] |= {"nodeName": name}
        self.core.take(PodSeen(decode_pod(json.dumps(bound).encode())))

    def ask(self, verb: str, body: bytes) -> None:
        """Both answer alike."""
        expected, found = (posts[f"/scheduler/priorities/{verb}"](body) for posts in self.posts)
        assert expected.status == found.status
        texts = [b"".join(reply.pieces) for reply in (expected, found)]
        if expected.status != 200:
            assert texts[0] == texts[1]
            return
        assert json.loads(texts[0]) == json.loads(texts[1])
        assert (expected.unread is None) is (found.unread is None)
        assert self.detectors[0]._answered.keys() == self.detectors[1]._answered.keys()


def a_pod(number: int, version: int) -> dict[str, Any]:
    image = {"name": "c", "image": f"app:{(1, 4, 20, 99)[number % 4]}", "resources": {"requests": {"cpu": "1"}}}
    metadata = {
        "name": f"p-{number}",
        "namespace": "default",
        "uid": f"u-{number}",
        "resourceVersion": str(version),
        "labels": {"trap": '}},"Nodes":null,"NodeNames":["node-01"]}'},
    }
    return {"metadata": metadata, "spec": {"schedulerName": "default-scheduler", "containers": [image]}}


def written(pod: dict[str, Any], names: list[str], *, ascii_only: bool = True, spaced: bool = False) -> bytes:
    body = {"Pod": pod, "Nodes": None, "NodeNames": names}
    separators = None if spaced else (",", ":")
    return json.dumps(body, separators=separators, ensure_ascii=ascii_only).encode()


def spoilt(body: bytes, how: str, rng: random.Random) -> bytes:  # noqa: PLR0911 - one form each
    """Return a body in another form, valid or not."""
    place = rng.randrange(len(body))
    match how:
        case "cut":
            return body[:place]
        case "letter":
            return body[:place] + bytes([rng.randrange(256)]) + body[place + 1 :]
        case "spelling":
            return body.replace(b'"NodeNames"', b'"nodenames"')
        case "order":
            return json.dumps(dict(reversed(list(json.loads(body).items()))), separators=(",", ":")).encode()
        case "escape":
            return body.replace(b"node-0", b"node\\u002d0")
        case "number":
            return body[:-2] + b",5]}"
        case "newline":
            return body + b"\n"
        case "twice":
            return body[:-1] + b',"NodeNames":["node-02"]}'
        case "null":
            return body[: body.rindex(b"[")] + b"null}"
    return body


WAYS = ["", "", "cut", "letter", "spelling", "order", "escape", "number", "newline", "twice", "null"]


def step(twins: Twins, names: list[str], rng: random.Random) -> None:
    """Change the cluster, or ask."""
    drawn = rng.random()
    if drawn < 0.05:
        twins.leave(rng.choice(names))
    elif drawn < 0.10:
        twins.join(rng.choice(names))
    elif drawn < 0.15:
        twins.see(rng.randrange(6), rng.randrange(6, 9))
    elif drawn < 0.20:
        twins.bind(rng.randrange(9), rng.choice(names))
    asked = rng.sample(names, rng.randint(0, len(names)))
    if rng.random() < 0.15:
        asked.insert(rng.randint(0, len(asked)), rng.choice([*ODD, *names, "unknown-1", "node-99"]))
    pod = a_pod(rng.randrange(6), rng.choice([7, 7, 7, 6, 8]))
    if rng.random() < 0.1:
        pod = POD | {"metadata": dict(rng.sample(sorted(pod["metadata"].items()), 3))}
    body = written(pod, asked, ascii_only=rng.random() < 0.7, spaced=rng.random() < 0.05)
    twins.ask(
        rng.choice([*VERBS, "layers", "congestion"]), spoilt(body, rng.choice(WAYS) if rng.random() < 0.3 else "", rng)
    )


@settings(max_examples=60)
@given(names=st.sampled_from([EQUAL, UNEQUAL, EQUAL + ODD[:4]]), seed=st.integers(0, 2**32))
def test_requests_that_are_not_decoded_get_the_same_answers(names: list[str], seed: int) -> None:
    twins, rng = Twins(names), random.Random(seed)

    for _ in range(8):
        step(twins, names, rng)


@pytest.mark.soak
@pytest.mark.parametrize("names", [EQUAL, UNEQUAL], ids=["equal-length", "other-lengths"])
def test_ten_thousand_requests_get_the_same_answers(names: list[str]) -> None:
    twins, rng = Twins(names), random.Random(11)

    for _ in range(10_000):
        step(twins, names, rng)

    assert twins.looked_up > 5_000


@pytest.mark.parametrize("names", [EQUAL, UNEQUAL], ids=["equal-length", "other-lengths"])
def test_an_ordinary_request_is_recognised_from_the_second_one_on(names: list[str]) -> None:
    twins = Twins(names)
    body = written(a_pod(1, 7), names)

    assert twins.recognizer.recognize(body) is None
    found = twins.recognizer.recognize(body)
    assert found is not None
    assert names == [node.name for row in found.rows if (node := twins.core.cluster.columns.nodes[row])]
    twins.join("newcomer")
    assert twins.recognizer.recognize(body) is None


@given(st.lists(st.text(min_size=0, max_size=20), unique=True, max_size=20), st.data())
def test_a_roster_finds_exactly_the_lists_of_its_plain_names(names: list[str], data: st.DataObject) -> None:
    roster = NameRoster(names)
    asked = data.draw(
        st.lists(st.one_of(st.sampled_from(names), st.text(max_size=20)), max_size=8) if names else st.just([])
    )
    text = json.dumps(asked, separators=(",", ":"), ensure_ascii=False).encode()[1:-1]

    found = roster.find(text)

    plain = all(one and one.isascii() and one.isprintable() and not set('"\\') & set(one) for one in asked)
    if asked and plain and len(set(asked)) == len(asked) and set(asked) <= set(names):
        assert found is not None
        assert asked == [names[number] for number in roster.numbers[found]]
    else:
        assert found is None
