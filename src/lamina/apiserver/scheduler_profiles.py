"""
Known schedulers: how each is started, and how the façade knows that it has settled.

    kube-scheduler, kube-scheduler-json    settled by the log, confirmed by the metrics; 1.30 to 1.37
    kube-batch, vc-scheduler               settled by whole sessions
    lamina                                 settled by the metrics
    any other command                      settled by silence, which proves nothing

A scenario file can name a registered scheduler. Only the command line can give a command or a profile file
(`profile_files`): nothing in a scenario is executed. In arguments, ``{kubeconfig}`` and ``{server}`` stand for the
façade's, ``{port}`` for a free port of loopback, ``{folder}`` for a temporary folder of the run, and ``{config}`` for a
file with the text of `config`.
"""

import shlex
from pathlib import PurePath
from typing import Final, Literal

import msgspec

from lamina.apiserver.settling.scheduler_log import FLAGS
from lamina.apiserver.settling.session_log import SessionLines
from lamina.model.errors import InputError

SettleKind = Literal["log", "metrics", "sessions", "silence", "lamina"]


class SchedulerProfile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of scheduler."""

    name: str
    about: str
    program: str
    arguments: tuple[str, ...] = ()
    scheduler_name: str = "default-scheduler"
    """``schedulerName`` of the pods that it places."""
    settle: SettleKind = "silence"
    silence: float = 0.2
    """
    Real seconds without a request after which it counts as settled, if nothing better is known.

    With sessions: longest pause between two requests of a scheduler that limits its rate.
    """
    environment: dict[str, str] = {}
    """Variables of its environment."""
    metrics: str = ""
    """Address of its metrics."""
    config: str = ""
    """Text of the file ``{config}``."""
    lines: SessionLines = SessionLines()
    """Lines of a log with sessions."""
    barrier: str = ""
    """``schedulerName`` of the pod that shows with sessions what the scheduler has read; empty: its own."""
    minor: int = 0
    """Minor version of Kubernetes; 0: unknown, or another program."""
    kube: bool = False
    """Whether it is a kube-scheduler, whose flags and lines depend on its version (`kube_scheduler_profile`)."""


_ENDPOINTS: Final = (
    "--bind-address=127.0.0.1",
    "--secure-port={port}",
    "--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics",
    "--disabled-metrics=scheduler_plugin_execution_duration_seconds,scheduler_framework_extension_point_duration_seconds",
    *FLAGS,
)
_CLIENT: Final = (
    "--kubeconfig={kubeconfig}",
    "--leader-elect=false",
    "--kube-api-qps=5000",
    "--kube-api-burst=10000",
)
_CONFIG: Final = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: "{kubeconfig}", qps: 5000, burst: 10000, contentType: CONTENT}
leaderElection: {leaderElect: false}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: MOST
"""
JSON: Final = "application/json"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
POPS_FROM_BACKOFF: Final = 33
"""First minor version that takes pods out of back-off when it has nothing else to do."""
ONE_POD_HANDLER: Final = 36
"""First minor version known to handle bound and other pods in one order."""
COUNTS_EVENTS: Final = 33
"""First minor version known to count handled events in its metrics."""

KUBE_SCHEDULER: Final = SchedulerProfile(
    name="kube-scheduler",
    about="the stock scheduler, 1.30 and newer, with its default profile",
    program="kube-scheduler",
    arguments=(*_CLIENT, *_ENDPOINTS),
    settle="log",
    metrics="https://127.0.0.1:{port}/metrics",
    kube=True,
)
KUBE_SCHEDULER_JSON: Final = msgspec.structs.replace(
    KUBE_SCHEDULER,
    name="kube-scheduler-json",
    about="the same, with JSON instead of Protocol Buffers",
    arguments=("--config={config}", *_ENDPOINTS),
    config=_CONFIG.replace("CONTENT", JSON).replace("MOST", "10"),
)
KUBE_BATCH: Final = SchedulerProfile(
    name="kube-batch",
    about="kube-batch 0.5; pods need no PodGroup",
    program="kube-batch",
    arguments=(
        "--kubeconfig={kubeconfig}",
        "--schedule-period=100ms",
        "--listen-address=127.0.0.1:{port}",
        "--logtostderr",
        "--v=3",
    ),
    scheduler_name="kube-batch",
    settle="sessions",
    # It sends at most 5 requests per second, after a burst of 10.
    silence=0.45,
    # Its client library logs to files, and no flag changes that.
    environment={"TMPDIR": "{folder}"},
    barrier="lamina-barrier",
)
VOLCANO: Final = SchedulerProfile(
    name="vc-scheduler",
    about="Volcano 1.10; pods need a PodGroup, and queues the state Open",
    program="vc-scheduler",
    arguments=(
        "--kubeconfig={kubeconfig}",
        "--schedule-period=100ms",
        "--leader-elect=false",
        "--listen-address=127.0.0.1:{port}",
        "--cache-dumper=false",
        "--logtostderr",
        "--v=4",
    ),
    scheduler_name="volcano",
    settle="sessions",
    silence=0.1,
)
LAMINA: Final = SchedulerProfile(
    name="lamina",
    about="Lamina's own scheduler as a live process",
    program="lamina",
    arguments=(
        "scheduler",
        "--kubeconfig={kubeconfig}",
        "--listen=127.0.0.1:{port}",
        "--no-leader-elect",
        "--no-registries",
    ),
    scheduler_name="lamina",
    settle="lamina",
    metrics="http://127.0.0.1:{port}/metrics",
)

PROFILES: Final = {one.name: one for one in (KUBE_SCHEDULER, KUBE_SCHEDULER_JSON, KUBE_BATCH, VOLCANO, LAMINA)}
"""The registered schedulers, by name."""


def kube_scheduler_profile(profile: SchedulerProfile, minor: int) -> SchedulerProfile:
    """Return a profile of kube-scheduler for one minor version."""
    if minor >= POPS_FROM_BACKOFF or profile.settle not in {"log", "metrics"}:
        return msgspec.structs.replace(profile, minor=minor)
    if profile.settle == "metrics":
        raise InputError.one("--settle", f"kube-scheduler 1.{minor} counts no events in its metrics; use log")
    # It waits out its back-off in real time, so the longest back-off is the shortest one that it accepts.
    config = profile.config.replace("podMaxBackoffSeconds: 10", "podMaxBackoffSeconds: 1")
    arguments = profile.arguments
    if not config:
        config = _CONFIG.replace("CONTENT", PROTOBUF).replace("MOST", "1")
        arguments = ("--config={config}", *(one for one in arguments if one not in _CLIENT))
    return msgspec.structs.replace(profile, minor=minor, config=config, arguments=arguments)


def profile_of(text: str) -> tuple[SchedulerProfile, list[str]]:
    """
    Return the profile and the command for what a user wrote after ``--scheduler``: a name or a command.

    A command is matched by its program's name. It has the user's arguments; those of the profile come before them when
    the run begins, because they depend on the program's version. Raises InputError.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError.one("--scheduler", f"cannot be read: {error}; check the quotes") from None
    if not words:
        raise InputError.one("--scheduler", f"is empty; try one of {', '.join(PROFILES)}, or a command")
    name = PurePath(words[0]).name
    profile = PROFILES.get(name)
    if profile is None or (profile is LAMINA and words[1:2] not in ([], ["scheduler"])):
        profile = SchedulerProfile(name=name, about="a command of the user", program=words[0])
    program = profile.program if words[0] == profile.name else words[0]
    begin = 2 if profile is LAMINA else 1
    return profile, [program, *words[begin:]]
