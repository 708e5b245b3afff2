"""
Differential test of the façade: the same random requests go to the façade and to a real API server.

    python -m tests.integration.facade.differential --sequences 2000 --seed 1

Every answer must be equal: status, reason, object; and every watch must have the same events in the same order. What
is expected to differ has an entry in `known_differences`. The last line of the output is JSON.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec

from testbed.bed import Testbed
from tests.integration.facade.differential_compare import Canonical, differing_fields, is_compared
from tests.integration.facade.differential_sides import ApiSide, FacadeSide, OpenWatch, RealSide
from tests.integration.facade.differential_steps import Sequence, Step, make_sequence, merged, show
from tests.integration.facade.known_differences import KNOWN, KnownDifference

FLAGS: Final = {"kube-apiserver": ["--disable-admission-plugins=TaintNodesByCondition"]}
"""A controller, which does not run here, would undo what that plugin does."""
MOST_SHOWN: Final = 25
NO_SUCH: Final = {"$uid": "00000000-0000-4000-8000-000000000000", "$rv": "1", "$old": "1"}


class Difference(msgspec.Struct, frozen=True):
    """One answer that is not equal."""

    seed: int
    sequence: int
    step: int
    request: str
    fields: tuple[str, ...]
    facade: str = ""
    real: str = ""

    def text(self) -> str:
        """Return the difference for a person."""
        where = f"--seed {self.seed} --only {self.sequence}, step {self.step}: {self.request}"
        return "\n".join(
            (
                where,
                *(f"    {line}"[:400] for line in self.fields),
                f"    façade: {self.facade[:300]}",
                f"    real:   {self.real[:300]}",
            )
        )


class SideRun:
    """One sequence on one server: resolves placeholders from what this server has answered."""

    def __init__(self, side: ApiSide, sequence: Sequence) -> None:
        """Run *sequence* on *side*."""
        self._side = side
        self._namespace = sequence.namespace
        self._latest: dict[str, Any] = {}
        self._versions: dict[str, list[str]] = {}
        self._tokens: dict[str, str] = {}
        self.canonical = Canonical()
        self.watches: list[tuple[Step, OpenWatch]] = []

    def begin(self) -> None:
        """Create the namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace}}
        self._side.send("POST", "/api/v1/namespaces", "", "application/json", body)

    def perform(self, step: Step) -> tuple[int, Any] | None:
        """Perform one step; return the answer, or None for a watch that has begun."""
        if step.watch:
            found = self._side.watch(step.path, step.query)
            if isinstance(found, tuple):
                return found
            self.watches.append((step, found))
            return None
        body = step.body
        if step.base:
            body = merged(self._latest.get(step.base, {}), body)
        status, answer = self._side.send(step.method, step.path, step.query, step.content_type, self._resolved(body))
        self._remember(step, status, answer)
        return status, answer

    def follow(self, step: Step) -> tuple[int, Any] | None:
        """Ask for the next page of a list; None if there is none."""
        token = self._tokens.pop(step.path, "")
        if not token:
            return None
        return self._side.send("GET", step.path, f"{step.query}&continue={token}", step.content_type, None)

    def end_watches(self) -> list[list[Any]]:
        """Produce the last event of each watch; return the events of all watches."""
        found = []
        for step, watch in self.watches:
            last = ""
            for method, path, content_type, body in step.sentinel:
                self._side.send(method, path, "", content_type, body)
                last = body.get("metadata", {}).get("annotations", {}).get("last", last)
            found.append(watch.events(last))
        return found

    def clear(self, sequence: Sequence) -> None:
        """Delete the cluster-scoped objects of the sequence."""
        query = f"labelSelector=sequence={sequence.namespace}"
        for path in ("/api/v1/nodes", "/apis/scheduling.k8s.io/v1/priorityclasses"):
            status, found = self._side.send("GET", path, query, "application/json", None)
            for one in found.get("items", ()) if status == 200 else ():
                name = one["metadata"]["name"]
                if one["metadata"].get("finalizers"):
                    patch = {"metadata": {"finalizers": None}}
                    self._side.send("PATCH", f"{path}/{name}", "", "application/merge-patch+json", patch)
                self._side.send("DELETE", f"{path}/{name}", "", "application/json", None)

    def _remember(self, step: Step, status: int, answer: Any) -> None:
        metadata = answer.get("metadata") if isinstance(answer, dict) else None
        if not isinstance(metadata, dict) or status >= 300 or "dryRun" in step.query:
            return
        if "items" in answer:
            self._tokens[step.path] = metadata.get("continue", "")
            return
        parts = step.path.split("/")
        resource = parts[-1] if step.method == "POST" else parts[-3] if parts[-1] == "status" else parts[-2]
        if answer.get("kind") in {"Status", "Scale"} or parts[-1] in {"binding", "eviction", "scale"}:
            return
        key = f"{resource}/{metadata.get('name')}"
        if "generateName" in metadata:
            return
        self._latest[key] = answer
        if metadata.get("resourceVersion"):
            self._versions.setdefault(key, []).append(metadata["resourceVersion"])

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._resolved(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._resolved(inner) for inner in value]
        if isinstance(value, str) and value.startswith(("$uid:", "$rv:", "$old:")):
            what, _, key = value.partition(":")
            if key not in self._latest:
                return NO_SUCH[what]
            if what == "$uid":
                return self._latest[key]["metadata"].get("uid", NO_SUCH[what])
            return self._versions.get(key, ["1"])[-1 if what == "$rv" else 0]
        return value


