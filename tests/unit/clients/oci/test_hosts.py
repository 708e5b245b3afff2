"""Names of hosts, and which of them belong together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.clients.oci.hosts import RegistryHost, in_same_domain, parse_host


@pytest.mark.parametrize(
    ("text", "host"),
    [
        pytest.param("registry.example", RegistryHost("registry.example"), id="name"),
        pytest.param("Registry.EXAMPLE:5000", RegistryHost("registry.example", 5000), id="small letters, port"),
        pytest.param("localhost:5000", RegistryHost("localhost", 5000), id="no dot"),
        pytest.param("127.0.0.1:80", RegistryHost("127.0.0.1", 80), id="IPv4"),
        pytest.param("[::1]:5000", RegistryHost("::1", 5000), id="IPv6"),
        pytest.param("[2001:DB8:0:0::1]", RegistryHost("2001:db8::1"), id="IPv6, one spelling"),
        pytest.param(
            "xn--nxasmq6b.example", RegistryHost("xn--nxasmq6b.example"), id="international, as it is looked up"
        ),
    ],
)
def test_a_host_has_one_spelling(text, host):
    assert host == parse_host(text)
    assert host == parse_host(str(host))


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "a.",
            "-a.example",
            "a-.example",
            "a_b.example",
            "a" * 64 + ".example",
            "a." * 127 + "aa",
        ),
        *("a:0", "a:", "a:65536", "a:99999", "a:-1", "a:+1", "a:1_0", "a:٣", "a:1:2", "a:http", "a: 80"),
        *("https://a", "a/b", "user@a", "user:pw@a:80", "a?b", "a#b", "a b", "a\tb", "a\r\nb", "a\x00b", "a%2eb"),
        *("[::1", "::1", "[]:80", "[1.2.3.4]", "[::1]80", "[::g]", "[fe80::1%eth0]", "[::1]]:80"),
        *("127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "1.2.3.4.5", "256.1.1.1", "a.1", "a.0x1"),
        *("bücher.example", "a。b", "ⓐ.example", "a．b", "аpple.example"),
    ],
)
def test_what_could_be_read_in_two_ways_is_no_host(text):
    with pytest.raises(ValueError, match=r"is no|a port is"):
        parse_host(text)


@given(st.text(max_size=60))
def test_any_text_is_a_host_or_a_value_error(text):
    try:
        host = parse_host(text)
    except ValueError:
        return
    assert host == parse_host(str(host))


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        pytest.param("registry.example", "registry.example", True, id="the same"),
        pytest.param("registry.example", "auth.registry.example", True, id="below"),
        pytest.param("registry.gitlab.example", "gitlab.example", True, id="above"),
        pytest.param("a.b.c.example", "c.example", True, id="further above"),
        pytest.param("registry.example", "auth.example", False, id="beside"),
        pytest.param("shop.co.uk", "thief.co.uk", False, id="beside, under a public suffix"),
        pytest.param("mine.azurecr.io", "yours.azurecr.io", False, id="beside, at one provider"),
        pytest.param("registry.example", "example", False, id="a top-level domain"),
        pytest.param("registry.example", "evilregistry.example", False, id="the same letters at the end"),
        pytest.param("registry.example", "registry.example.evil", False, id="the same letters at the start"),
        pytest.param("1.2.3.4", "2.3.4", False, id="numbers are no domains"),
        pytest.param("10.1.2.3", "9.10.1.2.3", False, id="an address below an address"),
        pytest.param("::1", "::1", True, id="the same address"),
        pytest.param("localhost", "a.localhost", False, id="no dot"),
    ],
)
def test_hosts_belong_together_if_one_is_named_under_the_other(one, other, together):
    assert together == in_same_domain(one, other)
    assert together == in_same_domain(other, one)
