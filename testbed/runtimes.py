"""
Container runtimes without a control plane, for tests of the code that reads them.

    with RegistryServer() as registry, Containerd(registry=registry.host) as runtime:
        runtime.pull(made.push(registry.host, "web:1", image))

Needs root. They pull and keep images as on a node, and run no containers.
"""

import functools
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from testbed import building, containerd, cri
from testbed import parts as catalog
from testbed.errors import MissingError
from testbed.processes import Program
from testbed.standalone import Standalone

DEBIAN: Final = "debian"
"""In place of a version: the installed containerd, which is 1.6 on Debian 12."""


class Containerd(Standalone):
    """A containerd with its own root, state and socket."""

    def __init__(
        self,
        folder: Path | None = None,
        registry: str = "",
        version: str = catalog.CONTAINERD,
        *,
        discard: bool = False,
        registries: Mapping[str, str] | None = None,
        more: Mapping[str, str] | None = None,
    ) -> None:
        """
        Prepare; *registry* is a host and port that serves plain HTTP.

        *registries* maps further prefixes of image names to the host and port of their registry, and *more* has further
        tables of the configuration.
        """
        super().__init__(folder)
        self.version = version
        self._registries = {**({registry: registry} if registry else {}), **(registries or {})}
        self._discard, self._more = discard, more or {}
        self._setup: containerd.Setup

    def __enter__(self) -> "Containerd":
        containerd.check()
        self._command()
        return super().__enter__()

    def prepare(self) -> Program:
        """Return a containerd that is configured for the registries."""
        self._setup = containerd.Setup(self.site.folder, self._registries, discard=self._discard, more=self._more)
        config = containerd.write(self._setup, 2 if self.version == DEBIAN else 3)
        program = self._command()
        # containerd finds its shim on the PATH.
        path = f"{program.parent}:{self.site.environment()['PATH']}"
        ready = functools.partial(cri.answers, self.socket)
        return self.site.program("containerd", [program, "--config", config], ready, PATH=path)

    @property
    def socket(self) -> Path:
        """The socket for CRI and for containerd's own API."""
        return self._setup.socket

    @property
    def root(self) -> Path:
        """The folder of contents and snapshots."""
        return self.site.folder / "root"

    def pull(self, reference: str) -> str:
        """Pull an image as a kubelet does; return the runtime's reference to it."""
        return cri.pull(self.socket, reference)

    def remove(self, reference: str) -> None:
        """Remove an image with all its names, as a kubelet does."""
        cri.remove(self.socket, reference)

    def allow(self, name: str, server: str) -> None:
        """From the next pull on, pull images whose names start with *name* from *server*."""
        containerd.allow(self.site.folder, name, server)

    def _command(self) -> Path:
        if self.version != DEBIAN:
            return building.programs(catalog.find("containerd")) / "containerd"
        found = shutil.which("containerd")
        if found is None:
            raise MissingError("needs an installed containerd; on Debian try `apt-get install containerd`")
        return Path(found)
