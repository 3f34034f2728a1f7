"""Exchanges whose call was sent and forgotten: they end by the transaction that used its nonce, as the chain has it."""

from __future__ import annotations

import pytest
from msgspec import structs
from sqlalchemy import update

from cambist.db.models import Exchange
from cambist.plugin import BridgeStatus
from cambist.services.intent_handlers import NOBODY_READS, intent_handlers
from cambist.services.sending import settling
from cambist.services.sending.engine import Engine
from cambist.services.sending.queue import acts, listing
from tests.support.exchange_env import MEM, USDX, ExchangeEnv

pytestmark = pytest.mark.slow


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


async def forget(env, row):
    """Have the database be one of before the call was signed."""
    async with env.db.transaction() as conn:
        for statement in (
            "DELETE FROM outbound_txs WHERE slot_pk IN (SELECT id FROM outbound_slots WHERE intent_pk = $1)",
            "DELETE FROM outbound_slots WHERE intent_pk = $1",
            "UPDATE outbound_intents SET state = 'waiting' WHERE id = $1",
            "UPDATE exchanges SET step = 'queued', tx_id = NULL, broadcast_at = NULL WHERE intent_pk = $1",
        ):
            await conn.exec_driver_sql(statement, (row.intent_pk,))
        await conn.exec_driver_sql(
            "UPDATE outbound_senders SET next_sequence = next_sequence - 1 WHERE address_pk = $1", (row.source_pk,)
        )


async def give_up(env, txn_id):
    """Have its time be over: it is to be cancelled, and the signer has signed it before."""
    for seconds in (10, 10, 3_700, 40, 3_700, 40):
        await env.mine(seconds=seconds)
        for _ in range(3):
            await env.tick()
    row = await env.row(txn_id)
    assert (row.status, row.waits_for) == ("pending", "signed_before")


async def sent_and_forgotten(env, sold, units, bought):
    txn_id = await env.ask(sold, units, bought)
    row = await env.go_on(txn_id, until="sent")
    await env.mine(3)
    await forget(env, row)
    return txn_id, row


async def settle(env, row, tx_id):
    async with env.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT intent_id FROM outbound_intents WHERE id = $1", (row.intent_pk,))
        named = await listing.find_intent(conn, found.scalar_one())
        assert await acts.ask_to_settle(conn, named, tx_id, env.clock.now())
    return named.intent_id


async def refusal(env, intent_id):
    async with env.db.transaction() as conn:
        return (await listing.find_intent(conn, intent_id)).settle_refusal


@pytest.mark.parametrize("why", ["its time is over", "the chain would refuse it"])
async def test_a_swap_that_may_have_been_sent_is_not_given_up_and_ends_by_its_own_call(env, why):
    await env.opened(mem=5 * MEM)
    txn_id, row = await sent_and_forgotten(env, "memory/MEM", 2 * MEM, "memory/USDX")
    if why == "the chain would refuse it":
        env.chain.accounts.refuses = "never again"
    await give_up(env, txn_id)
    assert (await env.balance_of("memory", "MEM")).pending == 2 * MEM
    assert env.alerts["cancel_unproven"] == 1
    await settle(env, row, row.tx_id)
    ended = await env.go_on(txn_id)
    assert (ended.status, ended.tx_id, ended.dest_tx_id) == ("succeeded", row.tx_id, row.tx_id)
    assert ended.output_units >= ended.units_min
    given, came = await env.balance_of("memory", "MEM"), await env.balance_of("memory", "USDX")
    assert (given.available, given.pending) == (3 * MEM, 0)
    assert came.available == ended.output_units
    assert await env.events() == ["exchange.succeeded"]
    await env.check_all_books()


async def test_a_bridge_that_was_sent_and_forgotten_is_followed_by_its_receipt(env):
    await env.opened(usdx=100 * USDX)
    txn_id, row = await sent_and_forgotten(env, "memory/USDX", 50 * USDX, "other/USDX")
    await give_up(env, txn_id)
    await settle(env, row, row.tx_id)
    await env.go_on(txn_id, until="filling")
    await env.tick()
    (deposit,) = [one for one in env.routers["memory"].deposits() if one.tx_id == row.tx_id]
    env.other.fill(deposit)
    ended = await env.go_on(txn_id)
    assert (ended.status, ended.is_closed) == ("succeeded", True)
    assert (await env.balance_of("memory", "USDX")).pending == 0
    assert (await env.balance_of("other", "USDX")).available == ended.output_units
    await env.check_all_books()


@pytest.mark.parametrize("fill_from", ["as of a backup", "as of a fresh call"])
async def test_a_forgotten_bridge_that_was_filled_long_ago_ends_by_that_fill(env, fill_from):
    """Its fill is deeper than hashes are kept, and nobody can fill any more: only what was before tells."""
    await env.opened(usdx=100 * USDX)
    txn_id, row = await sent_and_forgotten(env, "memory/USDX", 50 * USDX, "other/USDX")
    (deposit,) = [one for one in env.routers["memory"].deposits() if one.tx_id == row.tx_id]
    fill = env.other.fill(deposit)
    await env.mine(2)
    async with env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE exchanges SET fill_from = NULL WHERE txn_id = $1", (txn_id,))
    while env.other.seen_time() <= deposit.fill_deadline:
        await env.mine(20)
    await env.mine(env.other.info.hashes_kept)
    await give_up(env, txn_id)
    if fill_from == "as of a fresh call":
        async with env.db.transaction() as conn:
            change = "UPDATE exchanges SET fill_from = $2 WHERE txn_id = $1"
            await conn.exec_driver_sql(change, (txn_id, env.other.height))
    await settle(env, row, row.tx_id)
    ended = await env.go_on(txn_id)
    assert (ended.status, ended.dest_tx_id, ended.output_units) == ("succeeded", fill, deposit.units_out)
    assert ended.fill_from < env.other.height - env.other.info.hashes_kept
    assert (await env.balance_of("memory", "USDX")).pending == 0
    assert (await env.balance_of("other", "USDX")).available == ended.output_units
    await env.check_all_books()


