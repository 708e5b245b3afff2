"""A headless Chromium that a story drives over its DevTools protocol: one page, its console, keys and pictures."""

import asyncio
import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import aiohttp

CHROMIUM: Final = "/usr/bin/chromium"
"""Where Debian's package puts it; CHROMIUM names another one."""
OPTIONS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--remote-debugging-port=0", "--disable-background-networking", "--disable-component-update"),
)
PATIENCE: Final = 60.0
"""Seconds to wait for the browser and for each of its answers."""
KEYS: Final = {
    "Tab": ("Tab", 9),
    "Enter": ("Enter", 13),
    "ArrowRight": ("ArrowRight", 39),
    "ArrowLeft": ("ArrowLeft", 37),
    "End": ("End", 35),
}


class Page:
    """One page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Talk to the page behind this socket."""
        self._socket = socket
        self._number = 0
        self.problems: list[str] = []
        """Errors of the console, of scripts and of the log."""
        self.requests: list[str] = []
        """Addresses that the page asked for."""

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; events that arrive meanwhile are noted."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = json.loads((await asyncio.wait_for(self._socket.receive(), PATIENCE)).data)
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self._note(message)

    def _note(self, event: dict[str, Any]) -> None:
        what, facts = event.get("method", ""), event.get("params", {})
        if what == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(facts["exceptionDetails"])[:500])
        elif what == "Runtime.consoleAPICalled" and facts["type"] in {"error", "warning", "assert"}:
            self.problems.append(json.dumps(facts["args"])[:500])
        elif what == "Log.entryAdded" and facts["entry"]["level"] in {"error", "warning"}:
            self.problems.append(facts["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])

    async def open(self, file: Path, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Open a file in a window of this size."""
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.call(f"{domain}.enable")
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        await self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        await self.call("Page.navigate", url=file.resolve().as_uri())
        await self.until("document.readyState === 'complete' && document.querySelectorAll('.chart svg').length > 0")

    async def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        answer = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{script}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        async with asyncio.timeout(PATIENCE):
            while not await self.evaluate(condition):
                await asyncio.sleep(0.05)

    async def press(self, key: str) -> None:
        """Press a key."""
        name, code = KEYS[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            extra = text if kind == "keyDown" else {}
            await self.call(
                "Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, **extra
            )

    async def click(self, selector: str) -> None:
        """Click the middle of the first element that a selector finds."""
        quoted = json.dumps(selector)
        await self.evaluate(f"document.querySelector({quoted}).scrollIntoView({{block: 'center'}})")
        box = await self.evaluate(
            f"(b => [b.x + b.width / 2, b.y + b.height / 2])(document.querySelector({quoted}).getBoundingClientRect())"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    async def picture(self, file: Path) -> None:
        """Write a picture of the whole page."""
        answer = await self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))

    async def printed(self, file: Path) -> None:
        """Write the page as it would be printed."""
        answer = await self.call("Page.printToPDF", printBackground=True)
        file.write_bytes(base64.b64decode(answer["data"]))


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[aiohttp.ClientSession]:
    """Run a browser with a profile of its own; yields a session whose base is its address."""
    with tempfile.TemporaryDirectory(prefix="lamina-chromium-") as profile:
        command = [os.environ.get("CHROMIUM", CHROMIUM), *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            chosen = Path(profile) / "DevToolsActivePort"
            async with asyncio.timeout(PATIENCE):
                while not (chosen.is_file() and chosen.read_text(encoding="utf-8").count("\n")):
                    await asyncio.sleep(0.1)
            port = chosen.read_text(encoding="utf-8").split()[0]
            async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
                yield session
        finally:
            running.terminate()
            running.wait(PATIENCE)
            # Its children may still be writing their profile.
            shutil.rmtree(profile, ignore_errors=True)
            Path(profile).mkdir(exist_ok=True)


@contextlib.asynccontextmanager
async def page(session: aiohttp.ClientSession) -> AsyncIterator[Page]:
    """Open a new page; it is closed at the end."""
    async with session.put("/json/new?about:blank") as answer:
        facts = await answer.json()
    path = facts["webSocketDebuggerUrl"].partition("/devtools")[2]
    async with session.ws_connect(f"/devtools{path}", max_msg_size=0) as socket:
        yield Page(socket)
    async with session.get(f"/json/close/{facts['id']}") as answer:
        await answer.read()
