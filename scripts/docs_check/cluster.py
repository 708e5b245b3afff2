"""Provides each page with its own control plane, for the commands of its `sh cluster` blocks."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from testbed import Testbed, building
from testbed import parts as catalog

PARTS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
STARTED: Final = ("kube-controller-manager",)
NODES: Final = ("n1", "n2", "n3")
"""Nodes of 8 cores and 16 GiB, as pages assume them; they exist in the API only, so no pod runs."""


def is_built() -> bool:
    """Return whether a control plane can be started now; `make testbed` builds one, which takes minutes."""
    return all(building.is_built(catalog.find(part)) for part in PARTS)


@contextmanager
def lent() -> Iterator[dict[str, str]]:
    """Start a control plane; yield the environment in which kubectl and lamina find it."""
    with Testbed.start(parts=STARTED) as bed:
        bed.add_nodes({"name": name} for name in NODES)
        path = os.pathsep.join([str(bed.site.program_path("kubectl").parent), os.environ.get("PATH", os.defpath)])
        yield {"KUBECONFIG": str(bed.admin), "PATH": path}
