"""The network, connected: reading blocks, planning transactions and handing them over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from cambist.plugin import (
    Block,
    Broadcast,
    Fee,
    FeeAboveCeilingError,
    Intent,
    Plan,
    ScanResult,
    SignedTx,
    Span,
    Step,
    Token,
    Transfer,
    TxStatus,
    Units,
    UnsignedTx,
    Watch,
)
from cambist_chainkit.broadcasts import broadcast_to_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.pooled import PooledChain
from cambist_chainkit.spans import read_in_batches

from .addresses import key_of
from .config import NETWORK, FlorinConfig, chain_info
from .endpoint import Endpoint, header_of
from .lookups import status_of, verdict_of
from .payload import WORK, Payload, write
from .wire import NodeBlock, NodeStatus, NodeVerdict

BATCH_BLOCKS_MAX = 10
BATCHES_AT_ONCE_MAX = 4
BROADCAST_MAX = 50


class FlorinChain(PooledChain[Endpoint]):
    """One network. Which endpoint is asked, and what a failure does to it, is the pool's part."""

    def __init__(self, config: FlorinConfig, pool: EndpointPool[Endpoint]) -> None:
        super().__init__(chain_info(config), pool, quorum=config.quorum)
        self._price_max = config.price_max
        self._contracts = frozenset(token.contract for token in self.info.tokens)

    # Reading.

    def reader(self, span: Span, watch: Watch) -> Callable[[Endpoint], Awaitable[ScanResult]]:
        """Return what reads a span from an endpoint, several blocks at a time."""

        async def read(endpoint: Endpoint) -> ScanResult:
            async def batch(heights: Sequence[int]) -> tuple[Sequence[Block], Sequence[Transfer]]:
                blocks = await endpoint.blocks(heights[0], heights[-1])
                found = [transfer for block in blocks for transfer in self._transfers(block, watch)]
                return [header_of(block) for block in blocks], found

            return await read_in_batches(
                span, batch, batch_blocks_max=BATCH_BLOCKS_MAX, batches_at_once_max=BATCHES_AT_ONCE_MAX
            )

        return read

    def _transfers(self, block: NodeBlock, watch: Watch) -> Sequence[Transfer]:
        """Return what came or went: nothing failed, nothing of zero, no contract that merely has a token's name."""
        return [
            Transfer(
                tx_id=transfer.id,
                # A transaction makes one transfer here. Where it can make several, count them within it.
                position="transfer",
                height=block.height,
                block_hash=block.hash,
                sender=transfer.sender,
                recipient=transfer.recipient,
                contract=transfer.contract,
                amount=Units(transfer.amount),
            )
            for transfer in block.transfers
            if transfer.ok
            and transfer.amount > 0
            and transfer.contract in self._contracts
            and (key_of(transfer.recipient) in watch or key_of(transfer.sender) in watch)
        ]

    async def balances_at(
        self, endpoint: Endpoint, wanted: Sequence[tuple[str, Token]], at: int | None
    ) -> Sequence[Units]:
        """Return several balances at one height."""
        asked = [(address, token.contract) for address, token in wanted]
        return [Units(held) for held in await endpoint.ask(list[int], "balances", wanted=asked, height=at)]

    async def statuses(self, endpoint: Endpoint, tx_ids: Sequence[str]) -> Mapping[str, TxStatus]:
        """Return what one endpoint knows of each."""
        told = await endpoint.ask(list[NodeStatus], "statuses", ids=tx_ids)
        return {tx_id: status_of(status) for tx_id, status in zip(tx_ids, told, strict=True)}

    # Sending.

    async def next_sequence(self, sender: str) -> int:
        """Count what is mined of the sender: the highest count that any endpoint knows."""
        return max(await self.pool.ask_all(lambda endpoint: endpoint.ask(int, "sequence", address=sender)))

    async def plan(
        self, intents: Sequence[Intent], *, sponsor: str | None, promised: Mapping[str, int] | None = None
    ) -> Sequence[Plan]:
        """Plan one transaction each, at the price of now. Nothing is lent or called here, and nobody sponsors it."""
        _ = sponsor, promised
        fee = self._below_ceiling(Fee(limit=WORK, price=await self._price()))
        asked = [(intent.token.contract, intent.to_address) for intent in intents]
        refusals = await self.pool.ask_any(lambda one: one.ask(list[str | None], "objections", transfers=asked))
        return [
            _planned(intent, fee) if refused is None else Plan(refused=refused)
            for intent, refused in zip(intents, refusals, strict=True)
        ]

    async def outbid(self, step: Step) -> Fee:
        """Offer an eighth more than before, and no less than the price of now."""
        price = max(await self._price(), -(-step.fee.price * 9 // 8))
        return self._below_ceiling(Fee(limit=step.fee.limit, price=price))

    async def prepare(self, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
        """Write the payloads. Their sequences keep them apart."""
        return [_unsigned(step, sequence) for step, sequence in steps]

    async def broadcast(self, txs: Sequence[SignedTx]) -> Sequence[Broadcast]:
        """Hand the transactions to every endpoint that can be asked."""
        return await broadcast_to_all(self.pool, txs, _submit, size=lambda _: BROADCAST_MAX)

    async def problems(self) -> Sequence[str]:
        """Ask every endpoint whether it serves this network."""
        return (await self.verified())[1]

    async def _price(self) -> int:
        return await self.pool.ask_any(lambda endpoint: endpoint.ask(int, "price"))

    def _below_ceiling(self, fee: Fee) -> Fee:
        if fee.price > self._price_max:
            raise FeeAboveCeilingError(f"a price of {fee.price} is above the ceiling of {self._price_max}")
        return fee


async def _submit(endpoint: Endpoint, txs: Sequence[SignedTx]) -> list[Broadcast]:
    told = await endpoint.ask(list[NodeVerdict], "submit", transactions=[tx.raw.hex() for tx in txs])
    return [verdict_of(verdict) for _, verdict in zip(txs, told, strict=True)]


def _planned(intent: Intent, fee: Fee) -> Plan:
    # ``nothing`` is a transfer, too: of no coin, to oneself, so that a sequence is used up.
    if intent.action not in {"transfer", "nothing"}:
        return Plan(refused="nothing but transfers is sent on this chain")
    return Plan(step=intent.step(fee), sponsoring=fee.cost_max)


def _unsigned(step: Step, sequence: int | None) -> UnsignedTx:
    if sequence is None:
        raise ValueError("a transaction of this chain needs a sequence")
    payload = Payload(
        network=NETWORK,
        sequence=sequence,
        contract=step.token.contract,
        recipient=step.to_address,
        amount=step.amount,
        limit=step.fee.limit,
        price=step.fee.price,
    )
    return UnsignedTx(sender=step.sender, sequence=sequence, payload=write(payload), fee=step.fee)
