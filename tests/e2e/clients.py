"""
Kubernetes clients against `lamina apiserver`: kubectl of four releases, and libraries for Python and JavaScript.

Every client plays the same story on a cluster of its own: list nodes, create a namespace and a pod, bind it, watch it
run, patch it, delete it, see it go. Libraries do so over HTTP and HTTPS. kubectl plays more: everything that people type.
"""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from testbed import building
from tests.e2e._client_environments import (
    JAVASCRIPT,
    OLDEST_NODE,
    ROOT,
    installed_versions,
    javascript_environment,
    python_environment,
    temporary_folder,
)
from tests.e2e._client_kubectl import KubectlStory
from tests.e2e._client_server import apiserver_process

NAME = "clients"
SUMMARY = "kubectl 1.30 to 1.37 and client libraries for Python and JavaScript against lamina apiserver."

KUBECTL: Final = {"1.30.14": True, "1.33.13": False, "1.36.3": False, "1.37.1": True}
"""Versions of kubectl, and whether each uses HTTPS: the oldest and the newest do."""
PYTHON: Final = {
    "kubernetes": ("_client_official",),
    "kubernetes.aio": ("_client_asyncio", "kubernetes.aio"),
    "kubernetes_asyncio": ("_client_asyncio", "kubernetes_asyncio"),
    "lightkube": ("_client_lightkube",),
    "kr8s": ("_client_kr8s",),
}
"""Python clients: module of the story, and its arguments."""
SECONDS: Final = 600
"""Longest time of one library's story."""

Wrong = dict[str, list[str]]


def main() -> dict[str, Any]:
    """Try every client; what does not hold is reported together at the end."""
    began = time.monotonic()
    wrong: Wrong = {}
    skipped: list[str] = []
    for version, tls in KUBECTL.items():
        _kubectl(version, tls, wrong)
    with temporary_folder() as folder:
        _python(folder, wrong, skipped)
        _javascript(folder, wrong, skipped)
    held = {name: not found for name, found in wrong.items()}
    print()
    for name, good in held.items():
        print(f"  {name:<36}{'holds' if good else 'DIFFERS'}")
    if not all(held.values()):
        raise AssertionError("\n".join(f"{name}: {one}" for name, found in wrong.items() for one in found))
    return {"clients": held, "skipped": skipped, "seconds": round(time.monotonic() - began, 1)}


def _kubectl(version: str, tls: bool, wrong: Wrong) -> None:
    program = building.ensure("kubectl", version)
    with apiserver_process(tls=tls) as server:
        story = KubectlStory(program, server)
        name = f"kubectl {version.rpartition('.')[0]}"
        wrong[name] = story.play()
    print(f"  {name}, {_scheme(tls)}: {story.commands} commands, {len(wrong[name])} differ", flush=True)


def _python(folder: Path, wrong: Wrong, skipped: list[str]) -> None:
    python = python_environment(folder)
    if python is None:
        skipped += PYTHON
        return
    versions = installed_versions(python)
    for client, (module, *arguments) in PYTHON.items():
        name = f"{client} {versions[client.partition('.')[0]]}"

        def command(kubeconfig: Path, module: str = module, arguments: Sequence[str] = arguments) -> list[str]:
            return [str(python), "-m", f"tests.e2e.{module}", str(kubeconfig), *arguments]

        wrong[name] = _both(name, command)


def _javascript(folder: Path, wrong: Wrong, skipped: list[str]) -> None:
    for version in OLDEST_NODE:
        name = f"{JAVASCRIPT} {version}"
        found = javascript_environment(folder, version)
        if found is None:
            skipped.append(name)
            continue
        program = [found.node, str(ROOT / "tests" / "e2e" / "_client_javascript.mjs")]

        def command(kubeconfig: Path, program: Sequence[str] = program, place: Path = found.folder) -> list[str]:
            return [*program, str(kubeconfig), str(place)]

        wrong[name] = _both(name, command)


def _both(name: str, command: Callable[[Path], list[str]]) -> list[str]:
    """Let a library play over HTTP and HTTPS; return what differed."""
    wrong: list[str] = []
    for tls in (False, True):
        print(f"  {name}, {_scheme(tls)}", flush=True)
        with apiserver_process(tls=tls) as server:
            environment = {**os.environ, "HOME": str(server.folder), "PYTHONPATH": str(ROOT)}
            try:
                done = subprocess.run(
                    command(server.kubeconfig),
                    cwd=ROOT,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                wrong.append(f"{_scheme(tls)}: not done within {SECONDS} s")
                continue
        print(done.stdout, end="", flush=True)
        if done.returncode != 0:
            failed = [line.strip() for line in done.stdout.splitlines() if "FAILED" in line]
            wrong.append(f"{_scheme(tls)}: {' '.join(failed) or done.stderr.strip()[-600:]}")
    return wrong


def _scheme(tls: bool) -> str:
    return "HTTPS" if tls else "HTTP"
