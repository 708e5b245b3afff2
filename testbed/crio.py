"""
CRI-O without a control plane: it pulls and keeps images as on a node, and runs no containers.

    with RegistryServer() as registry, CriO(registry=registry.host) as runtime:
        runtime.pull(made.push(registry.host, "web:1", image))

Needs root. A stub replaces the program that starts containers: CRI-O only checks at its start that it exists. All files
are in one folder, except a cache of digests that containers/storage keeps for all its users in
/var/lib/containers/cache.
"""

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from testbed import building, containerd, cri
from testbed import parts as catalog
from testbed.processes import Program
from testbed.standalone import Standalone

MONITOR: Final = '#!/bin/sh\n[ "$1" = --version ] && echo "conmon version 2.1.12"\n'
# Must be an executable file; it is never called.
UNUSED: Final = "/bin/false"
# CRI-O requires a registry name.
UNKNOWN: Final = "registry.invalid"


class CriO(Standalone):
    """A CRI-O with its own root and socket."""

    def __init__(self, folder: Path | None = None, registry: str = "", *, stores: Sequence[Path] = ()) -> None:
        """Prepare; *registry* is a host and port that serves plain HTTP, *stores* are read-only image stores."""
        super().__init__(folder)
        self._registry, self._stores = registry, tuple(stores)

    def __enter__(self) -> "CriO":
        containerd.check()
        building.build([catalog.find("cri-o"), catalog.find("runc")])
        return super().__enter__()

    def prepare(self) -> Program:
        """Return a CRI-O that is configured for the registry."""
        folder = self.site.folder
        monitor = folder / "monitor"
        monitor.write_text(MONITOR, encoding="utf-8")
        monitor.chmod(0o755)
        (folder / "extra").mkdir(exist_ok=True)
        texts = {
            "crio.conf": self._configuration(),
            "policy.json": json.dumps({"default": [{"type": "insecureAcceptAnything"}]}),
            "registries.conf": tables({"[registry]": {"location": self._registry or UNKNOWN, "insecure": True}}),
            "storage.conf": tables(
                {
                    "storage": {"driver": "overlay", "graphroot": str(self.root), "runroot": str(folder / "runroot")},
                    "storage.options": {"additionalimagestores": [str(store) for store in self._stores]},
                }
            ),
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        command: list[str | Path] = [
            building.programs(catalog.find("cri-o")) / "crio",
            *("--config", folder / "crio.conf"),
            *("--config-dir", folder / "extra"),
            *("--registries-conf", folder / "registries.conf"),
        ]
        ready = functools.partial(cri.answers, self.socket)
        return self.site.program("crio", command, ready, CONTAINERS_STORAGE_CONF=str(folder / "storage.conf"))

    @property
    def socket(self) -> Path:
        """The socket for CRI."""
        return self.site.folder / "c.sock"

    @property
    def root(self) -> Path:
        """The folder of its images."""
        return self.site.folder / "root"

    def pull(self, reference: str) -> str:
        """Pull an image as a kubelet does; return the runtime's reference to it."""
        return cri.pull(self.socket, reference)

    def remove(self, reference: str) -> None:
        """Remove an image with all its names, as a kubelet does."""
        cri.remove(self.socket, reference)

    def _configuration(self) -> str:
        folder = self.site.folder
        runc = building.programs(catalog.find("runc")) / "runc"
        return tables(
            {
                "crio": {
                    "root": str(self.root),
                    "runroot": str(folder / "runroot"),
                    "storage_driver": "overlay",
                    "log_dir": str(folder / "pods"),
                    "version_file": str(folder / "version"),
                    "version_file_persist": "",
                    "clean_shutdown_file": str(folder / "clean"),
                    "internal_wipe": False,
                    "internal_repair": False,
                },
                "crio.api": {"listen": str(self.socket), "stream_address": "127.0.0.1", "stream_port": "0"},
                "crio.runtime": {
                    "cgroup_manager": "cgroupfs",
                    "default_runtime": "runc",
                    "pinns_path": UNUSED,
                    "namespaces_dir": str(folder / "namespaces"),
                    "container_exits_dir": str(folder / "exits"),
                    "container_attach_socket_dir": str(folder / "attach"),
                    "hooks_dir": [],
                    "irqbalance_config_file": "",
                    "irqbalance_config_restore_file": "disable",
                },
                "crio.runtime.runtimes.runc": {
                    "runtime_path": str(runc),
                    "runtime_root": str(folder / "runc"),
                    "monitor_path": str(folder / "monitor"),
                    "monitor_cgroup": "pod",
                },
                "crio.image": {
                    "signature_policy": str(folder / "policy.json"),
                    "signature_policy_dir": str(folder / "policies"),
                    "big_files_temporary_dir": str(folder),
                },
                "crio.network": {"network_dir": str(folder / "cni"), "plugin_dirs": [str(folder / "cni")]},
                "crio.metrics": {"enable_metrics": False},
                "crio.nri": {"enable_nri": False},
            }
        )


def tables(told: Mapping[str, Mapping[str, str | bool | Sequence[str]]]) -> str:
    """Return TOML; strings, booleans and lists of strings are written as in JSON."""
    return "\n".join(
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in told.items()
    )
