"""
Large and odd questions to a real extender process: always 200, always a part of what was asked about, in bounded memory.

What kube-scheduler sends for 5,000 nodes where `nodeCacheCapable` is not set, and what only somebody else would send. How
long the answers took is logged (`--log-cli-level info`); nothing depends on it.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pytest

from testbed import MissingError, Testbed
from testbed.fixtures import do_without
from testbed.nodes import Node, manifest
from tests.integration.extender.processes import Extender, empty, install
from tests.integration.scheduler.live import until
from tests.integration.scheduler.truth import pod

pytestmark = [pytest.mark.realtime, pytest.mark.slow, pytest.mark.testbed()]

COUNT: Final = 5000
KNOWN: Final = ("n00000", "n00001", "n00002")
NAMES: Final = [f"n{number:05}" for number in range(COUNT)]
MOST_GROWTH: Final = 150 * 2**20
VERBS: Final = ("predicates/safe-overload", "priorities/safe-overload", "priorities/congestion", "priorities/layers")
AGENTS: Final = "safe,congestion,layers"
# Of 8000m, 400m are free, without a deviation: a pod of 100m brings the use to 96 %, more than the 90 that are safe.
OVERLOADED: Final = {"mean-free-cpu": "400", "std-free-cpu": "0"}

log = logging.getLogger(__name__)


def whole_node(name: str, **annotations: str) -> dict[str, Any]:
    """A node as large as real ones are: images it holds, and who wrote which field."""
    images = [
        {
            "names": [f"registry.example/team/app-{n}@sha256:{n:064x}", f"registry.example/team/app-{n}:1"],
            "sizeBytes": n,
        }
        for n in range(50)
    ]
    made = manifest(Node(name, images=images))
    fields: dict[str, Any] = {f"f:field-{n}": {"f:type": {}, "f:status": {}} for n in range(20)}
    written = {"manager": "kubelet", "operation": "Update", "fieldsV1": {"f:status": {"f:conditions": fields}}}
    made["metadata"] |= {"uid": f"uid-of-{name}", "annotations": annotations, "managedFields": [written] * 2}
    return made


def body(*, names: Sequence[str] | None = None, nodes: Sequence[Any] | None = None) -> bytes:
    items = None if nodes is None else {"metadata": {}, "items": list(nodes)}
    return json.dumps({"Pod": pod("asked"), "Nodes": items, "NodeNames": names}).encode()


@pytest.fixture(scope="module")
def bed() -> Iterator[Testbed]:
    try:
        started = Testbed.start()
    except MissingError as error:
        do_without(error)
    with started:
        install(started)
        empty(started)
        started.add_nodes({"name": name} for name in KNOWN)
        path = f"/api/v1/nodes/{KNOWN[1]}"
        started.api("PATCH", path, {"metadata": {"annotations": OVERLOADED}})
        yield started


@pytest.fixture(scope="module")
def watching(bed: Testbed) -> Iterator[Extender]:
    """An extender that knows three of the nodes."""
    with Extender(bed, AGENTS, "watching") as extender:
        until(lambda: bool(extender.refused("safe-overload", pod("asked"), KNOWN)), 15.0, "annotations were seen")
        yield extender


@pytest.fixture
def reading(bed: Testbed) -> Iterator[Extender]:
    """An extender that knows what questions tell."""
    with Extender(bed, AGENTS, "reading", words=["--state", "body"]) as extender:
        yield extender


@pytest.fixture(scope="module")
def large() -> bytes:
    nodes = [whole_node(name, **(OVERLOADED if name == KNOWN[1] else {})) for name in NAMES]
    made = body(nodes=nodes)
    assert len(made) >= 50_000_000
    return made


def peak(extender: Extender) -> int:
    """The most memory a process has had since its peak was last set back."""
    status = Path(f"/proc/{extender.pid}/status").read_text(encoding="ascii")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def answered(extender: Extender, verb: str, question: bytes) -> Any:
    """What is answered; 200 is all that may come."""
    began = time.monotonic()
    status, answer = extender.send("POST", f"/scheduler/{verb}", question)
    log.info("%s: %d bytes, %.3f s", verb, len(question), time.monotonic() - began)
    assert (200, verb) == (status, verb), answer[:500]
    return json.loads(answer)


def names_in(answer: Any) -> list[str]:
    """The nodes in an answer, whichever verb and form it has."""
    if isinstance(answer, list):
        assert all(0 <= one["Score"] <= 10 for one in answer)
        return [one["Host"] for one in answer]
    assert not answer["Error"]
    if answer["NodeNames"] is not None:
        return list(answer["NodeNames"])
    return [one["metadata"]["name"] for one in answer["Nodes"]["items"]]


@pytest.mark.parametrize("which", ["watching", "reading"])
def test_five_thousand_whole_nodes_are_answered_in_bounded_memory(which, large, request):
    extender = request.getfixturevalue(which)
    # Whoever knows nodes from questions keeps what it learned of them, which is not what a question costs.
    answered(extender, VERBS[0], body(nodes=[whole_node(KNOWN[0])]) if which == "watching" else large)
    before = extender.rss()

    for verb in VERBS:
        said = names_in(answered(extender, verb, large))
        expected = [name for name in NAMES if name != KNOWN[1]]
        assert set(said) <= set(NAMES)
        if verb.startswith("predicates/"):
            assert expected == said

    log.info("%s: %d MiB more at the peak", which, (peak(extender) - before) // 2**20)
    assert peak(extender) - before <= MOST_GROWTH
    assert extender.complaints() == []


def test_what_is_kept_of_whole_nodes_comes_back_as_it_was_sent(watching, large):
    answer = answered(watching, "predicates/safe-overload", large)

    sent = [one for one in json.loads(large)["Nodes"]["items"] if one["metadata"]["name"] != KNOWN[1]]
    assert sent == answer["Nodes"]["items"]
    assert {KNOWN[1]: "node(s) would risk cpu overload"} == answer["FailedNodes"]


def test_four_large_questions_at_once_cost_no_more_than_two(watching, large):
    """Two are read at a time, and the others wait their turn."""
    before = watching.rss()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda verb: watching.send("POST", f"/scheduler/{verb}", large), VERBS))

    assert [200] * 4 == [status for status, _ in answers]
    assert all(set(names_in(json.loads(answer))) <= set(NAMES) for _, answer in answers)
    assert peak(watching) - before <= 2 * MOST_GROWTH
    assert watching.complaints() == []


@pytest.mark.parametrize("form", ["names", "nodes"])
@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        pytest.param([], [], id="no node"),
        pytest.param(["nobody", "x" * 253, "", "ñandú", "n00000/../n00001"], [], id="unknown names"),
        pytest.param([KNOWN[0]] * 3 + [KNOWN[2]], [], id="one name several times"),
        pytest.param([KNOWN[1], KNOWN[0], KNOWN[1]], [KNOWN[1]], id="a refused name twice"),
        pytest.param([*KNOWN, "nobody", KNOWN[0]], [KNOWN[1]], id="known and unknown"),
        pytest.param(NAMES, [KNOWN[1]], id="five thousand names"),
    ],
)
def test_whatever_nodes_are_named_the_answer_is_a_part_of_them(watching, form, asked, refused):
    # A whole node without a name is nobody's: that is no question.
    asked = asked if form == "names" else [name for name in asked if name]
    question = body(names=asked) if form == "names" else body(nodes=[{"metadata": {"name": name}} for name in asked])

    for verb in VERBS:
        answer = answered(watching, verb, question)
        said = names_in(answer)
        if verb.startswith("predicates/"):
            assert [name for name in asked if name not in refused] == said
            assert dict.fromkeys(refused, "node(s) would risk cpu overload") == answer["FailedNodes"]
        else:
            # Whoever is named twice would count twice.
            assert len(set(said)) == len(said)
            assert set(said) <= set(asked)
    assert watching.complaints() == []
