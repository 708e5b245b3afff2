"""
Laws of controllers: bounds hold at every moment, whatever happens to pods and nodes, and in the end all is as asked.

Histories are drawn: pods start late, fail, are refused or lost with others at once, and people scale and update in
between. Bounds are looked at when a controller acts; that pods are lost is not its doing.
"""

import math
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import example, given
from hypothesis import strategies as st

from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.cluster.virtual_pod import ENDED
from lamina.trace import trace_records
from tests.unit.simulator.controllers.placing import World
from tests.unit.simulator.controllers.scripted import Line, Script

IMAGES = ("app:1", "app:2", "app:3")


@dataclass(frozen=True)
class Step:
    """What is done next: after so long, what, and to whom or how much."""

    wait: float
    what: str
    number: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([0.0, 0.5, 7.0, 400.0]),
        st.sampled_from(["begin", "begin", "begin", "finish", "fail", "refuse", "remove", "crash", "scale", "update"]),
        st.integers(0, 9),
    ),
    max_size=25,
)
BOUNDS = st.integers(0, 4) | st.floats(0.0, 1.0, allow_nan=False)


@dataclass
class History(Script):
    """A cluster in which pods start and end when a history says so."""

    wanted: int = 0
    image: str = "app:1"
    leaving: set[str] = field(default_factory=set)
    scaled_at: float = -1.0
    min_ready: float = 0.0

    def submit(self, pod, life):
        super().submit(pod, life)
        self.check("made")

    def remove(self, uid, grace=0.0):
        counted = uid in self.ready()
        self.leaving.add(uid)
        super().remove(uid, grace)
        if counted:
            self.check("removed")

    def check(self, what: str) -> None:
        """Hold what a controller just did against its bounds."""

    def there(self) -> list[str]:
        """List pods that have not ended and are not told to."""
        return [uid for uid, one in self.pods.items() if one.ended is None and uid not in self.leaving]

    def ready(self) -> list[str]:
        """List those of them that have run for long enough to count."""
        started = {uid: self.pods[uid].started for uid in self.there()}
        return [uid for uid, at in started.items() if at is not None and at + self.min_ready <= self.env.now]

    def play(self, steps: list[Step], *kinds: str) -> list[Line]:
        """Do one step after the other, those of *kinds* apart, then let every pod start; return all that happened."""
        told: list[Line] = []
        for step in steps:
            told += self.run(self.env.now + step.wait)
            if step.what not in kinds:
                self._do(step)
            told += self.run(self.env.now)
        self.start = 1.0
        for uid in self.there():
            self.env.after(1.0, self.begin, uid)
        return told + self.run(self.env.now + 100_000.0)

    def _do(self, step: Step) -> None:
        there = self.there()
        chosen = there[step.number % len(there)] if there else ""
        if step.what == "scale":
            self.scaled_at = self.env.now
            self.wanted = step.number
            self.controllers.scale("app", step.number)
        elif step.what == "update":
            self.image = IMAGES[step.number % len(IMAGES)]
            self.controllers.update("app", self.image)
        elif step.what == "crash":
            for uid in there[:: 1 + step.number % 3]:
                self.end(uid, "removed")
        elif chosen and step.what == "begin":
            self.begin(chosen)
        elif chosen:
            phases = {"finish": "finished", "fail": "failed", "refuse": "rejected", "remove": "removed"}
            self.end(chosen, phases[step.what])


# ---------------------------------------------------------------------------------------------------------- deployments


@dataclass
class Rolling(History):
    """Holds a Deployment against its bounds."""

    surge: int | float = 0
    unavailable: int | float = 0

    def check(self, what: str) -> None:
        more = self.surge if isinstance(self.surge, int) else math.ceil(self.surge * self.wanted)
        less = self.unavailable if isinstance(self.unavailable, int) else math.floor(self.unavailable * self.wanted)
        if what == "made":
            assert len(self.there()) <= self.wanted + more
        elif self.scaled_at < self.env.now:
            assert len(self.ready()) >= self.wanted - (less or int(more == 0))


