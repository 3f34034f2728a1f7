"""A merchant's program that swaps and bridges over HTTP, with a key that may do nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Self

from tests.support.gateway import Merchant, until
from tests.support.networks import Amount, Coin
from tests.support.networks.market import Market

HERE = "/api/merchant/swap-bridge"


class Trader(Merchant):
    """Asks for exchanges with ``exchange_headers``; everything else is asked with the merchant's own key."""

    exchange_headers: Mapping[str, str]

    async def open(self, *, mode: str = "live", webhook_url: str | None = None) -> Self:
        await super().open(mode=mode, webhook_url=webhook_url)
        phone = await self.enrol()
        await self.post("/api/auth/step-up", {"totpCode": await phone.code()}, headers=self.bearer)
        path, body = f"/api/merchant/projects/{self.project['projectId']}/api-keys", {"name": "trader"}
        made = await self.post(path, {**body, "scopes": ["exchange", "read"]}, headers=self.bearer, status=201)
        self.exchange_headers = {"X-Api-Key": made["apiKey"]}
        return self

    async def fund(self, market: Market, shares: Mapping[Coin, Amount]) -> None:
        """Have customers pay all this, and wait until it is paid."""
        payments = [(coin, amount, await self.pay(coin, amount)) for coin, amount in shares.items()]
        for coin, amount, payment in payments:
            await market.give(coin, payment["depositAddress"], coin.units(amount))
        await asyncio.gather(*(self.until(payment, "paid") for _, _, payment in payments))

    async def quote(self, sells: Coin, amount: Amount, buys: Coin, *, status: int = 200) -> dict[str, Any]:
        """Return what an exchange would bring, or the refusal."""
        kind, body = _asked(sells, amount, buys)
        answer = await self.post(f"{HERE}/{kind}/quote", body, headers=self.exchange_headers, status=status)
        return answer["quote"] if status == 200 else answer  # type: ignore[no-any-return]

    async def exchange(
        self, sells: Coin, amount: Amount, buys: Coin, *, status: int = 200, **more: Any
    ) -> dict[str, Any]:
        """Ask for a swap, or for a bridge where the coins are on two chains; return it, or the refusal."""
        kind, body = _asked(sells, amount, buys)
        answer = await self.post(f"{HERE}/{kind}/execute", body | more, headers=self.exchange_headers, status=status)
        return answer["exchange"] if status == 200 else answer  # type: ignore[no-any-return]

    async def attempt(self, sells: Coin, amount: Amount, buys: Coin, *, how: str = "execute") -> dict[str, Any]:
        """Return an exchange or a quote, or the refusal where there is none. Fails where the gateway broke."""
        kind, body = _asked(sells, amount, buys)
        url, sent = f"{self.url}{HERE}/{kind}/{how}", self.exchange_headers
        async with self.session.post(url, json=body, headers=sent) as response:
            answer: dict[str, Any] = await response.json()
        assert response.status in {200, 400, 503}, answer
        return answer.get("exchange" if how == "execute" else "quote") or answer

    async def read(self, made: Mapping[str, Any]) -> dict[str, Any]:
        """Return how far an exchange has come."""
        answer = await self.get(f"{HERE}/history/{made['txnId']}", headers=self.exchange_headers)
        return answer["exchange"]  # type: ignore[no-any-return]

    async def history(self, **filters: str) -> list[dict[str, Any]]:
        """Return the newest exchanges, or those of them that the filters let through."""
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        answer = await self.get(f"{HERE}/history?{query}", headers=self.exchange_headers)
        return answer["exchanges"]  # type: ignore[no-any-return]

    async def ended(
        self, made: Mapping[str, Any], status: str = "succeeded", *, seconds: float = 180
    ) -> dict[str, Any]:
        """Wait for the end of an exchange, which must be this one."""

        async def poll() -> dict[str, Any] | None:
            found = await self.read(made)
            assert found["status"] in {"pending", status}, found
            return found if found["status"] == status else None

        try:
            return await until(poll, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"it has not {status}: {await self.read(made)}") from error

    async def waiting(self, made: Mapping[str, Any], reason: str, *, seconds: float = 180) -> dict[str, Any]:
        """Wait until an exchange waits for this."""

        async def poll() -> dict[str, Any] | None:
            found = await self.read(made)
            assert found["status"] == "pending", found
            return found if found["waitsFor"] == reason else None

        return await until(poll, seconds=seconds)


def _asked(sells: Coin, amount: Amount, buys: Coin) -> tuple[str, dict[str, Any]]:
    body = {
        "srcChain": sells.chain, "srcToken": sells.symbol, "srcAmountRaw": str(sells.units(amount)),
        "destToken": buys.symbol,
    }  # fmt: skip
    return ("swap", body) if sells.chain == buys.chain else ("bridge", {**body, "destChain": buys.chain})
