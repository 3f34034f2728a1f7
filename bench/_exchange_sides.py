"""What the clients of the exchange benchmark send, and the two providers: one answers after a while, one never."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from _http import json_answer, listen

SWAP = {"srcChain": "ethereum", "srcToken": "USDC", "destToken": "USDT", "slippage": 1}
BRIDGE = {"srcChain": "ethereum", "srcToken": "USDC", "destChain": "base", "destToken": "USDC", "slippage": 1}
UNITS_MIN = 1_000_000
QUOTE = b"/swap/v6.1/1/quote?"


class Providers:
    """A server that quotes swaps as 1inch does, each after the same delay, and one that is asked and stays silent."""

    def __init__(self, delay_s: float) -> None:
        """Answer so long after each request."""
        self._delay_s = delay_s
        self._asked = 0

    async def __aenter__(self) -> Self:
        listening = [await listen(self._quote, self._delay_s), await listen(lambda _path, _body: None)]
        self._servers = [server for server, _ in listening]
        self._urls = [url for _, url in listening]
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()

    def addresses(self) -> list[str]:
        """Return the URL of the one that answers, and of the one that does not."""
        return self._urls

    def asked(self) -> int:
        """Return how many quotes the first was asked for."""
        return self._asked

    def _quote(self, path: bytes, body: bytes) -> Sequence[bytes]:  # noqa: ARG002  a question has no body
        if not path.startswith(QUOTE):
            raise AssertionError(f"no quote is asked for: {path!r}")
        self._asked += 1
        given = dict(part.split(b"=", 1) for part in path.removeprefix(QUOTE).split(b"&"))
        return json_answer(b'{"dstAmount":"%d"}' % (int(given[b"amount"]) * 999 // 1000))


def swaps(api_key: str) -> tuple[int, Callable[[], bytes]]:
    """Return requests for a swap each, no two of the same amount: those who ask for the same share a quote."""
    return 200, _executions(api_key, "swap", SWAP)


def bridges(api_key: str) -> tuple[int, Callable[[], bytes]]:
    """Return requests for a bridge each, of which none is offered in time."""
    return 503, _executions(api_key, "bridge", BRIDGE)


def _executions(api_key: str, kind: str, wanted: Mapping[str, object]) -> Callable[[], bytes]:
    """Return what makes requests with an amount and an idempotency key of their own."""
    head = (
        f"POST /api/merchant/swap-bridge/{kind}/execute HTTP/1.1\r\nHost: shop\r\nX-Api-Key: {api_key}\r\n"
        f"Content-Type: application/json\r\nIdempotency-Key: {os.urandom(8).hex()}-"
    )
    first = UNITS_MIN + int.from_bytes(os.urandom(4))
    numbers = itertools.count()

    def make() -> bytes:
        number = next(numbers)
        body = json.dumps({**wanted, "srcAmountRaw": str(first + number)})
        return f"{head}{number}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    return make
