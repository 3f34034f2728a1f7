"""Payouts whose recipient gets what a swap or a bridge brings: the money, the way, and one key for one payout."""

import asyncio
from decimal import Decimal

import pytest

from cambist.domain.intents import AskedBy
from cambist.domain.payouts import Status
from cambist.services.accounting.statements.kinds import type_of
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, ServiceError
from cambist.services.idempotency import Made
from cambist.services.listing import Part
from cambist.services.payouts import read
from cambist.services.payouts.cancel import ask_to_cancel
from cambist.services.payouts.read import payout_view
from tests.core.test_exchanges_faults import pruned
from tests.support.books import broken
from tests.support.payout_env import person
from tests.support.swap_payouts import SwapPayouts

USDX, MEM = 10**6, 10**18
ACROSS = {"chain": "other", "token": "USDX"}


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with SwapPayouts(db, clock, ids, tmp_path / "signer") as env:
        await env.decide(payoutSwapEnabled=True)
        await env.opened(usdx=100 * USDX, mem=5 * MEM)
        yield env
        await check_books(env)


async def check_books(env):
    """Check what must hold at every moment, but for deposits, whose money the environment releases by hand."""
    async with env.db.transaction() as conn:
        found = await broken(conn)
    assert not {name: rows for name, rows in found.items() if not name.startswith("held")}


async def count(env, table):
    async with env.db.autocommit() as conn:
        found = await conn.exec_driver_sql(f"SELECT count(*) FROM {table}")  # noqa: S608  the test's own
        return found.scalar_one()


async def has(env, chain, symbol, address=None):
    """Return what a stranger holds, as the chain says."""
    return await env.routers[chain].balance(address or person(), env.asset_of(chain, symbol).token)


@pytest.mark.slow
async def test_one_transaction_takes_the_wallets_token_and_pays_the_recipient_in_another(env):
    payout = await env.paid()
    assert (payout.status, payout.chain, payout.token, payout.to_address) == ("requested", "memory", "MEM", person())
    assert payout.units == payout.swap.units_min < payout.swap.quoted_units
    given = await env.balance_of("memory", "USDX")
    assert (given.available, given.pending) == (40 * USDX, 60 * USDX), "debited once, 1:1"
    await check_books(env)
    sent = await env.follow(payout, until="sent")
    assert (sent.status, sent.tx_id, sent.units) == ("broadcast", sent.swap.tx_id, payout.units)
    done = await env.follow(payout)
    assert (done.status, done.units, done.error) == ("completed", payout.units + 7, None)
    assert done.finished_at is not None
    assert await has(env, "memory", "MEM") == done.units, "what came is told, not what was quoted"
    given, coin = await env.balance_of("memory", "USDX"), await env.balance_of("memory", "MEM")
    assert (given.available, given.pending, coin.available, coin.held) == (40 * USDX, 0, 5 * MEM, 0)
    (name, data), *others = await env.told()
    assert (name, others) == ("payout.completed", []), "the exchange has no event of its own"
    assert (data["payoutId"], data["token"], data["txHash"]) == (payout.payout_id, "MEM", done.tx_id)
    assert data["swap"] == {
        "txnId": done.swap.txn_id,
        "kind": "swap",
        "srcChain": "memory",
        "srcToken": "USDX",
        "srcAmount": "60",
        "txHash": done.tx_id,
    }
    assert await env.usage() == [("swap", 100)], "one operation on the chain is billed once"
    await env.check_all_books()


@pytest.mark.slow
async def test_what_others_pay_the_recipient_in_the_same_block_is_no_part_of_it(env):
    payout = await env.paid()
    await env.follow(payout, until="sent")
    env.chain.transfer(env.info.native, person(), 1_000 * MEM)
    assert (await env.follow(payout)).units == payout.units + 7


@pytest.mark.slow
async def test_two_to_one_recipient_in_one_block_are_each_told_what_each_brought(env):
    coin = {"srcToken": "MEM", "srcAmount": "1", "token": "USDX"}
    payouts = [await env.paid(**coin), await env.paid(**coin)]
    done = [await env.follow(one) for one in payouts]
    first, second = [await env.chain.transaction(one.tx_id) for one in done]
    assert first.block == second.block
    assert sum(one.units for one in done) == await has(env, "memory", "USDX")


