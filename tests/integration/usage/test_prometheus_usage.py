"""
A real Prometheus server: means and deviations are those of what was exposed, and every fault is one line.

Histories are exact, because they are made; what is scraped each second wavers by the moments of the scrapes.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lamina.clients.prometheus.client import PrometheusClient
from lamina.clients.prometheus.errors import BAD_QUERY, REFUSED, TOO_MUCH, UNREACHABLE, PrometheusError
from lamina.clients.prometheus.server import PrometheusServer
from lamina.model.node import Node
from lamina.services.informers.usage.prometheus import PrometheusUsage
from lamina.services.informers.usage.queries import Forecast, Queries
from lamina.testing import a_node
from testbed import MissingError, leftovers
from testbed.fixtures import do_without
from testbed.prometheus import PASSWORD, USER, NodeExporter, Prometheus, Target
from tests.integration.usage.exporter import Exporter, Machine
from tests.integration.usage.history import history, idle_counters

pytestmark = [pytest.mark.realtime, pytest.mark.slow]

QUICK = Queries(window=4.0, step=1.0, rate=3.0)
"""For what is scraped each second."""


def nodes(**addresses: str) -> dict[str, Node]:
    return {name: a_node(name, addresses=[address]) for name, address in addresses.items()}


async def look(server: Prometheus, known: dict[str, Node], queries: Queries | None = None):
    client = PrometheusClient(PrometheusServer(url=server.url))
    source = PrometheusUsage(client, queries)
    try:
        return {one.node: one for one in await source.look(known)}, source.remark
    finally:
        await source.close()


async def until(holds: Callable[[], Any], within: float = 30.0) -> Any:
    """Ask again and again until the answer is yes, and return it."""
    end = time.monotonic() + within
    while not (answer := await holds()):
        assert time.monotonic() < end, "it did not come to that"
        await asyncio.sleep(0.2)
    return answer


async def test_means_and_deviations_over_the_window_are_those_of_what_was_exposed(starting):
    """
    Fifteen minutes at default settings. Steady use has no deviation, however its counter grows.
    """
    now = time.time()

    def swings(at: float) -> float:
        """Between 1 and 3 cores, five minutes each: over fifteen minutes and a sine, mean 2."""
        return 2 + math.sin(2 * math.pi * (now - at) / 300)

    made = {
        "10.0.0.1:9100": (lambda _: 1.5, lambda _: 4e9),
        "10.0.0.2:9100": (swings, lambda at: 4e9 + 1e9 * math.sin(2 * math.pi * (now - at) / 300)),
    }
    server = starting(Prometheus(blocks=history(made, now - 1200, now)))
    found, remark = await look(server, nodes(n1="10.0.0.1", n2="10.0.0.2"))
    steady, swinging = found["n1"], found["n2"]

    assert "" == remark
    assert (pytest.approx(1500, abs=1), pytest.approx(0, abs=1)) == (steady.cpu.mean, steady.cpu.deviation)
    assert (4e9, 0.0) == (steady.memory.mean, steady.memory.deviation)
    # A sine of height 1 has a deviation of 1/√2. The slope of a line through 120 of its 300 seconds keeps
    # 3 (sin x - x cos x) / x³ of it, x = 2π·60/300, and a little more, because samples do not fill the 120 seconds.
    x = 2 * math.pi * 60 / 300
    kept = 3 * (math.sin(x) - x * math.cos(x)) / x**3
    assert pytest.approx(2000, abs=40) == swinging.cpu.mean
    assert pytest.approx(1000 / math.sqrt(2) * kept, rel=0.1) == swinging.cpu.deviation
    assert pytest.approx(4e9, rel=0.01) == swinging.memory.mean
    assert pytest.approx(1e9 / math.sqrt(2), rel=0.05) == swinging.memory.deviation
    assert pytest.approx(900) == steady.until - steady.since
    assert 0 == steady.until % 30
    assert -1 < time.time() - steady.until < 35


async def test_a_node_that_has_just_come_does_not_look_busy(starting):
    """
    Its counters begin in the middle of the first rates, where Prometheus makes up what is missing.
    """
    now = time.time()
    server = starting(Prometheus(blocks=history({"10.0.0.1:9100": (lambda _: 1.0, lambda _: 1e9)}, now - 180, now)))
    found, _ = await look(server, nodes(n1="10.0.0.1"))
    usage = found["n1"]

    assert (pytest.approx(1000, abs=1), pytest.approx(0, abs=1)) == (usage.cpu.mean, usage.cpu.deviation)
    assert pytest.approx(180, abs=31) == usage.until - usage.since


async def test_a_node_is_not_known_while_a_counter_of_any_processor_cannot_be_right(starting):
    """
    Two processors that are always busy, so that whatever makes one of them look idle shows.
    """
    now = time.time()
    recently, before = now - 60, now - 500

    def leaps(when: float) -> Callable[[float], float]:
        """As if another machine, which is up for longer, had the address since then."""
        return lambda at: 100.0 if at < when else 9000.0

    def begins_anew(at: float) -> float:
        """A machine that was never idle for long was restarted, and its counter has outgrown what it lost."""
        return 50.0 if at < now - 100 else at - (now - 100)

    def steady(_: float) -> float:
        return 1000.0

    first = {
        "leaps:1": leaps(recently),
        "leapt:1": leaps(before),
        "begins-anew:1": begins_anew,
        "busy:1": steady,
        "slips:1": steady,
    }
    made = {(name, "0", "idle"): course for name, course in first.items()}
    made |= {(name, "1", "idle"): steady for name in first}
    made |= {(name, cpu, "iowait"): steady for name in first for cpu in "01"}
    # What waits for a disk is counted with errors, and may go back a little.
    made["slips:1", "0", "iowait"] = lambda at: 1000.0 if at < recently else 999.9
    server = starting(Prometheus(blocks=idle_counters(made, now - 1200, now)))
    known = {name.removesuffix(":1"): a_node(name.removesuffix(":1")) for name in first}
    found, remark = await look(server, known)

    busy = (pytest.approx(2000, abs=2), pytest.approx(0, abs=2))
    assert dict.fromkeys(("busy", "leapt", "slips"), busy) == {
        name: (one.cpu.mean, one.cpu.deviation) for name, one in found.items()
    }
    assert "3 of 5 nodes are measured; no series for begins-anew, leaps" in remark


async def test_a_forecast_follows_the_line_or_the_day_before(starting):
    now = time.time()
    growing = {"10.0.0.1:9100": (lambda _: 1.0, lambda at: 4e9 + 1e6 * (at - now))}
    yesterday = {"10.0.0.1:9100": (lambda _: 3.0, lambda _: 9e9)}
    old = history(yesterday, now - 86_400 - 600, now - 86_400 + 900, cpus=4)
    new = history(growing, now - 1200, now, cpus=4)
    # A counter of yesterday and one of today are two histories of one series, so they are filled in one after the other.
    server = starting(Prometheus(blocks=_joined(old, new)))
    known = nodes(n1="10.0.0.1")

    line, _ = await look(server, known, Queries(forecast=Forecast(method="linear")))
    season, _ = await look(server, known, Queries(forecast=Forecast(method="seasonal")))

    # A megabyte a second, ten minutes on.
    assert pytest.approx(4.6e9, rel=0.01) == line["n1"].memory.forecast
    assert pytest.approx(1000, abs=5) == line["n1"].cpu.forecast
    assert (pytest.approx(3000, abs=5), 9e9) == (season["n1"].cpu.forecast, season["n1"].memory.forecast)


def _joined(first: str, second: str) -> str:
    """Put two histories of the same series together, metric by metric, in order of time."""
    metrics: dict[str, list[str]] = {}
    for text in (first, second):
        metric = ""
        for line in text.splitlines():
            if line.startswith("# TYPE"):
                metric = line
                metrics.setdefault(metric, [])
            elif line != "# EOF" and line:
                metrics[metric].append(line)
    series = [
        line
        for metric, lines in metrics.items()
        for line in (metric, *sorted(lines, key=lambda one: (one.split(" ")[0], float(one.split(" ")[2]))))
    ]
    return "\n".join([*series, "# EOF", ""])


@dataclass(frozen=True)
class Live:
    """A server, what it scrapes, and why this machine's own numbers are not among it."""

    server: Prometheus
    exporter: Exporter
    lacking: MissingError | None


