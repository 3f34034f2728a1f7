"""Transfers that were signed, perhaps sent, and forgotten by the database, and how an operator ends them."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from cambist.services.sending.engine import Engine
from cambist.services.sending.queue import acts, listing
from tests.support.anvil_treasury import anvil_treasury
from tests.support.dated_treasury import dated_treasury
from tests.support.fragile import Fragile, KilledError, Life
from tests.support.plays import play
from tests.support.treasury import Treasury
from tests.support.tron_treasury import tron_treasury

AMOUNT = 5_000_000
FUNDS = 100 * AMOUNT
OPENED = {"memory": Treasury, "dated": dated_treasury, "anvil": anvil_treasury, "tron": tron_treasury}
NUMBERED = ["memory", "anvil"]


@asynccontextmanager
async def opened(kind, *parts):
    """Open one whose wallet holds money and gas, and has sent before; the books agree with the chain afterwards."""
    async with OPENED[kind](*parts) as treasury:
        treasury.symbol = "USDT" if kind in {"anvil", "tron"} else "USDX"
        if treasury.symbol == "USDT":
            await treasury.open()
            await treasury.receive_many("USDT", [FUNDS])
            await treasury.pay_out("USDT", 1, await treasury.stranger(999))
            await treasury.work(treasury.engine())
        else:
            await play(treasury, Treasury.open_paid, ("USDX", FUNDS))
            await play(treasury, Treasury.pay_somebody)
        yield treasury
        await treasury.check_books()


async def row_of(treasury, payout_id):
    async with treasury.db.autocommit() as conn:
        wanted = "SELECT i.* FROM outbound_intents i JOIN payouts p ON p.intent_pk = i.id WHERE p.payout_id = $1"
        return (await conn.exec_driver_sql(wanted, (payout_id,))).one()


async def txs_of(treasury, payout_id):
    async with treasury.db.autocommit() as conn:
        wanted = (
            "SELECT t.tx_id FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
            " JOIN payouts p ON p.intent_pk = s.intent_pk WHERE p.payout_id = $1 ORDER BY t.id"
        )
        return list((await conn.exec_driver_sql(wanted, (payout_id,))).scalars())


async def settle(treasury, payout_id, tx_id):
    intent_id = (await row_of(treasury, payout_id)).intent_id
    async with treasury.db.transaction() as conn:
        one = await listing.find_intent(conn, intent_id)
        return await acts.ask_to_settle(conn, one, tx_id, treasury.clock.now())


async def status(treasury, payout_id):
    return (await treasury.payout(payout_id)).status


async def money(treasury):
    """Return what is available, and what is pending."""
    balance = await treasury.balance(treasury.symbol)
    return balance.available, balance.pending


async def events(treasury, payout_id):
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT event FROM webhook_events WHERE resource_id = $1", (payout_id,))
        return list(rows.scalars())


async def sent_and_forgotten(treasury, to_address, *, mined=True):
    """Pay out, have the database be one of before that, and ask to cancel it; return the payout and its transaction."""
    payout_id = await treasury.pay_out(treasury.symbol, AMOUNT, to_address)
    engine = treasury.engine()
    while not await txs_of(treasury, payout_id):
        await engine.tick()
    (tx_id,) = await txs_of(treasury, payout_id)
    if mined:
        await treasury.mine(treasury.info.confirmations + 2)
    await treasury.forget_sending(payout_id)
    await cancelling(treasury, payout_id)
    return payout_id, tx_id


async def found_by_audit(treasury):
    """Return what settlements have found, as the audit log has it."""
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT subject, actor_kind, details ->> 'found' AS found, details ->> 'tx_hash' AS tx_id"
            " FROM audit_entries WHERE action = 'outbound.settled' ORDER BY id"
        )
        return [tuple(row) for row in rows]


async def cancelling(treasury, payout_id):
    await treasury.cancel(payout_id)
    await treasury.engine().tick()
    row = await row_of(treasury, payout_id)
    assert (row.state, row.reason) == ("waiting", "signed_before")
    assert await status(treasury, payout_id) == "cancelling"


async def signed_and_lost(treasury, payout_id):
    """Have the engine die when the payout is signed, and nothing stored; return what was asked, and the answers."""
    signed = []

    class DiesSigning(Fragile):
        async def sign(self, requests):
            signed.extend(zip(requests, await self._thing.sign(requests), strict=True))
            raise KilledError

    context = treasury.engine().context
    with pytest.raises(KilledError):
        await Engine(structs.replace(context, signer=DiesSigning(context.signer, Life())), treasury.keys).tick()
    assert not await txs_of(treasury, payout_id)
    return signed


async def another_took_its_nonce(treasury, to_address, other_address):
    """Have one payout be signed and lost, another sent under its nonce, both forgotten; return both and the hash."""
    lost = await treasury.pay_out(treasury.symbol, AMOUNT, to_address)
    await signed_and_lost(treasury, lost)
    await treasury.cancel(lost)
    other = await treasury.pay_out(treasury.symbol, AMOUNT, other_address)
    engine = treasury.engine()
    await engine.tick()
    (tx_id,) = await txs_of(treasury, other)
    await treasury.mine(treasury.info.confirmations + 2)
    await treasury.forget_sending(other)
    await cancelling(treasury, other)
    assert await status(treasury, lost) == "cancelling"
    return lost, other, tx_id