@pytest.mark.slow
async def test_of_coin_that_nobody_tells_of_the_balance_is_believed_up_to_the_quote(env):
    env.chain.tells_inner_coin = False
    alone = await env.paid(srcAmount="20")
    assert (await env.follow(alone)).units == alone.units + 7
    beside = await env.paid(srcAmount="20")
    await env.follow(beside, until="sent")
    env.chain.transfer(env.info.native, person(), 1_000 * MEM)
    assert (await env.follow(beside)).units == beside.swap.quoted_units


@pytest.mark.slow
async def test_where_no_node_knows_the_past_what_was_promised_is_told_of_coin_that_nobody_tells_of(env, monkeypatch):
    env.chain.tells_inner_coin = False
    payout = await env.paid()
    await env.follow(payout, until="sent")
    await pruned(env.chain, monkeypatch)
    assert (await env.follow(payout)).units == payout.units
    assert env.exchange_alerts == {"output_not_measured": 1}


@pytest.mark.slow
async def test_another_chains_recipient_is_paid_by_who_fills_the_bridge(env):
    payout = await env.paid(**ACROSS)
    assert payout.swap.kind == "bridge"
    await env.follow(payout, until="filling")
    await check_books(env)
    (deposit,) = env.routers["memory"].deposits()
    assert (deposit.recipient, deposit.refund_to) == (person(), env.wallet.address)
    fill = env.other.fill(deposit)
    done = await env.follow(payout)
    assert (done.status, done.tx_id, done.swap.tx_id) == ("completed", fill, deposit.tx_id)
    assert await has(env, "other", "USDX") == done.units == deposit.units_out
    ((name, data),) = await env.told()
    assert (name, data["txHash"], data["swap"]["txHash"]) == ("payout.completed", fill, deposit.tx_id)
    assert await env.usage() == [("bridge", 150)]
    assert (await env.balance_of("memory", "USDX")).pending == 0
    await env.check_all_books()


@pytest.mark.slow
async def test_a_payout_is_under_way_again_whose_fill_a_reorg_takes_back(env):
    payout = await env.paid(**ACROSS)
    await env.follow(payout, until="filling")
    (deposit,) = env.routers["memory"].deposits()
    env.other.fill(deposit)
    assert (await env.follow(payout)).status == "completed"
    env.other.reorg(6)
    await env.mine()
    await env.tick()
    again = await env.read(payout)
    assert (again.status, again.units, again.finished_at) == ("broadcast", payout.units, None)
    assert (await env.balance_of("memory", "USDX")).pending == 60 * USDX
    await env.check_all_books()
    fill = env.other.fill(deposit)
    done = await env.follow(payout)
    assert (done.status, done.tx_id, await has(env, "other", "USDX")) == ("completed", fill, deposit.units_out)
    assert [name for name, _ in await env.told()] == ["payout.completed"] * 2
    await env.check_all_books()


async def test_what_the_chain_refuses_is_never_sent_and_gives_source_and_credits_back(env):
    env.chain.accounts.refuses = "no luck today"
    payout = await env.paid()
    done = await env.follow(payout, rounds=400, seconds=20)
    assert (done.status, done.units, done.tx_id) == ("failed", payout.units, None)
    assert "no luck today" in done.error
    given = await env.balance_of("memory", "USDX")
    assert (given.available, given.pending) == (100 * USDX, 0)
    assert await has(env, "memory", "MEM") == 0
    ((name, data),) = await env.told()
    assert (name, data["payoutId"], data["error"]) == ("payout.failed", payout.payout_id, done.error)
    assert await env.usage() == [("swap", 100), ("return", 100)]
    await env.check_all_books()


