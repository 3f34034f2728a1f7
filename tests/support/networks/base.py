"""A chain as stories see it: what a gateway is told of it, what people do on it, and somebody else's eyes on it.

A story is the same on every chain. What differs is a fact of the network, told here and asked for by the story.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from msgspec import Struct

CONFIRMATIONS = 3
POLL_MS = 300
"""Every poll costs the worker and PostgreSQL much the same, whether there is anything new or not, all story long."""
POLL_BESIDE_MS = 600
"""For the chain that is there beside the one of the story."""
RICH = 100
Amount = int | str | Decimal
"""So many whole coins."""


class Coin(Struct, frozen=True):
    """The native coin of a network, or a token on it."""

    network: Network
    symbol: str
    decimals: int
    contract: str | None = None

    @property
    def chain(self) -> str:
        return self.network.chain

    @property
    def asset(self) -> str:
        """Its name in the books."""
        return f"{self.chain}/{self.contract or 'native'}"

    def units(self, amount: Amount) -> int:
        units = Decimal(amount).scaleb(self.decimals)
        assert units == int(units), amount
        return int(units)

    async def send(self, to: str, amount: Amount, *, sender: str | None = None) -> str:
        """Have one of the node's rich accounts pay, the first by default; it waits for a block. Return the tx id."""
        return await self.network.send(self, to, self.units(amount), sender=sender)


class Seen(Struct, frozen=True):
    """A mined transaction: what it moved of the native coin, and what it cost."""

    sender: str
    to_address: str | None
    units: int
    fee: int


class Onlooker(ABC):
    """Reads one node with somebody else's client, and shares nothing with the gateway."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []
        self._next_block = 0

    async def units(self, address: str, coin: Coin) -> int:
        """Return what an address holds, in smallest units."""
        return await asyncio.to_thread(self.read_units, address, coin)

    async def holds(self, address: str, coin: Coin, amount: Amount) -> bool:
        """Whether an address holds just so many whole coins."""
        return await self.units(address, coin) == coin.units(amount)

    async def gas(self, address: str, station: str) -> int:
        """Return what the gas station gave an address, less all fees it paid; the station's own gas is below zero."""
        total = 0
        for tx in await self._all():
            if tx.sender == address:
                total -= tx.fee
            if tx.sender == station:
                total += tx.units * ((tx.to_address == address) - (station == address))
        return total

    async def fees(self, addresses: Iterable[str]) -> int:
        """Return all that the transactions of these senders have cost."""
        senders = set(addresses)
        return sum(tx.fee for tx in await self._all() if tx.sender in senders)

    async def received(self, token: Coin, since: int) -> Mapping[str, Sequence[int]]:
        """Return what each address received of a token since a block, transfer by transfer."""
        found: dict[str, list[int]] = defaultdict(list)
        for to_address, units in await asyncio.to_thread(lambda: list(self.read_transfers(token, since))):
            found[to_address].append(units)
        return found

    async def _all(self) -> Sequence[Seen]:
        """Return every mined transaction; blocks that were seen are not read again: the chain must not reorganize."""
        newest = await asyncio.to_thread(self.read_height)
        for height in range(self._next_block, newest + 1):
            self._seen += await asyncio.to_thread(self.read_block, height)
            self._next_block = height + 1
        return self._seen

    @abstractmethod
    def read_units(self, address: str, coin: Coin) -> int: ...

    @abstractmethod
    def read_height(self) -> int: ...

    @abstractmethod
    def read_block(self, height: int) -> Sequence[Seen]: ...

    @abstractmethod
    def read_transfers(self, token: Coin, since: int) -> Iterable[tuple[str, int]]: ...


class Customer(ABC):
    """Somebody with their own wallet, who signs with somebody else's client."""

    address: str

    async def pay(self, to: str, coin: Coin, amount: Amount) -> str:
        """Send whole coins, and return the transaction's id; it waits for a block."""
        return await asyncio.to_thread(self.sign_and_send, to, coin, coin.units(amount))

    @abstractmethod
    def sign_and_send(self, to: str, coin: Coin, units: int) -> str: ...


class Endpoint(Protocol):
    """A way to reach the node that fails or lies when it is told to."""

    url: str
    faults: set[Any]
    latency_s: float


