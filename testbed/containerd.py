"""
How a containerd is set up so that it shares nothing with others on the machine: folders, sockets, registries.

For nodes with a kubelet (`testbed.real_nodes`) and for a runtime by itself (`testbed.runtimes`). The testbed's own build
reads a configuration of version 3; Debian's older one knows version 2, where the same settings have other names.
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
# What it would put into places of the machine: the folder for installed programs, and a socket for plugins.
UNWANTED: Final = '["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]'


@dataclass(frozen=True, slots=True)
class Setup:
    """What one containerd is told."""

    folder: Path
    """Everything it writes, and its sockets."""
    registries: Mapping[str, str]
    """How images are named, and the host and port that has them over plain HTTP."""
    sandbox: str = ""
    """The image of the container that every pod has."""
    runc: Path | None = None
    """What runs containers, if it is to run any."""
    network_plugins: Path | None = None
    discard: bool = False
    """Whether layers are dropped from the content store once they are unpacked."""
    snapshotter: str = "overlayfs"
    more: Mapping[str, str] = field(default_factory=dict)
    """Whole tables of the configuration by their names, as text, for what only one test wants."""

    @property
    def socket(self) -> Path:
        """For CRI and for its own API."""
        return self.folder / "c.sock"


def check() -> None:
    """Object when this process may not run containers."""
    if os.geteuid() != 0:
        raise RootError("needs root to run containers: neither a container runtime nor a kubelet does without")


def write(setup: Setup, version: int) -> Path:
    """Write all that a containerd reads; the answer is the configuration to start it with."""
    if len(str(setup.socket)) > LONGEST_SOCKET:
        raise TestbedError(f"{setup.socket} is too long a path for a socket: choose a shorter name or folder")
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
    Say where images whose names begin with *name* come from: the host and port *server*, over plain HTTP.

    *folder* is that of the containerd, which heeds it from the next pull on.
    """
    hosts = folder / "hosts" / name
    hosts.mkdir(parents=True, exist_ok=True)
    (hosts / "hosts.toml").write_text(
        f'server = "http://{server}"\n[host."http://{server}"]\ncapabilities = {CAPABILITIES}\n', encoding="utf-8"
    )


def config_3(setup: Setup) -> str:
    """The configuration of containerd 2."""
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
    """The configuration of containerd 1."""
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
    """Where it keeps and offers things; the same in both versions."""
    return f"""root = "{setup.folder}/root"
state = "{setup.folder}/state"
disabled_plugins = {UNWANTED}

[grpc]
address = "{setup.socket}"

[ttrpc]
address = "{setup.socket}.ttrpc"
"""


def runtime(table: str, setup: Setup) -> str:
    """What runs containers."""
    return f"""
[{table}.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[{table}.runtimes.runc.options]
BinaryName = "{setup.folder}/runtime"
Root = "{setup.folder}/runc"
"""


def tables(setup: Setup) -> str:
    """What only one test wants."""
    return "".join(f"\n[{name}]\n{text}\n" for name, text in setup.more.items())
