"""
Pages with node-exporter's metrics, and numbers that a test chooses.

    with Exporter() as exporter:
        exporter.machines["n1"] = Machine(cpus=4, busy=lambda second: 0.25)
        exporter.target("n1", instance="10.0.0.1:9100")

Counters are what the chosen rate adds up to since the exporter began, worked out when they are asked for.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from testbed.prometheus import Target

TICK: Final = 0.05
"""Seconds in whose middle a rate is taken for all of them."""


@dataclass
class Machine:
    """One node."""

    cpus: int = 4
    busy: Callable[[float], float] = lambda _: 0.25
    """The share of its processors in use, by the seconds since the exporter began."""
    memory: int = 16 * 10**9
    used: Callable[[float], float] = lambda _: 4e9
    nodename: str = ""
    counters: dict[str, float] = field(default_factory=dict)
    """Further counters, with their labels, by how much they grow in a second."""
    gauges: dict[str, float] = field(default_factory=dict)


class Exporter:
    """Serves a page for each machine."""

    def __init__(self) -> None:
        self.machines: dict[str, Machine] = {}
        self.asked = 0
        self._began = time.time()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.time() - self._began

    def target(self, machine: str, **labels: str) -> Target:
        """Where Prometheus finds a machine; *labels* are added to its metrics, `instance` among them."""
        host, port = self._server.server_address[:2]
        return Target(f"{host!s}:{port}", {"__metrics_path__": f"/{machine}", **labels})

    def page(self, machine: Machine) -> str:
        """What a machine tells now."""
        now = self.seconds
        ticks = int(now / TICK)
        idle = sum(1 - machine.busy((n + 0.5) * TICK) for n in range(ticks)) * TICK
        idle += (now - ticks * TICK) * (1 - machine.busy(now))
        lines = []
        for cpu in range(machine.cpus):
            for mode, seconds in (("idle", idle * 0.9), ("iowait", idle * 0.1), ("user", now - idle)):
                lines.append(f'node_cpu_seconds_total{{cpu="{cpu}",mode="{mode}"}} {seconds!r}')
        lines.append(f"node_memory_MemTotal_bytes {machine.memory}")
        lines.append(f"node_memory_MemAvailable_bytes {machine.memory - machine.used(now)!r}")
        if machine.nodename:
            lines.append(f'node_uname_info{{nodename="{machine.nodename}",sysname="Linux"}} 1')
        lines += [f"{name} {rate * now!r}" for name, rate in machine.counters.items()]
        lines += [f"{name} {value!r}" for name, value in machine.gauges.items()]
        return "\n".join(lines) + "\n"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        exporter = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exporter.asked += 1
                machine = exporter.machines.get(self.path.strip("/"))
                body = exporter.page(machine).encode() if machine is not None else b""
                self.send_response(200 if machine is not None else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler
