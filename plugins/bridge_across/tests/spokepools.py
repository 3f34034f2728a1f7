"""Across's own contracts on two local nodes, and a relayer who fills."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from web3 import Web3

from cambist.plugin import Block, Call, ChainInfo, FoundLog, LogQuery, Receipt, Units
from cambist.testing.anvil import AnvilProcess, RpcRefusedError
from cambist.testing.contracts import load
from cambist_bridge_across.abi import DEPOSITED_TOPIC
from cambist_bridge_across.addresses import ZERO, spell
from cambist_bridge_across.codec import Deposited, codec
from cambist_bridge_across.config import AcrossConfig, ChainTable

from .samples import chain, log

ARTIFACTS = Path("tests/node_modules/@across-protocol/contracts/dist/evm/artifacts")
QUOTE_AGE_S_MAX, FILL_S_MAX = 3600, 21_600
LEAF = "(uint256,uint256,uint256[],uint32,address,address[])"
RELAY = "(bytes32,bytes32,bytes32,bytes32,bytes32,uint256,uint256,uint256,uint256,uint32,uint32,bytes)"
SLOW_LEAF = f"({RELAY},uint256,uint256)"
ETHER = 10**18
MINED_TIMEOUT_S = 10.0


@cache
def compiled(name: str) -> Any:
    """Return a contract that npm brought, as web3.py makes one of it."""
    root = next(folder for folder in Path(__file__).resolve().parents if (folder / "tests/package.json").is_file())
    artifact = json.loads((root / ARTIFACTS / f"{name}.sol" / f"{name}.json").read_bytes())
    return Web3().eth.contract(abi=artifact["abi"], bytecode=artifact["bytecode"])


def creation(name: str, *arguments: Any) -> bytes:
    """Return the code that makes such a contract."""
    return bytes.fromhex(compiled(name).constructor(*arguments).data_in_transaction[2:])


def said(name: str, function: str, *arguments: Any) -> bytes:
    """Return what calls a function of such a contract."""
    return bytes.fromhex(compiled(name).encode_abi(function, args=list(arguments))[2:])


class Side:
    """One chain: its node, a token of six decimals, wrapped coin, and the SpokePool."""

    def __init__(self, node: AnvilProcess, name: str, number: int) -> None:
        self.node = node
        self.name = name
        self.number = number
        self.bundles = 0
        self.owner = self.wallet = self.relayer = self.token = self.wrapped = self.pool = ZERO

    @property
    def info(self) -> ChainInfo:
        """What the gateway knows of the chain."""
        return chain(self.name, self.number, "ETH", ("USDT", self.token, 6))

    async def prepare(self) -> None:
        """Deploy everything; the owner may do what the protocol's own contracts may."""
        self.owner, self.wallet, self.relayer, *_ = map(spell, await self.node.call("eth_accounts"))
        self.token = await self.deploy(load("TestToken").creation_code("USDT", 6))
        self.wrapped = await self.deploy(creation("WETH9"))
        code = creation("Ethereum_SpokePool", self.wrapped, QUOTE_AGE_S_MAX, FILL_S_MAX, ZERO)
        start = said("Ethereum_SpokePool", "initialize", 0, self.owner)
        self.pool = await self.deploy(creation("ERC1967Proxy", await self.deploy(code), start))

    async def deploy(self, code: bytes) -> str:
        """Return the address of a new contract."""
        return spell((await self.send(self.owner, Call(to_address="", data=code)))["contractAddress"])

    async def send(self, sender: str, call: Call) -> dict[str, Any]:
        """Return the receipt of a call that succeeds. Raises RpcRefusedError for one that does not."""
        transaction = {"from": sender, "data": "0x" + call.data.hex(), "value": hex(call.value)}
        transaction |= {"to": call.to_address} if call.to_address else {}
        tx_id = await self.node.call("eth_sendTransaction", [transaction])
        async with asyncio.timeout(MINED_TIMEOUT_S):
            while (receipt := await self.node.call("eth_getTransactionReceipt", [tx_id])) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        if receipt["status"] != "0x1":
            raise RpcRefusedError(f"{tx_id} was reverted")
        return receipt

    async def tell(self, sender: str, address: str, data: bytes, value: int = 0) -> dict[str, Any]:
        """Say something to a contract."""
        return await self.send(sender, Call(to_address=address, data=data, value=Units(value)))

    async def fund(self, who: str, units: int) -> None:
        """Give tokens to somebody who lets the SpokePool take them."""
        token = load("TestToken")
        await self.tell(self.owner, self.token, token.call_data("mint", who, units))
        await self.tell(who, self.token, token.call_data("approve", self.pool, units))

    async def wrap(self, who: str, units: int) -> None:
        """Have somebody wrap coin and let the SpokePool take it."""
        await self.tell(who, self.wrapped, said("WETH9", "deposit"), units)
        await self.tell(who, self.wrapped, said("WETH9", "approve", self.pool, units))

    async def balance(self, who: str, token: str | None = None) -> int:
        """Return what somebody has of a token, or of coin."""
        if token is None:
            return int(await self.node.call("eth_getBalance", [who, "latest"]), 16)
        asked = {"to": token, "data": "0x" + load("TestToken").call_data("balanceOf", who).hex()}
        return int(await self.node.call("eth_call", [asked, "latest"]), 16)

    async def logs(self, query: LogQuery) -> Sequence[FoundLog]:
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
            for number, one in enumerate(await self.node.call("eth_getLogs", [asked]))
        ]

    async def fill(self, origin: Side, told: Mapping[str, Any]) -> dict[str, Any]:
        """Fill the deposit of a receipt, as its log has it."""
        relay = relay_of(origin, told)
        return await self.tell(
            self.relayer,
            self.pool,
            said("Ethereum_SpokePool", "fillRelay", relay, self.number, bytes(12) + bytes.fromhex(self.relayer[2:])),
        )

    async def pay_back(self, token: str, who: Sequence[str], units: Sequence[int]) -> dict[str, Any]:
        """Refund what was not filled, as a bundle of Across does, and return the receipt."""
        return await self.tell(self.owner, self.pool, await self.refunding(token, who, units))

    async def refunding(self, token: str, who: Sequence[str], units: Sequence[int]) -> bytes:
        """Return what executes the only leaf of a new bundle of refunds."""
        leaf = (0, self.number, list(units), 0, token, list(who))
        bundle = await self.bundle(Web3.keccak(Web3().codec.encode([LEAF], [leaf])), bytes(32))
        return said("Ethereum_SpokePool", "executeRelayerRefundLeaf", bundle, leaf, [])

    async def bundle(self, refunds: bytes, slow_fills: bytes) -> int:
        """Have the protocol tell the SpokePool of a new bundle, and return its number."""
        await self.tell(self.owner, self.pool, said("Ethereum_SpokePool", "relayRootBundle", refunds, slow_fills))
        self.bundles += 1
        return self.bundles - 1

    async def filling_slowly(self, relay: tuple[Any, ...]) -> bytes:
        """Return what fills a deposit from the SpokePool's own liquidity, as the only leaf of a new bundle."""
        await self.tell(self.owner, self.pool, said("Ethereum_SpokePool", "requestSlowFill", relay))
        leaf = (relay, self.number, relay[6])
        bundle = await self.bundle(bytes(32), Web3.keccak(Web3().codec.encode([SLOW_LEAF], [leaf])))
        return said("Ethereum_SpokePool", "executeSlowRelayLeaf", leaf, bundle, [])

    async def at_once(self, *calls: bytes) -> dict[str, Any]:
        """Say several things to the SpokePool in one transaction."""
        return await self.tell(self.owner, self.pool, said("Ethereum_SpokePool", "multicall", list(calls)))


