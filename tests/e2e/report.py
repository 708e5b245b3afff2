"""
The reports of `lamina simulate` and `lamina compare` in a real headless Chromium.

Every page is opened light, dark, on a phone and for print; its controls are used with mouse and keyboard, and each use
must change the page. SHOTS names a folder for pictures of all of them, to be looked at.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from tests.e2e import _browser
from tests.e2e._browser import Page

NAME = "report"
SUMMARY = "reports in a real headless Chromium: no console error, controls with mouse and keyboard, four looks."
NEEDS = ("/usr/bin/chromium",)

ROOT: Final = Path(__file__).resolve().parents[2]
LARGEST: Final = 3_000_000
"""Most bytes of a report."""
REPORTS: Final = {
    "founding": ("simulate", "examples/founding/scenario.yaml", "--detail", "full"),
    "churn": ("simulate", "examples/churn/scenario.yaml"),
    "compared": (
        *("compare", "examples/churn/scenario.yaml", "--profiles", "kube-default,lamina-images,lamina-balanced"),
        *("--seeds", "3"),
    ),
}
STUDY: Final = ("evaluate", "examples/churn/study.yaml")
LOOKS: Final = {"light": (1200, False), "dark": (1200, True), "phone": (390, False), "phone-dark": (390, True)}


def main() -> dict[str, Any]:
    """Write the reports and try them."""
    with tempfile.TemporaryDirectory(prefix="lamina-report-") as folder:
        files = {name: written(name, command, Path(folder)) for name, command in REPORTS.items()}
        return asyncio.run(tried(files, study_page(Path(folder))))


def written(name: str, command: tuple[str, ...], folder: Path) -> Path:
    """Write a report twice, check that both are the same bytes, and return its file."""
    files = [folder / f"{name}.html", folder / f"{name}-again.html"]
    for file in files:
        subprocess.run(
            [sys.executable, "-m", "lamina", *command, "--report", str(file)],
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )
    first, second = (file.read_bytes() for file in files)
    assert first == second, f"{name}: two runs gave different pages"
    assert len(first) <= LARGEST, f"{name}: {len(first):,} bytes"
    print(f"  {name}: {len(first):,} bytes", flush=True)
    return files[0]


def study_page(folder: Path) -> Path:
    """Run the study and return its page."""
    command = [sys.executable, "-m", "lamina", *STUDY, "--out", str(folder / "study")]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return folder / "study" / "report.html"


async def tried(files: dict[str, Path], study: Path) -> dict[str, Any]:
    """Open every report in every look, and use the controls of each."""
    shots = os.environ.get("SHOTS", "")
    problems: list[str] = []
    interactions = 0
    async with _browser.browser() as session:
        for name, file in files.items():
            for look, (width, dark) in LOOKS.items():
                async with _browser.page(session) as page:
                    await page.open(file, width=width, dark=dark)
                    await check_layout(page, f"{name}, {look}")
                    if shots:
                        await page.picture(Path(shots) / f"{name}-{look}.png")
                    used = await use(page, several=name == "compared")
                    await page.call("Emulation.setEmulatedMedia", media="print")
                    if shots and look == "light":
                        await page.picture(Path(shots) / f"{name}-print.png")
                        await page.printed(Path(shots) / f"{name}.pdf")
                    outside = [one for one in page.requests if not one.startswith(("file:", "data:"))]
                    assert not outside, f"{name}, {look}: asked for {outside}"
                    problems += [f"{name}, {look}: {one}" for one in page.problems]
                    interactions += used
                    print(f"  {name}, {look}: {used} interactions, {len(page.problems)} console errors", flush=True)
        for look, (width, dark) in LOOKS.items():
            async with _browser.page(session) as page:
                await page.open(study, width=width, dark=dark)
                await check_layout(page, f"study, {look}")
                await page.click("#points summary")
                assert await page.evaluate("document.querySelector('#points details').open"), "the point stays closed"
                if shots:
                    await page.picture(Path(shots) / f"study-{look}.png")
                problems += [f"study, {look}: {one}" for one in page.problems]
                interactions += 1
                print(f"  study, {look}: {len(page.problems)} console errors", flush=True)
    for line in problems[:20]:
        print(f"  {line}")
    assert not problems, f"{len(problems)} console errors"
    return {
        "console_errors": len(problems),
        "bytes": max(file.stat().st_size for file in files.values()),
        "interactions": interactions,
        "pages": (len(files) + 1) * len(LOOKS),
    }


async def check_layout(page: Page, what: str) -> None:
    """Check that nothing is wider than the window, and that every chart is drawn and named."""
    wide = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"{what}: {wide} pixels too wide"
    empty = await page.evaluate(
        "[...document.querySelectorAll('.chart')].filter(c => !c.querySelector('svg')).map(c => c.dataset.chart)"
    )
    assert empty == [], f"{what}: not drawn: {empty}"
    unnamed = await page.evaluate(
        "[...document.querySelectorAll('select, input, button, .pod, .chart')].filter(e => !(e.getAttribute('aria-label') "
        "|| (e.labels && e.labels.length))).length"
    )
    assert unnamed == 0, f"{what}: {unnamed} controls without a name"


async def use(page: Page, *, several: bool) -> int:
    """Use every control, check that each changes the page, and return how many were used."""
    why, timeline, layers = (
        "document.querySelector('#why').innerText",
        "document.querySelector('[data-chart=timeline]').innerHTML",
        "document.querySelector('[data-chart=map]').innerHTML",
    )
    steps: list[tuple[str, Callable[[], Awaitable[Any]]]] = [
        (why, lambda: page.click(".pod")),
        ("document.activeElement.getAttribute('aria-label')", lambda: page.press("ArrowRight")),
        (why, lambda: page.press("Enter")),
        ("document.activeElement.getAttribute('aria-label')", lambda: page.press("End")),
        (why, lambda: page.press("Enter")),
        (timeline, lambda: choose(page, "timeline-zoom", "2")),
        (timeline, lambda: slide(page, "timeline-from", 0)),
        (layers, lambda: slide(page, "map-time", 1)),
        (layers, lambda: page.click("#map-forward")),
        (layers, lambda: page.click("#map-back")),
        ("document.querySelectorAll('details[open]').length", lambda: page.click("#starts summary")),
    ]
    if several:
        steps += [
            (timeline, lambda: choose(page, "timeline-run", "1")),
            (timeline, lambda: choose(page, "timeline-nodes", "1")),
            (layers, lambda: choose(page, "map-run", "2")),
        ]
    # The pods are one stop for the Tab key: from the control before them straight to a pod.
    await page.evaluate("document.querySelector('#timeline-zoom').focus()")
    await page.press("Tab")
    assert await page.evaluate("document.activeElement.classList.contains('pod')"), "Tab does not reach the pods"
    for number, (seen, act) in enumerate(steps):
        before = await page.evaluate(seen)
        await act()
        after = await page.evaluate(seen)
        assert after != before, f"interaction {number} changed nothing: {seen}"
    return len(steps) + 1


async def choose(page: Page, name: str, value: str) -> None:
    """Choose an option of a list."""
    await page.evaluate(
        f"(e => {{ e.value = '{value}'; e.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
        f"(document.getElementById('{name}'))"
    )


async def slide(page: Page, name: str, value: int) -> None:
    """Move a slider."""
    await page.evaluate(
        f"(e => {{ e.value = {value}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
        f"(document.getElementById('{name}'))"
    )
