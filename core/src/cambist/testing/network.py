"""Keeps tests off the network: only loopback addresses and Unix sockets can be reached."""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

_installed = False


class NetworkRefusedError(AssertionError):
    """A test tried to leave the machine."""


def forbid_network() -> None:
    """Refuse every connection and name look-up beyond this machine, for the rest of the process.

    What cannot be seen from Python, such as a loop of uvloop's, is not caught.
    """
    global _installed  # noqa: PLW0603  an audit hook cannot be removed, so one is enough
    if not _installed:
        sys.addaudithook(_refuse_remote)
        _installed = True


def _refuse_remote(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(args[1], tuple) and not _is_local(str(args[1][0])):
        raise NetworkRefusedError(f"tests do not connect to {args[1][0]}")
    if event == "socket.getaddrinfo" and args[0] is not None and not _is_local(_text(args[0])):
        raise NetworkRefusedError(f"tests do not look up {_text(args[0])}")


def _text(host: str | bytes) -> str:
    return host.decode() if isinstance(host, bytes) else host


def _is_local(host: str) -> bool:
    if host in {"", "localhost"} or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
