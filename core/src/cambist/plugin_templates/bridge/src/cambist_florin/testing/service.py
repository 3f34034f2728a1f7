"""Quotes, calls and states over HTTP, on a free port of the loopback interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

import msgspec
from aiohttp import web
from msgspec import structs

from ..codec import Deposit, write
from ..service import REFUSED
from ..wire import CallAsked, CallTold, QuoteAsked, QuoteTold, Refusal, StatusAsked, StatusTold
from ..words import NATIVE, contract_of

CONTRACTS: Mapping[int, str] = {
    1: "0xE970e0848f260CDcdAFcAA019eC76d8498ee02bC",
    2: "0xFAB812471D8AE51DbD8603AAF042c47d9Eb9053D",
    137: "0xFAB812471D8AE51DbD8603AAF042c47d9Eb9053D",
}
"""Where the contracts would be, by the chain's number."""

UNITS_MIN, UNITS_MAX = 1_000, 10**30
DEADLINE_S, FILL_S = 7_200, 20


class ExampleService:
    """``async with`` runs it. It gives two units for one.

    While ``silent`` it says nothing, and while it has an ``answer`` it says that. ``lies`` take the place of what is true
    in the calls that it builds, by the field's name.
    """

    def __init__(self, now: Callable[[], float], port: int = 0) -> None:
        """Port 0 is any that is free."""
        self.silent = False
        self.answer: web.Response | None = None
        self.lies: Mapping[str, object] = {}
        self._now = now
        self._port = port
        app = web.Application()
        app.router.add_post("/{method}", self._answer)
        self._runner = web.AppRunner(app)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def __aenter__(self) -> Self:
        """Listen."""
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        if self.silent:
            raise web.HTTPServiceUnavailable
        if self.answer is not None:
            return self.answer
        try:
            told = self._said(request.match_info["method"], await request.read())
        except (msgspec.DecodeError, ValueError) as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        status = REFUSED if isinstance(told, Refusal) else 200
        return web.Response(status=status, body=msgspec.json.encode(told), content_type="application/json")

    def _said(self, method: str, body: bytes) -> QuoteTold | CallTold | StatusTold | Refusal:
        if method == "status":
            msgspec.json.decode(body, type=StatusAsked)
            return StatusTold(state="pending")
        kind = {"quote": QuoteAsked, "call": CallAsked}.get(method)
        if kind is None:
            raise ValueError(f"there is no method {method!r}")
        asked = msgspec.json.decode(body, type=kind)
        units, deadline = int(asked.units), int(self._now()) + DEADLINE_S
        if not {asked.chain, asked.to_chain} <= CONTRACTS.keys():
            return Refusal(code="NO_SUCH_PAIR", message="We are not on that chain.")
        if not UNITS_MIN <= units <= UNITS_MAX:
            return Refusal(code="TOO_LITTLE" if units < UNITS_MIN else "TOO_MUCH", message="This is no amount for us.")
        if not isinstance(asked, CallAsked):
            return QuoteTold(units=str(2 * units), fee="0", deadline=deadline, fill_s=FILL_S)
        if int(asked.units_min) > 2 * units:
            return Refusal(code="PRICE_MOVED", message="So much is not to be had any more.")
        return self._built(asked, deadline)

    def _built(self, asked: CallAsked, deadline: int) -> CallTold:
        deposit = Deposit(
            sells=contract_of(asked.sells),
            buys=contract_of(asked.buys),
            units=int(asked.units),
            units_out=int(asked.units_min),
            recipient=asked.recipient,
            to_chain=asked.to_chain,
            deadline=deadline,
        )
        said = structs.replace(deposit, **{name: lie for name, lie in self.lies.items() if hasattr(deposit, name)})
        value = asked.units if asked.sells == NATIVE else "0"
        told = CallTold(to=CONTRACTS[asked.chain], data="0x" + write(said).hex(), value=value)
        return structs.replace(told, **{name: lie for name, lie in self.lies.items() if hasattr(told, name)})
