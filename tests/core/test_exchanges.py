"""Swaps of a merchant's money, from what was asked for to what the chain shows."""

import asyncio
from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import example
from hypothesis import given as drawn
from hypothesis import strategies as st
from sqlalchemy import select
from structlog.testing import capture_logs

from cambist.db.models import OutboundIntent
from cambist.plugin import ExchangeRefusedError, Movement, ProviderUnavailableError
from cambist.services.accounting.ledger import asset_key
from cambist.services.exchanges.calls import fee_difference
from cambist.services.exchanges.rows import ExchangeRow
from cambist.services.exchanges.runner import CLAIM, claim_due, follow_exchange
from cambist.services.exchanges.worker import later
from cambist.services.sending.queue import acts
from cambist.services.sending.queue.listing import find_intent
from cambist.testing.memory import Output
from tests.support.exchange_env import MEM, USDX, ExchangeEnv
from tests.support.exchanges import ROUTER
from tests.support.fair import LIES
from tests.support.waiting import waits_for_a_lock

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def ends_failed_with_all_back(env, txn_id, units=60 * USDX, symbol="USDX"):
    row = await env.go_on(txn_id, rounds=400, seconds=20)
    assert row.status == "failed"
    balance = await env.balance_of("memory", symbol)
    assert (balance.available, balance.pending) == (units, 0)
    assert await env.allowance() == 0
    await env.check_all_books()
    return row


async def test_a_swap_gives_the_token_and_credits_what_the_chain_shows_and_leaves_no_allowance(env):
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    assert (await env.balance_of("memory", "USDX")).pending == 60 * USDX
    row = await env.go_on(txn_id)
    assert (row.status, row.output_units) == ("succeeded", row.units_min + 7)
    given, came = await env.balance_of("memory", "USDX"), await env.balance_of("memory", "MEM")
    assert (given.available, given.pending) == (40 * USDX, 0)
    assert (came.available, came.held) == (row.output_units, 0)
    assert row.dest_tx_id == row.tx_id
    assert await env.allowance() == 0
    assert await env.events() == ["exchange.succeeded"]
    assert await env.credits_used() == 100
    await env.check_all_books()


async def test_what_an_operator_has_tried_again_stays_so_until_its_call_is_built(env):
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    intent_pk = (await env.row(txn_id)).intent_pk
    retried = select(OutboundIntent.reason, OutboundIntent.retried_at).where(OutboundIntent.id == intent_pk)
    async with env.db.autocommit() as conn:
        while (await conn.execute(retried)).one().reason != "call":
            await env.engines["memory"].tick()
            await env.mine()
    async with env.db.transaction() as conn:
        intent_id = (
            await conn.execute(select(OutboundIntent.intent_id).where(OutboundIntent.id == intent_pk))
        ).scalar()
        await acts.retry(conn, await find_intent(conn, intent_id), at := env.clock.now())
    await env.engines["memory"].tick()
    async with env.db.transaction() as conn:
        assert (await conn.execute(retried)).one() == ("call", at)
    assert (await env.go_on(txn_id)).status == "succeeded"
    async with env.db.transaction() as conn:
        assert (await conn.execute(retried)).one().retried_at is None
    await env.check_all_books()


async def test_what_comes_above_the_quote_is_credited_whole(env):
    env.chain.bonus = 10**18
    await env.opened(usdx=100 * USDX)
    row = await env.go_on(await env.ask("memory/USDX", 60 * USDX, "memory/MEM"))
    assert row.output_units == row.units_min + 10**18 > row.quoted_units
    assert (await env.balance_of("memory", "MEM")).available == row.output_units
    await env.check_all_books()


async def test_native_coin_is_swapped_without_any_allowance(env):
    await env.opened(mem=5 * MEM)
    row = await env.go_on(await env.ask("memory/MEM", 2 * MEM, "memory/USDX"))
    assert (row.status, row.approvals) == ("succeeded", 0)
    assert (await env.balance_of("memory", "USDX")).available == row.output_units
    await env.check_all_books()