class Network(ABC):
    """A node of one's own that mines when it is told to, with rich accounts and a token, USDX.

    With a ``folder`` it keeps its blocks over a restart.
    """

    chain: str
    family: ClassVar[str]
    coin_type: ClassVar[int]
    faults: ClassVar[Sequence[StrEnum]]
    """What endpoints do that a gateway has to bear: one for each kind of error, and what is no error to a plugin.

    That a plugin makes errors of these kinds of all that it can see is held by its own tests.
    """
    hanging: ClassVar[StrEnum]
    broken: ClassVar[StrEnum]
    station_float: ClassVar[int]
    """Whole native coins that the operator gives the gas station: enough for a file of stories."""

    value_field: ClassVar[str]
    """How the node calls the native coin that comes with a contract's call."""

    node: Any
    native: Coin
    usdx: Coin
    accounts: Sequence[str]
    onlooker: Onlooker
    url: str

    def __init__(self, *, folder: Path | None = None) -> None:
        self.folder = folder

    @abstractmethod
    async def __aenter__(self) -> Self: ...

    @abstractmethod
    async def __aexit__(self, *_: object) -> None: ...

    @abstractmethod
    def settings(self, *urls: str, **more: Any) -> Mapping[str, Mapping[str, Any]]:
        """Return its table in the operator's file by the table's name; the node's own address unless others are said.

        ``request_timeout_ms`` may be among ``more``.
        """

    # --- Blocks ---

    @abstractmethod
    async def mine(self, blocks: int = 1) -> None: ...

    @abstractmethod
    async def height(self) -> int: ...

    @abstractmethod
    async def reorg(self, depth: int) -> None:
        """Replace so many of the newest blocks by empty ones; what stood in them is forgotten."""

    @abstractmethod
    async def restart(self) -> None:
        """Stop the node and start it again at the same address: of what waited it knows nothing."""

    # --- Transactions: each waits for a block ---

    @abstractmethod
    async def send(self, coin: Coin, to: str, units: int, *, sender: str | None = None) -> str:
        """Have one of the accounts pay, and return the transaction's id."""

    async def fail_to_send(self, to: str, amount: Amount) -> str:
        """Have somebody without a token try to send some: the transaction is mined and fails."""
        return await self.usdx.send(to, amount, sender=self.accounts[5])

    async def pay_many(self, coin: Coin, shares: Sequence[tuple[str, Amount]]) -> None:
        """Have a contract pay several in one transaction."""
        splitter = await self.node.deploy("Splitter")
        to_addresses, units = [to for to, _ in shares], [coin.units(amount) for _, amount in shares]
        if coin.contract is None:
            await splitter.send("splitNative", to_addresses, units, **{self.value_field: sum(units)})
        else:
            await self.send(coin, splitter.address, sum(units))
            await splitter.send("splitToken", coin.contract, to_addresses, units)

    async def forge(self, to: str, amount: Amount) -> None:
        """Have a contract that is not USDX say that somebody was paid in a token of that name."""
        impostor = await self.node.deploy("Impostor")
        await impostor.send("forge", self.accounts[0], to, self.usdx.units(amount), 1)

    @abstractmethod
    async def new_token(self, symbol: str) -> Coin:
        """Deploy another token of six decimals, which the operator's file does not know."""

    @abstractmethod
    async def mint(self, token: Coin, to: str, amount: Amount) -> None:
        """Have somebody get so much of a token that was deployed here."""

    @abstractmethod
    async def signed(self, tx_id: str) -> Any:
        """Return a transaction as it was signed, to be sent again."""

    @abstractmethod
    async def send_signed(self, signed: Any) -> None: ...

    @abstractmethod
    async def logs_before(self, tx_id: str) -> int:
        """Return how many logs stand in a transaction's block before its own."""

    # --- People and ways ---

    @abstractmethod
    def customer(self, secret: bytes | None = None) -> Customer:
        """Return somebody with this private key, or with a new one."""

    @abstractmethod
    def stranger(self, name: str | None = None) -> str:
        """Return an address that nobody has used before; by the same name it is the same."""

    @abstractmethod
    def endpoint(self, *faults: StrEnum) -> AbstractAsyncContextManager[Endpoint]:
        """Open another way to the node."""

    async def rich_customer(self) -> Customer:
        """Return a customer who has a hundred of everything."""
        customer = self.customer()
        for coin in (self.native, self.usdx):
            await coin.send(customer.address, RICH)
        await self.mine()
        return customer