MADE_UP = msgspec.structs.replace(QUICK, matchers='real=""')
REAL = msgspec.structs.replace(QUICK, matchers='real="yes"')
KNOWN = nodes(n1="10.0.0.1", n2="10.0.0.2", n3="10.0.0.3", n4="10.0.0.4", n5="10.0.0.5")


@pytest.fixture(scope="module")
def live() -> Iterator[Live]:
    """Six machines that are scraped each second; one server for several tests, for the first scrape takes seconds."""
    with ExitStack() as stack:
        exporter = stack.enter_context(Exporter())
        exporter.machines = {
            "by-label": Machine(busy=lambda _: 0.25),
            "by-address": Machine(busy=lambda _: 0.50, cpus=2),
            "by-uname": Machine(busy=lambda _: 0.75, nodename="n3"),
            "twice": Machine(busy=lambda _: 0.10),
            "stranger": Machine(),
        }
        targets = [
            exporter.target("by-label", instance="somewhere:1", node="n1"),
            exporter.target("by-address", instance="10.0.0.2:9100"),
            exporter.target("by-uname", instance="172.16.9.9:9100"),
            # Two jobs that scrape one machine must not make it twice as busy.
            exporter.target("twice", instance="10.0.0.4:9100", team="a"),
            exporter.target("twice", instance="10.0.0.4:9100", team="b"),
            exporter.target("stranger", instance="192.168.1.1:9100"),
        ]
        lacking: MissingError | None = None
        try:
            targets.append(Target(stack.enter_context(NodeExporter()).address, {"real": "yes"}))
        except MissingError as error:
            lacking = error
        try:
            yield Live(stack.enter_context(Prometheus(targets)), exporter, lacking)
        except MissingError as error:
            do_without(error)


