"""Which node this is: what the token of the pod says, unless somebody said it by hand."""

import base64
import json

import pytest

from lamina.model.errors import InputError
from lamina.services.node_agent.node_identity import NodeIdentity, NodeIdentityReader
from lamina.wire.service_token import node_in


def a_token(claims: object) -> str:
    text = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer header.{text}.signature"


BOUND = a_token({"iss": "x", "kubernetes.io": {"namespace": "n", "node": {"name": "n1", "uid": "u1"}, "pod": {}}})


class Holding:
    """Shows a header."""

    def __init__(self, header: str = "") -> None:
        self.header = header

    async def headers(self) -> dict[str, str]:
        return {"Authorization": self.header} if self.header else {}


async def test_a_token_of_a_pod_names_the_node():
    assert NodeIdentity("n1", "u1") == await NodeIdentityReader(Holding(BOUND)).now()


async def test_what_is_said_by_hand_counts_for_more():
    assert NodeIdentity("n2", "u2") == await NodeIdentityReader(Holding(BOUND), "n2", "u2").now()
    assert NodeIdentity("n2", "u2") == await NodeIdentityReader(Holding(), "n2", "u2").now()
    assert NodeIdentity("n1", "u2") == await NodeIdentityReader(Holding(BOUND), "", "u2").now()
    assert NodeIdentity("n1", "u1") == await NodeIdentityReader(Holding(BOUND), "n1").now()


async def test_the_uid_of_one_node_is_not_taken_for_that_of_another():
    with pytest.raises(InputError, match="--node-uid: node identity unknown; use the token of a pod"):
        await NodeIdentityReader(Holding(BOUND), "n2").now()


async def test_a_new_token_may_bring_another_uid():
    access = Holding(BOUND)
    whoami = NodeIdentityReader(access)
    await whoami.now()
    access.header = a_token({"kubernetes.io": {"node": {"name": "n1", "uid": "u9"}}})

    assert NodeIdentity("n1", "u9") == await whoami.now()


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("", id="nothing"),
        pytest.param("Basic eA==", id="a password"),
        pytest.param("Bearer abc", id="no JWT"),
        pytest.param("Bearer a.b.c", id="no base64"),
        pytest.param("Bearer a.e30.c", id="no claims"),
        pytest.param(a_token([]), id="a list"),
        pytest.param(a_token({"kubernetes.io": {"namespace": "n"}}), id="not bound to a node"),
        pytest.param(a_token({"kubernetes.io": {"node": {"name": 1}}}), id="a number"),
        pytest.param("Bearer a." + base64.urlsafe_b64encode(b"[" * 9000).decode() + ".c", id="deep"),
    ],
)
async def test_who_cannot_say_which_node_it_is_is_told_what_to_do(header):
    assert "" == node_in(header).name
    with pytest.raises(InputError, match="--node: node identity unknown"):
        await NodeIdentityReader(Holding(header)).now()


@pytest.mark.parametrize("name", ["a/b", "x" * 254])
async def test_what_cannot_be_a_name_is_refused(name):
    with pytest.raises(InputError, match="is not a valid node name"):
        await NodeIdentityReader(Holding(), name, "u").now()
