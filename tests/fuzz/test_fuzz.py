"""
Broken input thrown at every parser that strangers reach: through a registry, as callers of an extender, by annotating nodes.

Each target runs for LAMINA_FUZZ_SECONDS of processor time: 2 if nothing is said, 600 by `make soak`; in CI 20 for documents
and headers that registries send and pods name and for calls of an extender, 5 for the rest. The same seed gives the same
inputs in the same order; LAMINA_FUZZ_SEED chooses another. A target fails when it raises what it does not document, when one
input takes more than a second each time it is tried, or when memory grows by more than 200 MiB.
"""

import os
import random
import resource
import time
from collections.abc import Callable
from typing import Final

import pytest

from tests.fuzz.mutating import mutate
from tests.fuzz.targets import TARGETS, Subject

IN_CI: Final = os.environ.get("CI", "").lower() in {"true", "1"}
FOREIGN: Final = {
    "manifest",
    "index",
    "config",
    "reference",
    "WWW-Authenticate",
    "extender body",
    "extender preemption",
}
"""What any stranger can send."""
LONGEST: Final = 600
SEED: Final = int(os.environ.get("LAMINA_FUZZ_SEED") or 1)
SLOWEST: Final = 1.0
"""Seconds of processor time for one input."""
MOST_MEMORY: Final = 200 * 1024
"""KiB."""
POPULATION: Final = 500
"""Inputs that later ones are made from."""
LARGEST: Final = 20_000
"""Bytes of an input that others are made from; larger ones are tried as they are."""

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(LONGEST * 10)]


def seconds(name: str) -> float:
    """Return how long a target is fuzzed."""
    return float(os.environ.get("LAMINA_FUZZ_SECONDS") or ((20 if name in FOREIGN else 5) if IN_CI else 2))


def attempt(subject: Subject, data: bytes, number: int) -> bool:
    """Try one input; say whether it was good."""
    good, taken = once(subject, data, number)
    for _ in range(2):
        if taken > SLOWEST:  # or something else was: the least of three counts
            taken = min(taken, once(subject, data, number)[1])
    if taken > SLOWEST:
        pytest.fail(f"{subject.name}: seed {SEED}, input {number}: took {taken:.2f} s\n{shown(data)}", pytrace=False)
    return good


def once(subject: Subject, data: bytes, number: int) -> tuple[bool, float]:
    """Whether an input was good, and the processor time it took."""
    began = time.thread_time()
    good = False
    try:
        subject.run(data)
        good = True
    except subject.errors:
        pass
    except Exception as error:  # noqa: BLE001 - this is what is looked for
        told = f"{type(error).__name__}: {error!s:.500}"
        pytest.fail(f"{subject.name}: seed {SEED}, input {number}: {told}\n{shown(data)}", pytrace=False)
    return good, time.thread_time() - began


def shown(data: bytes) -> str:
    return f"{len(data)} bytes: {data[:2_000]!r}"


def fuzz(subject: Subject, goes_on: Callable[[], bool]) -> tuple[int, int]:
    """Try every seed, and changed ones as long as it goes on; return how many were tried and were good."""
    luck = random.Random(f"{SEED} {subject.name}")
    for number, seed in enumerate(subject.seeds):
        attempt(subject, seed, -1 - number)
    population = [seed for seed in subject.seeds if len(seed) <= LARGEST]
    seeds, tried, good = len(population), 0, 0
    while goes_on():
        data = mutate(luck, luck.choice(population), population)
        tried += 1
        if attempt(subject, data, tried):
            good += 1
            # What still passes goes on being changed, so that changes add up.
            if len(data) <= LARGEST:
                population.append(data)
            if len(population) > POPULATION:
                population.pop(luck.randrange(seeds, len(population)))
    return tried, good


def memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("subject", TARGETS, ids=lambda subject: subject.name)
def test_no_input_breaks_it(subject):
    before, began, long = memory(), time.process_time(), seconds(subject.name)
    tried, good = fuzz(subject, lambda: time.process_time() - began < long)
    grown = memory() - before
    # Seen with -s, or when it fails.
    print(f"{subject.name}: seed {SEED}, {tried} inputs, {good} of them good, {grown} KiB more memory")  # noqa: T201

    assert tried > 0
    assert good > 0
    assert grown <= MOST_MEMORY


# ------------------------------------------------------------------------------------------------------- the fuzzer itself


def times(count: int) -> Callable[[], bool]:
    numbers = iter(range(count))
    return lambda: next(numbers, None) is not None


def planted(data: bytes) -> None:
    """A parser with a mistake in it: it believes that what is negative has three digits at most."""
    if b"-9223372036854775809" in data:
        raise KeyError(data)


def test_a_planted_mistake_is_found_and_told_with_its_input():
    subject = next(one for one in TARGETS if one.name == "manifest")
    broken = Subject("planted", planted, subject.seeds[:1], ())

    with pytest.raises(
        pytest.fail.Exception, match=r"planted: seed \d+, input \d+: KeyError(.|\n)*-9223372036854775809"
    ):
        fuzz(broken, times(20_000))


@pytest.mark.parametrize(
    ("slow_times", "found"),
    [
        pytest.param(3, True, id="each time"),
        pytest.param(2, False, id="twice, while the machine did something else"),
    ],
)
def test_an_input_that_is_slow_each_time_is_found(slow_times, found, monkeypatch):
    monkeypatch.setitem(globals(), "SLOWEST", 0.01)
    goes_on = times(slow_times)

    def slow(data: bytes) -> None:
        until = time.thread_time() + (0.02 if goes_on() else 0)
        while time.thread_time() < until:
            pass

    subject = Subject("slow", slow, [b"x"], ())
    if found:
        with pytest.raises(pytest.fail.Exception, match="took 0"):
            fuzz(subject, times(0))
    else:
        fuzz(subject, times(0))


def test_the_same_seed_gives_the_same_inputs():
    runs: list[list[bytes]] = [[], []]
    for run in runs:
        fuzz(Subject("same", run.append, [b'{"a": [1, 2]}', b"text"], ()), times(200))

    assert runs[0] == runs[1]
    assert len(set(runs[0])) > 100


def test_what_strangers_send_is_among_the_targets():
    assert FOREIGN <= {subject.name for subject in TARGETS}