async def test_what_is_scraped_is_told_by_every_way_of_naming_a_node(live):
    """
    One job, four machines, each known by something else; a fifth belongs to nobody.
    """

    async def all_of_them():
        found, remark = await look(live.server, KNOWN, MADE_UP)
        full = len(found) == 4 and all(one.cpu is not None for one in found.values())
        return (found, remark) if full else None

    found, remark = await until(all_of_them)
    # Scrapes are a second apart, give or take some milliseconds on a busy machine.
    expected = {"n1": 1000, "n2": 1000, "n3": 3000, "n4": 400}
    assert {name: pytest.approx(value, abs=200) for name, value in expected.items()} == {
        name: one.cpu.mean for name, one in found.items()
    }
    assert [4e9] * 4 == [one.memory.mean for one in found.values()]
    assert '4 of 5 nodes are measured; no series for n5; series without a node: instance="192.168.1.1:9100"' == remark


async def test_a_machine_that_falls_silent_is_left_out_and_a_server_that_is_restarted_goes_on(live):
    server, exporter = live.server, live.exporter

    async def told(*expected: str) -> bool:
        return set(expected) == set((await look(server, KNOWN, MADE_UP))[0])

    await until(lambda: told("n1", "n2", "n3", "n4"))
    silent = exporter.machines.pop("by-address")
    await until(lambda: told("n1", "n3", "n4"))

    server.program.restart()
    exporter.machines["by-address"] = silent
    await until(lambda: told("n1", "n2", "n3", "n4"))


async def failure(server: Prometheus, query: str = "up", timeout: float = 2.0, **login: Any) -> PrometheusError:
    client = PrometheusClient(PrometheusServer(url=server.url, **login), timeout=timeout)
    try:
        with pytest.raises(PrometheusError) as raised:
            await client.query(query)
    finally:
        await client.close()
    assert 1 == len(str(raised.value).splitlines())
    return raised.value


async def test_a_server_that_hangs_stops_or_does_not_understand_is_one_line(starting):
    server = starting(Prometheus())
    error = await failure(server, "sum by (")
    assert (BAD_QUERY, True) == (error.reason, "parse error" in str(error))

    server.program.pause()
    # Its threads stop one after the other.
    while leftovers.state(server.program.pid) != "T":
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    began = time.monotonic()
    assert UNREACHABLE == (await failure(server)).reason
    assert time.monotonic() - began < 4
    server.program.resume()
    client = PrometheusClient(PrometheusServer(url=server.url))
    assert 1 == len((await client.query("vector(1)")).series)
    await client.close()

    server.program.kill()
    assert "connection failed; is it running" in str(await failure(server))


async def test_a_deadline_may_have_a_fraction(starting):
    client = PrometheusClient(PrometheusServer(url=starting(Prometheus()).url), timeout=2.5)
    assert 1 == len((await client.query("vector(1)")).series)
    await client.close()


async def test_a_huge_answer_is_not_read(starting, monkeypatch):
    now = time.time()
    made = {f"10.0.{n // 250}.{n % 250}:9100": (lambda _: 1.0, lambda _: 1e9) for n in range(200)}
    server = starting(Prometheus(blocks=history(made, now - 60, now)))
    monkeypatch.setattr("lamina.clients.prometheus.client.LIMIT", 20_000)

    # 200 nodes of 4 processors, some 130 bytes each.
    assert TOO_MUCH == (await failure(server, "node_cpu_seconds_total")).reason


async def test_a_password_is_asked_for_and_known(starting, tmp_path):
    server = starting(Prometheus(password=True))
    assert REFUSED == (await failure(server)).reason
    (tmp_path / "wrong").write_text("canary")
    (tmp_path / "right").write_text(PASSWORD)
    error = await failure(server, user=USER, password_file=tmp_path / "wrong")
    assert (REFUSED, False) == (error.reason, "canary" in str(error))

    client = PrometheusClient(PrometheusServer(url=server.url, user=USER, password_file=Path(tmp_path / "right")))
    assert 1 == len((await client.query("vector(1)")).series)
    await client.close()


async def test_this_machine_is_told_of_by_the_real_node_exporter(live):
    if live.lacking is not None:
        do_without(live.lacking)
    known = nodes(here="127.0.0.1")

    async def full():
        found, _ = await look(live.server, known, REAL)
        # What is used of processors is known a scrape later than of memory.
        return found["here"] if "here" in found and found["here"].cpu is not None else None

    usage = await until(full)
    meminfo = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
    cpus = sum(line.startswith("cpu") for line in Path("/proc/stat").read_text().splitlines()) - 1
    assert 0 <= usage.cpu.mean <= cpus * 1000
    assert 0 < usage.memory.mean < int(meminfo["MemTotal:"]) * 1024
