"""4.4 and 3.3: swaps and bridges from the main wallet."""

from __future__ import annotations

import pytest

from tests.support.gateway import ADMIN_KEY, until

from .replay import Replay, check
from .shapes import Exchange

HERE = "/api/merchant/swap-bridge"
SWAP_QUOTE, SWAP = "POST /api/merchant/swap-bridge/swap/quote", "POST /api/merchant/swap-bridge/swap/execute"
BRIDGE_QUOTE, BRIDGE = "POST /api/merchant/swap-bridge/bridge/quote", "POST /api/merchant/swap-bridge/bridge/execute"
HISTORY, FEES = "GET /api/merchant/swap-bridge/history", "GET /api/merchant/swap-bridge/platform-fees"


@pytest.fixture(scope="module")
def swap(network) -> dict[str, str]:
    return {"srcChain": network.chain, "srcToken": "USDX", "srcAmountRaw": "10000000", "destToken": "USDT"}


@pytest.fixture(scope="module")
def bridge(swap, other) -> dict[str, str]:
    return {**swap, "destChain": other.chain, "destToken": "USDX"}


@pytest.fixture(scope="module")
async def made(shop: Replay, swap, bridge) -> dict[str, dict]:
    """Have one of each be on its way."""
    return {
        "swap": await shop.ask(SWAP, {**swap, "slippage": 1.5}),
        "bridge": await shop.ask(BRIDGE, {**bridge, "slippage": 1.5}),
    }


async def ended(shop: Replay, txn_id: str) -> dict:
    """Wait for an exchange to succeed, and return its row."""

    async def poll() -> dict | None:
        rows = (await shop.ask(HISTORY))["exchanges"]
        (found,) = [one for one in rows if one["txnId"] == txn_id]
        check(found, Exchange)
        assert found["status"] in {"pending", "succeeded"}
        return found if found["status"] == "succeeded" else None

    return await until(poll)


async def test_a_swap_brings_what_was_quoted(shop: Replay, swap, made):
    quoted = (await shop.ask(SWAP_QUOTE, swap))["quote"]
    assert float(made["swap"]["quote"]["dstAmount"]) == pytest.approx(float(quoted["dstAmount"]), rel=0.05)
    row = await ended(shop, made["swap"]["txnId"])
    shown = {"mode": "manual", "kind": "swap", "sourceChain": swap["srcChain"], "destChain": swap["srcChain"]}
    assert {name: row[name] for name in shown} == shown
    assert row["destTxHash"] == row["txHash"]


async def test_a_bridge_is_pending_until_the_relayer_has_filled_it(shop: Replay, bridge, made):
    await shop.ask(BRIDGE_QUOTE, bridge)
    assert made["bridge"]["exchange"]["status"] == "pending"
    row = await ended(shop, made["bridge"]["txnId"])
    assert (row["kind"], row["destChain"]) == ("bridge", bridge["destChain"])
    assert row["destTxHash"]
    assert 9 < float(row["destAmount"]) <= 10
    assert not any("fee" in name.lower() for name in row), "the provider's fees are hidden"


async def test_history_is_filtered_and_read_in_pages(shop: Replay, swap, bridge):
    told = await shop.ask(HISTORY)
    assert (told["page"], told["limit"]) == (1, 25)
    query = {"mode": "manual", "kind": "swap", "chain": swap["srcChain"], "status": "failed", "page": "1"}
    assert (await shop.ask(HISTORY, query={**query, "limit": "100"}))["exchanges"] == []
    for wrong in ("mode=x", "kind=x", "status=x", "page=0", "limit=101"):
        await shop.merchant.get(f"{HERE}/history?{wrong}", status=400)


async def test_the_platforms_fees(shop: Replay):
    await shop.ask(FEES)


@pytest.mark.parametrize("row", [SWAP_QUOTE, SWAP])
async def test_what_is_no_swap_is_refused(shop: Replay, swap, row):
    await shop.refused(row, {**swap, "srcChain": "nowhere"}, 400, "UNSUPPORTED_CHAIN")
    await shop.refused(row, {**swap, "destToken": "NOTHING"}, 400, "UNSUPPORTED_TOKEN")
    tron = {**swap, "srcChain": "tron", "srcToken": "USDT", "destToken": "TRX"}
    await shop.refused(row, tron, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN")


@pytest.mark.parametrize("row", [BRIDGE_QUOTE, BRIDGE])
async def test_what_is_no_bridge_is_refused(shop: Replay, bridge, row):
    same = {**bridge, "destChain": bridge["srcChain"], "destToken": "USDT"}
    await shop.refused(row, same, 400, "VALIDATION_ERROR")
    await shop.refused(row, {**bridge, "destChain": "tron", "destToken": "USDT"}, 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN")


async def test_who_has_no_credits_left_is_answered_402(stranger: Replay, swap, bridge):
    merchant = stranger.merchant
    path = f"/api/admin/merchants/{merchant.merchant_id}/credits"
    taken = {"amount": -2_000_000, "mode": "sandbox", "reference": merchant.merchant_id}
    await merchant.post(path, taken, headers={"X-Admin-Key": ADMIN_KEY}, status=201)
    await stranger.refused(SWAP_QUOTE, swap, 402, "INSUFFICIENT_CPT")
    await stranger.refused(SWAP, swap, 402, "INSUFFICIENT_CPT")
    await stranger.refused(BRIDGE, bridge, 402, "INSUFFICIENT_CPT")
    await stranger.ask(BRIDGE_QUOTE, bridge)
