"""Laws of gangs: none runs in part, none blocks another for ever, and small pods do not starve a large one."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.model import events
from lamina.model.pod import HostPort, Pod
from lamina.model.pod_groups import gang_annotations
from lamina.scheduling.plugins.batch.gangs.args import GangSchedulingArgs
from lamina.testing import LoopHarness, a_loop, a_node, a_pod

CORE = ("SchedulingGates", "PrioritySort", "NodePorts", "NodeResourcesFit", "GangScheduling", "DefaultBinder")
CORES = 4
# A run is many decisions; many more are tried under `make soak`.
FEWER = settings(max_examples=settings().max_examples // 4)
STEP = 5.0


class DrawnGang(msgspec.Struct, frozen=True):
    """A gang: its pods request *cpus* cores each, and *least* of them start together."""

    cpus: tuple[int, ...]
    least: int
    ports: bool
    """Whether its pods use one host port, so that each needs a node of its own."""
    at: int
    seconds: int

    @property
    def cores(self) -> int:
        return sum(self.cpus)


@st.composite
def gangs(draw: st.DrawFn) -> DrawnGang:
    cpus = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=6)))
    return DrawnGang(
        cpus, draw(st.integers(1, len(cpus))), draw(st.booleans()), draw(st.integers(0, 6)), draw(st.integers(1, 8))
    )


def fits_alone(gang: DrawnGang, nodes: int) -> bool:
    """Return whether a gang fits into the empty cluster however it is packed."""
    if gang.ports:
        return len(gang.cpus) <= nodes
    # A node can be left with less than the largest request, at most.
    return gang.cores <= nodes * (CORES - max(gang.cpus) + 1)


def members(number: int, gang: DrawnGang) -> list[Pod]:
    written = gang_annotations(f"g{number}", gang.least, timeout=20)
    made = [a_pod(f"g{number}-{index}", cpu=cpu) for index, cpu in enumerate(gang.cpus)]
    ports = (HostPort(8080 + number),) if gang.ports else ()
    return [msgspec.structs.replace(pod, annotations=written, host_ports=ports) for pod in made]


class GangRun:
    """A cluster in steps of time: gangs arrive, run for their time, and end; small pods come without end."""

    def __init__(self, drawn: list[DrawnGang], nodes: int, *, small: bool, order: str = "queue") -> None:
        args = GangSchedulingArgs(reserve_after=20.0, order=order)  # type: ignore[arg-type]
        self.harness = LoopHarness(a_loop(CORE, args={"GangScheduling": args}))
        self.harness.tell(*(events.NodeSeen(a_node(f"n{n}", cpu=CORES)) for n in range(nodes)))
        self.drawn = drawn
        self.small = small
        self.pods = {pod.name: number for number, gang in enumerate(drawn) for pod in members(number, gang)}
        self.ends: dict[str, float] = {}
        self.started: set[int] = set()
        self.partial: list[str] = []

    def step(self, number: int) -> None:
        now = number * STEP
        ended = [name for name, end in self.ends.items() if end <= now]
        for name in ended:
            del self.ends[name]
        arriving = [pod for n, gang in enumerate(self.drawn) if gang.at == number for pod in members(n, gang)]
        # One by one and interleaved with others, as they come from an API server.
        arriving.sort(key=lambda pod: pod.name.rpartition("-")[2])
        if self.small:
            arriving.append(a_pod(f"s{number}", cpu=2))
        self.harness.tell(events.TimePassed(now), *(events.PodGone(a_pod(name).uid) for name in ended))
        for pod in arriving:
            self.harness.see(pod)
        for name in self.harness.bound:
            if name not in self.ends and name in self.running():
                gang = self.pods.get(name)
                self.ends[name] = now + STEP * (3 if gang is None else self.drawn[gang].seconds)
        self.check(now)

    def running(self) -> set[str]:
        return {placed.pod.name for placed in self.harness.loop.cluster.cache}

    def check(self, now: float) -> None:
        there: dict[int, int] = {}
        for name in self.running():
            if name in self.pods:
                there[self.pods[name]] = there.get(self.pods[name], 0) + 1
        for number, count in there.items():
            if number not in self.started and count < self.drawn[number].least:
                self.partial.append(f"{now}: {count} of gang {number}")
            self.started.add(number)


@FEWER
@given(
    drawn=st.lists(gangs(), min_size=1, max_size=6), nodes=st.integers(1, 4), order=st.sampled_from(["queue", "drf"])
)
def test_no_gang_runs_in_part_and_no_gang_blocks_another_for_ever(drawn: list[DrawnGang], nodes: int, order: str):
    fitting = [gang for gang in drawn if fits_alone(gang, nodes)]
    run = GangRun(fitting, nodes, small=False, order=order)
    # Each of at most six gangs runs for at most eight steps after the last arrival, with back-offs in between.
    for number in range(7 + 6 * (8 + 4)):
        run.step(number)

    assert ([], set(run.pods)) == (run.partial, set(run.harness.bound) - {f"s{n}" for n in range(200)})


@FEWER
@given(drawn=st.lists(gangs(), min_size=1, max_size=3), nodes=st.integers(1, 3))
def test_small_pods_do_not_starve_a_large_gang(drawn: list[DrawnGang], nodes: int):
    """A small pod comes at every step and takes half a node for three steps: more than one node can hold."""
    fitting = [gang for gang in drawn if fits_alone(gang, nodes)]
    run = GangRun(fitting, nodes, small=True)
    for number in range(80):
        run.step(number)

    assert ([], set(range(len(fitting)))) == (run.partial, run.started)
