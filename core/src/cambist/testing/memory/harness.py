"""The conformance kit's harness over a chain in memory: an example for authors, and how the kit tests itself."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from coincurve import PublicKey

from cambist.plugin import Token
from cambist.testing.harness import Abilities, ChainHarness, FamilySamples, Sender

from .blocks import Output
from .chain import MemoryChain
from .family import named_address, spell
from .keys import key_id
from .plugin import memory_chain_info
from .samples import MEMORY_SAMPLES


class MemoryHarness(ChainHarness):
    """Everything the kit can ask for, on a chain that has no node."""

    abilities = Abilities(
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
        sending=True,
        sequences=True,
        refusals=True,
    )

    def __init__(self, chain: MemoryChain | None = None, samples: FamilySamples = MEMORY_SAMPLES) -> None:
        """Drive this chain, or a new one."""
        self.memory = chain or MemoryChain(memory_chain_info(), finality_lag_blocks=5)
        super().__init__(self.memory, self.memory.family, samples)
        self._keys = itertools.count()

    async def mine(self, blocks: int = 1) -> None:
        """Mine."""
        self.memory.mine(blocks)

    async def transfer(self, token: Token, recipient: str, amount: int) -> str:
        """Send from the faucet."""
        return self.memory.transfer(token, recipient, amount)

    async def transfer_many(self, token: Token, payments: Sequence[tuple[str, int]]) -> str:
        """Send from the faucet, several at once."""
        return self.memory.submit(
            [Output(contract=token.contract, recipient=recipient, amount=amount) for recipient, amount in payments]
        )

    async def transfer_reverted(self, token: Token, recipient: str, amount: int) -> str:
        """Send what will fail."""
        return self.memory.submit([Output(contract=token.contract, recipient=recipient, amount=amount)], reverts=True)

    async def transfer_impostor(self, token: Token, recipient: str, amount: int) -> str:
        """Send from a contract that nobody registered."""
        impostor = named_address(f"impostor/{token.symbol}")
        return self.memory.submit([Output(contract=impostor, recipient=recipient, amount=amount)])

    async def reorg(self, depth: int) -> None:
        """Drop the newest blocks."""
        self.memory.reorg(depth)

    async def remine(self, depth: int, tx_id: str) -> None:
        """Drop the newest blocks and mine one transaction again, one block later than the fork."""
        self.memory.reorg(depth, mine_again=[tx_id], new_blocks=depth + 1)

    async def sender(self, *holdings: tuple[Token, int]) -> Sender:
        """Make up a key, and give its address what it is to hold."""
        key = hashlib.sha256(f"sender {next(self._keys)}".encode()).digest()
        address = spell(key_id(PublicKey.from_valid_secret(key)))
        for token, amount in holdings:
            self.memory.transfer(token, address, amount)
        self.memory.mine()
        return Sender(address=address, private_key=key)

    async def refuse(self, recipient: str) -> Token:
        """Let the last token refuse it."""
        token = self.memory.info.tokens[-1]
        self.memory.faults.refusing.add((token.contract, recipient))
        return token

    @asynccontextmanager
    async def outage(self) -> AsyncIterator[None]:
        """Answer nothing for a while."""
        self.memory.faults.unavailable = True
        try:
            yield
        finally:
            self.memory.faults.unavailable = False
