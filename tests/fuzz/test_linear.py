"""
Ten times the input is at most twelve times the work: no parser that strangers reach goes over its input again and again.

The work of our own code is counted, step by step. What the interpreter does in C, such as a regular expression, cannot be
counted; for that the processor time of this thread is compared, the least of several runs, with a bar so far above ten that
only work that grows faster than the input reaches it: with the square, it would be a hundred.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import pytest

from lamina.clients.oci.challenge import parse_challenges
from lamina.clients.oci.docker_config import decode_docker_config
from lamina.clients.oci.hosts import parse_host
from lamina.clients.oci.registry_documents import ManifestWithoutConfig, describe, read
from lamina.model.digest import digest_of
from lamina.model.errors import InputError
from lamina.model.reference import ReferenceFormatError, parse_reference
from lamina.wire.errors import WireError
from lamina.wire.extender import arguments
from lamina.wire.extender.preemption_arguments import decode_preemption_args
from lamina.wire.kube_protobuf.protobuf_decoder import decode_protobuf
from tests.fuzz.targets import PARENT
from tests.unit.clients.oci.registry_stub import INDEX, MANIFEST, a_config, a_digest, a_manifest, docker_config, encode
from tests.unit.wire.extender_bodies import asking, nodes
from tests.unit.wire.protobuf_bodies import body, field
from tests.work import steps

FACTOR: Final = 10
MOST_STEPS: Final = 12
MOST_TIME: Final = 30.0
REFUSALS: Final = (WireError, ReferenceFormatError, InputError, ValueError)
LEAST: Final = 0.002
"""Seconds that the small input is worked on, over and over, so that the clock can tell."""


def manifest(data: bytes) -> None:
    read(data, digest_of(data), MANIFEST)


def index(data: bytes) -> None:
    read(data, digest_of(data), INDEX)


def config(data: bytes) -> None:
    describe(ManifestWithoutConfig(PARENT.image, digest_of(data)), data)


def asked(data: bytes) -> None:
    # By the door, the same body would be read once and recognised after.
    arguments._read(data, len(data))


def an_index_of(count: int) -> bytes:
    return encode({"manifests": [{"digest": a_digest("x"), "annotations": {"a": "b"}}] * count})


JSON: Final = [
    pytest.param(manifest, lambda n: a_manifest(a_config(1), n), 25, id="manifest: layers"),
    pytest.param(
        manifest, lambda n: a_manifest(a_config(1), annotations={"a": "b" * n}), 10_000, id="manifest: a long text"
    ),
    pytest.param(manifest, lambda n: a_manifest(a_config(1), x=["\\"] * n), 3_000, id="manifest: escapes"),
    pytest.param(manifest, lambda n: b'{"layers":' + b"[" * n, 10_000, id="manifest: depth"),
    pytest.param(manifest, lambda n: b'{"schemaVersion":' + b"9" * n, 10_000, id="manifest: digits"),
    pytest.param(index, an_index_of, 25, id="index: manifests"),
    pytest.param(config, lambda n: encode({"rootfs": {"diff_ids": ["x"] * n}}), 3_000, id="config: layers"),
    pytest.param(
        config, lambda n: a_config(3, x={str(number): number for number in range(n)}), 3_000, id="config: fields"
    ),
    pytest.param(
        lambda data: decode_docker_config(data, "x"),
        lambda n: docker_config({f"r{number}.example": "a:b" for number in range(n)}),
        2_000,
        id="docker config: entries",
    ),
    pytest.param(asked, lambda n: asking(NodeNames=[f"n{number}" for number in range(n)]), 500, id="extender: names"),
    pytest.param(asked, lambda n: asking(Nodes=nodes(*map(str, range(n)))), 500, id="extender: nodes"),
    pytest.param(asked, lambda n: asking(Nodes=nodes("a"), x=["\\"] * n), 3_000, id="extender: escapes"),
    pytest.param(asked, lambda n: b'{"Nodes":{"items":[' + b"[" * n, 10_000, id="extender: depth"),
    pytest.param(
        decode_preemption_args,
        lambda n: asking(NodeNameToMetaVictims={"n1": {"Pods": [{"UID": "a"}] * n}}),
        500,
        id="extender: victims",
    ),
    pytest.param(decode_protobuf, lambda n: body("v1", "Pod", field(1, field(1, "a")) * n), 500, id="protobuf: merged"),
    pytest.param(
        decode_protobuf, lambda n: body("v1", "Pod", field(1, field(11, field(1, "a")) * n)), 500, id="protobuf: maps"
    ),
    pytest.param(decode_protobuf, lambda n: body("v1", "Pod", field(1, field(14, "a") * n)), 500, id="protobuf: lists"),
    pytest.param(decode_protobuf, lambda n: body("v1", "Pod", field(999, "a") * n), 500, id="protobuf: unknown fields"),
    pytest.param(decode_protobuf, lambda n: body("v1", "Pod", b"\x0b\x0c" * n), 500, id="protobuf: groups"),
]

TEXTS: Final = [
    pytest.param(parse_reference, lambda n: "a/" * (n // 2) + "a", 400, id="reference: slashes"),
    pytest.param(parse_reference, lambda n: "a" + "-" * n + "a", 400, id="reference: dashes"),
    pytest.param(parse_reference, lambda n: "a." * (n // 2) + "a/b", 400, id="reference: dots"),
    pytest.param(parse_reference, lambda n: "a" + "_" * n + "b", 400, id="reference: underscores"),
    pytest.param(parse_reference, lambda n: "a:" * (n // 2), 400, id="reference: colons"),
    pytest.param(parse_reference, lambda n: "a@" * (n // 2), 400, id="reference: ats"),
    pytest.param(parse_reference, lambda n: "[" + ":" * n, 400, id="reference: a bracket"),
    *(
        pytest.param(lambda text: parse_challenges([text]), make, 800, id=f"challenge: {name}")
        for name, make in (
            ("words", lambda n: "a " * (n // 2)),
            ("parameters", lambda n: "Bearer " + "a=b," * (n // 4)),
            ("quotes", lambda n: "Bearer " + 'a="b",' * (n // 6)),
            ("open quotes", lambda n: 'a="' * (n // 3)),
            ("escapes", lambda n: 'Bearer a="' + "\\" * n),
            ("escaped quotes", lambda n: 'Bearer a="' + '\\"' * (n // 2)),
            ("spaces", lambda n: "a" + " " * n + "b"),
            ("equals", lambda n: "a" + "=" * n),
            ("one word", lambda n: "a" * n),
        )
    ),
    pytest.param(parse_host, lambda n: "a." * (n // 2) + "a", 400, id="host: labels"),
    pytest.param(parse_host, lambda n: "1" * n, 400, id="host: digits"),
]


CASES: Final = pytest.mark.parametrize(("run", "make", "size"), [*JSON, *TEXTS])


def more_steps(run: Callable[[object], object], make: Callable[[int], object], size: int) -> float:
    """How many times as many steps the larger input takes."""
    small, large = make(size), make(size * FACTOR)
    steps(lambda: run(small))  # what is done once, whatever the input
    return steps(lambda: run(large)) / steps(lambda: run(small))


def more_time(run: Callable[[object], object], make: Callable[[int], object], size: int) -> float:
    """How many times as long the larger input takes."""
    small, large = make(size), make(size * FACTOR)
    times = max(1, int(LEAST / max(least(run, small, 1), 1e-7)))
    return least(run, large, max(1, times // FACTOR)) / least(run, small, times)


def least(run: Callable[[object], object], data: object, times: int) -> float:
    """The least time of several, for one run."""
    best = float("inf")
    for _ in range(5):
        began = time.thread_time()
        for _ in range(times):
            with suppress(*REFUSALS):
                run(data)
        best = min(best, (time.thread_time() - began) / times)
    return best


@CASES
def test_ten_times_the_input_takes_at_most_twelve_times_the_steps(run, make, size):
    assert more_steps(run, make, size) <= MOST_STEPS


@pytest.mark.realtime
@CASES
def test_the_time_grows_with_the_input_and_not_with_its_square(run, make, size):
    assert more_time(run, make, size) <= MOST_TIME


def by_steps(data: object) -> None:
    """Goes over its input as often as it is long, in Python."""
    assert isinstance(data, str)
    for _ in data:
        for _ in data:
            pass


def in_c(data: object) -> None:
    """Goes over its input as often as it is long, half of it in C."""
    assert isinstance(data, str)
    for _ in data:
        data.count("x")


def test_steps_that_grow_with_the_square_are_noticed():
    assert more_steps(by_steps, lambda n: "a" * n, 30) > MOST_STEPS


@pytest.mark.realtime
def test_time_that_grows_with_the_square_is_noticed():
    assert more_time(in_c, lambda n: "a" * n, 2_000) > MOST_TIME
