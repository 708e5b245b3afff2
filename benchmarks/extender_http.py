"""
Measure the extender alone with wrk: requests per second, p99, and CPU per request.

A real API server holds 5,000 nodes and their layers; `lamina extender --agents layers,foo` watches them. wrk (Debian's
package of that name) sends requests with 500 and with 5,000 node names for pods of 50 images in turn, over one
connection as kube-scheduler does and over four. `foo` scores nothing, so it shows the cost of a request without
scoring; the smallest endpoint shows the cost of HTTP. Nothing else runs, but wrk and the extender share the machine's
cores.

LAMINA_QUICK=1 runs 200 nodes, 50 and 200 names, one second each. LAMINA_PROFILE=FILE profiles the extender.
"""

import json
import os
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from _contest import allow_layers, tell_layers
from _extender import LOOPBACK, Beside, beside, question
from testbed import Testbed

NAME: Final = "extender-http"
SUMMARY: Final = "The extender asked by wrk: requests per second, p99 and CPU per request at 500 and 5,000 names"

CRDS: Final = Path(__file__).resolve().parent.parent / "deploy" / "crds"
SEED: Final = 3
QUESTIONS: Final = 50
UNITS: Final = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 60e3}
SCRIPT: Final = """
local bodies = {}
for number = 1, COUNT do
  local file = io.open("FOLDER/" .. number .. ".json", "rb")
  bodies[number] = file:read("*a")
  file:close()
end
local turn = 0
request = function()
  turn = turn % COUNT + 1
  return wrk.format("POST", nil, {["Content-Type"] = "application/json"}, bodies[turn])
end
"""


class Load(msgspec.Struct, frozen=True):
    """wrk's figures, and the extender's CPU time."""

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    errors: int


def wrk(extender: Beside, path: str, script: Path | None, connections: int, seconds: int) -> Load:
    """Run wrk for some seconds."""
    command = ["wrk", "--latency", "-t1", f"-c{connections}", f"-d{seconds}s"]
    if script is not None:
        command += ["-s", str(script)]
    before = extender.process.cpu_seconds()
    done = subprocess.run(
        [*command, f"http://{LOOPBACK}:{extender.port}{path}"], capture_output=True, text=True, check=True
    )
    used = extender.process.cpu_seconds() - before
    text = done.stdout
    count = int(_found(r"(\d+) requests in", text))
    wrong = sum(
        int(one) for one in re.findall(r"(?:Non-2xx or 3xx responses|connect|read|write|timeout):? (\d+)", text)
    )
    return Load(
        per_second=float(_found(r"Requests/sec:\s+([\d.]+)", text)),
        p50_ms=_time(_found(r"(?m)^\s+50%\s+(\S+)$", text)),
        p99_ms=_time(_found(r"(?m)^\s+99%\s+(\S+)$", text)),
        cpu_us=used / count * 1e6,
        errors=wrong,
    )


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"wrk's output has another format:\n{text}")
    return match[1]


def _time(text: str) -> float:
    unit = text.lstrip("0123456789.")
    return float(text.removesuffix(unit)) * UNITS[unit]


def script_of(folder: Path, names: Sequence[str], asked: int) -> Path:
    """Write requests with *asked* node names each, all different, and the script that sends them."""
    rng = random.Random(SEED)
    folder.mkdir()
    for number in range(QUESTIONS):
        (folder / f"{number + 1}.json").write_bytes(question(rng.sample(names, asked), number))
    path = folder / "ask.lua"
    path.write_text(SCRIPT.replace("COUNT", str(QUESTIONS)).replace("FOLDER", str(folder)), encoding="utf-8")
    return path


def measure(
    extender: Beside, folder: Path, names: Sequence[str], sizes: tuple[int, int], seconds: int
) -> dict[str, Any]:
    """Measure all paths and print the table."""
    print(
        f"{'path':<28} {'names':>6} {'connections':>12} {'req/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'CPU µs':>8} {'errors':>7}"
    )
    few, many = sizes
    scripts = {size: script_of(folder / str(size), names, size) for size in sizes}
    loads: dict[str, Load] = {}
    for key, path, size, connections in (
        ("page", "/livez", 0, 1),
        ("foo_500", "/scheduler/priorities/foo", few, 1),
        ("foo_5000", "/scheduler/priorities/foo", many, 1),
        ("500", "/scheduler/priorities/layers", few, 1),
        ("5000", "/scheduler/priorities/layers", many, 1),
        ("500_by_4", "/scheduler/priorities/layers", few, 4),
        ("5000_by_4", "/scheduler/priorities/layers", many, 4),
    ):
        script = scripts.get(size)
        wrk(extender, path, script, connections, 1)
        load = loads[key] = wrk(extender, path, script, connections, seconds)
        print(
            f"{path:<28} {size:>6,} {connections:>12} {load.per_second:>8.0f} {load.p50_ms:>8.2f} {load.p99_ms:>8.2f}"
            f" {load.cpu_us:>8.0f} {load.errors:>7}",
            flush=True,
        )
    found: dict[str, Any] = {"nodes": len(names), "errors": sum(load.errors for load in loads.values())}
    for key, load in loads.items():
        found |= {
            f"req_per_s_{key}": round(load.per_second),
            f"p99_ms_{key}": round(load.p99_ms, 2),
            f"cpu_us_{key}": round(load.cpu_us, 1),
        }
    return found


def main() -> dict[str, object]:
    """Start a control plane and an extender, and measure."""
    if shutil.which("wrk") is None:
        raise SystemExit("lamina: this benchmark needs wrk; install the Debian package of that name")
    quick = bool(os.environ.get("LAMINA_QUICK"))
    nodes, sizes, seconds = (200, (50, 200), 1) if quick else (5_000, (500, 5_000), 10)
    with tempfile.TemporaryDirectory() as folder, Testbed.start() as bed:
        allow_layers(bed, CRDS)
        names = [f"node-{number:05}" for number in range(nodes)]
        bed.add_nodes({"name": name, "cpu": "4", "memory": "32Gi"} for name in names)
        tell_layers(bed, nodes)
        with beside(bed, "layers,foo", Path(folder) / "extender.log") as extender:
            found = measure(extender, Path(folder), names, sizes, seconds)
            return {**found, "peak_mib": round(extender.process.peak_mib())}


if __name__ == "__main__":
    print(json.dumps({"benchmark": NAME, **main()}))
