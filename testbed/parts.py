"""
The programs of a testbed: versions, wrapper modules and build settings.

A wrapper module under go/ pins one version of one project and the checksums of its dependencies. A new version is a new
folder there, made as docs/testbed.md describes, and a line here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed.errors import TestbedError

MODULES: Final = Path(__file__).resolve().parent / "go"

KUBERNETES: Final = "1.36.3"
"""The default version of Kubernetes."""
# Other versions only serve tests of API compatibility, so they have no kubelet and no controller manager.
SKEWED: Final = ("1.37.1", "1.33.13", "1.30.14")
VERSIONS: Final = (KUBERNETES, *SKEWED)

ETCD: Final = "3.6.16"
CONTAINERD: Final = "2.4.2"
RUNC: Final = "1.5.2"
CNI: Final = "1.9.1"
REGISTRY: Final = "3.1.2"
CRIO: Final = "1.36.3"
KWOK: Final = "0.8.0"
KUBE_BATCH: Final = "0.5.0"
VOLCANO: Final = "1.10.0"
HELM: Final = "4.3.1"

CONTROL_PLANE: Final = ("kube-apiserver", "kubectl", "kube-scheduler", "kube-controller-manager", "kubelet")
SKEWED_PROGRAMS: Final = ("kube-apiserver", "kubectl", "kube-scheduler")


@dataclass(frozen=True, slots=True)
class Part:
    """One program, or a group of programs that are built together."""

    name: str
    version: str
    module: str
    """The folder under go/."""
    packages: tuple[str, ...]
    """The packages to build, one for each program."""
    link_flags: str
    seconds: int
    """Build time on two cores after the preceding parts; for the first part of a module, with nothing cached."""

    cgo: bool = False
    """Whether it contains C, so that a C compiler is needed as well."""
    tags: tuple[str, ...] = ()
    """Go's build tags, which exclude features."""
    program: str = ""
    """The name of the only program, if its package's path does not end with it."""
    on_request: bool = False
    """Whether `python -m testbed build` builds it only when it is named."""

    @property
    def is_kubernetes(self) -> bool:
        """Whether it is a Kubernetes program, which exists in several versions."""
        return self.module.startswith("kubernetes-")

    @property
    def folder(self) -> Path:
        """The wrapper module."""
        return MODULES / self.module

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs, in the order of the packages."""
        return (self.program,) if self.program else tuple(package.rpartition("/")[2] for package in self.packages)


def _kubernetes(program: str, version: str, seconds: int) -> Part:
    told = (
        f"-X k8s.io/component-base/version.gitVersion=v{version} -X k8s.io/client-go/pkg/version.gitVersion=v{version}"
    )
    package = f"k8s.io/kubernetes/cmd/{program}"
    return Part(program, version, f"kubernetes-{version}", (package,), f"-s -w {told}", seconds)


def _containerd() -> Part:
    home = "github.com/containerd/containerd/v2"
    # All three in one folder: containerd finds its shim on its PATH.
    packages = tuple(f"{home}/cmd/{program}" for program in ("containerd", "containerd-shim-runc-v2", "ctr"))
    return Part(
        "containerd",
        CONTAINERD,
        f"containerd-{CONTAINERD}",
        packages,
        f"-s -w -X {home}/version.Version={CONTAINERD}",
        80,
    )


def _crio() -> Part:
    # Signatures by Go's own library, and without the storage drivers that need a C library.
    tags = (
        "containers_image_openpgp",
        "containers_image_ostree_stub",
        "exclude_graphdriver_btrfs",
        "exclude_graphdriver_devicemapper",
    )
    package = "github.com/cri-o/cri-o/cmd/crio"
    return Part("cri-o", CRIO, f"cri-o-{CRIO}", (package,), "-s -w", 100, tags=tags)


def _plain(name: str, version: str, package: str, seconds: int, *, cgo: bool = False) -> Part:
    return Part(name, version, f"{name}-{version}", (package,), "-s -w", seconds, cgo)


def _requested(name: str, version: str, package: str, seconds: int, told: str = "", program: str = "") -> Part:
    """Return a part that only some suites need; *told* is the variable that holds the version the program reports."""
    flags = f"-s -w -X {told}=v{version}" if told else "-s -w"
    return Part(name, version, f"{name}-{version}", (package,), flags, seconds, program=program, on_request=True)


def _schedulers() -> tuple[Part, ...]:
    batch, volcano = "github.com/kubernetes-sigs/kube-batch", "volcano.sh/volcano"
    return (
        # Our own program.
        _requested("random-scheduler", "1", "lamina/testbed/random-scheduler", 5),
        _requested("kube-batch", KUBE_BATCH, f"{batch}/cmd/kube-batch", 60, f"{batch}/pkg/version.Version"),
        _requested(
            "volcano", VOLCANO, f"{volcano}/cmd/scheduler", 150, f"{volcano}/pkg/version.Version", "vc-scheduler"
        ),
    )


# In build order: the most used parts come first.
CATALOG: Final[tuple[Part, ...]] = (
    _plain("etcd", ETCD, "lamina/testbed/etcd", 70),
    *(
        _kubernetes(program, KUBERNETES, seconds)
        for program, seconds in zip(CONTROL_PLANE, (280, 25, 45, 80, 40), strict=True)
    ),
    _containerd(),
    _plain("runc", RUNC, "github.com/opencontainers/runc", 25, cgo=True),
    _plain("cni", CNI, "github.com/containernetworking/plugins/plugins/main/loopback", 10),
    _plain("registry", REGISTRY, "github.com/distribution/distribution/v3/cmd/registry", 80),
    _crio(),
    # Our own program, which runs in the testbed's containers.
    _plain("idle", "1", "lamina/testbed/idle", 2),
    # Our own program as well: an extender in another language, with kube-scheduler's own types.
    _plain("foreign-extender", "1", "lamina/testbed/foreign-extender", 5),
    *(
        _kubernetes(program, version, seconds)
        for version in SKEWED
        for program, seconds in zip(SKEWED_PROGRAMS, (200, 30, 30), strict=True)
    ),
    *_schedulers(),
    # Plays the kubelets of nodes that exist in the API only.
    _requested("kwok", KWOK, "sigs.k8s.io/kwok/cmd/kwok", 150),
    # Renders and installs the chart of deploy/.
    _requested("helm", HELM, "helm.sh/helm/v4/cmd/helm", 350, "helm.sh/helm/v4/internal/version.version"),
)


def names() -> list[str]:
    """Return the name of every part once, in build order."""
    return list(dict.fromkeys(part.name for part in CATALOG))


def select(wanted: Sequence[str], versions: Sequence[str]) -> list[Part]:
    """Return the parts *wanted* in these versions of Kubernetes, or if none is named, those that need not be named."""
    if wanted:
        return list(dict.fromkeys(find(name, version) for version in versions for name in wanted))
    return [part for part in CATALOG if (part.version in versions if part.is_kubernetes else not part.on_request)]


def find(name: str, version: str = KUBERNETES) -> Part:
    """Return the part called *name*; *version* selects the version of Kubernetes' own programs."""
    named = [part for part in CATALOG if part.name == name]
    if not named:
        raise TestbedError(f"there is no part {name!r}; choose from {', '.join(names())}")
    if not named[0].is_kubernetes:
        return named[0]
    for part in named:
        if part.version == version:
            return part
    raise TestbedError(
        f"{name} does not exist in version {version}; choose from {', '.join(part.version for part in named)}"
    )
