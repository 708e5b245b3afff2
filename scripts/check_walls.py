"""
Verify the import contracts: break each one on purpose, in a copy, and check that the linter reports it.

A contract that nothing can break checks nothing: a typing mistake in a module's name is enough. So each contract of
.importlinter has at least one violation here. A contract without a violation, or a violation of a contract that does
not exist, is an error. Run by `make walls` and by tests/unit/test_walls.py.
"""

import configparser
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CONTRACTS = ROOT / ".importlinter"
PREFIX = "importlinter:contract:"


@dataclass(frozen=True, slots=True)
class Violation:
    """One way to break one contract: files to add to src/lamina."""

    contract: str
    """The contract's identifier in .importlinter."""
    story: str
    """The violation in words."""
    files: tuple[tuple[str, str], ...]
    """Path below src/lamina, and the content."""


def imports(contract: str, story: str, importer: str, imported: str) -> Violation:
    """Return the violation of a new module *importer* (a path) that imports *imported*."""
    return Violation(contract, story, ((importer, f"import {imported}\n"),))


VIOLATIONS: tuple[Violation, ...] = (
    imports("rooms", "the model imports the layer index", "model/offender.py", "lamina.layers"),
    imports("rooms", "the row store imports the layer index", "rows/offender.py", "lamina.layers"),
    imports("rooms", "the layer index imports the QoS engine", "layers/offender.py", "lamina.qos"),
    imports("rooms", "the QoS engine imports a plugin", "qos/offender.py", "lamina.scheduling.plugins"),
    imports("rooms", "the simulator uses the test builders", "simulator/cluster/offender.py", "lamina.testing"),
    imports("rooms", "the scheduling loop imports a command", "scheduling/loop/offender.py", "lamina.cli"),
    imports("rooms", "two packages of one level import each other", "wire/offender.py", "lamina.trace"),
    Violation("rooms", "a package named utils", (("utils/__init__.py", ""),)),
    imports("evaluation-reads", "the evaluation runs simulations", "evaluation/offender.py", "lamina.simulator.run"),
    imports(
        "evaluation-reads", "the evaluation imports a plugin", "evaluation/offender.py", "lamina.scheduling.plugins"
    ),
    imports(
        "scheduling-rooms", "the loop imports a plugin", "scheduling/loop/offender.py", "lamina.scheduling.plugins"
    ),
    imports(
        "scheduling-rooms", "a plugin imports the loop", "scheduling/plugins/offender.py", "lamina.scheduling.loop"
    ),
    imports(
        "scheduling-rooms",
        "the contract imports the configuration",
        "scheduling/contract/offender.py",
        "lamina.scheduling.config",
    ),
    imports(
        "scheduling-rooms",
        "the state imports extension points",
        "scheduling/state/offender.py",
        "lamina.scheduling.contract",
    ),
    imports(
        "scheduling-rooms",
        "the contract imports the runtime",
        "scheduling/contract/offender.py",
        "lamina.scheduling.runtime",
    ),
    Violation("scheduling-rooms", "a package in no layer", (("scheduling/offender/__init__.py", ""),)),
    Violation(
        "plugins-independent",
        "a plugin imports another plugin",
        (
            ("scheduling/plugins/upstream/offender.py", "import lamina.scheduling.plugins.upstream.victim\n"),
            ("scheduling/plugins/upstream/victim.py", ""),
        ),
    ),
    Violation(
        "plugins-independent",
        "locality imports an upstream plugin",
        (
            ("scheduling/plugins/locality/offender.py", "import lamina.scheduling.plugins.upstream.victim\n"),
            ("scheduling/plugins/upstream/victim.py", ""),
        ),
    ),
    imports("pure", "a plugin reads the clock", "scheduling/plugins/upstream/offender.py", "time"),
    imports("pure", "the loop draws random numbers", "scheduling/loop/offender.py", "random"),
    imports("pure", "the row store reads the clock", "rows/offender.py", "time"),
    imports("pure", "the index logs", "layers/offender.py", "logging"),
    imports("pure", "the QoS engine reads the clock", "qos/offender.py", "time"),
    imports("pure", "the QoS engine decodes JSON of the API", "qos/offender.py", "lamina.wire"),
    imports("pure", "a decision imports asyncio", "scheduling/runtime/offender.py", "asyncio"),
    imports("pure", "a profile decodes JSON of the API", "scheduling/config/offender.py", "lamina.wire"),
    imports("pure", "the engine starts threads", "simulator/engine/offender.py", "threading"),
    imports(
        "clients-independent",
        "the registry client imports the Kubernetes client",
        "clients/oci/offender.py",
        "lamina.clients.kube.access",
    ),
    imports(
        "clients-independent",
        "the runtime client imports the registry client",
        "clients/cri/offender.py",
        "lamina.clients.oci",
    ),
    imports("light-agent", "the node agent imports numpy", "services/node_agent/offender.py", "numpy"),
    imports(
        "light-agent",
        "the node agent imports the registry client",
        "services/node_agent/offender.py",
        "lamina.clients.oci",
    ),
    imports("simulator-rooms", "pulls import the cluster", "simulator/pulls/offender.py", "lamina.simulator.cluster"),
    imports(
        "simulator-rooms",
        "the cluster imports the workload",
        "simulator/cluster/offender.py",
        "lamina.simulator.workloads",
    ),
    imports("engine-alone", "the engine imports the model", "simulator/engine/offender.py", "lamina.model"),
    imports("light", "the wire formats import numpy", "wire/offender.py", "numpy"),
    imports("light", "the Kubernetes client imports numpy", "clients/kube/offender.py", "numpy"),
    imports("rooms", "a client imports the plugin contract", "clients/kube/offender.py", "lamina.scheduling.contract"),
    imports("rooms", "the scheduler imports the simulator", "services/scheduler/offender.py", "lamina.simulator.run"),
    imports(
        "simulator-offline",
        "the simulator imports the Kubernetes client",
        "simulator/run/offender.py",
        "lamina.clients.kube",
    ),
    imports("rooms", "a client imports the HTTP server", "clients/kube/offender.py", "lamina.serving"),
    imports("rooms", "a service imports the API server process", "services/extender/offender.py", "lamina.apiserver"),
    imports(
        "simulator-rooms",
        "the workloads import the façade",
        "simulator/workloads/offender.py",
        "lamina.simulator.facade",
    ),
    imports("simulator-virtual", "the façade opens sockets itself", "simulator/facade/offender.py", "lamina.serving"),
    imports("simulator-virtual", "the façade awaits", "simulator/facade/offender.py", "asyncio"),
    imports("simulator-virtual", "a run starts processes", "simulator/run/offender.py", "subprocess"),
    imports("simulator-virtual", "the cluster starts threads", "simulator/cluster/offender.py", "threading"),
    imports("simulator-virtual", "the façade imports sockets", "simulator/facade/offender.py", "socket"),
    imports("serving-generic", "the HTTP server imports a client", "serving/offender.py", "lamina.clients.kube"),
    imports("serving-generic", "the HTTP server imports wire formats", "serving/offender.py", "lamina.wire"),
    imports(
        "services-rooms",
        "the informers import the scheduler",
        "services/informers/offender.py",
        "lamina.services.scheduler",
    ),
    Violation("services-rooms", "a service in no layer", (("services/offender/__init__.py", ""),)),
    Violation(
        "acyclic",
        "two modules import each other",
        (
            ("layers/offender.py", "import lamina.layers.victim\n"),
            ("layers/victim.py", "import lamina.layers.offender\n"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The linter's result for one violation."""

    violation: Violation
    caught: bool
    output: str


def contracts() -> dict[str, str]:
    """Return the identifier and name of every contract in .importlinter."""
    parser = configparser.ConfigParser()
    parser.read(CONTRACTS, encoding="utf-8")
    return {
        section.removeprefix(PREFIX): parser[section]["name"]
        for section in parser.sections()
        if section.startswith(PREFIX)
    }


def unmatched(violations: Sequence[Violation] = VIOLATIONS) -> list[str]:
    """Return complaints about contracts without a violation, and about violations of contracts that do not exist."""
    stated, tried = set(contracts()), {violation.contract for violation in violations}
    return [f"contract {name!r} has no violation in {Path(__file__).name}" for name in sorted(stated - tried)] + [
        f"violation of {name!r}, which is not a contract of {CONTRACTS.name}" for name in sorted(tried - stated)
    ]


def lint(contract: str, files: Sequence[tuple[str, str]]) -> tuple[bool, str]:
    """Check one contract on a copy of src/ with *files* added. Return whether it was kept, and the linter's output."""
    with tempfile.TemporaryDirectory(prefix="lamina-walls-") as folder:
        copy = Path(folder)
        shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(CONTRACTS, copy)
        for name, content in files:
            path = copy / "src" / "lamina" / name
            if path.exists():
                raise FileExistsError(path)
            path.parent.mkdir(exist_ok=True)
            path.write_text(content, encoding="utf-8")
        run = subprocess.run(
            [Path(sys.executable).parent / "lint-imports", "--no-cache", "--no-logo", "--contract", contract],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy / "src"), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
    output = run.stdout + run.stderr
    name = contracts()[contract]
    if f"{name} KEPT" in output:
        return True, output
    if f"{name} BROKEN" in output:
        return False, output
    raise RuntimeError(f"the linter has no result for {contract!r}:\n{output}")


@functools.cache
def untouched(contract: str) -> tuple[bool, str]:
    """Return the result of a contract on src/ without changes."""
    return lint(contract, ())


def attempt(violation: Violation) -> Finding:
    """Try one violation. It is caught if the contract breaks with it and holds without it."""
    kept_without, output = untouched(violation.contract)
    if not kept_without:
        return Finding(violation, caught=False, output=f"broken without the violation:\n{output}")
    kept_with, output = lint(violation.contract, violation.files)
    return Finding(violation, caught=not kept_with, output=output)


def main() -> int:
    """Try every violation and print a table; return 0 if every violation is caught."""
    problems = unmatched()
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = list(pool.map(attempt, VIOLATIONS))
    width = max(len(violation.contract) for violation in VIOLATIONS)
    for finding in findings:
        word = "caught" if finding.caught else "MISSED"
        print(f"  {word}  {finding.violation.contract:<{width}}  {finding.violation.story}")
        if not finding.caught:
            problems.append(f"{finding.violation.contract}: {finding.violation.story}\n{finding.output}")
    for problem in problems:
        print(f"lamina: {problem}", file=sys.stderr)
    print(f"{sum(finding.caught for finding in findings)} of {len(findings)} violations caught")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
