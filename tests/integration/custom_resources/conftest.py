"""
A control plane with everything under deploy/ applied, and whoever talks to it.

The usual version runs always; the older ones that Lamina promises to work with are for `make soak`, because building them
takes minutes.
"""

from collections.abc import Iterator

import pytest

from testbed import Testbed
from tests.integration.custom_resources.people import DEPLOY, IMAGE_LAYERS, NODE_LAYERS, USUAL, wait_until

OLDER = ("1.33.13", "1.30.14")
VERSIONS = [
    pytest.param(USUAL, id=USUAL, marks=pytest.mark.testbed("kubectl", version=USUAL)),
    *(
        pytest.param(one, id=one, marks=[pytest.mark.testbed("kubectl", version=one), pytest.mark.soak])
        for one in OLDER
    ),
]


@pytest.fixture(scope="session", params=VERSIONS)
def cluster(request) -> Iterator[Testbed]:
    """A control plane that knows Lamina's kinds, roles and policy; its tests keep to objects of their own."""
    if request.param == USUAL:
        yield prepared(request.getfixturevalue("control_plane"))
        return
    with Testbed.start(version=request.param) as bed:
        yield prepared(bed)


def prepared(bed: Testbed) -> Testbed:
    """Apply deploy/ in the order that its README tells."""
    for part in ("crds", "namespaces.yaml", "rbac", "policy"):
        bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(DEPLOY / part))
    bed.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/nodelayers.lamina.dev")
    bed.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/imagelayers.lamina.dev")
    bed.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(DEPLOY / "scheduler"))
    wait_until(lambda: all("items" in bed.api("GET", path) for path in (NODE_LAYERS, IMAGE_LAYERS)))
    # kubectl keeps which kinds there are. A kind it does not know makes it look again, a category does not.
    bed.kubectl("get", "nodelayers,imagelayers")
    return bed
