"""What the clients of the payment benchmarks send, and the bare statements beside them."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Self

import asyncpg

PAYMENT = {
    "chain": "ethereum",
    "token": "USDT",
    "pricingMode": "direct_crypto",
    "amount": "125.50",
    "orderId": "order-4711",
    "successUrl": "https://shop.example/thanks",
    "cancelUrl": "https://shop.example/cart",
    "customerEmail": "customer@example.com",
    "metadata": {"cart": 4711},
}


def creations(api_key: str) -> tuple[int, Callable[[], bytes]]:
    """Return requests for a payment each, with an idempotency key of its own."""
    body = json.dumps(PAYMENT).encode()
    head = (
        f"POST /api/payment HTTP/1.1\r\nHost: shop\r\nX-Api-Key: {api_key}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nIdempotency-Key: {os.urandom(8).hex()}-"
    ).encode()
    numbers = itertools.count()
    return 201, lambda: b"%b%d\r\n\r\n%b" % (head, next(numbers), body)


def reads(public_ids: Sequence[str]) -> tuple[int, Callable[[], bytes]]:
    """Return requests for these payments in turn, as their customers see them."""
    requests = itertools.cycle(
        [f"GET /api/payment/public/{public_id} HTTP/1.1\r\nHost: shop\r\n\r\n".encode() for public_id in public_ids]
    )
    return 200, requests.__next__


def empty() -> tuple[int, Callable[[], bytes]]:
    """Return requests for nothing."""
    return 200, lambda: b"GET /empty HTTP/1.1\r\nHost: shop\r\n\r\n"


KEY = (
    "INSERT INTO idempotency_keys (merchant_pk, mode, operation, key, project_pk, request_hash, resource_id)"
    " VALUES ($1, 'sandbox', 'payment', $2, $3, $4, $5)"
)
PAY = (
    "INSERT INTO payments (payment_id, public_id, project_pk, merchant_pk, mode, chain, scope, token, contract,"
    " decimals, address, pricing_mode, amount, expected_units, required_confirmations, order_id, metadata,"
    " expires_at, created_at, updated_at, address_mac) VALUES ($1, $2, $3, $4, 'sandbox', 'ethereum',"
    " $3, 'USDT', $5, 6, $6, 'direct_crypto', 125.5, 125500000, 12, 'order-4711', '{\"cart\": 4711}',"
    " $7, $8, $8, '') RETURNING id"
)
ADDRESS = (
    "INSERT INTO addresses (mode, family, address, merchant_pk, payment_pk, account_index, change, address_index)"
    " VALUES ('sandbox', 'evm', $1, $2, $3, 1000000, 0, $4)"
)


class Bare:
    """The three rows of a payment by three prepared statements and a commit, and nothing around them."""

    def __init__(self, database_url: str, connections: int) -> None:
        self._database_url = database_url
        self._connections = connections
        self._numbers = itertools.count(1)

    async def __aenter__(self) -> Self:
        opened = [await asyncpg.connect(self._database_url) for _ in range(self._connections)]
        self._open = [
            (connection, [await connection.prepare(text) for text in (KEY, PAY, ADDRESS)]) for connection in opened
        ]
        self._project, self._merchant = await opened[0].fetchrow("SELECT id, merchant_pk FROM projects LIMIT 1")
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection, _ in self._open:
            await connection.close()

    async def run(self, seconds: float) -> float:
        """Return commits per second."""
        started = time.perf_counter()
        counts = await asyncio.gather(
            *(self._work(connection, statements, started + seconds) for connection, statements in self._open)
        )
        return sum(counts) / (time.perf_counter() - started)

    async def _work(self, connection, statements, until: float) -> int:
        key, pay, address = statements
        done = 0
        while time.perf_counter() < until:
            number = next(self._numbers)
            secret = os.urandom(20).hex()
            payment_id = f"pay_{secret}"
            where = f"0x{secret}"
            now = datetime.now(UTC)
            async with connection.transaction():
                await key.fetch(self._merchant, secret, self._project, bytes(32), payment_id)
                row = await pay.fetchval(
                    payment_id, f"pub_{secret}", self._project, self._merchant,
                    "0xdAC17F958D2ee523a2206206994597C13D831ec7", where, now + timedelta(hours=1), now,
                )  # fmt: skip
                await address.fetch(where, self._merchant, row, number)
            done += 1
        return done