async def test_coin_that_nobody_tells_of_is_credited_by_the_balance_once(env):
    env.routers["memory"].tells_inner_coin = False
    await env.opened(usdx=100 * USDX)
    row = await env.go_on(await env.ask("memory/USDX", 60 * USDX, "memory/MEM"))
    assert row.status == "succeeded"
    assert row.unseen_units == row.output_units == row.units_min + 7
    assert (await env.balance_of("memory", "MEM")).available == row.output_units
    await env.check_all_books()


async def test_coin_that_was_credited_by_the_balance_goes_with_its_block(env):
    env.routers["memory"].tells_inner_coin = False
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    row = await env.go_on(txn_id)
    depth = 5
    env.chain.reorg(depth)
    await env.mine(3)
    await env.tick()
    assert (await env.row(txn_id)).status == "pending"
    assert (await env.balance_of("memory", "MEM")).available == 0
    row = await env.go_on(txn_id)
    assert (await env.balance_of("memory", "MEM")).available == row.output_units
    await env.check_all_books()


async def test_an_output_that_never_came_is_credited_to_nobody_and_told_to_the_operator(env):
    await env.opened(mem=5 * MEM)
    env.routers["memory"].pays_nothing = True
    txn_id = await env.ask("memory/MEM", 2 * MEM, "memory/USDX")
    await env.go_on(txn_id, until="arriving")
    for _ in range(8):
        await env.mine()
        await env.tick()
    assert (await env.row(txn_id)).step == "arriving"
    assert env.exchange_alerts["output_unclear"]
    assert (await env.balance_of("memory", "USDX")).available == 0


@pytest.mark.parametrize("left", [1, 10**12])
async def test_an_allowance_that_was_left_by_somebody_is_set_to_zero_first(env, left):
    await env.opened(usdx=100 * USDX)
    token = env.asset_of("memory", "USDX").token
    env.chain.accounts.picky.add(token.contract)
    env.chain.accounts.allow(env.wallet.address, ROUTER, token.contract, left, env.chain.height)
    row = await env.go_on(await env.ask("memory/USDX", 60 * USDX, "memory/MEM"))
    assert row.status == "succeeded"
    assert await env.allowance() == 0
    await env.check_all_books()


async def test_exchanges_of_one_wallet_token_and_provider_take_turns_and_others_go_on(env):
    await env.opened(usdx=100 * USDX, mem=5 * MEM)
    txn_ids = [await env.ask("memory/USDX", 20 * USDX, "memory/MEM") for _ in range(3)]
    coin = await env.ask("memory/MEM", MEM, "memory/DAIX")
    most = 0
    for _ in range(200):
        await env.tick()
        rows = [await env.row(one) for one in (*txn_ids, coin)]
        most = max(most, sum(row.has_turn for row in rows))
        assert await env.allowance() <= 20 * USDX
        if all(row.step == "ended" for row in rows):
            break
        await env.mine()
    assert {row.status for row in rows} == {"succeeded"}
    assert most == 1
    assert (await env.balance_of("memory", "USDX")).available == 40 * USDX
    await env.check_all_books()


async def test_what_the_chain_would_refuse_is_never_sent_and_all_of_it_comes_back(env):
    await env.opened(usdx=60 * USDX)
    env.chain.accounts.refuses = "paused"
    row = await ends_failed_with_all_back(env, await env.ask("memory/USDX", 60 * USDX, "memory/MEM"))
    assert row.error == "The chain would refuse it: paused"
    assert (row.tx_id, row.approvals) == (None, 0)
    assert await env.credits_used() == 0
    assert await env.events() == ["exchange.failed"]


async def test_who_is_refused_lets_others_go_first_unless_an_allowance_is_there_for_it(env):
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    for times, is_allowed in ((1, False), (2, True)):
        while bool(await env.allowance()) is not is_allowed:
            await env.tick()
            await env.mine()
        env.chain.accounts.refuses = "paused"
        while (row := await env.row(txn_id)).attempts < times:
            await env.mine(seconds=20)
            await env.tick()
        assert (row.has_turn, row.waits_for, row.approvals) == (is_allowed, "provider", int(is_allowed))
        env.chain.accounts.refuses = None
    assert (await env.go_on(txn_id, seconds=20)).status == "succeeded"


