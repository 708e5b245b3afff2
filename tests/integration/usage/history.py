"""A past for Prometheus: what several nodes used, minute by minute, as OpenMetrics text with times."""

from collections.abc import Callable, Iterator, Mapping

Course = Callable[[float], float]
"""A number by time."""


def history(
    nodes: Mapping[str, tuple[Course, Course]], start: float, end: float, *, every: float = 15.0, cpus: int = 4
) -> str:
    """
    Write what nodes used from *start* to *end*: cores that were busy, and bytes.

    A node is known by its `instance`. Counters of seconds grow by what the rate at the middle of a step makes.
    """
    times = [start + n * every for n in range(int((end - start) / every) + 1)]
    lines = ["# TYPE node_cpu_seconds counter"]
    lines += [line for name, (cores, _) in nodes.items() for line in _idle(name, cores, times, every, cpus)]
    for metric, value in (("MemTotal", lambda _: 16e9), ("MemAvailable", None)):
        lines.append(f"# TYPE node_memory_{metric}_bytes gauge")
        for name, (_, used) in nodes.items():
            for at in times:
                number = value(at) if value is not None else 16e9 - used(at)
                lines.append(f'node_memory_{metric}_bytes{{instance="{name}",job="node"}} {number!r} {at:.3f}')
    return "\n".join([*lines, "# EOF", ""])


def idle_counters(
    processors: Mapping[tuple[str, str, str], Course], start: float, end: float, every: float = 15.0
) -> str:
    """Write counters of seconds as they stood from *start* to *end*, by node, processor and mode."""
    lines = ["# TYPE node_cpu_seconds counter"]
    for (name, cpu, mode), value in processors.items():
        for n in range(int((end - start) / every) + 1):
            at = start + n * every
            labels = f'cpu="{cpu}",mode="{mode}",instance="{name}",job="node"'
            lines.append(f"node_cpu_seconds_total{{{labels}}} {value(at)!r} {at:.3f}")
    return "\n".join([*lines, "# EOF", ""])


def _idle(name: str, cores: Course, times: list[float], every: float, cpus: int) -> Iterator[str]:
    shares = [1 - cores(at - every / 2) / cpus for at in times]
    for cpu in range(cpus):
        for mode in ("idle", "user"):
            seconds = 1000.0
            for at, share in zip(times, shares, strict=True):
                seconds += every * (share if mode == "idle" else 1 - share)
                labels = f'cpu="{cpu}",mode="{mode}",instance="{name}",job="node"'
                yield f"node_cpu_seconds_total{{{labels}}} {seconds!r} {at:.3f}"
