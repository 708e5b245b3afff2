"""What a server wants to be shown."""

import pytest

from lamina.clients.oci.challenge import LONGEST, MOST, Challenge, parse_challenges

TOKEN = {"realm": "https://auth.example/token", "service": "registry.example"}


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        pytest.param(
            ['Bearer realm="https://auth.example/token",service="registry.example"'],
            [Challenge("bearer", TOKEN)],
            id="a token",
        ),
        pytest.param(
            ['BEARER Realm = "https://auth.example/token" ,  SERVICE=registry.example'],
            [Challenge("bearer", TOKEN)],
            id="letters, spaces and quotes do not matter",
        ),
        pytest.param(
            ['Basic realm="a \\"quoted\\" word"'], [Challenge("basic", {"realm": 'a "quoted" word'})], id="escapes"
        ),
        pytest.param(
            ['Basic realm="r", Bearer realm="https://auth.example/token", service="registry.example"'],
            [Challenge("basic", {"realm": "r"}), Challenge("bearer", TOKEN)],
            id="two in one header",
        ),
        pytest.param(
            ['Negotiate, Basic realm="r"'],
            [Challenge("negotiate"), Challenge("basic", {"realm": "r"})],
            id="one without parameters",
        ),
        pytest.param(["Basic", "Bearer"], [Challenge("basic"), Challenge("bearer")], id="two headers"),
        pytest.param(
            ['Bearer realm="first",realm="second"'], [Challenge("bearer", {"realm": "first"})], id="said twice"
        ),
        pytest.param(['Bearer realm="a, b=c"'], [Challenge("bearer", {"realm": "a, b=c"})], id="commas in quotes"),
        pytest.param(['realm="nobody asks"'], [], id="no scheme"),
        pytest.param(
            ['Bearer realm="unclosed'], [Challenge("bearer"), Challenge("realm"), Challenge("unclosed")], id="open"
        ),
        pytest.param([""], [], id="empty"),
        pytest.param([', ,=,""'], [], id="only signs"),
    ],
)
def test_challenges_are_read_in_order(headers, found):
    assert found == list(parse_challenges(headers))


def test_what_is_kept_of_a_header_is_bounded():
    many = parse_challenges([", ".join(f"Scheme{n}" for n in range(1_000))] * 50)
    one = parse_challenges(["Bearer " + ",".join(f"p{n}=v" for n in range(1_000))])
    long = parse_challenges(['Bearer realm="' + "a" * 100_000 + '"'])

    assert len(many) == MOST
    assert len(one[0].parameters) == MOST
    assert all(len(challenge.scheme) <= LONGEST for challenge in long)