@pytest.mark.parametrize("taken_less, skimmed", [(1, 0), (0, 2)])
async def test_a_token_that_keeps_a_share_of_each_transfer_is_found_out_before_anything_is_signed(
    env, taken_less, skimmed
):
    await env.opened(usdx=60 * USDX)
    env.chain.accounts.takes_less, env.chain.skims_percent = taken_less, skimmed
    row = await ends_failed_with_all_back(env, await env.ask("memory/USDX", 60 * USDX, "memory/DAIX"))
    assert "The chain would refuse it: it would " in row.error
    assert (row.tx_id, row.approvals) == (None, 0)


async def test_a_call_that_pays_the_platform_more_than_was_told_is_refused_before_anything_is_signed(env):
    await env.set(exchanges={"swapFeeBps": 50})
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/DAIX")

    def paying(units):
        contract = env.asset_of("memory", "USDX").token.contract
        env.chain.fees_paid = [Output(contract=contract, recipient=env.station, amount=units)]

    paying(300_001)
    with capture_logs() as logs:
        while (row := await env.row(txn_id)).attempts == 0:
            await env.tick()
            await env.mine(seconds=3)
    assert (row.step, row.approvals, row.tx_id) == ("queued", 0, None)
    (told,) = [log["reason"] for log in logs if log["event"] == "exchange_trial_refused"]
    assert told == (
        "The chain would refuse it: it would pay the platform 300001 of what is given and 0 of what comes out:"
        " more than the 50 bps that were told"
    )
    paying(300_000)
    await env.go_on(txn_id)
    await env.check_all_books()
    asset = asset_key("memory", env.asset_of("memory", "USDX").token.contract)
    async with env.db.autocommit() as conn:
        owed = await conn.exec_driver_sql(
            "SELECT balance FROM ledger_accounts WHERE merchant_pk IS NULL AND purpose = 'float' AND asset = $1",
            (asset,),
        )
        assert int(owed.scalar_one()) == 300_000


AMOUNTS = st.integers(1, 2**96)


@drawn(
    given=AMOUNTS, came=AMOUNTS, of_source=st.integers(0, 2**90), of_dest=st.integers(0, 2**90), bps=st.integers(0, 300)
)
@example(given=10_000, came=10_000, of_source=30, of_dest=0, bps=30)
@example(given=10_000, came=9_970, of_source=0, of_dest=30, bps=30)
@example(given=10_000, came=10_000, of_source=0, of_dest=1, bps=0)
def test_no_more_moves_as_the_platforms_fee_than_the_share_that_was_told(given, came, of_source, of_dest, bps):
    asked = {"source_contract": "usdx", "dest_contract": "daix", "recipient": "wallet", "units": given, "fee_units": 0}
    row = ExchangeRow(**dict.fromkeys(ExchangeRow.__struct_fields__) | asked | {"fee_bps": bps})
    moved = [
        Movement(contract=contract, source="router", recipient=recipient, amount=amount)
        for contract, recipient, amount in (
            ("usdx", "platform", of_source), ("daix", "platform", of_dest), ("daix", "wallet", came)
        )
    ]  # fmt: skip
    told = fee_difference(row, moved, "platform")
    is_more = of_source * (came + of_dest) + of_dest * given > Fraction(bps, 10_000) * given * (came + of_dest)
    is_left_out = bps > 0 and not of_source and not of_dest
    assert (told is not None) == (is_more or is_left_out)
    moved.append(Movement(contract="memx", source="router", recipient="platform", amount=1))
    assert fee_difference(row, moved, "platform") is not None


async def test_a_call_that_fails_in_its_block_gives_everything_back_and_takes_its_allowance_back(env):
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    await env.go_on(txn_id, until="sent")
    env.chain.accounts.refuses = "too late"
    row = await ends_failed_with_all_back(env, txn_id)
    assert row.tx_id is not None
    assert row.approvals == 2
    assert await env.credits_used() == 100


async def test_a_stuck_call_is_cancelled_in_its_nonce_and_never_outbid(env):
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    await env.go_on(txn_id, until="sent")
    env.chain.fees.base_price *= 3
    row = await ends_failed_with_all_back(env, txn_id)
    assert "did not take it in time" in row.error
    assert env.alerts["replaced"] >= 1


