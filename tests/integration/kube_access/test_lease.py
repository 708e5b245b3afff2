"""Contenders for one lease on a real API server: processes that are stopped, killed and end; and kube-scheduler itself."""

import asyncio
import itertools
import signal
import sys
from pathlib import Path

import pytest

from lamina.clients.kube.leader_election import since_boot

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

LEASE, RENEW, RETRY = 6.0, 4.0, 0.5
ROOT = Path(__file__).resolve().parents[3]
_NUMBERS = itertools.count()


class Contender:
    """A process that contends."""

    def __init__(self, process, identity):
        self.process, self.identity = process, identity
        self.lines: list[tuple[float, str]] = []
        self.reading = asyncio.create_task(self._read())

    async def _read(self):
        while line := await self.process.stdout.readline():
            moment, word = line.split()
            self.lines.append((float(moment), word.decode()))

    def said(self, *words: str) -> list[tuple[float, str]]:
        return [line for line in self.lines if line[1] in words]

    async def until(self, word: str, count: int = 1) -> float:
        """Wait until it has said a word so often; when that was."""
        async with asyncio.timeout(90):
            while len(self.said(word)) < count:
                await asyncio.sleep(0.02)
        return self.said(word)[count - 1][0]

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)


class Contest:
    """Contenders for one lease."""

    def __init__(self, bed, name: str) -> None:
        self.bed, self.name = bed, name
        self.started: list[Contender] = []

    async def contender(self, identity: str) -> Contender:
        """Start one more."""
        words = [str(self.bed.admin), "kube-system", self.name, identity, *map(str, (LEASE, RENEW, RETRY))]
        program = [sys.executable, "-m", "tests.integration.kube_access.leading", *words]
        process = await asyncio.create_subprocess_exec(*program, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
        self.started.append(Contender(process, identity))
        return self.started[-1]

    @property
    def spec(self):
        """What the lease says."""
        return self.bed.api("GET", f"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/{self.name}")["spec"]

    async def end(self) -> None:
        for one in self.started:
            if one.process.returncode is None:
                one.process.kill()
            await one.process.wait()
            await one.reading


@pytest.fixture
async def contest(control_plane):
    """On the control plane that all tests share."""
    contest = Contest(control_plane, f"contest-{next(_NUMBERS)}")
    yield contest
    await contest.end()


@pytest.fixture
async def own_contest(bed_factory):
    """On a control plane that may be treated badly."""
    contest = Contest(bed_factory(), "contest")
    yield contest
    await contest.end()


def together(first: Contender, second: Contender) -> list[float]:
    """Moments at which both would have acted: within a tenth of a second of each other."""
    acts = sorted([(t, 0) for t, _ in first.said("acts")] + [(t, 1) for t, _ in second.said("acts")])
    return [a for (a, who), (b, other) in itertools.pairwise(acts) if who != other and b - a < 0.1]


async def test_a_leader_that_is_killed_is_replaced_after_its_term(contest):
    first = await contest.contender("first")
    await first.until("began")
    second = await contest.contender("second")
    await second.until("waits", 20)
    first.send(signal.SIGKILL)
    killed = since_boot()
    took_over = await second.until("began")

    assert took_over - killed >= LEASE - 2 * RETRY
    spec = contest.spec
    assert ("second", 6, 1) == (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"])


async def test_a_leader_that_ends_gives_its_lease_back_and_nobody_waits(contest):
    first = await contest.contender("first")
    await first.until("began")
    second = await contest.contender("second")
    await second.until("waits", 20)
    first.send(signal.SIGTERM)
    ended = await first.until("ended")
    took_over = await second.until("began")

    assert 0 < took_over - ended < LEASE


async def test_a_leader_that_is_stopped_does_not_act_when_it_goes_on(contest):
    """It sleeps until long after another has taken over; of all its looks none says yes before it has found out."""
    first = await contest.contender("first")
    await first.until("acts", 20)
    second = await contest.contender("second")
    await second.until("waits", 20)
    first.send(signal.SIGSTOP)
    await second.until("acts", 20)
    resumed = since_boot()
    first.send(signal.SIGCONT)
    await first.until("ended")
    await asyncio.sleep(1)

    assert [] == [moment for moment, word in first.said("acts") if moment > resumed]
    assert [] == together(first, second)
    assert 1 == len(second.said("began"))


async def test_an_api_server_that_is_away_ends_leadership_in_time_and_it_comes_back(own_contest):
    server = own_contest.bed.parts["kube-apiserver"]
    first = await own_contest.contender("first")
    await first.until("acts", 20)
    await asyncio.to_thread(server.pause)
    paused = since_boot()
    ended = await first.until("ended")
    await asyncio.to_thread(server.resume)
    await first.until("began", 2)

    last = max(moment for moment, _ in first.said("acts") if moment < ended)
    assert last - paused <= RENEW


@pytest.mark.testbed("kube-scheduler")
async def test_a_lease_changes_hands_between_us_and_kube_scheduler(own_contest):
    """Both follow client-go's rules, so neither takes it while the other renews, and each takes it when it is free."""
    bed = own_contest.bed
    election = {
        "leaderElect": True,
        "resourceName": own_contest.name,
        "resourceNamespace": "kube-system",
        "leaseDuration": f"{LEASE:g}s",
        "renewDeadline": f"{RENEW:g}s",
        "retryPeriod": f"{RETRY:g}s",
    }
    first = await own_contest.contender("first")
    await first.until("acts", 20)
    await asyncio.to_thread(bed.start_part, "kube-scheduler", config={"leaderElection": election})
    await first.until("acts", 100)
    assert ([], "first") == (first.said("ended"), own_contest.spec["holderIdentity"])

    first.send(signal.SIGTERM)
    async with asyncio.timeout(90):
        while own_contest.spec["holderIdentity"] in ("first", ""):
            await asyncio.sleep(0.2)
    second = await own_contest.contender("second")
    await second.until("waits", 200)
    assert [] == second.said("began")

    await asyncio.to_thread(bed.parts["kube-scheduler"].kill)
    await second.until("began")
    assert own_contest.spec["leaseTransitions"] >= 2