async def test_one_that_is_cancelled_before_its_call_is_signed_gives_source_and_credits_back(env):
    payout = await env.paid()
    async with env.db.transaction() as conn:
        await ask_to_cancel(conn, payout.payout_id, AskedBy.SESSION, env.clock.now())
    assert (await env.read(payout)).status == "cancelling"
    done = await env.follow(payout)
    assert (done.status, done.error, done.tx_id) == ("cancelled", "It was cancelled by the merchant.", None)
    given = await env.balance_of("memory", "USDX")
    assert (given.available, given.pending, await has(env, "memory", "MEM")) == (100 * USDX, 0, 0)
    assert await env.usage() == [("swap", 100), ("return", 100)]
    await env.check_all_books()


@pytest.mark.slow
async def test_a_bridge_that_nobody_fills_gives_the_source_back_once(env):
    env.bridge.fill_s = 60
    payout = await env.paid(**ACROSS)
    await env.follow(payout, until="filling")
    await env.follow(payout, until="refunding", rounds=200)
    await check_books(env)
    assert (await env.read(payout)).status == "broadcast"
    (deposit,) = env.routers["memory"].deposits()
    env.chain.pay_back(deposit.refund_contract, deposit.refund_to, deposit.units)
    done = await env.follow(payout, seconds=70)
    assert (done.status, done.tx_id) == ("failed", deposit.tx_id)
    assert (await env.balance_of("memory", "USDX")).available == 100 * USDX
    assert [name for name, _ in await env.told()] == ["payout.failed"]
    await env.check_all_books()


@pytest.mark.slow
async def test_a_reorg_takes_a_completed_payout_back_until_its_call_is_mined_again(env):
    payout = await env.paid()
    done = await env.follow(payout)
    env.chain.reorg(5)
    await env.mine(3)
    await env.tick()
    again = await env.read(payout)
    assert (again.status, again.units, again.finished_at) == ("broadcast", payout.units, None)
    assert (await env.balance_of("memory", "USDX")).pending == 60 * USDX
    again = await env.follow(payout)
    assert (again.status, again.units) == ("completed", done.units)
    assert await has(env, "memory", "MEM") == done.units
    assert [name for name, _ in await env.told()] == ["payout.completed"] * 2
    await env.check_all_books()


@pytest.mark.slow
async def test_a_payout_says_what_it_waits_for_and_is_listed_with_its_swap(env):
    payout = await env.paid()
    env.swap_service.down = True
    for _ in range(12):
        await env.tick()
        await env.mine()
    waiting = payout_view(await env.read(payout), env.registry)
    assert (waiting.status, waiting.waits_for) == ("processing", "provider")
    env.swap_service.down = False
    await env.follow(payout, rounds=200, seconds=10)
    async with env.db.autocommit() as conn:
        page = await read.list_payouts(
            conn, env.project, Part(limit=5), status=Status.COMPLETED, chain="memory", token="MEM"
        )
    (view,) = [payout_view(one, env.registry) for one in page.items]
    assert (view.payout_id, view.waits_for, view.swap.src_amount, view.swap.src_token) == (
        payout.payout_id,
        None,
        "60",
        "USDX",
    )
    assert (view.swap.kind, view.swap.tx_hash) == ("swap", view.tx_hash)
    assert Decimal(view.swap.min_amount) < Decimal(view.amount) < Decimal(view.swap.expected_amount)
    assert Decimal(view.fee.amount) > 0
    assert view.fee.token == "MEM"


async def test_the_statement_tells_of_the_source_as_of_an_exchange(env):
    await env.follow(await env.paid())
    async with env.db.autocommit() as conn:
        kinds = await conn.exec_driver_sql("SELECT kind FROM ledger_transactions WHERE kind LIKE 'swap%'")
        assert {type_of(kind) for kind in kinds.scalars()} == {"exchange"}
        payouts = "SELECT count(*) FROM ledger_transactions WHERE kind LIKE 'payout%'"
        assert (await conn.exec_driver_sql(payouts)).scalar_one() == 0


@pytest.mark.slow
async def test_a_repetition_is_the_first_payout_and_asks_nobody(env):
    first = await env.pay("k")
    asked = env.swap_service.asked
    again = await env.pay("k", srcAmount="60.00")
    assert (again.replayed, again.resource) == (True, first.resource)
    assert env.swap_service.asked == asked
    assert await count(env, "exchanges") == 1
    for other in ({"srcAmount": "61"}, {"slippage": 2}, {"toAddress": person("bob")}):
        with pytest.raises(ConflictError, match="another content"):
            await env.pay("k", **other)
    await env.decide(payoutSwapEnabled=False, payoutEnabled=False)
    done = await env.follow(first.resource)
    assert (await env.pay("k")).resource == done, "the original result, whatever is switched off by now"


