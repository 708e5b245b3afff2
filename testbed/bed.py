"""
A testbed: a real control plane on the loopback interface, for the duration of a `with` block.

    with Testbed.start() as bed:
        bed.add_node("n1")
        bed.kubectl("get", "nodes")

All its files are in one folder, and all its processes carry one mark. Both are removed at the end, whether the block
succeeds, raises, or the process is killed (a guard process does that; see `testbed.leftovers`).
"""

import secrets
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from testbed import building, containerd, control_plane, etcd_gateway, images, leftovers, nodes, ports, real_nodes
from testbed import parts as catalog
from testbed.errors import KubectlError, PartError, TestbedError
from testbed.guarding import Guard
from testbed.launching import LAUNCHERS, Order
from testbed.processes import Program
from testbed.requests import Requests
from testbed.site import Site, own_folder

SMALLEST: Final = ("etcd", "kube-apiserver")
# Attempts to start a part whose port another program has taken.
TRIES: Final = 5
TOKEN_SECONDS: Final = 3600
# Time limit of a kubectl call, including waiting for a deletion.
KUBECTL_WITHIN: Final = 120.0


class Testbed:
    """A control plane that belongs to the process that started it."""

    # The name begins with Test: without this, pytest would collect it.
    __test__ = False

    def __init__(self, site: Site) -> None:
        """Prepare; call `Testbed.start` instead."""
        self.site = site
        self.folder = site.folder
        """Folder of all files of the testbed; removed at the end."""
        self.ca_file = site.authority.ca_file
        self.parts: dict[str, Program] = {}
        """The started parts by name, in the order of starting."""
        self._requests: Requests | None = None
        self._guard: Guard | None = None

    # -------------------------------------------------------------------------------------------------- start and stop

    @classmethod
    def start(
        cls,
        version: str = catalog.KUBERNETES,
        parts: Sequence[str] = SMALLEST,
        *,
        folder: Path | None = None,
        flags: Mapping[str, Sequence[str]] | None = None,
    ) -> Self:
        """
        Build what is missing, start *parts* and wait until they are ready.

        *folder* must not exist; without it, the testbed uses a temporary one. *flags* are further arguments by part
        name.
        """
        unknown = sorted(set(parts) - set(LAUNCHERS))
        if unknown:
            raise TestbedError(f"{', '.join(unknown)} cannot be started; choose from {', '.join(LAUNCHERS)}")
        wanted = [name for name in LAUNCHERS if name in {*SMALLEST, *parts}]
        building.build([catalog.find(name, version) for name in wanted])
        bed = cls(Site(version, own_folder(folder), secrets.token_hex(8)))
        try:
            bed._guard = Guard(bed.site.mark, bed.folder)
            bed.site.with_service_accounts = "kube-controller-manager" in wanted
            for name in wanted:
                bed.start_part(name, flags=(flags or {}).get(name, ()))
        except BaseException:
            bed.stop()
            raise
        return bed

    def stop(self) -> None:
        """End every part and remove the folder. A second call does nothing."""
        # Killed, not terminated: an orderly stop would only write data that is deleted next.
        for part in reversed(self.parts.values()):
            part.kill()
        if self._requests is not None:
            self._requests.close()
        leftovers.clear(self.site.mark, self.folder)
        self._dismiss_guard()

    def leave(self) -> None:
        """Leave the testbed running after this process; a process that knows its mark can end it."""
        if self._requests is not None:
            self._requests.close()
        self._dismiss_guard()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.dismiss()

    # ----------------------------------------------------------------------------------------------------------- parts

    def start_part(
        self,
        part: str,
        *,
        name: str = "",
        config: Mapping[str, Any] | Path | None = None,
        flags: Sequence[str] = (),
    ) -> Program:
        """
        Start a further part, and wait until it is ready; a second scheduler needs another *name*.

        *config* is a scheduler's configuration, as data or as a file.
        """
        name = name or part
        if part not in LAUNCHERS:
            raise TestbedError(f"{part!r} is not a part; choose from {', '.join(LAUNCHERS)}")
        if name in self.parts:
            raise TestbedError(f"this testbed already has a part {name!r}; bed.parts[{name!r}].start() starts it again")
        for tries_left in reversed(range(TRIES)):
            program = self.parts[name] = LAUNCHERS[part](self.site, Order(name, flags, config))
            try:
                program.start()
                break
            except PartError:
                program.kill()
                del self.parts[name]
                if not tries_left or ports.CLASH not in program.last_words():
                    raise
                program.log.unlink(missing_ok=True)
        return self.parts[name]

    @property
    def version(self) -> str:
        """The version of Kubernetes."""
        return self.site.version

    @property
    def url(self) -> str:
        """URL of the API server."""
        return self.site.url

    def compact_etcd(self) -> int:
        """
        Compact etcd to the newest revision, and return that revision.

        The API server's watch cache still serves older ones; restart it to get "410 Gone" for them.
        """
        return etcd_gateway.compact(self.site.etcd_url)

    # ------------------------------------------------------------------------------------------------------ identities

    @property
    def admin(self) -> Path:
        """A kubeconfig with all permissions."""
        user, *groups = control_plane.ADMINISTRATOR
        return self.kubeconfig(user, groups)

    def kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Return a kubeconfig for any user; RBAC decides its permissions."""
        return self.site.kubeconfig(user, groups)

    def service_account_token(self, namespace: str, name: str, pod: str | None = None) -> str:
        """Return a token of an existing service account; with *pod*, bound to that pod as the kubelet requests it."""
        spec: dict[str, Any] = {"expirationSeconds": TOKEN_SECONDS}
        if pod is not None:
            spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": pod}
        answer = self.api("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", {"spec": spec})
        token = answer["status"]["token"]
        assert isinstance(token, str)
        return token

    # -------------------------------------------------------------------------------------------------------- requests

    def api(
        self,
        method: str,
        path: str,
        body: object | None = None,
        as_user: str | None = None,
        content_type: str = "",
    ) -> dict[str, Any]:
        """
        Send a JSON request as the administrator, or as the administrator impersonating *as_user*; return the response.

        A PATCH is a merge patch unless *content_type* is given. Raises `RefusedError` for any status but success.
        """
        headers = {"Impersonate-User": as_user} if as_user else {}
        return self._connected().send(method, path, body, content_type=content_type, headers=headers)

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """Run kubectl as the administrator and return its output. Raises KubectlError with kubectl's own message."""
        command = [str(self.site.program_path("kubectl")), f"--kubeconfig={self.admin}", *words]
        try:
            run = subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=KUBECTL_WITHIN,
                check=False,
                env=self.site.environment(),
                cwd=self.folder,
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlError(f"kubectl {' '.join(words)}: not finished after {KUBECTL_WITHIN:.0f} s") from error
        if run.returncode:
            raise KubectlError(f"kubectl {' '.join(words)}: {run.stderr.strip()}")
        return run.stdout

    def add_node(  # noqa: PLR0913 - a keyword, with a default, for every property
        self,
        name: str,
        *,
        cpu: str = "8",
        memory: str = "16Gi",
        pods: int = 110,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, str]] = (),
        images: Sequence[Mapping[str, Any]] = (),
        resources: Mapping[str, str] | None = None,
    ) -> None:
        """Add a node that exists in the API only: Ready, and without taints by default."""
        self.add_nodes([nodes.Node(name, cpu, memory, pods, labels or {}, taints, images, resources or {})])

    def add_nodes(self, wanted: Iterable[nodes.Node | Mapping[str, Any]]) -> None:
        """Add many such nodes, several at a time; each is a `Node` or a mapping of the arguments of `add_node`."""
        made = [node if isinstance(node, nodes.Node) else nodes.Node(**node) for node in wanted]
        nodes.add(self._connected(), made)

    def _connected(self) -> Requests:
        if self._requests is None:
            self._requests = self.site.requests()
        return self._requests

    # ---------------------------------------------------------------------------------------------- images and kubelets

    @property
    def registry(self) -> str:
        """Host and port of the image registry; starts it on first use."""
        if "registry" not in self.parts:
            self.start_part("registry")
        return self.site.registry

    def push_image(self, name: str, layers: Sequence[Mapping[str, bytes]] = ()) -> images.Pushed:
        """Push an image with the idle program and further *layers* of files; *name* is a repository and a tag."""
        program = {images.PROGRAM: self.site.program_path(images.PROGRAM).read_bytes()}
        return images.push(self.registry, name, [program, *layers])

    def add_real_node(self, name: str) -> real_nodes.RealNode:
        """Add a node that runs containers, with its own containerd and kubelet, and wait until it is Ready."""
        containerd.check()
        building.build([catalog.find(part, self.version) for part in real_nodes.PARTS])
        self.push_image(real_nodes.PAUSE)
        node = real_nodes.prepare(self.site, name)
        for program in (node.containerd, node.kubelet):
            self.parts[program.name] = program
            program.start()
        real_nodes.wait_ready(self._connected(), node)
        return node
