"""Tests reach what is on this machine, and nothing else."""

import asyncio
import socket
import ssl

import pytest

from cambist.testing.network import NetworkRefusedError

FAR = "192.0.2.1"  # an address of documentation's, which nobody has


def test_names_of_other_machines_are_not_looked_up():
    for host in ("example.com", b"example.com", "2001:db8::1"):
        with pytest.raises(NetworkRefusedError, match="look up"):
            socket.getaddrinfo(host, 80)
    assert socket.getaddrinfo("localhost", 80)
    assert socket.getaddrinfo(None, 80)


@pytest.mark.parametrize("connect", ["connect", "connect_ex"])
def test_no_socket_connects_to_another_machine(connect):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(type=kind) as one, pytest.raises(NetworkRefusedError, match=FAR):
            getattr(one, connect)((FAR, 80))
    encrypted = ssl.create_default_context().wrap_socket(socket.socket(), server_hostname=FAR)
    with encrypted, pytest.raises(NetworkRefusedError, match=FAR):
        getattr(encrypted, connect)((FAR, 443))


async def test_a_loop_connects_to_this_machine_alone(unused_tcp_port):
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", unused_tcp_port)
    async with server:
        reader, writer = await asyncio.open_connection("localhost", unused_tcp_port)
        assert await reader.read() == b""
        writer.close()
    with pytest.raises(NetworkRefusedError):
        await asyncio.open_connection(FAR, 80)
