"""The example chain's node: its ledger behind JSON over HTTP, on a free port of the loopback interface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import msgspec
from aiohttp import web
from msgspec import Struct
from msgspec.structs import replace

from ..addresses import parse_address
from ..config import NETWORK
from ..wire import NodeHead, NodeStatus, NodeVerdict
from .ledger import Ledger
from .pool import submit

BODY_BYTES_MAX = 1_000_000


class BlocksAsked(Struct, frozen=True):
    """Both ends are included."""

    first: int
    last: int


class BalancesAsked(Struct, frozen=True):
    """Addresses with contracts, at one height, or now."""

    wanted: list[tuple[str, str | None]]
    height: int | None


class StatusesAsked(Struct, frozen=True):
    """Ids of transactions."""

    ids: list[str]


class SequenceAsked(Struct, frozen=True):
    """A sender."""

    address: str


class ObjectionsAsked(Struct, frozen=True):
    """Contracts with recipients."""

    transfers: list[tuple[str | None, str]]


class SubmitAsked(Struct, frozen=True):
    """Signed transactions, in hex."""

    transactions: list[str]


class GrantAsked(Struct, frozen=True):
    """Addresses that are given coins, so many units each."""

    addresses: list[str]
    amount: int


class ExampleNode:
    """``async with`` runs it. While ``silent`` it refuses to answer anything."""

    def __init__(self, now: Callable[[], float], port: int = 0) -> None:
        """Port 0 is any that is free."""
        self.ledger = Ledger(now)
        self.silent = False
        self._port = port
        app = web.Application(client_max_size=BODY_BYTES_MAX)
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
        try:
            answer = self._said(request.match_info["method"], await request.read())
        except (msgspec.DecodeError, ValueError) as error:
            raise web.HTTPBadRequest(text=str(error)) from error
        return web.Response(body=msgspec.json.encode(answer), content_type="application/json")

    def _said(self, method: str, body: bytes) -> object:
        ledger = self.ledger
        match method:
            case "network":
                return NETWORK
            case "head":
                return NodeHead(ledger.height, ledger.blocks[-1].hash, ledger.final_height)
            case "price":
                return ledger.price
            case "blocks":
                span = msgspec.json.decode(body, type=BlocksAsked)
                return ledger.blocks[max(0, span.first) : span.last + 1]
            case "balances":
                balances = msgspec.json.decode(body, type=BalancesAsked)
                if not 0 <= (balances.height or 0) <= ledger.height:
                    raise ValueError(f"there is no block {balances.height}")
                return [ledger.balance(address, contract, balances.height) for address, contract in balances.wanted]
            case "statuses":
                return [self._status(tx_id) for tx_id in msgspec.json.decode(body, type=StatusesAsked).ids]
            case "sequence":
                return ledger.sequence(msgspec.json.decode(body, type=SequenceAsked).address)
            case "objections":
                asked = msgspec.json.decode(body, type=ObjectionsAsked).transfers
                return [f"{one} is frozen" if one in ledger.frozen else None for _, one in asked]
            case "submit":
                return self._submitted(msgspec.json.decode(body, type=SubmitAsked).transactions)
            case "grant":
                return self._granted(msgspec.json.decode(body, type=GrantAsked))
        raise ValueError(f"there is no method {method!r}")

    def _granted(self, asked: GrantAsked) -> list[str]:
        if any(parse_address(address) is None for address in asked.addresses) or asked.amount < 1:
            raise ValueError("coins are given to addresses of this chain")
        return [self.ledger.grant(None, address, asked.amount) for address in asked.addresses]

    def _submitted(self, transactions: list[str]) -> list[NodeVerdict]:
        return [submit(self.ledger, bytes.fromhex(raw)) for raw in transactions]

    def _status(self, tx_id: str) -> NodeStatus:
        if tx_id in self.ledger.waiting:
            return NodeStatus("waiting")
        if (found := self.ledger.find(tx_id)) is None:
            return NodeStatus("unknown")
        block, transfer = found
        return NodeStatus("done" if transfer.ok else "failed", replace(block, transfers=()), transfer.fee)
