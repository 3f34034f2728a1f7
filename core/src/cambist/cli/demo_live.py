"""What happens in the demo's live project, once: on a local chain, with coin that is worth nothing.

The shop asks over HTTP, as any merchant's program does, customers pay from the node's own accounts, and an operator
has the books compared. What waits at the end, waits for the visitor.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import aiohttp

from .demo_node import APPROVED_BEYOND, CHAIN
from .demo_shop import SUPPLIER, DemoFailedError, read_answer

READ = f"/api/admin/chains/{CHAIN}"
STEP_S_MAX = 120
ASK_EVERY_S = 0.5
BLOCKS_AT_ONCE = 4
WEI = 10**18
STATION_WEI = 2 * WEI
PAID_OUT = "0.02"
PAID_LATER = format(Decimal(APPROVED_BEYOND) * 2, "f")
ORDERS = (("490.00", "1"), ("249.00", "1"), ("129.00", "1.2"))
"""What customers are asked for in EUR, and which share of it they pay."""
SMALL_ORDER, OPEN_ORDER = "3.50", "79.00"
"""The small one is paid last: no payout needs it, and collecting it costs more than it is worth, so it stays."""


class LiveDay:
    """The first hour of the live project."""

    def __init__(self, url: str, node: str, *, key: str, admin_key: str) -> None:
        self._url = url
        self._node = node
        self._key = {"X-Api-Key": key}
        self._admin = {"X-Admin-Key": admin_key}

    async def happen(self) -> None:
        """Have customers pay, the shop pay out, and an operator look. Raises DemoFailedError."""
        async with aiohttp.ClientSession() as self._session:
            await self._until(READ, self._admin, lambda told: told["chain"]["height"] is not None)
            payments = [await self._order(number, price) for number, (price, _) in enumerate(ORDERS, 1)]
            for payment, (_, share) in zip(payments, ORDERS, strict=True):
                await self._pay(payment, share)
            await self._mine()
            await self._until_paid(payments)
            await self._pay_out(PAID_OUT)
            await self._pay_out(PAID_LATER)
            small = await self._order(len(ORDERS) + 1, SMALL_ORDER)
            await self._pay(small)
            await self._order(len(ORDERS) + 2, OPEN_ORDER)
            await self._mine()
            await self._until_paid([small])
            await self._ask("POST", "/api/admin/reconcile", self._admin, {})

    async def rest(self) -> None:
        """Have the chain stand still, and wait until the gateway has read its newest block.

        What the node writes down at its end is the state after that block alone: whoever compares the books with an
        earlier one gets no answer later.
        """
        async with aiohttp.ClientSession() as self._session:
            await _call(self._session, self._node, "evm_setIntervalMining", 0)
            newest = int(await _call(self._session, self._node, "eth_blockNumber"), 16)
            await self._until(READ, self._admin, lambda told: told["chain"]["height"] == newest)

    async def _order(self, number: int, price: str) -> dict[str, Any]:
        body = {
            "chain": CHAIN, "token": "ETH", "pricingMode": "fiat", "amount": price, "fiatCurrency": "eur",
            "orderId": f"L-{number}", "expiresInMinutes": 7 * 24 * 60,
        }  # fmt: skip
        payment: dict[str, Any] = (await self._ask("POST", "/api/payment", self._key, body))["payment"]
        return payment

    async def _pay(self, payment: Mapping[str, Any], share: str = "1") -> None:
        await self._send(payment["depositAddress"], int(Decimal(payment["expectedAmount"]) * Decimal(share) * WEI))

    async def _until_paid(self, payments: Sequence[Mapping[str, Any]]) -> None:
        for payment in payments:
            await self._until(f"/api/payment/{payment['paymentId']}", self._key, _is_paid)

    async def _pay_out(self, amount: str) -> None:
        body = {"chain": CHAIN, "token": "ETH", "amount": amount, "toAddress": SUPPLIER}
        await self._ask("POST", "/api/merchant/wallet/payout", self._key, body)

    async def _send(self, to: str, wei: int) -> None:
        await _send(self._session, self._node, to, wei)

    async def _mine(self) -> None:
        await _call(self._session, self._node, "anvil_mine", hex(BLOCKS_AT_ONCE))

    async def _until(self, path: str, headers: Mapping[str, str], told: Any) -> dict[str, Any]:  # noqa: ANN401
        """Read it until it tells what it should, and return that."""
        deadline = asyncio.get_running_loop().time() + STEP_S_MAX
        while not told(found := await self._ask("GET", path, headers)):
            if asyncio.get_running_loop().time() > deadline:
                raise DemoFailedError(f"{path} did not tell in {STEP_S_MAX} s what it should, but {found}")
            await asyncio.sleep(ASK_EVERY_S)
        return found

    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        async with self._session.request(method, self._url + path, headers=headers, json=body) as response:
            return await read_answer(path, response)


async def fill_station(node: str, address: str) -> None:
    """Send the gateway what it pays fees with.

    Its books open with that where it first looks at the chain before there is an order: blocks before that one are
    history then.
    """
    async with aiohttp.ClientSession() as session:
        await _send(session, node, address, STATION_WEI)
        await _call(session, node, "anvil_mine", hex(1))


async def _send(session: aiohttp.ClientSession, node: str, to: str, wei: int) -> None:
    (sender, *_) = await _call(session, node, "eth_accounts")
    await _call(session, node, "eth_sendTransaction", {"from": sender, "to": to, "value": hex(wei)})


async def _call(session: aiohttp.ClientSession, node: str, method: str, *params: object) -> Any:  # noqa: ANN401  JSON
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with session.post(node, json=body) as response:
        answer = await response.json()
    if "error" in answer:
        raise DemoFailedError(f"the local chain refused {method}: {answer['error']}")
    return answer["result"]


def _is_paid(told: Mapping[str, Any]) -> bool:
    return told["payment"]["status"] in {"paid", "overpaid"}
