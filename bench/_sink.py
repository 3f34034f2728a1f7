"""Who receives webhooks in benchmarks. Imports nothing of the gateway's, so that its process is there at once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from _http import OK, listen


class Sink:
    """So many merchants' servers; the last ``hanging`` of them take the request and never answer."""

    def __init__(self, receivers: int, hanging: int = 0) -> None:
        self._receivers = receivers
        self._hanging = hanging
        self.urls: list[str] = []
        self._received: list[tuple[float, bytes]] = []

    async def __aenter__(self) -> Self:
        self._servers = []
        for number in range(self._receivers):
            healthy = number < self._receivers - self._hanging
            server, url = await listen(self._note if healthy else lambda *_: None)
            self._servers.append(server)
            self.urls.append(f"{url}/hook")
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    def _note(self, _: bytes, body: bytes) -> Sequence[bytes]:
        self._received.append((time.time(), body))
        return OK

    def addresses(self) -> list[str]:
        """Return where the receivers are."""
        return self.urls

    def take(self) -> list[tuple[float, bytes]]:
        """Return when each webhook came, and its body, and forget them."""
        received, self._received = self._received, []
        return received

    def count(self) -> int:
        """Return how many have come since they were last taken."""
        return len(self._received)