async def test_of_twins_with_one_key_one_pays_and_all_are_told_of_it(env):
    wanted = [await env.want("k") for _ in range(5)]
    made = await asyncio.gather(*map(env.start, wanted))
    assert sorted(one.replayed for one in made) == [False] + [True] * 4
    assert len({one.resource.payout_id for one in made}) == 1
    assert await count(env, "payouts") == await count(env, "exchanges") == 1
    assert (await env.balance_of("memory", "USDX")).pending == 60 * USDX


async def test_what_was_refused_leaves_its_key_free_and_nothing_behind(env):
    with pytest.raises(ForbiddenError) as error:
        await env.pay("k", srcAmount="100.000001")
    assert error.value.code == "INSUFFICIENT_BALANCE"
    assert await count(env, "payouts") == await count(env, "exchanges") == await count(env, "idempotency_keys") == 0
    assert await env.usage() == []
    assert not (await env.pay("k", srcAmount="100")).replayed


async def test_two_at_once_share_a_balance_that_covers_one(env):
    wanted = [await env.want() for _ in range(4)]
    done = await asyncio.gather(*map(env.start, wanted), return_exceptions=True)
    assert sum(isinstance(one, Made) for one in done) == 1
    assert {one.code for one in done if not isinstance(one, Made)} == {"INSUFFICIENT_BALANCE"}


@pytest.mark.slow
async def test_both_ways_at_once_nobody_waits_in_a_circle(env):
    there = [await env.want(srcAmount="5") for _ in range(6)]
    back = [await env.want(srcToken="MEM", srcAmount="0.5", token="USDX") for _ in range(6)]
    done = await asyncio.gather(*map(env.start, [one for pair in zip(there, back, strict=True) for one in pair]))
    assert len({one.resource.payout_id for one in done}) == 12
    assert (await env.balance_of("memory", "USDX")).pending == 30 * USDX
    assert (await env.balance_of("memory", "MEM")).pending == 3 * MEM


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"payoutSwapEnabled": False}, "SWAP_IN_PAYOUT_DISABLED"),
        ({"payoutEnabled": False}, "PAYOUT_DISABLED"),
        ({"exchanges": {"swapEnabled": False}}, "SWAP_DISABLED"),
        ({"limits": {"memory/USDX": {"perTransaction": "59"}}}, "PAYOUT_LIMIT_EXCEEDED"),
        ({"allowedAddresses": {"memory": [person("bob")]}}, "TARGET_NOT_ALLOWED"),
    ],
)
async def test_what_the_operator_decides_while_quotes_are_asked_for_counts(env, fields, code):
    wanted = await env.want()
    await env.decide(**fields)
    with pytest.raises(ServiceError) as error:
        await env.start(wanted)
    assert error.value.code == code
    assert (await env.balance_of("memory", "USDX")).available == 100 * USDX
    assert await count(env, "payouts") == 0


async def test_a_bad_bargain_is_refused_and_takes_nothing(env):
    env.swap_service.fee_bps = 900
    with pytest.raises(InvalidError) as error:
        await env.pay()
    assert error.value.code == "PRICE_BELOW_GUARD"
    assert await count(env, "payouts") == 0


@pytest.mark.slow
async def test_the_platforms_fee_comes_off_as_for_any_exchange(env):
    await env.decide(exchanges={"bridgeFeeBps": 100})
    payout = await env.paid(**ACROSS)
    await env.follow(payout, until="filling")
    (deposit,) = env.routers["memory"].deposits()
    assert deposit.units == 59_400_000
    await check_books(env)
    env.other.fill(deposit)
    done = await env.follow(payout)
    assert (done.status, done.swap.units) == ("completed", 60 * USDX)
    assert (await env.balance_of("memory", "USDX")).available == 40 * USDX
    await env.check_all_books()
