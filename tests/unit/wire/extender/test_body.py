"""Keys in any spelling, and counting while a body is decoded."""

import threading

import msgspec
import pytest

from lamina.wire.extender import body
from lamina.wire.extender.body import MOST_NODES, MOST_VICTIMS, AnyCaseObject, DecodeBudget, other_spellings


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("Pod", ["pod", "POD"], id="a word"),
        pytest.param("items", ["Items", "ITEMS"], id="a small word"),
        pytest.param("UID", ["uid", "Uid"], id="letters"),
        pytest.param("NodeNames", ["nodeNames", "nodenames", "NODENAMES", "Nodenames"], id="two words"),
        pytest.param(
            "NumPDBViolations",
            [
                "numPDBViolations",
                "NumPdbViolations",
                "numPdbViolations",
                "numpdbviolations",
                "NUMPDBVIOLATIONS",
                "Numpdbviolations",
            ],
            id="letters between words",
        ),
    ],
)
def test_other_spellings_of_a_key(key, expected):
    assert other_spellings(key) == expected


def test_what_stands_under_each_key_comes_in_the_order_of_the_keys():
    spelled = AnyCaseObject({"One": int | None, "Two": msgspec.Raw, "Three": str | None})

    assert spelled.read(b'{"three":"c","ONE":1,"Two":null,"other":2}') == [1, None, "c"]


def test_a_tally_stops_at_its_bound():
    tally = DecodeBudget()
    for _ in range(MOST_NODES):
        tally.node()
    for _ in range(MOST_VICTIMS):
        tally.victim()

    with pytest.raises(ValueError, match=f"more than {MOST_NODES} nodes"):
        tally.node()
    with pytest.raises(ValueError, match=f"more than {MOST_VICTIMS} victims"):
        tally.victim()
    tally.start()
    tally.node()
    assert (tally.nodes, tally.victims) == (1, 0)


def test_each_thread_counts_for_itself():
    body.TALLY.start()
    seen = []

    def other():
        body.TALLY.node()
        seen.append(body.TALLY.nodes)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()

    assert (body.TALLY.nodes, seen) == (0, [1])