@pytest.mark.parametrize("told", ["nothing since", "another call"])
async def test_a_bridge_whose_earlier_call_is_mined_after_all_is_followed_from_before_that_call(env, told):
    """It was taken for dead, and a fresh call was built for it; that one waits, or was broadcast."""
    await env.opened(usdx=100 * USDX)
    txn_id = await env.ask("memory/USDX", 50 * USDX, "other/USDX")
    row = await env.go_on(txn_id, until="sent")
    await env.mine()
    (deposit,) = [one for one in env.routers["memory"].deposits() if one.tx_id == row.tx_id]
    fill = env.other.fill(deposit)
    await env.mine(5, seconds=10)
    fresh = {"step": "queued"} if told == "nothing since" else {"tx_id": "0x" + "12" * 32}
    async with env.db.transaction() as conn:
        change = update(Exchange).where(Exchange.txn_id == txn_id)
        await conn.execute(change.values(fill_from=env.other.height, **fresh))
    ended = await env.go_on(txn_id)
    assert (ended.status, ended.tx_id, ended.dest_tx_id) == ("succeeded", row.tx_id, fill)
    assert ended.fill_from < env.other.height - 5
    await env.check_all_books()


async def test_a_provider_is_asked_for_the_fill_before_an_expired_deposit_is_waited_for(env, monkeypatch):
    """However new the deposit is, as one that was named just now: nothing looks for a fill afterwards."""
    await env.opened(usdx=100 * USDX)
    txn_id, deposit = await env.bridged()
    fill = env.other.fill(deposit)
    env.other.mine()
    while env.other.seen_time() <= deposit.fill_deadline:
        await env.mine(20, seconds=0)
    await env.mine(20, seconds=0)
    async with env.db.transaction() as conn:
        change = "UPDATE exchanges SET searched_to = $2, broadcast_at = $3, due_at = $3 WHERE txn_id = $1"
        await conn.exec_driver_sql(change, (txn_id, env.other.height, env.clock.now()))

    async def status(*_):
        return BridgeStatus(state="filled", tx_id=fill)

    monkeypatch.setattr(env.bridge, "status", status)
    ended = await env.go_on(txn_id, rounds=10)
    assert (ended.status, ended.dest_tx_id) == ("succeeded", fill)
    await env.check_all_books()


async def test_what_no_reader_can_read_decides_nothing_until_one_can(env):
    """As where its provider was switched off meanwhile."""
    await env.opened(mem=5 * MEM)
    txn_id, row = await sent_and_forgotten(env, "memory/MEM", 2 * MEM, "memory/USDX")
    await give_up(env, txn_id)
    context = structs.replace(env.engines["memory"].context, handlers=intent_handlers(env.ids, NOBODY_READS))
    intent_id = await settle(env, row, row.tx_id)
    await Engine(context, env.keys).tick()
    assert await refusal(env, intent_id) == settling.UNCLEAR
    assert (await env.balance_of("memory", "MEM")).pending == 2 * MEM
    await settle(env, row, row.tx_id)
    assert (await env.go_on(txn_id)).status == "succeeded"
    await env.check_all_books()


async def test_a_swap_whose_nonce_was_used_by_a_call_on_other_terms_gives_its_money_back(env):
    """It was never built for it, as whatever is built is compared with the terms."""
    await env.opened(mem=5 * MEM)
    txn_id, row = await sent_and_forgotten(env, "memory/MEM", 2 * MEM, "memory/USDX")
    await give_up(env, txn_id)
    async with env.db.transaction() as conn:
        other = await env.stranger(7)
        await conn.exec_driver_sql("UPDATE exchanges SET recipient = $2 WHERE txn_id = $1", (txn_id, other))
    await settle(env, row, row.tx_id)
    ended = await env.go_on(txn_id)
    assert (ended.status, ended.tx_id) == ("failed", None)
    balance = await env.balance_of("memory", "MEM")
    assert (balance.available, balance.pending) == (5 * MEM, 0)
    assert await env.events() == ["exchange.failed"]


@pytest.mark.parametrize("changed", ["dest_chain", "dest_contract", "units_min"])
async def test_a_call_that_gives_the_same_and_is_read_otherwise_decides_nothing(env, changed):
    """By then a chain had another name, a token another contract, or the reader another version."""
    await env.opened(usdx=100 * USDX)
    txn_id, row = await sent_and_forgotten(env, "memory/USDX", 50 * USDX, "other/USDX")
    await give_up(env, txn_id)
    values = {"dest_chain": "renamed", "dest_contract": "renamed", "units_min": row.units_min * 2}
    change = update(Exchange).where(Exchange.txn_id == txn_id)
    async with env.db.transaction() as conn:
        await conn.execute(change.values({changed: values[changed]}))
    intent_id = await settle(env, row, row.tx_id)
    await env.engines["memory"].tick()
    assert ((await env.row(txn_id)).status, await refusal(env, intent_id)) == ("pending", settling.UNCLEAR)
    assert (await env.balance_of("memory", "USDX")).pending == 50 * USDX
    async with env.db.transaction() as conn:
        await conn.execute(change.values({changed: getattr(row, changed)}))
    await settle(env, row, row.tx_id)
    assert (await env.go_on(txn_id, until="filling")).tx_id == row.tx_id
    await env.check_all_books()
