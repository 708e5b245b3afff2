"""
The story of tests/e2e/founding_nodes.py in small: two kubelets, two agents, one scheduler, one registry.

A pod runs; the next one has an image that no node has ever pulled, on layers that one of the nodes has. It goes there,
and only what is new in its image is downloaded.
"""

import pytest

from testbed import real_nodes
from tests.integration.nodes.real import MB, RealCluster, wait_reported

pytestmark = pytest.mark.realtime

SMALL = {"cpu": "100m"}


@pytest.mark.slow
@pytest.mark.needs(root=True)
@pytest.mark.testbed(*real_nodes.PARTS)
def test_a_tag_that_nobody_has_pulled_goes_where_its_layers_are(bed_factory):
    with RealCluster(bed_factory(parts=["registry"]), ("n1", "n2")) as cluster:
        cluster.start_agents()
        base, old, new = cluster.layer("base", 24 * MB), cluster.layer("old", MB), cluster.layer("new", MB)
        first, second = cluster.push("web:1", base, old), cluster.push("web:2", base, new)
        with cluster.scheduler() as scheduler:
            cluster.make_pod("p1", first, SMALL)
            node = cluster.wait_bound("p1")
            cluster.wait_running("p1")
            wait_reported(cluster.bed, node, cluster.image(base, old).digest)
            before = len(cluster.requests("containerd"))

            cluster.make_pod("p2", second, SMALL)

            assert node == cluster.wait_bound("p2")
            cluster.wait_running("p2")
            fetched = cluster.fetched(before)
            complaints = scheduler.complaints()

    assert new.digest in fetched
    assert base.digest not in fetched
    # The layer that is new, and the image's own configuration.
    assert 2 == len(fetched)
    assert [] == complaints
