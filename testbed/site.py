"""What the parts of one testbed share: version, folder, mark, certificates, and server addresses."""

import hashlib
import os
import re
import ssl
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from testbed import building, control_plane, leftovers
from testbed.certificates import Authority, write
from testbed.processes import Program
from testbed.requests import Requests

Command: TypeAlias = Sequence[str | Path]

# User names that can be file names unchanged, and characters that cannot.
PLAIN: Final = re.compile(r"[a-z0-9][a-z0-9-]*")
UNFIT: Final = re.compile(r"[^A-Za-z0-9-]+")

# A container runtime's socket is some levels below, and its path may have 107 characters.
LONGEST_FOLDER: Final = 60


class Site:
    """The shared settings of a testbed. Starts nothing."""

    def __init__(self, version: str, folder: Path, mark: str) -> None:
        self.version, self.folder, self.mark = version, folder, mark
        self.authority = Authority(folder / "certificates")
        self.logs = folder / "logs"
        self.logs.mkdir(exist_ok=True)
        self.url = ""
        """URL of the API server, once its port is chosen."""
        self.etcd_url = ""
        self.registry = ""
        """Host and port of the image registry, if there is one."""
        self.with_service_accounts = False

    def program_path(self, part: str, program: str = "") -> Path:
        """Return the path of a part's program, after building it if needed."""
        return building.ensure(part, self.version, program)

    def program(
        self, name: str, command: Command, ready: Callable[[], bool], port: int | None = None, **environment: str
    ) -> Program:
        """Return a process of this testbed; servers pass their *port*."""
        log = self.logs / f"{name}.log"
        return Program(name, command, log, ready=ready, port=port, environment={**self.environment(), **environment})

    def environment(self) -> dict[str, str]:
        """Return a minimal environment, without the user's proxy and KUBECONFIG settings."""
        path = os.environ.get("PATH", os.defpath)
        return {"PATH": path, "HOME": str(self.folder), leftovers.MARK: self.mark}

    def kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Return a kubeconfig for *user*; written once for each set of groups."""
        if (user, *groups) == control_plane.ADMINISTRATOR:
            name = "admin"
        elif PLAIN.fullmatch(user) and not groups:
            name = user
        else:
            # Different users must not share a file because their names become the same file name.
            digest = hashlib.sha256("\0".join([user, *groups]).encode()).hexdigest()[:8]
            name = f"{UNFIT.sub('-', user)}-{digest}"
        path = self.folder / f"{name}.kubeconfig"
        return path if path.exists() else self.authority.kubeconfig(path, self.url, user, groups)

    def requests(self) -> Requests:
        """Return a client of the API server with all permissions."""
        paths = [self.authority.folder / f"admin.{end}" for end in ("crt", "key")]
        if not paths[1].exists():
            user, *groups = control_plane.ADMINISTRATOR
            for path, data in zip(paths, self.authority.client(user, groups), strict=True):
                write(path, data)
        context = ssl.create_default_context(cafile=str(self.authority.ca_file))
        context.load_cert_chain(paths[0], paths[1])
        return Requests(self.url, context)


def own_folder(folder: Path | None) -> Path:
    """Return a new folder: the given one, or a temporary one with a short path."""
    if folder is not None:
        folder = folder.resolve()
        folder.mkdir(parents=True)
        return folder
    new = Path(tempfile.mkdtemp(prefix="testbed-"))
    if len(str(new)) <= LONGEST_FOLDER:
        return new
    new.rmdir()
    return Path(tempfile.mkdtemp(prefix="testbed-", dir="/tmp"))
