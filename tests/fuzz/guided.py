"""
The same targets, with inputs chosen by which lines of code they reach.

    python -m tests.fuzz.guided extender-body --seconds 600

In the checkout, with atheris installed; without it, one line says so. Runs for that many seconds of processor time and
ends with a line of what it tried, also when it is interrupted. The first input that raises what its target does not
document, or that takes more than a second, is printed and kept in a file, and the exit code is 1.

The memory in that line is atheris's as well: instrumented code loses some with every input (30 KB with node annotations,
which uninstrumented stay at the same size). What a parser keeps is judged by test_fuzz.py.
"""

import argparse
import atexit
import importlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from tests.fuzz.mutating import LONGEST, mutate

SLOWEST: Final = 1.0
"""Seconds of processor time for one input."""
INSTRUMENTED: Final = ["lamina"]
LARGEST_SEED: Final = 20_000
"""Bytes; larger seeds are tried once, and nothing is made of them."""


class Tried(msgspec.Struct):
    """What a run has come to."""

    name: str
    seconds: float
    memory: int
    began: float
    inputs: int = 0
    good: int = 0
    slowest: float = 0.0

    def report(self) -> str:
        """Say it in a line."""
        return (
            f"{self.name}: {self.inputs} inputs, {self.good} of them good, slowest {self.slowest * 1000:.1f} ms, "
            f"{memory() - self.memory} KiB more memory, {time.process_time() - self.began:.0f} s of processor time"
        )


def memory() -> int:
    """Return the most memory that was ever in use, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main(words: list[str]) -> NoReturn:
    """Fuzz one target."""
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        end("guided fuzzing needs atheris: pip install atheris; make soak fuzzes without it", 0)
    # What is imported in here tells which of its lines are reached.
    with atheris.instrument_imports(include=INSTRUMENTED):
        from tests.fuzz.targets import TARGETS
    subjects = {subject.name.replace(" ", "-"): subject for subject in TARGETS}
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.guided")
    parser.add_argument("target", choices=sorted(subjects))
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time; 60 if nothing is said")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(words)
    run(atheris, subjects[chosen.target], chosen.seconds, chosen.seed)


def run(atheris: Any, subject: Any, seconds: float, seed: int) -> NoReturn:
    """Try inputs until the time is over; ends the process, as libFuzzer does."""
    seeds = [data for data in subject.seeds if len(data) <= LARGEST_SEED]
    tried = Tried(subject.name, seconds, memory(), time.process_time())

    def attempt(data: bytes) -> None:
        began = time.thread_time()
        tried.inputs += 1
        try:
            subject.run(data)
            tried.good += 1
        except subject.errors:
            pass
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            found(tried, data, f"{type(error).__name__}: {error!s:.500}")
        taken = time.thread_time() - began
        tried.slowest = max(tried.slowest, taken)
        if taken > SLOWEST:
            found(tried, data, f"took {taken:.2f} s")
        if time.process_time() - tried.began > tried.seconds:
            end(tried.report(), 0)

    def change(data: bytes, longest: int, chance: int) -> bytes:
        luck = random.Random(chance)
        return mutate(luck, data, seeds)[:longest] if luck.random() < 0.5 else atheris.Mutate(data, longest)

    for data in subject.seeds:
        attempt(data)
    with tempfile.TemporaryDirectory(prefix="guided-") as corpus:
        for number, data in enumerate(seeds):
            Path(corpus, str(number)).write_bytes(data)
        options = [f"-seed={seed}", f"-max_len={LONGEST}", "-verbosity=0", "-timeout=60", "-rss_limit_mb=4096"]
        for number in (signal.SIGINT, signal.SIGTERM):
            # Whoever ends a run early wants to know what it has tried.
            signal.signal(number, lambda *_: end(tried.report(), 0))
        options += ["-handle_int=0", "-handle_term=0"]
        atheris.Setup([sys.argv[0], *options, corpus], attempt, custom_mutator=change)
        atheris.Fuzz()
    end("the fuzzer ended before its time", 1)


def found(tried: Tried, data: bytes, words: str) -> NoReturn:
    """Say what was found, and keep the input."""
    kept = Path(tempfile.mkdtemp(prefix="guided-found-")) / "input"
    kept.write_bytes(data)
    end(f"{tried.report()}\n{tried.name}: {words}\n{len(data)} bytes, kept in {kept}: {data[:2_000]!r}", 1)


def end(words: str, code: int) -> NoReturn:
    """Leave without asking libFuzzer, which takes every ordinary end of the process for a crash."""
    print(words, flush=True)  # noqa: T201
    # Temporary folders are removed by these.
    atexit._run_exitfuncs()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
