"""
How the parts of a control plane are called: etcd, API server, scheduler, controller manager.

Each function answers with a command line; nothing is started here. All of them listen on the loopback interface only.
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

# The node-lifecycle controller would evict pods from nodes that have no kubelet, and nothing here hands out addresses.
CONTROLLERS: Final = "*,-node-lifecycle-controller,-node-ipam-controller"

# Identities that Kubernetes has roles for.
SCHEDULER: Final = "system:kube-scheduler"
CONTROLLER_MANAGER: Final = "system:kube-controller-manager"
ADMINISTRATOR: Final = ("kubernetes-admin", "system:masters")
"""User and group."""


def etcd(data: Path, port: int, peer_port: int) -> list[str]:
    """One member on its own, which forgets nothing on a kill but may on a power cut: it does not wait for the disk."""
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
    An API server that authenticates by client certificates and service-account tokens and authorises as clusters do.

    *with_service_accounts*: whether the controller manager is there to give every namespace its default account. If
    not, no pod could be created while admission insists on one.
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
        # Nothing routes the address of the kubernetes service here, and loopback is no valid endpoint.
        "--endpoint-reconciler-type=none",
        # Tests kill the server; nobody waits for its load balancer.
        "--shutdown-delay-duration=0s",
        "--profiling=false",
    ]
    if not with_service_accounts:
        command.append("--disable-admission-plugins=ServiceAccount")
    return command


def scheduler(config: Path, port: int, kubeconfig: Path) -> list[str]:
    """The upstream scheduler."""
    return [
        f"--config={config}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--cert-dir={config.parent}",
    ]


def scheduler_config(config: Mapping[str, Any] | Path | None, kubeconfig: Path) -> dict[str, Any]:
    """What was asked for, completed by what has to stand there: whom to connect to, and no election unless wanted."""
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
    """Deployments, jobs, service accounts, garbage collection and the like."""
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
