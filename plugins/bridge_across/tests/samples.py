"""Chains, tokens and deposits that the tests bridge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from eth_abi.abi import encode
from msgspec.structs import replace

from cambist.plugin import (
    Block,
    Call,
    ChainInfo,
    ChainToken,
    ExchangeRequest,
    Log,
    OwnBudgets,
    PluginContext,
    Receipt,
    Token,
    Units,
)
from cambist.testing.clock import ManualClock
from cambist_bridge_across.abi import CLAIMED, CLAIMED_TOPIC, REFUNDED, REFUNDED_TOPIC, TRANSFER_TOPIC
from cambist_bridge_across.addresses import ZERO, spell
from cambist_bridge_across.bridge import AcrossBridge
from cambist_bridge_across.codec import DepositCall, codec
from cambist_bridge_across.config import AcrossConfig
from cambist_bridge_across.deployments import PINNED, Deployments
from cambist_bridge_across.plugin import AcrossPlugin
from cambist_bridge_across.reader import AcrossReader

RECORDED = Path(__file__).parent / "recorded"

WALLET = spell("0x" + "a1" * 20)
STRANGER = spell("0x" + "5e" * 20)
RELAYER = spell("0x" + "7e" * 20)


def recorded(name: str) -> Any:
    """Return a recorded file's content."""
    return json.loads((RECORDED / name).read_bytes())


def chain(id_: str, number: int, native: str, *tokens: tuple[str, str, int], **more: Any) -> ChainInfo:
    """Return a chain with these tokens: symbol, contract, decimals."""
    return ChainInfo(
        id=id_,
        name=id_.title(),
        family="evm",
        tokens=(
            Token(symbol=native, contract=None, decimals=18, label=native),
            *(Token(symbol=symbol, contract=at, decimals=decimals, label=symbol) for symbol, at, decimals in tokens),
        ),
        confirmations=12,
        chain_id_num=number,
        is_evm=True,
        **more,
    )


ETHEREUM = chain("ethereum", 1, "ETH", ("USDT", "0xdAC17F958D2ee523a2206206994597C13D831ec7", 6))
ARBITRUM = chain("arbitrum", 42161, "ETH", ("USDT", "0xFd086bC7CD5C481DCC9C85ebE478A1C0b69FCbb9", 6))
BSC = chain("bsc", 56, "BNB", ("USDT", "0x55d398326f99059fF775485246999027B3197955", 18))
TRON = ChainInfo(
    id="tron",
    name="TRON",
    family="tron",
    tokens=(Token(symbol="TRX", contract=None, decimals=6, label="TRX"),),
    confirmations=19,
)
CHAINS: Mapping[str, ChainInfo] = {one.id: one for one in (ETHEREUM, ARBITRUM, BSC, TRON)}


def side(where: ChainInfo, symbol: str) -> ChainToken:
    """Return a chain's token."""
    token = where.token(symbol)
    assert token is not None
    return ChainToken(chain=where, token=token)


def wrapped(where: ChainInfo) -> str:
    """Return the token that wraps a chain's coin."""
    return PINNED[where.chain_id_num].wrapped_native


def spoke_pool(where: ChainInfo) -> str:
    """Return a chain's SpokePool."""
    return PINNED[where.chain_id_num].spoke_pool


def request(sells: ChainToken, buys: ChainToken, units: int = 100_000_000, **more: Any) -> ExchangeRequest:
    """Return a request of the wallet's, to itself."""
    asked = {"sender": WALLET, "recipient": WALLET, "slippage_bps": 50} | more
    return ExchangeRequest(sells=sells, buys=buys, units=Units(units), **asked)


USDT = request(side(ETHEREUM, "USDT"), side(ARBITRUM, "USDT"))
ETHER = request(side(ARBITRUM, "ETH"), side(ETHEREUM, "ETH"), 10**17)

DEPOSIT = DepositCall(
    depositor=WALLET,
    recipient=WALLET,
    input_token=side(ETHEREUM, "USDT").token.contract,
    output_token=side(ARBITRUM, "USDT").token.contract,
    input_amount=100_000_000,
    output_amount=99_900_000,
    destination_chain_id=42161,
    exclusive_relayer=ZERO,
    quote_timestamp=1_780_000_000,
    fill_deadline=1_780_007_200,
    exclusivity=0,
)