async def test_an_exchange_waits_for_its_price_and_goes_on_when_that_is_back(env):
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    env.swap_service.fee_bps = 3_000
    for _ in range(10):
        await env.tick()
        await env.mine(seconds=20)
    row = await env.row(txn_id)
    assert (row.step, row.waits_for, row.approvals) == ("queued", "provider", 0)
    env.swap_service.fee_bps = 0
    assert (await env.go_on(txn_id, seconds=20)).status == "succeeded"


async def test_an_exchange_whose_price_never_comes_back_gives_up_in_time(env):
    await env.set(exchanges={"validMinutes": 10})
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    env.swap_service.fee_bps = 3_000
    row = await ends_failed_with_all_back(env, txn_id)
    assert row.error == "The least output that was promised could not be had in time."
    assert timedelta(minutes=10) <= row.finished_at - row.created_at < timedelta(minutes=12)


async def test_a_call_that_does_something_else_is_never_signed_and_an_honest_one_after_it_is(env, monkeypatch):
    """Whichever it is: one lie after the other, and nothing was allowed or sent when the next call is asked for."""
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    env.swaps.reader = Anything()
    build, lies, seen = env.swaps.build, sorted(LIES), []

    async def lie(*args):
        row = await env.row(txn_id)
        seen.append((row.tx_id, row.approvals))
        env.swap_service.lie = dict(LIES[lies.pop()]) if lies else {}
        return await build(*args)

    monkeypatch.setattr(env.swaps, "build", lie)
    row = await env.go_on(txn_id, seconds=20)
    assert seen[: len(LIES) + 1] == [(None, 0)] * (len(LIES) + 1)
    assert env.exchange_alerts == {"call_differs": len(LIES) - 1, "call_not_read": 1}
    assert (row.status, row.attempts) == ("succeeded", 0)
    await env.check_all_books()


class Anything:
    """A provider's own check that finds nothing wrong: it is as hostile as its server."""

    def read(self, *_):
        return self

    def __ne__(self, other):
        return False

    __hash__ = None


async def test_a_provider_that_is_away_or_broken_only_makes_it_wait(env, monkeypatch):
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")
    build, errors = env.swaps.build, [ProviderUnavailableError("away"), RuntimeError("a bug"), TimeoutError()]

    async def broken(*args):
        if errors:
            raise errors.pop()
        return await build(*args)

    monkeypatch.setattr(env.swaps, "build", broken)
    for left in (2, 1, 0):
        while len(errors) > left:
            await env.tick()
            await env.mine(seconds=20)
        assert (await env.row(txn_id)).waits_for == "provider"
    row = await env.go_on(txn_id, seconds=20)
    assert (row.status, row.attempts) == ("succeeded", 0)


async def test_a_provider_that_will_not_do_it_ends_the_exchange(env, monkeypatch):
    await env.opened(usdx=60 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/MEM")

    async def refuse(*_):
        raise ExchangeRefusedError("no such pair any more", reason="unsupported")

    monkeypatch.setattr(env.swaps, "build", refuse)
    row = await ends_failed_with_all_back(env, txn_id)
    assert row.error == "fair will not do it: no such pair any more"


async def test_what_was_quoted_and_is_refused_is_asked_for_again_before_it_fails(env, monkeypatch):
    """It may be an odd answer of the moment, and limits move with the price of gas."""
    await env.opened(usdx=100 * USDX)
    build, reasons = env.swaps.build, ["refused", "amount_too_low"]

    async def refuse(*args):
        if reasons:
            raise ExchangeRefusedError("not like this", reason=reasons.pop())
        return await build(*args)

    monkeypatch.setattr(env.swaps, "build", refuse)
    row = await env.go_on(await env.ask("memory/USDX", 60 * USDX, "memory/MEM"), seconds=20)
    assert (row.status, row.attempts) == ("succeeded", 2)
    reasons += ["refused", "a reason of its own", "amount_too_high"]
    row = await env.go_on(await env.ask("memory/USDX", 40 * USDX, "memory/MEM"), seconds=20)
    assert (row.status, row.error, row.tx_id) == ("failed", "fair will not do it: not like this", None)
    assert reasons == []
    balance = await env.balance_of("memory", "USDX")
    assert (balance.available, balance.pending) == (40 * USDX, 0)


async def test_a_reorg_undoes_output_and_claim_together_and_both_come_again_once(env):
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 60 * USDX, "memory/DAIX")
    row = await env.go_on(txn_id)
    for again in (False, True):
        env.chain.reorg(6, mine_again=[row.tx_id] if again else [])
        await env.mine()
        await env.tick()
        undone = await env.row(txn_id)
        assert undone.status == "pending"
        assert (await env.balance_of("memory", "DAIX")).available == 0
        row = await env.go_on(txn_id)
        assert row.status == "succeeded"
        assert (await env.balance_of("memory", "DAIX")).available == row.output_units
        assert (await env.balance_of("memory", "USDX")).available == 40 * USDX
        await env.check_all_books()


