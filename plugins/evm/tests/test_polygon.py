"""Polygon's synthetic transaction, which nobody sent: a recorded block, from nodes that disagree where it stands."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from cambist.plugin import Chain, ChainError, PluginContext, Span, Transfer
from cambist_evm.config import EvmConfig
from cambist_evm.plugin import EvmPlugin

Json = dict[str, Any]

BRIDGED = "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174"
RECIPIENT = "07ae8551be970cb1cca11dd7a11f47ae82e70e67"


class PolygonNode:
    """Serves one recorded block. ``listed`` and ``by_block`` say where it shows the synthetic transaction."""

    def __init__(self, recorded: Json, *, listed: bool, by_block: bool, told: bool = True) -> None:
        self.synthetic: Json = recorded["receipt"]
        self.told = told
        transactions = recorded["block"]["transactions"]
        receipts = [
            {
                "transactionHash": tx["hash"],
                "blockHash": recorded["block"]["hash"],
                "status": "0x1",
                "gasUsed": "0x5208",
                "logs": [],
            }
            for tx in transactions[:-1]
        ]
        for ordinal, log in enumerate(self.synthetic["logs"]):
            log["logIndex"] = hex(ordinal)
        self.block = {**recorded["block"], "transactions": transactions if listed else transactions[:-1]}
        self.receipts = [*receipts, self.synthetic] if by_block else receipts

    async def answer(self, request: web.Request) -> web.Response:
        call = await request.json()
        answers = {
            "eth_chainId": "0x89",
            "eth_getBlockByNumber": self.block,
            "eth_getBlockReceipts": self.receipts,
            "eth_getTransactionReceipt": self.synthetic if self.told else None,
        }
        return web.json_response({"jsonrpc": "2.0", "id": call["id"], "result": answers[call["method"]]})


@asynccontextmanager
async def serving(node: PolygonNode, context: PluginContext) -> AsyncIterator[Chain]:
    app = web.Application()
    app.router.add_post("/", node.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    tokens = [{"symbol": "USDC.E", "contract": BRIDGED, "decimals": 6}]
    config = msgspec.convert({"chains": {"polygon": {"rpc_urls": [url], "trace": "off", "tokens": tokens}}}, EvmConfig)
    try:
        async with EvmPlugin().connect(config, context) as (chain,):
            yield chain
    finally:
        await runner.cleanup()


@pytest.fixture
def recorded() -> Json:
    path = Path(__file__).parent / "recorded" / "polygon_74b36dd98f.json"
    loaded: Json = json.loads(path.read_bytes())
    return loaded


async def scanned(node: PolygonNode, context: PluginContext) -> list[Transfer]:
    height = int(node.block["number"], 16)
    async with serving(node, context) as chain, chain.view() as view:
        result = await view.scan(Span(first=height, last=height), {bytes.fromhex(RECIPIENT)})
        return list(result.transfers)


@pytest.mark.parametrize("listed, by_block", [(True, True), (True, False), (False, True)])
async def test_what_is_bridged_to_us_is_found_wherever_the_node_shows_it(
    recorded: Json, context: PluginContext, listed: bool, by_block: bool
) -> None:
    """In the block, among the receipts, or in both: the same transfer."""
    transfers = await scanned(PolygonNode(recorded, listed=listed, by_block=by_block), context)
    assert [(one.tx_id, one.position, one.contract, one.amount) for one in transfers] == [
        (recorded["receipt"]["transactionHash"], "log:2", BRIDGED, 0xCFB036DE4A)
    ]


async def test_a_synthetic_transaction_without_receipt_is_an_outage(recorded: Json, context: PluginContext) -> None:
    """It may have paid somebody."""
    with pytest.raises(ChainError, match="no receipt"):
        await scanned(PolygonNode(recorded, listed=True, by_block=False, told=False), context)


FEE = "0x4dfe1bbbcf077ddc3e01291eea2d5c70c2b422b415d95645b9adcfd678cb1d63"
MOVED = "0xe6497e3ee548a3372136af2fcb0696db31fc6cf20260707645068bd3fe97f3c4"


@pytest.mark.parametrize("events, refused", [([FEE], False), ([MOVED, FEE], True)])
async def test_a_payment_that_failed_does_not_stop_the_chain_although_its_fee_left_a_log(
    recorded: Json, context: PluginContext, events: list[str], refused: bool
) -> None:
    """Anybody can send one, to an address that refuses it. One that moved coin did not fail, whatever is said."""
    node = PolygonNode(recorded, listed=True, by_block=True)
    transaction, receipt = node.block["transactions"][0], node.receipts[0]
    transaction |= {"to": f"0x{RECIPIENT}", "value": "0x5"}
    logs = [
        {
            "address": "0x0000000000000000000000000000000000001010",
            "topics": [event, f"0x{'0' * 61}1010", f"0x{'0' * 24}{RECIPIENT}", f"0x{'0' * 24}{RECIPIENT}"],
            "data": "0x" + "0" * 320,
            "logIndex": hex(ordinal),
            "transactionHash": receipt["transactionHash"],
        }
        for ordinal, event in enumerate(events)
    ]
    receipt |= {"status": "0x0", "logs": logs}
    if refused:
        with pytest.raises(ChainError, match="says failed"):
            await scanned(node, context)
    else:
        assert [one.position for one in await scanned(node, context)] == ["log:2"]


async def test_other_receipts_may_not_be_missing(recorded: Json, context: PluginContext) -> None:
    """The exception is for the synthetic transaction alone."""
    node = PolygonNode(recorded, listed=True, by_block=True)
    del node.receipts[0]
    with pytest.raises(ChainError):
        await scanned(node, context)