def call(deposit: DepositCall = DEPOSIT, value: int = 0, tail: bytes = b"", **changes: Any) -> Call:
    """Return the call that makes a deposit on Ethereum."""
    data = codec().deposit_call(replace(deposit, **changes)) + tail
    return Call(to_address=spoke_pool(ETHEREUM), data=data, value=Units(value))


def reader(**config: Any) -> AcrossReader:
    """Return the reader of a table."""
    return AcrossReader(AcrossConfig(**config))


def events(**config: Any) -> AcrossBridge:
    """Return a bridge that only reads logs: it has nobody to ask."""
    return AcrossBridge(None, AcrossConfig(**config), None)


def deployments() -> Deployments:
    """Return the pinned contracts."""
    return Deployments(AcrossConfig())


def receipt(told: Mapping[str, Any], time: int = 0) -> Receipt:
    """Return a recorded receipt as a chain plugin would."""
    block = Block(height=int(told["blockNumber"], 16), hash=told["blockHash"], parent_hash="0x", time=time)
    return Receipt(
        tx_id=told["transactionHash"],
        block=block,
        succeeded=told["status"] == "0x1",
        logs=tuple(log(one, number) for number, one in enumerate(told["logs"])),
    )


def log(told: Mapping[str, Any], number: int) -> Log:
    """Return a recorded log."""
    return Log(
        address=spell(told["address"]),
        topics=tuple(bytes.fromhex(topic[2:]) for topic in told["topics"]),
        data=bytes.fromhex(told["data"][2:]),
        position=f"log:{number}",
    )


def event_log(event: Mapping[str, Any], topic: bytes, address: str, position: int, *values: Any) -> Log:
    """Return the log that a contract leaves of an event with these values."""
    kinds = [
        f"({','.join(part['type'] for part in one['components'])})" if one["type"] == "tuple" else one["type"]
        for one in event["inputs"]
    ]
    sides: tuple[Any, Any] = ([], [])
    for one, kind, value in zip(event["inputs"], kinds, values, strict=True):
        sides[one["indexed"]].append((kind, value))
    plain, indexed = sides
    return Log(
        address=address,
        topics=(topic, *(encode([kind], [value]) for kind, value in indexed)),
        data=encode([kind for kind, _ in plain], [value for _, value in plain]),
        position=f"log:{position}",
    )


def word(value: str | int) -> bytes:
    """Return a number or an address as a word."""
    return (int(value, 16) if isinstance(value, str) else value).to_bytes(32, "big")


def transfer_log(token: str, giver: str, taker: str, units: int, position: int = 0) -> Log:
    """Return the log of a token's transfer."""
    topics = (TRANSFER_TOPIC, word(giver), word(taker))
    return Log(address=token, topics=topics, data=word(units), position=f"log:{position}")


def refunded_log(pool: str, token: str, paid: Sequence[tuple[str, int]], position: int = 1, **changes: Any) -> Log:
    """Return the log of a bundle's leaf on Ethereum, which paid so much to these."""
    told = {"returned": 0, "chain": 1, "bundle": 7, "leaf": 3, "deferred": False, "caller": STRANGER} | changes
    units, who = [one for _, one in paid], [one for one, _ in paid]
    values = (told["returned"], told["chain"], units, told["bundle"], told["leaf"], token, who, told["deferred"])
    return event_log(REFUNDED, REFUNDED_TOPIC, pool, position, *values, told["caller"])


def claimed_log(pool: str, token: str, to: str, units: int, by: str, position: int = 2) -> Log:
    """Return the log of a refund that the token had refused, and that its owner has sent to somebody."""
    return event_log(CLAIMED, CLAIMED_TOPIC, pool, position, word(token), word(to), units, by)


@asynccontextmanager
async def connected(clock: ManualClock, **config: Any) -> AsyncIterator[AcrossBridge]:
    """Connect the plugin as the gateway does."""
    context = PluginContext(
        now=clock.now,
        monotonic=clock.monotonic,
        random=Random(1),
        user_agent="cambist/tests",
        # While the clock stands still, each request would wait for longer than the one before it.
        budgets=OwnBudgets(clock.monotonic, lambda _seconds: asyncio.sleep(0)),
    )
    table = AcrossConfig(**{"timeout_ms": 5000, "requests_per_second": 1000} | config)
    async with AcrossPlugin().connect(table, context) as (bridge,):
        assert isinstance(bridge, AcrossBridge)
        yield bridge
