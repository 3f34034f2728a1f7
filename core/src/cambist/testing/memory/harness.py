"""The conformance kit's harness over a chain in memory: an example for authors, and how the kit tests itself."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Self

from coincurve import PublicKey
from msgspec.structs import replace

from cambist.plugin import Token
from cambist.testing.harness import Abilities, ChainHarness, FamilySamples, Sender

from .blocks import Output
from .chain import MemoryChain, MemoryLendingChain
from .family import named_address, spell
from .fees import TOKEN_LIMIT
from .keys import key_id
from .plugin import memory_chain_info
from .rules import MemoryRules

_ADDRESS = named_address("sample")
_XPUBS = ("xpubMemoryAccount0000000000000001", "xpubMemoryAccount0000000000000002")

MEMORY_SAMPLES = FamilySamples(
    account_xpubs=_XPUBS,
    spellings={_ADDRESS: _ADDRESS, _ADDRESS.upper(): _ADDRESS},
    refused=(
        _ADDRESS[:-1],
        _ADDRESS + "a",
        _ADDRESS.title(),
        _ADDRESS[:-1] + ("b" if _ADDRESS[-1] != "b" else "c"),
        "0x" + "00" * 20,
    ),
    chain=memory_chain_info(),
    tags={"7": "7", "007": "7", "0": "0", "4294967295": "4294967295"},
    refused_tags=("-7", "7.0", "x7", "12345678901", "\N{FULLWIDTH DIGIT SEVEN}"),
    derived={(_XPUBS[0], 0, 0): "mem1r5ktrylpuzhpthahx6ngtwdppogd4kee5ncr7rx3"},
)
"""What the memory family accepts and refuses."""

COIN = 10**18
TRANSFERS_LENT = 5

ABILITIES = Abilities(
    several_per_tx=True,
    several_native_per_tx=True,
    reverts=True,
    impostors=True,
    zero_transfers=True,
    reorgs=True,
    remines=True,
    past_balances=True,
    finality=True,
    pending=True,
    outages=True,
    refusals=True,
    sending=True,
    finding=True,
    payload_names_chain=True,
    tags=True,
)


class MemoryHarness(ChainHarness):
    """Everything the kit can ask for, on a chain that has no node."""

    def __init__(self, chain: MemoryChain | None = None, samples: FamilySamples = MEMORY_SAMPLES) -> None:
        """Drive this chain, or a new one with sequences."""
        self.memory = chain or MemoryChain(memory_chain_info(), finality_lag_blocks=5)
        super().__init__(self.memory, self.memory.family, samples)
        self._keys = itertools.count()
        rules = self.memory.rules
        self.abilities = replace(
            ABILITIES,
            sequences=rules is None,
            replacement=rules is None,
            fees_in_payload=rules is None,
            expiry=rules is not None,
            activation=rules is not None and rules.activation_price > 0,
            lending=isinstance(self.memory, MemoryLendingChain),
        )

    @classmethod
    def lending(cls, chain_type: type[MemoryLendingChain] = MemoryLendingChain) -> Self:
        """Drive a chain on which transactions expire, addresses are activated, and stakes are lent."""
        rules = MemoryRules(activation_price=COIN // 1000, stake_per_work=10**12)
        return cls(chain_type(memory_chain_info(), rules=rules))

    async def mine(self, blocks: int = 1) -> None:
        self.memory.mine(blocks)

    async def transfer(self, token: Token, recipient: str, amount: int) -> str:
        return self.memory.transfer(token, recipient, amount)

    async def transfer_many(self, token: Token, payments: Sequence[tuple[str, int]]) -> str:
        return self.memory.submit(
            [Output(contract=token.contract, recipient=recipient, amount=amount) for recipient, amount in payments]
        )

    async def transfer_reverted(self, token: Token, recipient: str, amount: int) -> str:
        return self.memory.submit([Output(contract=token.contract, recipient=recipient, amount=amount)], reverts=True)

    async def transfer_impostor(self, token: Token, recipient: str, amount: int) -> str:
        impostor = named_address(f"impostor/{token.symbol}")
        return self.memory.submit([Output(contract=impostor, recipient=recipient, amount=amount)])

    async def reorg(self, depth: int) -> None:
        self.memory.reorg(depth)

    async def remine(self, depth: int, tx_id: str) -> None:
        """Drop the newest blocks and mine one transaction again, one block later than the fork."""
        self.memory.reorg(depth, mine_again=[tx_id], new_blocks=depth + 1)

    async def sender(self, *holdings: tuple[Token, int]) -> Sender:
        key = hashlib.sha256(f"sender {next(self._keys)}".encode()).digest()
        address = spell(key_id(PublicKey.from_valid_secret(key)))
        for token, amount in holdings:
            self.memory.transfer(token, address, amount)
        self.memory.mine()
        return Sender(address=address, private_key=key)

    async def outlive(self, valid_until: int) -> None:
        self.memory.mine(time=valid_until + 1)

    async def lose_next(self) -> None:
        self.memory.faults.forgotten_txs = 1

    async def hide(self, tx_id: str) -> None:
        self.memory.faults.hidden.add(tx_id)

    async def sponsor(self) -> Sender:
        assert isinstance(self.memory, MemoryLendingChain)
        sender = await self.sender((self.memory.info.native, 100 * COIN))
        self.memory.endow(sender.address, TRANSFERS_LENT * TOKEN_LIMIT * self.memory.accounts.stakes.per_work)
        return sender

    async def ripen(self) -> None:
        rules = self.memory.rules
        assert rules is not None
        self.memory.mine(time=self.memory.seen_time() + rules.unstaking_s)

    async def refuse(self, recipient: str) -> Token:
        """Let the last token refuse it."""
        token = self.memory.info.tokens[-1]
        self.memory.faults.refusing.add((token.contract, recipient))
        return token

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        self.memory.faults.unavailable = True
        try:
            yield
        finally:
            self.memory.faults.unavailable = False
