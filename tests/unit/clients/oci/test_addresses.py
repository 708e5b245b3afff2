"""Which addresses may be connected to: a table of those that people have tried, and laws for all others."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.clients.oci.addresses import rejection_reason, rejection_reason_of

PUBLIC_TEXT = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 151.101.1.1
169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 203.0.114.1
223.255.255.255 2001:4860:4860::8888 2606:4700::1111 2a00:1450:4001:81b::200e 2620:fe::fe 2400:cb00::1 2c0f:fb50::1
64:ff9b::808:808 64:ff9b::8.8.8.8 ::ffff:8.8.8.8 ::ffff:1.1.1.1
"""

PRIVATE_TEXT = """
127.0.0.1 127.0.0.2 127.1.2.3 127.255.255.255 10.0.0.0 10.0.0.1 10.96.0.1 10.244.0.10 10.255.255.255 172.16.0.0 172.17.0.1
172.31.255.255 192.168.0.1 192.168.255.255 169.254.0.1 169.254.1.1 169.254.255.254 100.64.0.0 100.64.0.1 100.100.100.100
100.127.255.255 192.0.0.1 192.0.0.8 192.0.0.170 192.0.2.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 192.88.99.1
240.0.0.1 250.1.2.3 0.1.2.3 ::1 fe80::1 fe80::a00:27ff:fe4e:66a1 febf::1 fec0::1 fc00::1 fd00::1 fd12:3456:789a::1 fdff::1
2001:db8::1 2001:2::1 2001:10::1 2001:20::1 100::1 3fff::1 5f00::1 64:ff9b:1::1 4000::1 8000::1 e000::1 200::1
::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:192.168.1.1 ::ffff:172.16.0.1 ::ffff:100.64.0.1 ::ffff:169.254.1.1
::ffff:7f00:1 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::a00:1 64:ff9b::192.168.0.1 64:ff9b::100.64.1.1
64:ff9b::169.254.1.1 2002:7f00:1:: 2002:a00:1:: 2002:c0a8:101:: 2002:ac10:1:: 2002:6440:1:: 2002:a9fe:101::
::127.0.0.1 ::10.0.0.1 ::192.168.0.1 2001:0:4136:e378:8000:63bf:3fff:fdd2
"""

NEVER_TEXT = """
0.0.0.0 :: ::ffff:0.0.0.0 64:ff9b::0.0.0.0 224.0.0.1 239.255.255.255 232.1.2.3 ff02::1 ff0e::1 ff05::2 255.255.255.255
::ffff:224.0.0.1 ::ffff:255.255.255.255 64:ff9b::224.0.0.1 2002:e000:1:: 169.254.169.254 169.254.170.2 100.100.100.200
fd00:ec2::254 ::ffff:169.254.169.254 64:ff9b::169.254.169.254 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe:: ::169.254.169.254
"""

NO_ADDRESSES_TEXT = """
127.1 2130706433 0x7f000001 0177.0.0.1 127.0.0.1.nip.io localhost 1.2.3 1.2.3.4.5 256.1.1.1 01.02.03.04 ::g [::1] 1.2.3.4:80
"""

PUBLIC, PRIVATE, NEVER, NO_ADDRESSES = (
    text.split() for text in (PUBLIC_TEXT, PRIVATE_TEXT, NEVER_TEXT, NO_ADDRESSES_TEXT)
)

ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6))


def test_the_table_has_more_than_a_hundred_addresses():
    assert len(PUBLIC + PRIVATE + NEVER) > 100


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_may_be_connected_to(text):
    assert rejection_reason_of(text) == ""


@pytest.mark.parametrize("text", PRIVATE)
def test_a_private_address_may_be_connected_to_only_where_that_is_configured(text):
    assert rejection_reason_of(text) != ""
    assert rejection_reason_of(text, private=True) == ""


@pytest.mark.parametrize("text", NEVER)
def test_no_configuration_allows_an_address_where_no_registry_can_be(text):
    assert rejection_reason_of(text) != ""
    assert rejection_reason_of(text, private=True) != ""


@pytest.mark.parametrize("text", ["", *NO_ADDRESSES])
def test_what_is_no_address_is_refused(text):
    assert rejection_reason_of(text, private=True) == "no address"


def test_an_address_with_a_zone_is_on_a_link():
    assert rejection_reason_of("fe80::1%eth0") == "link-local"
    assert rejection_reason_of("2606:4700::1111%eth0") == "link-local"


@pytest.mark.parametrize("text", ["198.51.101.7", "::ffff:198.51.101.7", "64:ff9b::198.51.101.7", "2002:c633:6507::"])
def test_networks_of_pods_and_services_can_be_refused(text):
    """Also inside another address."""
    refused = [ipaddress.ip_network("198.51.101.0/24"), ipaddress.ip_network("2a00::/16")]

    assert rejection_reason_of(text, refused=refused) != ""
    assert rejection_reason_of(text, private=True, refused=refused) == ""


@given(ADDRESSES)
def test_what_is_allowed_to_everybody_is_allowed_to_private_registries(address):
    if rejection_reason(address) == "":
        assert rejection_reason(address, private=True) == ""


@given(ADDRESSES)
def test_what_python_calls_not_global_is_never_public(address):
    carries = address.version == 6 and (address.ipv4_mapped or address in ipaddress.ip_network("64:ff9b::/96"))
    if not carries and not address.is_global:
        assert rejection_reason(address) != ""


@given(st.ip_addresses(v=4))
def test_an_address_inside_another_is_judged_like_itself(address):
    number = int(address)
    wrapped = [
        ipaddress.IPv6Address(0xFFFF << 32 | number),
        ipaddress.IPv6Address((0x64_FF9B << 96) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1),
    ]
    if rejection_reason(address) != "":
        assert "" not in [rejection_reason(one) for one in wrapped]
    if rejection_reason(address, private=True) != "":
        assert "" not in [rejection_reason(one, private=True) for one in wrapped]


@given(st.ip_addresses(v=4).filter(lambda one: rejection_reason(one) == ""))
def test_a_public_address_behind_nat64_is_public(address):
    assert rejection_reason(ipaddress.IPv6Address((0x64_FF9B << 96) | int(address))) == ""


@given(st.text(max_size=40))
def test_any_text_gets_an_answer(text):
    assert isinstance(rejection_reason_of(text), str)
