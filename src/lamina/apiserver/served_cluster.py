"""
A live façade with the files that its clients need: kubeconfig, certificates, service account.

    settings --start--> listening, files written --run--> … --stop--> files removed
"""

from pathlib import Path
from typing import Final

import msgspec

from lamina.apiserver.facade_parts import EPOCH
from lamina.apiserver.kubeconfig import is_own_kubeconfig, write_kubeconfig, write_service_account
from lamina.apiserver.live_facade import LiveFacade
from lamina.apiserver.real_time import ClockPace
from lamina.apiserver.run_folder import RunFolder
from lamina.apiserver.tls_files import TlsFiles, make_tls_files
from lamina.apiserver.watch_streams import MOST_UNSENT
from lamina.model.errors import InputError
from lamina.model.resources import amounts
from lamina.scheduling.config.loader import Configuration
from lamina.serving.tls import ServerTlsSettings
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.workloads import Scenario

BANDWIDTH: Final = 125e6
"""Download rate of equal nodes in bytes per second: 1 Gbit/s."""
EQUAL_NODE: Final[dict[str, str | float]] = {"cpu": 4, "memory": "16Gi", "pods": 110, "ephemeral-storage": "100Gi"}
"""Resources of an equal node."""


class ServedClusterSettings(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """What is served, and where."""

    scenario: Scenario
    pace: ClockPace
    epoch: float = EPOCH
    seed: int = 0
    configuration: Configuration | None = None
    """With it, Lamina schedules the pods of its profiles; None: only clients schedule."""
    port: int = 0
    tls: bool = False
    kubeconfig: Path | None = None
    """Where to write the kubeconfig; None: to a temporary folder."""
    watch_buffer: int = MOST_UNSENT
    """Bytes that all watches together hold at most for clients that do not read."""
    service_account: Path | None = None
    """Folder for the files of a service account; needs TLS."""


def equal_nodes(count: int) -> Scenario:
    """Return a scenario with *count* equal nodes and no pods."""
    nodes = tuple(
        VirtualNodeSpec(name=f"node-{number}", allocatable=amounts(EQUAL_NODE), bandwidth=BANDWIDTH)
        for number in range(count)
    )
    return Scenario(name="equal nodes", nodes=nodes)


class ServedCluster:
    """A live façade that is listening."""

    def __init__(self, settings: ServedClusterSettings) -> None:
        """Prepare the façade; nothing listens before `start`."""
        self._settings = settings
        self.facade = LiveFacade(
            settings.scenario,
            settings.pace,
            epoch=settings.epoch,
            seed=settings.seed,
            configuration=settings.configuration,
            watch_buffer=settings.watch_buffer,
        )
        self._folder: RunFolder | None = None
        self._written: list[Path] = []
        self.kubeconfig = Path()

    @property
    def url(self) -> str:
        """Address of the API."""
        return self.facade.server.url

    async def start(self) -> None:
        """Listen, then write the files. Raises InputError; then nothing is left behind."""
        settings = self._settings
        if settings.kubeconfig is not None and settings.kubeconfig.exists():
            _check_own(settings.kubeconfig)
        if settings.service_account is not None and not settings.tls:
            raise InputError.one("--service-account", "needs --tls: programs in pods connect with TLS only; add --tls")
        self._folder = RunFolder()
        try:
            await self._start(self._folder.path)
        except BaseException:
            await self.stop()
            raise

    async def _start(self, folder: Path) -> None:
        settings = self._settings
        files = make_tls_files(folder) if settings.tls else None
        tls = None if files is None else ServerTlsSettings(str(files.cert), str(files.key))
        await self.facade.start(settings.port, tls)
        self.kubeconfig = settings.kubeconfig or folder / "kubeconfig"
        self._write(self.kubeconfig, files)

    def _write(self, path: Path, files: TlsFiles | None) -> None:
        ca_file = None if files is None else files.ca
        try:
            write_kubeconfig(path, self.url, ca_file)
            self._written.append(path)
            folder = self._settings.service_account
            if folder is not None and ca_file is not None:
                self._written += write_service_account(folder, ca_file)
        except OSError as error:
            where = error.filename or path
            raise InputError.one(
                str(where), f"cannot be written: {error.strerror}; name a file that you can write"
            ) from None

    async def run(self) -> None:
        """Serve until cancelled."""
        await self.facade.run()

    async def stop(self) -> None:
        """Stop serving, and remove the files."""
        await self.facade.stop()
        for path in self._written:
            path.unlink(missing_ok=True)
        self._written.clear()
        if self._folder is not None:
            self._folder.remove()


def _check_own(path: Path) -> None:
    """Raise InputError if a file is not a kubeconfig of an earlier façade, which may be replaced."""
    try:
        own = is_own_kubeconfig(path)
    except OSError as error:
        raise InputError.one("--kubeconfig", f"{path} cannot be read: {error.strerror}; name another file") from None
    if not own:
        raise InputError.one("--kubeconfig", f"{path} exists, and it may be yours; name a file that does not exist")
