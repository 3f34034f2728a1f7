"""Who is at the other end of the signer's socket, as the kernel says it."""

from __future__ import annotations

import grp
import os
import socket
import struct

from msgspec import Struct

from cambist.settings import SettingsError

_CREDENTIALS = struct.Struct("iII")
_GROUP = struct.Struct("I")
_PEER_GROUPS = 59
"""``SO_PEERGROUPS`` of Linux, for which Python has no name."""

_GROUPS_BYTES_MAX = 1_024
"""As much as Python reads: who is in more than 256 groups is not let in by one of them."""


class Peer(Struct, frozen=True):
    """The account of a process when it connected, or began to listen."""

    uid: int
    groups: frozenset[int]


def peer_of(connection: socket.socket) -> Peer:
    """Return who is at the other end of a connected Unix socket. Raises OSError."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, gid = _CREDENTIALS.unpack(raw)
    others = connection.getsockopt(socket.SOL_SOCKET, _PEER_GROUPS, _GROUPS_BYTES_MAX)
    return Peer(uid, frozenset({gid, *(number for (number,) in _GROUP.iter_unpack(others))}))


def group_id(name: str) -> int:
    """Return the number of ``signer.socket_group``. Raises SettingsError."""
    try:
        return grp.getgrnam(name).gr_gid
    except KeyError:
        raise SettingsError(f"signer.socket_group: there is no group {name!r}.") from None


def refusal(peer: Peer, group: int | None) -> str | None:
    """Return why an account is not talked to: it is neither this process's, nor in the group; None where it is."""
    if peer.uid == os.geteuid() or group in peer.groups:
        return None
    return f"it runs as user {peer.uid}, who is neither this one ({os.geteuid()}) nor in signer.socket_group"