async def test_of_many_who_claim_at_once_one_gets_each_exchange_and_nobody_waits_for_one_that_is_locked(env):
    await env.opened(mem=5 * MEM)
    for symbol in ("USDX", "DAIX"):
        await env.ask("memory/MEM", MEM, f"memory/{symbol}")
    async with env.db.transaction() as conn:
        found = await conn.exec_driver_sql("UPDATE exchanges SET due_at = $1 RETURNING id", (env.clock.now(),))
        pks = sorted(found.scalars())
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql("SELECT FROM exchanges FOR NO KEY UPDATE")
        claiming = asyncio.create_task(claim_due(env.follower))
        await waits_for_a_lock(conn, claiming)
        assert claiming.done()
        assert await claiming == []
    for _ in range(10):
        claimed = await asyncio.gather(*(claim_due(env.follower) for _ in range(8)))
        assert sorted(row.pk for rows in claimed for row in rows) == pks
        env.clock.advance(CLAIM.total_seconds())


async def test_many_followers_at_once_do_everything_once(env):
    await env.opened(usdx=100 * USDX, mem=5 * MEM)
    txn_ids = [
        await env.ask("memory/USDX", 10 * USDX, "memory/MEM"),
        await env.ask("memory/MEM", MEM, "memory/USDX"),
        await env.ask("memory/USDX", 20 * USDX, "other/USDX"),
    ]
    followers = [env.new_follower() for _ in range(4)]
    for _ in range(120):
        for engine in env.engines.values():
            await engine.tick()
        (due, *others) = [await claim_due(one) for one in followers]
        assert not any(others)
        # A claim that is had twice, as after a pause of a whole minute.
        await asyncio.gather(*(follow_exchange(one, row) for row in due for one in followers), return_exceptions=True)
        rows = [await env.row(one) for one in txn_ids]
        if all(row.step == "ended" for row in rows):
            break
        for deposit in env.routers["memory"].deposits():
            if deposit.deposit_id not in env.__dict__.setdefault("filled", set()):
                env.filled.add(deposit.deposit_id)
                env.other.fill(deposit)
        await env.mine()
    assert [row.status for row in rows] == ["succeeded"] * 3
    await env.check_all_books()


async def test_money_that_lies_on_one_time_addresses_is_collected_for_an_exchange(env):
    await env.opened(usdx=10 * USDX, collected=False)
    assert await env.held("memory", "USDX") == 0
    row = await env.go_on(await env.ask("memory/USDX", 10 * USDX, "memory/DAIX"))
    assert row.status == "succeeded"
    assert await env.held("memory", "DAIX") == row.output_units


async def test_no_call_is_built_before_its_money_is_there_though_its_exchange_is_looked_at(env):
    """It would be tried on a wallet without it, refused, and after some trials fail."""
    await env.opened(usdx=10 * USDX, collected=False)
    txn_id = await env.ask("memory/USDX", 10 * USDX, "memory/DAIX")
    await env.engines["memory"].tick()
    await later(env.follower, await env.row(txn_id), timedelta(0))
    (due,) = await claim_due(env.follower)
    await follow_exchange(env.follower, due)
    row = await env.row(txn_id)
    assert (row.has_turn, row.approvals, row.attempts) == (False, 0, 0)
    assert row.due_at > env.clock.now() + CLAIM
    assert (await env.go_on(txn_id)).status == "succeeded"
