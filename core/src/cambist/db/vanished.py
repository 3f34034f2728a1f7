"""Connections that notice when the server's machine has vanished without a word, and no answer will ever come.

A machine without power, a network that drops everything, a firewall that forgot: nothing closes such a connection. By
default a system looks after two hours whether somebody is there, and only where that was asked for, which the driver
does not: who waits for an answer then waits for ever. A server that is merely slow answers these questions by itself.
"""

from __future__ import annotations

import asyncio
import socket
import sys

IDLE_S = 15
INTERVAL_S = 5
PROBES = 3
UNACKNOWLEDGED_MS = 30_000
"""How long what was sent may lie without a word that it has arrived: by default a quarter of an hour."""


def notice(transport: asyncio.BaseTransport) -> None:
    """Have a TCP connection end with an error half a minute after its peer has vanished. Others have no such peer."""
    found = transport.get_extra_info("socket")
    if found is None or found.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in tcp_options().items():
        found.setsockopt(socket.IPPROTO_TCP, option, value)


def tcp_options() -> dict[int, int]:
    """Return TCP's options for such a connection, beside SO_KEEPALIVE, by their numbers."""
    wanted = {
        "TCP_KEEPALIVE" if sys.platform == "darwin" else "TCP_KEEPIDLE": IDLE_S,
        "TCP_KEEPINTVL": INTERVAL_S,
        "TCP_KEEPCNT": PROBES,
        "TCP_USER_TIMEOUT": UNACKNOWLEDGED_MS,
    }
    # Not every system has all of them.
    return {getattr(socket, name): value for name, value in wanted.items() if hasattr(socket, name)}
