"""
Schedulers of all kinds, none of them changed, place about 100 pods on 10 nodes in virtual time.

kube-scheduler of four minor versions, kube-batch and Volcano with a gang, a scheduler over client-go as in a pod, one in
bash, and Lamina's own as a live process. Each run is repeated from its decision log, and the traces must be equal.
ONLY names some of them (separated by blanks). LARGE=0 skips the runs of each kube-scheduler with NODES (1000) nodes and
PODS (10000) pods.
"""

import hashlib
import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from lamina.apiserver.facade_run import FacadeRun
from lamina.apiserver.kubeconfig import write_service_account
from lamina.apiserver.scheduler_profiles import KUBE_BATCH, KUBE_SCHEDULER, LAMINA, VOLCANO, SchedulerProfile
from lamina.apiserver.tls_files import TlsFiles, make_tls_files
from lamina.simulator.cluster import Delays, VirtualCluster
from lamina.simulator.cluster.pod_lifecycle import PodLifecycle
from lamina.simulator.facade.cluster_writer import ClusterWriter
from lamina.simulator.facade.decision_log import (
    DecisionLogHeader,
    DecisionLogWriter,
    ReplayDecider,
    read_decision_log,
)
from lamina.simulator.run import simulate
from lamina.simulator.run.result import SimulationResult
from lamina.simulator.run.run_parts import RunParts
from lamina.simulator.workloads.scenario import PodArrival, Scenario
from lamina.trace.trace_records import TraceRecord
from testbed import building, in_cluster
from tests.e2e._settle_scenarios import make_nodes, make_pod

NAME = "foreign"
SUMMARY = (
    "Nine schedulers, unmodified, place 100 pods each in virtual time; every run is repeated from its decision log."
)
NEEDS = ("bash", "curl", "unshare")

MINORS: Final = ("1.30.14", "1.33.13", "1.36.3", "1.37.1")
GROUP: Final = "scheduling.k8s.io/group-name"
GANG: Final = 10
BASH_SCHEDULER: Final = Path(__file__).resolve().parent / "bash_scheduler.sh"


class ForeignCase(msgspec.Struct, kw_only=True):
    """One scheduler and how it is run."""

    name: str
    version: str
    profile: SchedulerProfile
    command: Sequence[str]
    objects: Sequence[dict[str, Any]] = ()
    group: str = ""
    """Group of pods that are in no gang; empty: none."""
    gang: str = ""
    tls: TlsFiles | None = None
    environment: Mapping[str, str] = {}


def main() -> dict[str, Any]:
    """Run all schedulers."""
    only = os.environ.get("ONLY", "").split()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="lamina-foreign-") as folder:
        for name, case in all_cases(Path(folder)).items():
            if not only or name in only:
                found[name] = run_case(case(), small_scenario)
                print(f"  {name}: {found[name]}", flush=True)
    large: dict[str, Any] = {}
    if os.environ.get("LARGE", "1") != "0":
        for version in MINORS:
            if not only or f"kube-scheduler-{version}" in only:
                large[version] = run_case(kube_scheduler(version), large_scenario)
                print(f"  kube-scheduler {version}, large: {large[version]}", flush=True)
    result = {"schedulers": found, "large": large}
    lost = [name for name, one in {**found, **large}.items() if one["placed"] != one["of"] or not one["replayed"]]
    assert not lost, f"{', '.join(lost)}: pods were not placed, or the repeated run differs"
    return result


def run_case(case: ForeignCase, make: Any) -> dict[str, Any]:
    """Run one scheduler, and repeat the run from its decision log."""
    scenario = make(case)
    log, first = io.BytesIO(), TraceDigest()
    names = (case.profile.scheduler_name,)
    began = time.monotonic()
    writer = DecisionLogWriter(log, DecisionLogHeader(scenario=scenario.name, scheduler=case.name, names=names))
    with FacadeRun(
        case.profile, case.command, log=writer, objects=case.objects, tls=case.tls, environment=case.environment
    ) as run:
        result = simulate(scenario, decider=run.make_decider, observer=first)
        figures = run.figures
    seconds = time.monotonic() - began
    assert figures is not None
    return {
        "version": case.version,
        "placed": placed(result),
        "of": len(scenario.arrivals),
        "settled_by": figures.method,
        "proven": figures.proven,
        "limits_hit": figures.limits_hit,
        "checks": figures.checks,
        "ms_per_decision": round(figures.milliseconds_per_decision or 0.0, 1),
        "seconds": round(seconds, 1),
        "replayed": replayed(scenario, log.getvalue()) == first.hexdigest(),
    }


def placed(result: SimulationResult) -> int:
    """Return the number of pods that ran to their end."""
    return sum(one.phase == "finished" for one in result.pods)


def replayed(scenario: Scenario, log: bytes) -> str:
    """Repeat a run without its scheduler; return the digest of its trace."""
    header, feeds = read_decision_log(log, "decisions")
    digest = TraceDigest()

    def decider(parts: RunParts) -> ReplayDecider:
        writer = ClusterWriter(parts.environment, parts.cluster, parts.controllers, header.scheduler)
        return ReplayDecider(writer, header, feeds, "decisions")

    simulate(scenario, decider=decider, observer=digest)
    return digest.hexdigest()


