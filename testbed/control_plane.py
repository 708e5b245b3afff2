"""
Command lines of the parts of a control plane: etcd, API server, scheduler, controller manager.

Each function returns a command line; nothing is started here. All parts listen on the loopback interface only.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from testbed.certificates import Authority
from testbed.ports import LOOPBACK

ISSUER: Final = "https://kubernetes.default.svc"
SERVICES: Final = "10.0.0.0/24"

# The node-lifecycle controller would evict pods from nodes without a kubelet; the IPAM controller has nothing to do.
CONTROLLERS: Final = "*,-node-lifecycle-controller,-node-ipam-controller"

# Identities that Kubernetes has roles for.
SCHEDULER: Final = "system:kube-scheduler"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"
ADMINISTRATOR: Final = ("kubernetes-admin", "system:masters")
"""User name and group of the administrator."""


def etcd(data: Path, port: int, peer_port: int) -> list[str]:
    """Return the command of a single-member etcd without fsync: data survives a kill, but not a power cut."""
    client, peer = f"http://{LOOPBACK}:{port}", f"http://{LOOPBACK}:{peer_port}"
    return [
        "--name=etcd",
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=etcd={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(authority: Authority, port: int, etcd_port: int, *, with_service_accounts: bool) -> list[str]:
    """
    Return the command of an API server with client certificates, service-account tokens and RBAC.

    *with_service_accounts*: whether a controller manager creates the default account of every namespace. If not, the
    admission plugin that requires the account is disabled, because no pod could be created.
    """
    certificate, key = authority.server()
    signing = authority.service_account_key()
    command = [
        f"--etcd-servers=http://{LOOPBACK}:{etcd_port}",
        f"--bind-address={LOOPBACK}",
        f"--advertise-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--tls-cert-file={certificate}",
        f"--tls-private-key-file={key}",
        f"--cert-dir={authority.folder}",
        f"--client-ca-file={authority.ca_file}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={signing}",
        f"--service-account-signing-key-file={signing}",
        f"--service-cluster-ip-range={SERVICES}",
        # Nothing routes the address of the kubernetes service here, and loopback is not a valid endpoint.
        "--endpoint-reconciler-type=none",
        # Tests stop the server; there is no load balancer that needs a grace period.
        "--shutdown-delay-duration=0s",
        "--profiling=false",
    ]
    if not with_service_accounts:
        command.append("--disable-admission-plugins=ServiceAccount")
    return command


def scheduler(config: Path, port: int, kubeconfig: Path) -> list[str]:
    """Return the command of kube-scheduler."""
    return [
        f"--config={config}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--cert-dir={config.parent}",
    ]


def scheduler_config(config: Mapping[str, Any] | Path | None, kubeconfig: Path) -> dict[str, Any]:
    """Return *config* completed with the connection, and with leader election off unless configured."""
    given = yaml.safe_load(config.read_text(encoding="utf-8")) if isinstance(config, Path) else config
    complete: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        **copy.deepcopy(dict(given or {})),
    }
    complete["clientConnection"] = {
        "qps": 5000,
        "burst": 5000,
        **complete.get("clientConnection", {}),
        "kubeconfig": str(kubeconfig),
    }
    return complete


def controller_manager(authority: Authority, port: int, kubeconfig: Path) -> list[str]:
    """Return the command of the controller manager: deployments, jobs, service accounts, garbage collection."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={authority.folder}",
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={authority.service_account_key()}",
        f"--root-ca-file={authority.ca_file}",
        f"--controllers={CONTROLLERS}",
    ]
