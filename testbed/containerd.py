"""
Configures a containerd that shares no folder, socket or registry setting with others on the machine.

For nodes with a kubelet (`testbed.real_nodes`) and for a runtime alone (`testbed.runtimes`). The testbed's own build
reads configuration version 3. Debian's older containerd reads version 2, in which the same settings have other names.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from testbed import unconfined
from testbed.errors import RootError, TestbedError

LONGEST_SOCKET: Final = 100
CAPABILITIES: Final = '["pull", "resolve"]'
# Plugins that write outside the folder: the folder for installed programs, and a socket for NRI plugins.
UNWANTED: Final = '["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]'


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings of one containerd."""

    folder: Path
    """Folder of all its files and sockets."""
    registries: Mapping[str, str]
    """Prefix of image names → host and port of the registry, over plain HTTP."""
    sandbox: str = ""
    """The sandbox image of every pod."""
    runc: Path | None = None
    """The runc program; None if the containerd runs no containers."""
    network_plugins: Path | None = None
    discard: bool = False
    """Whether layers are removed from the content store once they are unpacked."""
    snapshotter: str = "overlayfs"
    more: Mapping[str, str] = field(default_factory=dict)
    """Further tables of the configuration, by name, as text."""

    @property
    def socket(self) -> Path:
        """The socket for CRI and for containerd's own API."""
        return self.folder / "c.sock"


def check() -> None:
    """Raise RootError unless this process can run containers."""
    if os.geteuid() != 0:
        raise RootError("needs root: container runtimes and kubelets do not run without it; try sudo")


def write(setup: Setup, version: int) -> Path:
    """Write all files that a containerd reads; return the path of its configuration."""
    if len(str(setup.socket)) > LONGEST_SOCKET:
        raise TestbedError(f"{setup.socket} is too long a path for a socket; choose a shorter name or folder")
    setup.folder.mkdir(parents=True, exist_ok=True)
    for name, server in setup.registries.items():
        allow(setup.folder, name, server)
    networks = setup.folder / "cni"
    networks.mkdir(exist_ok=True)
    loopback = {"cniVersion": "1.0.0", "name": "loopback", "plugins": [{"type": "loopback"}]}
    (networks / "10-loopback.conflist").write_text(json.dumps(loopback), encoding="utf-8")
    if setup.runc is not None:
        runtime = setup.folder / "runtime"
        words = [sys.executable, "-I", "-S", unconfined.__file__, str(setup.runc)]
        runtime.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        runtime.chmod(0o755)
    path = setup.folder / "containerd.toml"
    path.write_text(config_3(setup) if version == 3 else config_2(setup), encoding="utf-8")
    return path


def allow(folder: Path, name: str, server: str) -> None:
    """
    Pull images whose names start with *name* from the host and port *server*, over plain HTTP.

    *folder* is the containerd's folder; the setting applies from the next pull on.
    """
    hosts = folder / "hosts" / name
    hosts.mkdir(parents=True, exist_ok=True)
    (hosts / "hosts.toml").write_text(
        f'server = "http://{server}"\n[host."http://{server}"]\ncapabilities = {CAPABILITIES}\n', encoding="utf-8"
    )


def config_3(setup: Setup) -> str:
    """Return the configuration for containerd 2."""
    text = f"""version = 3
{places(setup)}
[plugins.'io.containerd.cri.v1.images']
snapshotter = "{setup.snapshotter}"
discard_unpacked_layers = {str(setup.discard).lower()}

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{setup.sandbox}"

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "{setup.folder}/hosts"

[plugins.'io.containerd.cri.v1.runtime']
# Lowering the score needs a right that containers of a build machine often lack.
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["{setup.network_plugins or setup.folder / "cni"}"]
conf_dir = "{setup.folder}/cni"
"""
    if setup.runc is not None:
        text += runtime("plugins.'io.containerd.cri.v1.runtime'.containerd", setup)
    return text + tables(setup)


def config_2(setup: Setup) -> str:
    """Return the configuration for containerd 1."""
    plugin = "plugins.'io.containerd.grpc.v1.cri'"
    text = f"""version = 2
{places(setup)}
[{plugin}]
sandbox_image = "{setup.sandbox}"
restrict_oom_score_adj = true

[{plugin}.containerd]
snapshotter = "{setup.snapshotter}"
discard_unpacked_layers = {str(setup.discard).lower()}

[{plugin}.registry]
config_path = "{setup.folder}/hosts"

[{plugin}.cni]
bin_dir = "{setup.network_plugins or setup.folder / "cni"}"
conf_dir = "{setup.folder}/cni"
"""
    if setup.runc is not None:
        text += runtime(f"{plugin}.containerd", setup)
    return text + tables(setup)


def places(setup: Setup) -> str:
    """Return the settings of folders and sockets; the same in both versions."""
    return f"""root = "{setup.folder}/root"
state = "{setup.folder}/state"
disabled_plugins = {UNWANTED}

[grpc]
address = "{setup.socket}"

[ttrpc]
address = "{setup.socket}.ttrpc"
"""


def runtime(table: str, setup: Setup) -> str:
    """Return the settings of the runtime that runs containers."""
    return f"""
[{table}.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{table}.runtimes.runc.options]
BinaryName = "{setup.folder}/runtime"
Root = "{setup.folder}/runc"
"""


def tables(setup: Setup) -> str:
    """Return the further tables of the configuration."""
    return "".join(f"\n[{name}]\n{text}\n" for name, text in setup.more.items())