def relay_of(origin: Side, told: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what a relayer says of a deposit."""
    found: Deposited = next(
        codec().read_deposited(one) for one in receipt_of(told).logs if one.topics[0] == DEPOSITED_TOPIC
    )
    return (
        *(found.depositor, found.recipient, found.exclusive_relayer, found.input_token, found.output_token),
        *(found.input_amount, found.output_amount, origin.number, found.deposit_id),
        *(found.fill_deadline, found.exclusivity_deadline, found.message),
    )


def receipt_of(told: Mapping[str, Any]) -> Receipt:
    """Return a node's receipt as a chain plugin would."""
    block = Block(height=int(told["blockNumber"], 16), hash=told["blockHash"], parent_hash="0x", time=0)
    logs = tuple(log(one, number) for number, one in enumerate(told["logs"]))
    return Receipt(tx_id=told["transactionHash"], block=block, succeeded=True, logs=logs)


class TwoChains:
    """Ethereum and Arbitrum, as far as Across is concerned."""

    def __init__(self, origin: Side, destination: Side) -> None:
        self.origin = origin
        self.destination = destination

    @property
    def chains(self) -> Mapping[str, ChainInfo]:
        """Both, by id."""
        return {side.name: side.info for side in (self.origin, self.destination)}

    def config(self, **more: Any) -> AcrossConfig:
        """Return the operator's table for these contracts."""
        tables = {
            side.name: ChainTable(spoke_pool=side.pool, wrapped_native=side.wrapped)
            for side in (self.origin, self.destination)
        }
        return AcrossConfig(chains=tables, timeout_ms=2000, requests_per_second=1000, **more)


@asynccontextmanager
async def two_chains() -> AsyncIterator[TwoChains]:
    """Run both nodes until the context ends."""
    async with AnvilProcess(["--chain-id", "1"]) as one, AnvilProcess(["--chain-id", "42161"]) as other:
        found = TwoChains(Side(one, "ethereum", 1), Side(other, "arbitrum", 42161))
        for side in (found.origin, found.destination):
            await side.prepare()
        yield found
