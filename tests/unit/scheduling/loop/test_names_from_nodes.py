"""Names that only nodes know: pods of a shape that was judged without them are judged anew."""

import msgspec

from lamina.model import events
from lamina.testing import a_node, a_pod, an_image, held
from tests.unit.scheduling.named_profile_harness import a_harness

APP = an_image("app:1", {"os": 500_000_000, "app": 300_000_000})


def test_a_tag_that_a_node_explains_counts_for_pods_of_a_shape_that_was_judged_before():
    """The image is described without a name; n3 holds it, and says what it is called, after the first pod came."""
    desk = a_harness("lamina-balanced")
    desk.tell(*(events.NodeSeen(a_node(name, cpu="64", memory="256Gi")) for name in ("n1", "n2", "n3")))
    desk.tell(events.ImagesLearned((msgspec.structs.replace(APP, names=()),)))
    desk.see(a_pod("p1", image="app:1", cpu="10m", memory="1Mi"))
    desk.tell(*(events.LayersReported(held(*report)) for report in [("n1",), ("n2",), ("n3", APP)]))
    desk.see(a_pod("p2", image="app:1", cpu="10m", memory="1Mi"))

    assert "n3" == desk.bound["p2"]
