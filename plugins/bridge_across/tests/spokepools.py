"""Across's own contracts on two local nodes, as chain plugins would show them to the bridge."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from cambist.plugin import Block, Call, ChainInfo, FoundLog, LogQuery, Receipt
from cambist.testing.anvil import AnvilProcess
from cambist.testing.contracts import load
from cambist_across_node import AcrossNetwork, Behaviour, Relay, Side
from cambist_across_node.__main__ import fund
from cambist_across_node.artifacts import pool
from cambist_across_node.deposits import word
from cambist_across_node.side import MINED_TIMEOUT_S, ZERO
from cambist_bridge_across.config import AcrossConfig

from .samples import WALLET, chain, log


class TwoChains:
    """Ethereum and Arbitrum, as far as Across is concerned, and nobody who fills unasked."""

    def __init__(self, network: AcrossNetwork) -> None:
        self.network = network
        self.origin, self.destination = network.sides.values()

    @property
    def chains(self) -> Mapping[str, ChainInfo]:
        """What the gateway knows of both, by id."""
        return {
            name: chain(name, side.chain_id, "ETH", ("USDT", side.tokens["USDT"].address, 6))
            for name, side in self.network.sides.items()
        }

    def config(self, **more: Any) -> AcrossConfig:
        """Return the operator's table for these contracts."""
        return msgspec.convert(self.network.settings() | {"requests_per_second": 1000} | more, AcrossConfig)

    async def fill(self, deposit_id: str) -> dict[str, Any]:
        """Fill a deposit, and return the receipt."""
        (made,) = [one for one in await self.origin.deposits() if str(one.relay.number) == deposit_id]
        there = self.destination
        return await there.send(there.relayer, there.pool, there.filling(made.relay))

    async def slow_filling(self, output_token: str, deadline: int, number: int = 1) -> bytes:
        """Return what fills, on the origin and slowly, a deposit of 700 units for 600 of the wallet's."""
        here, there = self.origin, self.destination
        relay = Relay(
            depositor=word(WALLET),
            recipient=word(WALLET),
            exclusive_relayer=word(ZERO),
            input_token=word(there.tokens["USDT"].address),
            output_token=word(output_token),
            input_amount=700,
            output_amount=600,
            origin=there.chain_id,
            number=number,
            fill_deadline=deadline,
            exclusivity_deadline=0,
            message=b"",
        )
        await here.say("requestSlowFill", relay.values)
        return await here.slow_filling(relay, relay.output_amount)


async def approve(side: Side, units: int) -> None:
    """Let the SpokePool take the wallet's USDT."""
    data = load("TestToken").call_data("approve", side.pool, units)
    await side.send(WALLET, side.tokens["USDT"].address, data)


async def send(side: Side, call: Call) -> dict[str, Any]:
    """Return the receipt of a call of the wallet's."""
    return await side.send(WALLET, call.to_address, call.data, call.value)


async def go_back(side: Side, snapshot: str) -> None:
    """Return to a snapshot, once the node is done with all that it has mined.

    It tells a transaction's receipt a moment before it takes the transaction from its pool. Who goes back in between
    leaves it there, and it is mined a second time, together with whatever the wallet sends next.
    """
    async with asyncio.timeout(MINED_TIMEOUT_S):
        while await side.node.call("txpool_status") != {"pending": "0x0", "queued": "0x0"}:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert await side.node.call("evm_revert", [snapshot])


async def logs(side: Side, query: LogQuery) -> Sequence[FoundLog]:
    """Return what a query finds, as a chain plugin would."""
    topics = [None if topic is None else "0x" + topic.hex() for topic in query.topics]
    asked = {"address": query.address, "topics": topics, "fromBlock": hex(query.first), "toBlock": hex(query.last)}
    return [
        FoundLog(
            tx_id=one["transactionHash"],
            height=int(one["blockNumber"], 16),
            block_hash=one["blockHash"],
            log=log(one, number),
        )
        for number, one in enumerate(await side.node.call("eth_getLogs", [asked]))
    ]


def receipt_of(told: Mapping[str, Any]) -> Receipt:
    """Return a node's receipt as a chain plugin would."""
    block = Block(height=int(told["blockNumber"], 16), hash=told["blockHash"], parent_hash="0x", time=0)
    return Receipt(
        tx_id=told["transactionHash"],
        block=block,
        succeeded=True,
        logs=tuple(log(one, number) for number, one in enumerate(told["logs"])),
    )


async def at_once(side: Side, *calls: bytes) -> dict[str, Any]:
    """Say several things to the SpokePool in one transaction."""
    return await side.send(side.owner, side.pool, pool().call_data("multicall", list(calls)))


@asynccontextmanager
async def two_chains() -> AsyncIterator[TwoChains]:
    """Run both until the context ends."""
    async with (
        AnvilProcess(["--chain-id", "1"]) as one,
        AnvilProcess(["--chain-id", "42161"]) as other,
        AcrossNetwork({"ethereum": one.url, "arbitrum": other.url}) as network,
    ):
        network.relayer.behaviour = Behaviour.NEVER
        await fund(network, WALLET)
        yield TwoChains(network)
