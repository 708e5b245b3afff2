"""Where a server listens: at every address of a host, with one port."""

import asyncio
import socket

import pytest

from lamina.serving.listening_sockets import ListenError, open_sockets

FOUR, SIX = (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")
NOT_OURS = (socket.AF_INET, "192.0.2.1")


def resolving_to(monkeypatch, *addresses: tuple[int, str]) -> None:
    """Let every name have these addresses, each listed twice as resolvers do."""

    async def found(host, port, **_):
        return [(family, socket.SOCK_STREAM, 6, "", (address, port)) for family, address in addresses * 2]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", found)


async def listening(host: str = "name", port: int = 0) -> list[tuple[str, int]]:
    opened = await open_sockets(host, port)
    try:
        return [one.getsockname()[:2] for one in opened]
    finally:
        for one in opened:
            one.close()


async def test_a_name_with_two_addresses_is_served_at_both_with_one_port(monkeypatch):
    resolving_to(monkeypatch, SIX, FOUR)
    (first, port), (second, same) = await listening()

    assert (["::1", "127.0.0.1"], port) == ([first, second], same)


@pytest.mark.parametrize("order", [(NOT_OURS, FOUR), (FOUR, NOT_OURS)], ids=["first", "last"])
async def test_an_address_that_this_machine_does_not_have_is_left_out(monkeypatch, order):
    resolving_to(monkeypatch, *order)

    assert ["127.0.0.1"] == [address for address, _ in await listening()]


async def test_a_name_without_an_address_of_this_machine_is_an_error(monkeypatch):
    resolving_to(monkeypatch, NOT_OURS)
    with pytest.raises(ListenError) as caught:
        await listening("name", 10259)

    assert str(caught.value).startswith("name:10259: cannot listen: ")
    assert caught.value.reason in str(caught.value)


async def test_a_port_that_is_taken_at_one_address_is_an_error_and_leaves_nothing_open(monkeypatch):
    resolving_to(monkeypatch, SIX, FOUR)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError):
            await listening("name", port)
        # The other address is free again.
        socket.create_server(("::1", port), family=socket.AF_INET6).close()


async def test_all_addresses_means_ipv4_too():
    opened = await open_sockets("::", 0)
    try:
        with socket.socket() as caller:
            caller.connect(("127.0.0.1", opened[0].getsockname()[1]))
    finally:
        for one in opened:
            one.close()


async def test_a_name_that_no_host_can_have_is_one_line():
    with pytest.raises(ListenError) as caught:
        await listening("a" * 70)

    assert 1 == len(str(caught.value).splitlines())
