"""
A testbed: a real control plane of one's own on the loopback interface, for as long as a `with` block lasts.

    with Testbed.start() as bed:
        bed.add_node("n1")
        bed.kubectl("get", "nodes")

Everything it writes lies in one folder, everything it starts carries one mark; both are gone at the end, whether the
block ends well, raises, or the process is killed (a guard sees to that; `testbed.leftovers`).
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
# How often a part may find its port taken by somebody else.
TRIES: Final = 5
TOKEN_SECONDS: Final = 3600
# What a kubectl call may take, waiting for a deletion included.
KUBECTL_WITHIN: Final = 120.0


class Testbed:
    """A control plane that belongs to whoever started it."""

    # The name begins with Test, and pytest would look for tests in it.
    __test__ = False

    def __init__(self, site: Site) -> None:
        """Prepare; `Testbed.start` is what one calls."""
        self.site = site
        self.folder = site.folder
        """Everything the testbed writes; gone at the end."""
        self.ca_file = site.authority.ca_file
        self.parts: dict[str, Program] = {}
        """What was started, by name, in the order of starting."""
        self._requests: Requests | None = None
        self._guard: Guard | None = None

    # ------------------------------------------------------------------------------------------------ coming and going

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
        Build what is missing, start *parts* and wait until they can be used.

        *folder* must be new; without it the testbed has a temporary one. *flags* are further arguments by part name.
        """
        unknown = sorted(set(parts) - set(LAUNCHERS))
        if unknown:
            raise TestbedError(f"{', '.join(unknown)} cannot be started: there are {', '.join(LAUNCHERS)}")
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
        """End every part and give the folder back. Nothing happens the second time."""
        # Killed, not asked: nobody will read what they would write in peace.
        for part in reversed(self.parts.values()):
            part.kill()
        if self._requests is not None:
            self._requests.close()
        leftovers.clear(self.site.mark, self.folder)
        self._dismiss_guard()

    def leave(self) -> None:
        """Let the testbed go on without its driver; whoever has its mark can still end it."""
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
        Start a part that is not there yet; a second scheduler wants a *name* of its own.

        *config* is a scheduler's configuration, as data or as a file. The part can be used when this returns.
        """
        name = name or part
        if part not in LAUNCHERS:
            raise TestbedError(f"{part!r} is no part that can be started: there are {', '.join(LAUNCHERS)}")
        if name in self.parts:
            raise TestbedError(f"this testbed has a part {name!r} already: bed.parts[{name!r}].start() starts it again")
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
        """Where the API server is."""
        return self.site.url

    def compact_etcd(self) -> int:
        """
        Make etcd forget every revision but the newest, which is the answer.

        The API server's own watch cache still answers for older ones; restart it to have them answered by "gone".
        """
        return etcd_gateway.compact(self.site.etcd_url)

    # ------------------------------------------------------------------------------------------------------ identities

    @property
    def admin(self) -> Path:
        """A kubeconfig that may do everything."""
        user, *groups = control_plane.ADMINISTRATOR
        return self.kubeconfig(user, groups)

    def kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for any user; what it may do is up to RBAC."""
        return self.site.kubeconfig(user, groups)

    def service_account_token(self, namespace: str, name: str, pod: str | None = None) -> str:
        """A token of a service account that exists; bound to *pod*, as the kubelet asks for them, if one is named."""
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
        Send a JSON request as the administrator, or as the administrator posing as *as_user*; return the answer.

        A PATCH is a merge patch unless *content_type* says otherwise. Raises `RefusedError` for anything but success.
        """
        headers = {"Impersonate-User": as_user} if as_user else {}
        return self._connected().send(method, path, body, content_type=content_type, headers=headers)

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """Run kubectl as the administrator and return what it printed; raises with its own words."""
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
            raise KubectlError(f"kubectl {' '.join(words)}: no end after {KUBECTL_WITHIN:.0f} s") from error
        if run.returncode:
            raise KubectlError(f"kubectl {' '.join(words)}: {run.stderr.strip()}")
        return run.stdout

    def add_node(  # noqa: PLR0913 - a keyword, with a default, for everything one may want to say
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
        """Add a node that exists in the API only: Ready, and without taints unless some are wanted."""
        self.add_nodes([nodes.Node(name, cpu, memory, pods, labels or {}, taints, images, resources or {})])

    def add_nodes(self, wanted: Iterable[nodes.Node | Mapping[str, Any]]) -> None:
        """Add many such nodes, several at a time; each is a `Node` or what `add_node` takes, as a mapping."""
        made = [node if isinstance(node, nodes.Node) else nodes.Node(**node) for node in wanted]
        nodes.add(self._connected(), made)

    def _connected(self) -> Requests:
        if self._requests is None:
            self._requests = self.site.requests()
        return self._requests

    # ---------------------------------------------------------------------------------------------- images and kubelets

    @property
    def registry(self) -> str:
        """Host and port of the image registry, which is started if it is not there."""
        if "registry" not in self.parts:
            self.start_part("registry")
        return self.site.registry

    def push_image(self, name: str, layers: Sequence[Mapping[str, bytes]] = ()) -> images.Pushed:
        """Push an image that idles, with further *layers* of files on top; *name* is a repository and a tag."""
        program = {images.PROGRAM: self.site.program_path(images.PROGRAM).read_bytes()}
        return images.push(self.registry, name, [program, *layers])

    def add_real_node(self, name: str) -> real_nodes.RealNode:
        """Add a node that runs containers, with a containerd and a kubelet of its own; Ready when this returns."""
        containerd.check()
        building.build([catalog.find(part, self.version) for part in real_nodes.PARTS])
        self.push_image(real_nodes.PAUSE)
        node = real_nodes.prepare(self.site, name)
        for program in (node.containerd, node.kubelet):
            self.parts[program.name] = program
            program.start()
        real_nodes.wait_ready(self._connected(), node)
        return node