def rolled(steps, replicas, bounds, stop, min_ready) -> tuple[Rolling, list[Line]]:
    surge, unavailable = bounds
    world = Rolling(start=None, stop=stop, wanted=replicas, surge=surge, unavailable=unavailable, min_ready=min_ready)
    world.add("Deployment", replicas=replicas, surge=surge, unavailable=unavailable, min_ready=min_ready)
    return world, world.play(steps)


# Scaled down in a rollout: the old ReplicaSet grows again while the new one shrinks.
TURNED_BACK = [
    Step(0.0, "update", 1),
    Step(0.0, "finish", 0),
    Step(0.0, "finish", 0),
    Step(0.0, "begin", 0),
    Step(0.0, "remove", 0),
    Step(0.0, "scale", 2),
]


@given(STEPS, st.integers(0, 9), st.tuples(BOUNDS, BOUNDS), st.sampled_from([0.0, 30.0]), st.sampled_from([0.0, 5.0]))
@example(TURNED_BACK, 3, (0, 0), 0.0, 0.0)
def test_a_deployment_keeps_its_bounds_and_gets_where_it_is_told(steps, replicas, bounds, stop, min_ready):
    """Never a pod too many is made; no rollout takes a ready pod that is still needed; in the end all are new."""
    world, told = rolled(steps, replicas, bounds, stop, min_ready)
    told_again = rolled(steps, replicas, bounds, stop, min_ready)[1]

    assert Counter({world.image: world.wanted} if world.wanted else {}) == Counter(
        world.pods[uid].pod.images[0] for uid in world.ready()
    )
    assert world.there() == world.ready()
    assert told == told_again


NODES = ("n1", "n2", "n3")
HAPPENINGS = st.lists(
    st.tuples(
        # Quarters meet often, and what happens together is where order shows.
        st.integers(0, 400).map(lambda quarters: quarters / 4),
        st.sampled_from(["drop", "join", "fail", "recover", "cordon", "uncordon", "drain"]).flatmap(
            lambda what: st.tuples(st.just(what), st.sampled_from(NODES))
        )
        | st.tuples(st.just("scale"), st.integers(0, 8))
        | st.tuples(st.just("update"), st.sampled_from(IMAGES)),
    ),
    max_size=12,
)


class Crowded(World):
    """Counts a Deployment's pods whenever it makes one."""

    wanted = 0
    more = 0

    def do(self, what: str, value: str | int) -> None:
        if what == "scale":
            self.wanted = int(value)
        if what in ("scale", "update"):
            getattr(self.controllers, what)("app", value)
        elif what != "join":
            getattr(self.cluster, what)(value)
        elif value not in self.cluster.kubelets:
            self.join(str(value))

    def note(self, record: trace_records.TraceRecord) -> None:
        super().note(record)
        if isinstance(record, trace_records.PodArrived):
            there = [one for one in self.cluster.pods.values() if one.phase not in ENDED and one.grace is None]
            assert len(there) <= self.wanted + self.more


def crowded(happenings, replicas, more, stopping) -> Crowded:
    # The first node always stays and has room for all: whatever happens to the others, everybody can be placed.
    world = Crowded("n0", *NODES[:2], pods=40)
    world.wanted, world.more = replicas, more
    world.add("Deployment", PodLifecycle(stopping=stopping), replicas=replicas, surge=more, unavailable=1)
    for at, (what, value) in sorted(happenings):
        world.env.at(at, world.do, what, value)
    world.env.run(5_000.0)
    return world


