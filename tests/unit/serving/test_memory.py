"""What a large exchange costs in memory, measured from outside on a server in a process of its own."""

import asyncio
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.serving.visiting import Caller, chunks, get, post

MIB = 1024**2
NODE = b"x" * 11_200
NODES = 5_000  # 56 MB

SERVER = """
import asyncio
from lamina.serving.server_limits import ServerLimits
from lamina.serving.http_server import HttpServer
from lamina.serving.response import HttpResponse
from lamina.serving.routes import Routes
from tests.unit.serving.visiting import Notebook

def nodes(body):
    return HttpResponse(pieces=tuple(bytes(body[start : start + 11_200]) for start in range(0, len(body), 11_200)))

async def main():
    listener = HttpServer(Routes(posts={"/nodes": nodes}, gets={"/page": lambda: HttpResponse()}), ServerLimits(), Notebook())
    await listener.start("127.0.0.1", 0)
    print(listener.port, flush=True)
    await listener.run()

asyncio.run(main())
"""


def mebibytes(process: subprocess.Popen[str], field: str) -> float:
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    (kibibytes,) = re.findall(rf"{field}:\s+(\d+) kB", status)
    return int(kibibytes) / 1024


async def connect(port: int) -> Caller:
    return Caller(*await asyncio.open_connection("127.0.0.1", port))


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [False, True], ids=["known length", "chunked"])
async def test_5000_whole_nodes_in_and_out_take_their_size_twice(chunked):
    """56 MB as a question and 56 MB as an answer are 107 MiB; nothing is held a third time."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())
            caller = await connect(port)
            await caller.ask(get())
            before = mebibytes(process, "VmRSS")
            asked = chunks(*[NODE] * NODES, path="/nodes") if chunked else post("/nodes", NODE * NODES)
            for _ in range(3):
                sending = asyncio.create_task(caller.send(asked))
                answer = await caller.answer()
                await sending
                assert len(NODE) * NODES == len(answer.body)
            peak, after = mebibytes(process, "VmHWM") - before, mebibytes(process, "VmRSS") - before
            await caller.close()
        finally:
            process.terminate()

    assert peak < 130
    # The question is given back to the system; what the answer was made of may stay with Python's allocator.
    assert after < 70


@pytest.mark.slow
async def test_bodies_that_are_only_announced_take_nothing():
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        try:
            port = int(process.stdout.readline())
            callers = [await connect(port) for _ in range(10)]
            await callers[0].ask(get())
            before = mebibytes(process, "VmRSS")
            for caller in callers[1:]:
                await caller.send(f"POST /nodes HTTP/1.1\r\nHost: x\r\nContent-Length: {96 * MIB}\r\n\r\n".encode())
            await callers[0].ask(get())
            after = mebibytes(process, "VmHWM") - before
            for caller in callers:
                await caller.close()
        finally:
            process.terminate()

    assert after < 5
