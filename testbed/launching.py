"""
Prepares the parts of a control plane: choose ports, write files, define the readiness check of each.

Called by `Testbed.start_part`, and again with other ports if another program has taken one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import yaml

from testbed import control_plane, in_cluster, kwok_stages, ports
from testbed.processes import Program
from testbed.requests import Requests
from testbed.site import Command, Site

# A server may accept a connection before it can answer.
PROBE_WITHIN: Final = 5.0


@dataclass(frozen=True, slots=True)
class Order:
    """A request to start a part."""

    name: str
    flags: Sequence[str] = ()
    config: Mapping[str, Any] | Path | None = None


Launcher: TypeAlias = Callable[[Site, Order], Program]


def etcd(site: Site, order: Order) -> Program:
    """Return etcd; ready once it has elected itself."""
    port = ports.free()
    site.etcd_url = f"http://{ports.LOOPBACK}:{port}"
    command = control_plane.etcd(site.folder / order.name, port, ports.free())
    probe = Requests(site.etcd_url)
    return site.program(order.name, [site.program_path("etcd"), *command, *order.flags], once(probe, "/health"), port)


def api_server(site: Site, order: Order) -> Program:
    """Return the API server; ready once /readyz succeeds and the namespaces of every cluster exist."""
    port = ports.free()
    site.url = f"https://{ports.LOOPBACK}:{port}"
    command = control_plane.api_server(
        site.authority, port, int(site.etcd_url.rpartition(":")[2]), with_service_accounts=site.with_service_accounts
    )
    words: Command = [site.program_path("kube-apiserver"), *command, *order.flags]
    return site.program(order.name, words, once(site.requests(), "/readyz", "/api/v1/namespaces/default"), port)


def scheduler(site: Site, order: Order) -> Program:
    """Return kube-scheduler; ready once it serves, which it does after its caches have synced."""
    port, kubeconfig = ports.free(), site.kubeconfig(control_plane.SCHEDULER)
    path = site.folder / f"{order.name}.yaml"
    path.write_text(yaml.safe_dump(control_plane.scheduler_config(order.config, kubeconfig)), encoding="utf-8")
    words: Command = [
        site.program_path("kube-scheduler"),
        *control_plane.scheduler(path, port, kubeconfig),
        *order.flags,
    ]
    return site.program(order.name, words, lambda: True, port)


def controller_manager(site: Site, order: Order) -> Program:
    """Return the controller manager; ready once new namespaces get their default service account."""
    port, kubeconfig = ports.free(), site.kubeconfig(control_plane.CONTROLLER_MANAGER)
    command = control_plane.controller_manager(site.authority, port, kubeconfig)
    words: Command = [site.program_path("kube-controller-manager"), *command, *order.flags]
    proof = once(site.requests(), "/api/v1/namespaces/default/serviceaccounts/default")
    return site.program(order.name, words, proof, port)


def registry(site: Site, order: Order) -> Program:
    """Return an image registry over plain HTTP without authentication."""
    port = ports.free()
    site.registry = f"{ports.LOOPBACK}:{port}"
    document = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(site.folder / order.name)}, "delete": {"enabled": True}},
        "http": {"addr": site.registry},
    }
    path = site.folder / f"{order.name}.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    words: Command = [site.program_path("registry"), "serve", path, *order.flags]
    # Without this, it tries to send traces to a collector.
    return site.program(
        order.name, words, once(Requests(f"http://{site.registry}"), "/v2/"), port, OTEL_TRACES_EXPORTER="none"
    )


def kwok(site: Site, order: Order) -> Program:
    """Return kwok, which plays the kubelet of every node; ready once it serves. *config* is a file of other stages."""
    port = ports.free()
    stages = order.config if isinstance(order.config, Path) else site.folder / f"{order.name}.yaml"
    if stages is not order.config:
        stages.write_text(kwok_stages.text(), encoding="utf-8")
    user, *groups = control_plane.ADMINISTRATOR
    words: Command = [
        site.program_path("kwok"),
        f"--kubeconfig={site.kubeconfig(user, groups)}",
        f"--config={stages}",
        "--manage-all-nodes=true",
        f"--server-address={ports.LOOPBACK}:{port}",
        *order.flags,
    ]
    return site.program(order.name, words, once(Requests(f"http://{ports.LOOPBACK}:{port}"), "/readyz"), port)


def random_scheduler(site: Site, order: Order) -> Program:
    """Return our random scheduler, which finds the API server as in a pod. Ready once its caches have synced."""
    account = in_cluster.account(site, order.name, control_plane.SCHEDULER)
    words = in_cluster.command(account, [site.program_path("random-scheduler"), *order.flags])
    log = site.logs / f"{order.name}.log"

    def ready() -> bool:
        return " is ready at " in log.read_text(encoding="utf-8", errors="replace")

    return site.program(order.name, words, ready, None, **in_cluster.environment(site.url))


LAUNCHERS: Final[dict[str, Launcher]] = {
    "etcd": etcd,
    "kube-apiserver": api_server,
    "kube-controller-manager": controller_manager,
    "kube-scheduler": scheduler,
    "registry": registry,
    "kwok": kwok,
    "random-scheduler": random_scheduler,
}
"""The parts that `start_part` can start, in the order of starting."""


def once(requests: Requests, *paths: str) -> Callable[[], bool]:
    """Return a readiness check that requests *paths* with a short timeout and keeps no connection."""
    probe = requests.within(PROBE_WITHIN)

    def ready() -> bool:
        try:
            return all(probe.answers(path) for path in paths)
        finally:
            probe.close()

    return ready
