"""
A run whose scheduler is another program: starts the façade and the scheduler, and lets both meet in virtual time.

    simulate --feed--> FacadeDecider --settle--> event loop: HTTP server, child process, log --> commands --> simulate

Everything is in one thread. The event loop runs only while the simulation waits for the scheduler to settle, so clients
find a clock that stands still.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from lamina.apiserver.child_process import ChildProcess
from lamina.apiserver.facade_parts import EPOCH, FacadeParts, assemble_facade
from lamina.apiserver.facade_server import LOOPBACK, FacadeServer
from lamina.apiserver.kubeconfig import write_kubeconfig
from lamina.apiserver.run_folder import RunFolder
from lamina.apiserver.scheduler_profiles import SchedulerProfile, kube_scheduler_profile
from lamina.apiserver.scheduler_version import minor_of, program_version
from lamina.apiserver.settle_methods import ChosenMethod, choose_method
from lamina.apiserver.settling.pending_pods import PendingPods
from lamina.apiserver.settling.settle_method import SettleFigures, SignalledWait
from lamina.apiserver.tls_files import TlsFiles
from lamina.model.errors import InputError
from lamina.serving.event_loop import new_loop
from lamina.serving.tls import ServerTlsSettings
from lamina.simulator.decider import Decider
from lamina.simulator.facade.cluster_writer import ClusterWriter
from lamina.simulator.facade.decision_log import DecisionLogWriter
from lamina.simulator.facade.facade_decider import FacadeDecider
from lamina.simulator.facade.kube_object import KubeObject
from lamina.simulator.facade.preloaded_objects import create_objects
from lamina.simulator.run.run_parts import RunParts


class FacadeRun:
    """Façade and scheduler of one run. A context manager: leaving it stops both."""

    def __init__(  # noqa: PLR0913 - one for each thing that may be said of a run
        self,
        profile: SchedulerProfile,
        command: Sequence[str],
        *,
        epoch: float = EPOCH,
        seed: int = 0,
        log: DecisionLogWriter | None = None,
        announce: Callable[[Path, str], None] | None = None,
        objects: Sequence[KubeObject] = (),
        tls: TlsFiles | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """
        Run *command*, a scheduler of the kind *profile*; write the inputs of all clients to *log*.

        An empty command means that the user attaches a scheduler: *announce* gets the kubeconfig and the address, and
        the run begins when a client reads pods. *objects*, such as PodGroups and queues, are created before the
        scheduler starts. With *tls* the façade serves HTTPS. The scheduler gets the variables of *environment*, whose
        values may have the same placeholders as arguments. With a *clock*, the real time of each decision is measured.
        """
        self._clock = clock
        self._writer: ClusterWriter | None = None
        self._objects = objects
        self._tls = tls
        self._environment = environment or {}
        self._announce = announce
        self._profile = profile
        self._command = command
        self._epoch = epoch
        self._seed = seed
        self._decisions = log
        self._loop = new_loop()
        self._temporary = RunFolder()
        self._folder = self._temporary.path
        self._server: FacadeServer | None = None
        self._process: ChildProcess | None = None
        self._pods: PendingPods | None = None
        self._chosen: ChosenMethod | None = None
        self._version = ""

    @property
    def figures(self) -> SettleFigures | None:
        """How the scheduler settled so far; None before the run."""
        if self._chosen is None or self._pods is None:
            return None
        figures = self._chosen.method.figures
        figures.decisions = self._pods.decisions
        figures.starved = len(self._pods.pending)
        figures.scheduler = " ".join(one for one in (self._profile.name, self._version) if one)
        return figures

    @property
    def profile(self) -> SchedulerProfile:
        """Profile of the scheduler; after the start, the one for its version."""
        return self._profile

    def make_decider(self, parts: RunParts) -> Decider:
        """Start the façade and the scheduler; return the decider of the run."""
        facade = assemble_facade(parts, self._profile.name, epoch=self._epoch, seed=self._seed, clock=self._clock)
        self._writer = facade.writer
        self._loop.run_until_complete(self._start(facade))
        return FacadeDecider(
            facade.state,
            facade.reader,
            facade.writer,
            self._settle,
            (self._profile.scheduler_name,),
            self._decisions,
        )

    def elapsed(self) -> Sequence[float]:
        """Return the seconds from the last feed to each of its decisions."""
        return () if self._writer is None else self._writer.elapsed

    def _settle(self) -> None:
        chosen = self._chosen
        assert chosen is not None, "started"
        if chosen.begin is not None and not chosen.method.figures.checks:
            # The loop did not run since the scheduler was started, so the scheduler has read nothing.
            chosen.begin()
        if not self._command:
            self._loop.run_until_complete(self._attached())
        self._loop.run_until_complete(chosen.method.settle())

    async def _start(self, facade: FacadeParts) -> None:
        server = self._server = FacadeServer(facade.handler)
        tls = self._tls
        await server.start(0, None if tls is None else ServerTlsSettings(str(tls.cert), str(tls.key)))
        kubeconfig = self._folder / "kubeconfig"
        write_kubeconfig(kubeconfig, server.url, None if tls is None else tls.ca)
        values = {"kubeconfig": str(kubeconfig), "server": server.url, "port": str(free_port())}
        values["server_port"] = server.url.rpartition(":")[2]
        values["folder"] = str(self._folder)
        await self._adapt(values)
        wait = SignalledWait(lambda: self._process)
        pods = self._pods = PendingPods(facade.state, (self._profile.scheduler_name,))
        chosen = self._chosen = choose_method(self._profile, facade.state, pods, server, wait)
        create_objects(facade.handler, facade.state.types, self._objects)
        if not self._command:
            if self._announce is not None:
                self._announce(kubeconfig, server.url)
            return
        program, *words = self._command
        words = [filled(word, values) for word in (program, *self._profile.arguments, *words)]
        environment = {**self._profile.environment, **self._environment}
        environment = {name: filled(value, values) for name, value in environment.items()}
        self._process = await ChildProcess.start(words, {"KUBECONFIG": str(kubeconfig), **environment}, chosen.read)

    async def _adapt(self, values: dict[str, str]) -> None:
        """Choose the profile for the program's version, and fill in its placeholders."""
        profile = self._profile
        if profile.kube and self._command:
            self._version = await program_version(self._command[0])
            profile = kube_scheduler_profile(profile, minor_of(self._version))
        if profile.config:
            file = self._folder / "scheduler.yaml"
            file.write_text(filled(profile.config, values))
            values["config"] = str(file)
        self._profile = msgspec.structs.replace(profile, metrics=filled(profile.metrics, values))

    async def _attached(self) -> None:
        """Wait until a client reads pods, for as long as that takes."""
        while self._server is not None and not self._server.pod_reads:
            await asyncio.sleep(0.05)

    def close(self) -> None:
        """Stop the scheduler and the server, and remove the temporary files."""
        try:
            self._loop.run_until_complete(self._stop())
        finally:
            self._loop.close()
            self._temporary.remove()

    async def _stop(self) -> None:
        if self._chosen is not None and self._chosen.client is not None:
            await self._chosen.client.close()
        if self._process is not None:
            await self._process.stop()
        if self._server is not None:
            await self._server.stop()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop everything."""
        self.close()


def filled(word: str, values: Mapping[str, str]) -> str:
    """Return a text with its placeholders filled in."""
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, 0))
        except OSError as error:
            raise InputError.one("127.0.0.1", f"has no free port: {error.strerror}") from None
        port: int = probe.getsockname()[1]
        return port
