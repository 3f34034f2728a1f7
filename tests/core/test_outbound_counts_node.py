"""Endpoints of the right chain, on a real node, of which one counts far too many transactions of an address of ours."""

from __future__ import annotations

import pytest
from msgspec import structs

from cambist.services.sending.engine import Engine
from cambist_evm.testing import FaultyProxy
from tests.support.anvil_treasury import CHAIN_ID, paying_treasury
from tests.support.node_treasury import plugin_context
from tests.support.payment_env import registry

pytestmark = pytest.mark.slow

ONE = 10**6


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with paying_treasury(db, clock, ids, tmp_path) as treasury:
        yield treasury


@pytest.mark.parametrize("is_alone", [True, False])
async def test_an_endpoint_that_counts_a_million_too_many_is_not_followed(treasury, is_alone):
    node, engine, wallet = treasury.node, treasury.engine(), treasury.wallet.address
    before, to_address = await treasury.sent_from(wallet), await treasury.stranger(1)
    async with FaultyProxy(node.url) as liar:
        liar.lies["eth_getTransactionCount"] = lambda answer: hex(int(answer, 16) + 1_000_000)
        local = {
            "rpc_urls": [liar.url] if is_alone else [liar.url, node.url], "chain_id": CHAIN_ID, "native_symbol": "ETH",
            "confirmations": 3,
            "tokens": [{"symbol": "USDT", "contract": treasury.token("USDT").contract, "decimals": 6}],
        }  # fmt: skip
        async with registry({"evm": {"chains": {"local": local}}}).connect_chains(plugin_context()) as connected:
            chain = connected["local"]
            doubting = Engine(structs.replace(engine.context, chain=chain), treasury.keys)
            payout_id = await treasury.pay_out("USDT", 5 * ONE, to_address)
            await treasury.work(doubting, until="enough", rounds=6)
            payout = await treasury.payout(payout_id)
            assert (payout.status, payout.waits_for) == (
                ("processing", "nonce_doubted") if is_alone else ("completed", None)
            )
    assert treasury.alerts["nonce_doubted"] == int(is_alone)
    treasury.clock.advance(61)
    await treasury.work(engine)
    assert await treasury.on_chain(to_address, "USDT") == 5 * ONE
    assert await treasury.sent_from(wallet) == before + 1, "no nonce was left out, and none filled"
