"""The policy ``limit``: what is above a coin's threshold goes to an approved address, once."""

import asyncio

import msgspec
import pytest

from cambist.hints import Hints
from cambist.services import approved_addresses, auto_payout
from cambist.services.approved_addresses import ApprovalRequest
from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.payouts import coins
from cambist.services.payouts.coins import Coin, CoinPatch
from cambist.services.payouts.read import list_payouts
from tests.support.purse import Purse, person
from tests.support.till import Till

USDX = 10**6


@pytest.fixture
async def purse(db, clock, ids):
    return Purse(await Till(db, clock, ids).open())


async def approve(purse, target=None, **fields):
    body = {"chain": "memory", "address": target or person("safe"), **fields}
    request = msgspec.convert(body, ApprovalRequest)
    async with purse.db.transaction() as conn:
        return await approved_addresses.approve(
            conn, purse.till.registry, purse.live.merchant_row, request, purse.ids, purse.clock.now()
        )


async def rule(purse, threshold="100", target=None, **fields):
    """Send what is above the threshold to the safe."""
    patch = {
        "autopayoutPolicy": "limit",
        "autopayoutThreshold": threshold,
        "autopayoutAddress": target or person("safe"),
        **fields,
    }
    async with purse.db.transaction() as conn:
        return await coins.change_settings(
            conn,
            purse.till.registry,
            purse.live,
            Coin(chain="memory", token="USDX"),
            msgspec.convert(patch, CoinPatch),
            purse.clock.now(),
        )


async def run(purse):
    return await auto_payout.run(purse.db, purse.desk, purse.till.rates, Hints(None))


async def payouts(purse):
    async with purse.db.transaction() as conn:
        page = await list_payouts(
            conn, purse.live.project_row, status=None, chain=None, token=None, batch_id=None, page=1, limit=100
        )
    return page.payouts


@pytest.fixture
async def ruled(purse):
    await approve(purse)
    await rule(purse)
    return purse


async def test_what_is_above_the_threshold_is_sent_to_the_address(ruled):
    await ruled.fund(150 * USDX)
    assert await run(ruled) == 1
    (payout,) = await payouts(ruled)
    assert (payout.kind, payout.units, payout.target) == ("auto_payout", 50 * USDX, person("safe"))
    assert await ruled.balances() == {
        "available": 100 * USDX,
        "pending": 50 * USDX,
        "custody_wallet": 150 * USDX,
    }
    assert await run(ruled) == 0


async def test_at_the_threshold_nothing_is_sent(ruled):
    await ruled.fund(100 * USDX)
    assert await run(ruled) == 0


async def test_what_is_not_worth_a_collection_waits_until_it_is(ruled):
    await ruled.fund(104 * USDX)
    assert await run(ruled) == 0
    await ruled.fund(1 * USDX)
    assert await run(ruled) == 1


async def test_without_a_price_everything_above_the_threshold_is_sent(ruled):
    ruled.till.prices.board.clear()
    await ruled.fund(100 * USDX + 1)
    assert await run(ruled) == 1


async def test_the_next_waits_until_the_one_before_has_ended(ruled):
    await ruled.fund(150 * USDX)
    await run(ruled)
    await ruled.fund(30 * USDX)
    assert await run(ruled) == 0
    (first,) = await payouts(ruled)
    await ruled.happens("broadcast", first)
    assert await run(ruled) == 0
    await ruled.happens("final", first)
    assert await run(ruled) == 1
    assert [payout.units for payout in await payouts(ruled)] == [30 * USDX, 50 * USDX]


async def test_many_workers_at_once_send_it_once(ruled):
    await ruled.fund(150 * USDX)
    assert sum(await asyncio.gather(*(run(ruled) for _ in range(16)))) == 1
    assert len(await payouts(ruled)) == 1


async def test_it_stops_when_the_approval_is_taken_back(purse):
    approved = await approve(purse)
    await rule(purse)
    await purse.fund(150 * USDX)
    async with purse.db.transaction() as conn:
        await approved_addresses.withdraw_approval(
            conn, purse.live.merchant_row, approved.approval_id, purse.clock.now()
        )
    assert await run(purse) == 0
    async with purse.db.autocommit() as conn:
        found = await coins.list_coins(conn, purse.till.registry, purse.live.merchant_row, "live")
    assert {coin.autopayout_policy for coin in found} == {"off"}


async def test_limits_of_the_operator_cut_it_into_pieces(ruled):
    await ruled.settings(limits={"memory/USDX": {"perTransaction": "20", "perDay": "30"}})
    await ruled.fund(150 * USDX)
    for units in (20, 10):
        assert await run(ruled) == 1
        newest = (await payouts(ruled))[0]
        assert newest.units == units * USDX
        await ruled.happens("final", newest, tx_id=newest.payout_id)
    assert await run(ruled) == 0


@pytest.mark.parametrize(
    "settings", [{"payoutEnabled": False}, {"cpt": {"floor": 0, "initialAllowance": 0}}, {"targets": {"memory": []}}]
)
async def test_what_the_operator_does_not_allow_is_tried_again_later(ruled, settings):
    await ruled.fund(150 * USDX)
    if "cpt" in settings:
        await ruled.queue("payout", 1 * USDX)
        await ruled.fund(1 * USDX)
    await ruled.settings(**settings)
    assert await run(ruled) == 0
    await ruled.settings(payoutEnabled=True, cpt={"floor": -1_000_000}, targets={})
    assert await run(ruled) == 1


async def test_a_coin_that_is_not_enabled_is_not_sent(ruled):
    await ruled.fund(150 * USDX)
    async with ruled.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE coin_settings SET enabled = false")
    assert await run(ruled) == 0


async def test_an_address_is_approved_once_and_is_checked(purse):
    first = await approve(purse, label="Safe")
    again = await approve(purse, label="The safe")
    assert (again.approval_id, again.label) == (first.approval_id, "The safe")
    with pytest.raises(InvalidError) as error:
        await approve(purse, "nowhere")
    assert error.value.code == "INVALID_ADDRESS"
    with pytest.raises(NotFoundError):
        async with purse.db.transaction() as conn:
            await approved_addresses.withdraw_approval(conn, purse.live.merchant_row, "apa_x", purse.clock.now())


async def test_approved_addresses_are_limited(purse, monkeypatch):
    monkeypatch.setattr(approved_addresses, "ADDRESSES_MAX", 2)
    for name in ("a", "b"):
        await approve(purse, person(name))
    with pytest.raises(ConflictError) as error:
        await approve(purse, person("c"))
    assert error.value.code == "TOO_MANY_APPROVED_ADDRESSES"
    assert (await approve(purse, person("a"), label="again")).label == "again"