class TraceDigest:
    """Digest of all trace records of a run."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def __call__(self, at: float, record: TraceRecord, cluster: VirtualCluster) -> None:
        self._hash.update(msgspec.json.encode(record))

    def hexdigest(self) -> str:
        """Return the digest as text."""
        return self._hash.hexdigest()


# -- scenarios ---------------------------------------------------------------------------------------------------------


def small_scenario(case: ForeignCase) -> Scenario:
    """Return 100 pods in ten bursts, one of them a gang if the scheduler knows gangs."""
    arrivals = []
    for number in range(100):
        at = 10.0 * (number // GANG)
        in_gang = bool(case.gang) and number // GANG == 5
        group = case.gang if in_gang else case.group
        pod = make_pod(f"pod-{number}", at=at)
        if group:
            pod = msgspec.structs.replace(pod, annotations={GROUP: group})
        arrivals.append(PodArrival(at, pod, PodLifecycle(seconds=60.0)))
    return Scenario(name="foreign", nodes=make_nodes(10, 16), arrivals=tuple(arrivals), delays=Delays(start=0.0))


def large_scenario(_: ForeignCase) -> Scenario:
    """Return many pods on many nodes: ten pods a second, 300 s each."""
    nodes, pods = int(os.environ.get("NODES", "1000")), int(os.environ.get("PODS", "10000"))
    arrivals = tuple(
        PodArrival(float(number // 10), make_pod(f"pod-{number}", at=float(number // 10)), PodLifecycle(seconds=300.0))
        for number in range(pods)
    )
    return Scenario(name="large", nodes=make_nodes(nodes, 16), arrivals=arrivals, delays=Delays(start=0.0))


# -- schedulers --------------------------------------------------------------------------------------------------------


def all_cases(folder: Path) -> dict[str, Any]:
    """Return the schedulers by name; each is built when it is called."""
    found: dict[str, Any] = {
        f"kube-scheduler-{version}": (lambda version=version: kube_scheduler(version)) for version in MINORS
    }
    found["bash"] = bash_scheduler
    found["random-scheduler"] = lambda: random_scheduler(folder)
    found["kube-batch"] = kube_batch
    found["volcano"] = volcano
    found["lamina"] = lamina_scheduler
    return found


def kube_scheduler(version: str) -> ForeignCase:
    """Return one version of kube-scheduler."""
    program = building.ensure("kube-scheduler", version)
    return ForeignCase(name="kube-scheduler", version=version, profile=KUBE_SCHEDULER, command=[str(program)])


def bash_scheduler() -> ForeignCase:
    """Return the scheduler in bash; it polls over plain HTTP."""
    return ForeignCase(
        name="bash",
        version=os.popen("bash --version").readline().split()[3],
        profile=SchedulerProfile(
            name="bash", about="bash and curl", program="bash", scheduler_name="bash-scheduler", silence=0.3
        ),
        command=["bash", str(BASH_SCHEDULER), "{server}"],
        environment={"KUBECTL": str(building.ensure("kubectl"))},
    )


def random_scheduler(folder: Path) -> ForeignCase:
    """Return the random scheduler, which finds the façade as a program in a pod does: HTTPS and fixed paths."""
    tls = make_tls_files(folder)
    account = folder / "account"
    write_service_account(account, tls.ca)
    program = building.ensure("random-scheduler")
    return ForeignCase(
        name="random-scheduler",
        version="1",
        profile=SchedulerProfile(
            name="random-scheduler",
            about="a random node",
            program="random-scheduler",
            scheduler_name="random-scheduler",
            silence=0.3,
        ),
        command=in_cluster.command(account, [str(program), "-qps", "1000"]),
        tls=tls,
        environment={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "{server_port}"},
    )


def kube_batch() -> ForeignCase:
    """Return kube-batch with a gang of ten pods."""
    api = "scheduling.incubator.k8s.io/v1alpha1"
    return ForeignCase(
        name="kube-batch",
        version="0.5.0",
        profile=KUBE_BATCH,
        command=[str(building.ensure("kube-batch"))],
        objects=[queue(api, "default"), pod_group(api, "gang", GANG, "default")],
        gang="gang",
    )


def volcano() -> ForeignCase:
    """Return Volcano with a gang of ten pods in a queue of its own."""
    api = "scheduling.volcano.sh/v1beta1"
    return ForeignCase(
        name="volcano",
        version="1.10.0",
        profile=VOLCANO,
        command=[str(building.ensure("volcano"))],
        objects=[
            queue(api, "research"),
            pod_group(api, "single", 1, "default"),
            pod_group(api, "gang", GANG, "research"),
        ],
        group="single",
        gang="gang",
    )


def lamina_scheduler() -> ForeignCase:
    """Return Lamina's own scheduler as a live process."""
    beside = Path(sys.executable).parent / "lamina"
    program = str(beside) if beside.exists() else shutil.which("lamina")
    assert program is not None, "lamina is not installed"
    return ForeignCase(name="lamina", version="this checkout", profile=LAMINA, command=[program])


def queue(api: str, name: str) -> dict[str, Any]:
    """Return an open queue."""
    return {
        "apiVersion": api,
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1},
        "status": {"state": "Open"},
    }


def pod_group(api: str, name: str, least: int, queue_name: str) -> dict[str, Any]:
    """Return a group of which at least *least* pods are placed together."""
    return {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minMember": least, "queue": queue_name},
    }