@given(HAPPENINGS, st.integers(0, 8), st.integers(0, 3), st.sampled_from([0.0, 10.0]))
def test_on_a_virtual_cluster_a_deployment_survives_what_happens_to_nodes(happenings, replicas, more, stopping):
    world = crowded(happenings, replicas, more, stopping)
    images = [value for _, (what, value) in sorted(happenings) if what == "update"]
    there = [one for one in world.cluster.pods.values() if one.phase not in ENDED]

    assert [("running", (images or ["app:1"])[-1])] * world.wanted == [(one.phase, one.pod.images[0]) for one in there]
    assert world.records == crowded(happenings, replicas, more, stopping).records


# ----------------------------------------------------------------------------------------------------------------- jobs


@given(STEPS, st.integers(0, 9), st.integers(1, 5), st.integers(0, 4))
def test_a_job_never_has_more_pods_than_parallelism_and_ends(steps, completions, parallelism, limit):
    def world() -> History:
        class Working(History):
            def check(self, what: str) -> None:
                assert what != "made" or len(self.there()) <= parallelism

            def begin(self, uid: str) -> None:
                """Once the history is over, pods end well a while after they started."""
                super().begin(uid)
                if self.start is not None:
                    self.env.after(5.0, self.end, uid, "finished")

        made = Working(start=None)
        made.add("Job", replicas=completions, parallelism=parallelism, backoff_limit=limit)
        return made

    one, other = world(), world()
    told = one.play(steps, "update", "scale", "begin")
    ends = Counter(what for _, what, _ in told)
    failed = sum(pod.phase in ("failed", "rejected") or uid_lost(one, uid) for uid, pod in one.pods.items())

    assert [] == one.there()
    assert (completions if failed <= limit else ends["finished"]) == ends["finished"]
    assert ends["finished"] <= completions
    # Those that were there when one too many failed may fail in the same instant.
    assert failed <= limit + parallelism
    assert told == other.play(steps, "update", "scale", "begin")


def uid_lost(world: History, uid: str) -> bool:
    """Whether a pod was removed by somebody else than its controller."""
    return world.pods[uid].phase == "removed" and uid not in world.leaving


# --------------------------------------------------------------------------------------------- one pod for each of many


@given(STEPS, st.integers(0, 5), st.sampled_from([0.0, 30.0]))
def test_a_stateful_set_never_has_two_pods_of_one_name_and_has_the_lowest_in_the_end(steps, replicas, stop):
    class Ordered(History):
        def check(self, what: str) -> None:
            names = Counter(one.pod.name for one in self.pods.values() if one.ended is None)
            assert max(names.values(), default=1) == 1

    world = Ordered(start=None, stop=stop, wanted=replicas)
    world.add("StatefulSet", replicas=replicas)
    world.play(steps)

    assert [(f"app-{ordinal}", world.image) for ordinal in range(world.wanted)] == sorted(
        (world.pods[uid].pod.name, world.pods[uid].pod.images[0]) for uid in world.ready()
    )


@given(STEPS, st.integers(0, 5), BOUNDS, st.lists(st.integers(0, 7), max_size=6))
def test_a_daemon_set_has_one_pod_on_every_node_in_the_end_and_never_two(steps, nodes, unavailable, changes):
    class Everywhere(History):
        def check(self, what: str) -> None:
            assert max(Counter(self.places()).values(), default=1) == 1

        def toggle(self, name: str) -> None:
            if name in self.nodes:
                self.drop(name)
            else:
                self.join(name)

        def places(self) -> list[str]:
            pods = [one.pod for one in self.pods.values() if one.ended is None]
            return [pod.required_nodes.terms[0].fields[0].values[0] for pod in pods]

    world = Everywhere(start=None)
    for number in range(nodes):
        world.join(f"n{number}")
    world.add("DaemonSet", unavailable=unavailable)
    for index, number in enumerate(changes):
        world.env.at(float(index), world.toggle, f"n{number}")
    world.play(steps, "scale")

    assert sorted(world.nodes) == sorted(world.places())
    assert {world.image} >= {world.pods[uid].pod.images[0] for uid in world.ready()}
    assert world.there() == world.ready()
