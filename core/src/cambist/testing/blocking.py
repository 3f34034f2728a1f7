"""Notices what keeps an event loop waiting: everybody else's work stands still meanwhile."""

from __future__ import annotations

import asyncio
import functools
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

_OF_SOCKETS = ("connect", "accept", "recv", "recv_into", "recvfrom", "send", "sendall", "sendto")


@contextmanager
def blocking_noticed() -> Iterator[Sequence[str]]:
    """Give what was called on an event loop that waits within the call: a socket that blocks, or ``time.sleep``."""
    found: list[str] = []
    with patch.object(time, "sleep", _noticing("time.sleep", time.sleep, found)):
        patches = [
            patch.object(socket.socket, name, _noticing(f"socket.{name}", getattr(socket.socket, name), found))
            for name in _OF_SOCKETS
        ]
        for one in patches:
            one.start()
        try:
            yield found
        finally:
            for one in patches:
                one.stop()


def _noticing(name: str, original: Callable[..., Any], found: list[str]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **named: Any) -> Any:  # noqa: ANN401  whatever the original takes
        waits = not (args and isinstance(args[0], socket.socket)) or args[0].gettimeout() != 0
        if waits and asyncio._get_running_loop() is not None:  # noqa: SLF001  the one that does not raise
            found.append(name)
        return original(*args, **named)

    return call