class Differential:
    """Runs sequences on both servers and collects the differences."""

    def __init__(self, facade: ApiSide, real: ApiSide, known: Iterable[KnownDifference] = KNOWN) -> None:
        """Compare *facade* with *real*; differences that an entry of *known* explains are only counted."""
        self._sides = facade, real
        self._explanations = tuple(known)
        self.differences: list[Difference] = []
        self.known: Counter[str] = Counter()
        self.words: Counter[str] = Counter()
        """Refusals with equal code and reason whose messages differ."""
        self.requests = self.events = 0

    def run(self, sequence: Sequence) -> None:
        """Run one sequence; stop it at its first difference, because later answers depend on it."""
        runs = [SideRun(side, sequence) for side in self._sides]
        for run in runs:
            run.begin()
        equal = self._steps(sequence, runs)
        streams = [run.end_watches() for run in runs]
        if equal:
            self._compare_watches(sequence, runs, streams)
        for run in runs:
            run.clear(sequence)

    def _steps(self, sequence: Sequence, runs: list[SideRun]) -> bool:
        for index, step in enumerate(sequence.steps):
            if not self._compare(sequence, index, runs, SideRun.perform):
                return False
            if "limit=" in step.query and not self._compare(sequence, index, runs, SideRun.follow):
                return False
        return True

    def _compare(
        self,
        sequence: Sequence,
        index: int,
        runs: list[SideRun],
        ask: Callable[[SideRun, Step], tuple[int, Any] | None],
    ) -> bool:
        step = sequence.steps[index]
        self.requests += 1
        left, right = (ask(run, step) for run in runs)
        one, other = (
            None if answer is None else run.canonical.answer(*answer)
            for run, answer in zip(runs, (left, right), strict=True)
        )
        fields = differing_fields(one, other)
        if fields:
            found = Difference(
                sequence.seed, sequence.number, index, show(step), tuple(fields), _brief(left), _brief(right)
            )
            self._record(step, found)
            return False
        if left is not None and right is not None:
            words = [run.canonical.words(answer[1]) for run, answer in zip(runs, (left, right), strict=True)]
            if words[0] != words[1]:
                self.words[f"{step.method} {words[0]!r} is {words[1]!r} on the real server"] += 1
        return True

    def _compare_watches(self, sequence: Sequence, runs: list[SideRun], streams: list[list[list[Any]]]) -> None:
        for number, (left, right) in enumerate(zip(*streams, strict=True)):
            one, other = (
                [run.canonical.event(event) for event in events if is_compared(event)]
                for run, events in zip(runs, (left, right), strict=True)
            )
            self.events += len(right)
            fields = differing_fields(one, other)
            if fields:
                if len(one) != len(other):
                    fields = [f"events: façade {_shown(left)}, real {_shown(right)}"]
                step = runs[0].watches[number][0]
                self._record(step, Difference(sequence.seed, sequence.number, -1, show(step)[:200], tuple(fields)))

    def _record(self, step: Step, found: Difference) -> None:
        for known in self._explanations:
            if known.explains(step, found.fields):
                self.known[known.name] += 1
                return
        self.differences.append(found)

    def report(self, sequences: int) -> dict[str, Any]:
        """Return the result."""
        return {
            "sequences": sequences,
            "requests": self.requests,
            "events": self.events,
            "differences": len(self.differences),
            "known": dict(sorted(self.known.items())),
            "messages": sum(self.words.values()),
        }


def _brief(answer: tuple[int, Any] | None) -> str:
    if answer is None:
        return "watch"
    status, body = answer
    shown = body.get("message", json.dumps(body)) if isinstance(body, dict) else str(body)
    return f"{status} {shown}"


def _shown(events: list[Any]) -> str:
    return ", ".join(f"{event['type']} {event['object'].get('metadata', {}).get('name', '')}" for event in events)


def run_sequences(bed: Testbed, seed: int, numbers: Iterable[int]) -> Differential:
    """Run sequences against the API server of *bed*."""
    real = RealSide(bed)
    found = Differential(FacadeSide(), real)
    try:
        for number in numbers:
            found.run(make_sequence(seed, number))
    finally:
        real.close()
    return found


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Compare the façade with a real API server.")
    parser.add_argument("--sequences", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, default=None, help="run only the sequence with this number, and show it")
    parser.add_argument("--shown", type=int, default=MOST_SHOWN)
    parser.add_argument("--messages", action="store_true", help="show messages that differ")
    options = parser.parse_args()
    numbers = range(options.sequences) if options.only is None else (options.only,)
    if options.only is not None:
        for index, step in enumerate(make_sequence(options.seed, options.only).steps):
            sys.stdout.write(f"{index} {show(step)}\n")
    with Testbed.start(flags=FLAGS) as bed:
        found = run_sequences(bed, options.seed, numbers)
    for difference in found.differences[: options.shown]:
        sys.stdout.write(difference.text() + "\n")
    if options.messages:
        for words, count in found.words.most_common(60):
            sys.stdout.write(f"{count} {words}\n")
    sys.stdout.write(json.dumps(found.report(len(numbers))) + "\n")
    return 1 if found.differences else 0


if __name__ == "__main__":
    sys.exit(main())
