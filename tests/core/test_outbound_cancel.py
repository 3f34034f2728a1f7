"""Cancelling what waits: nothing signs it any more, the signer voids it, and then, if nothing was sent, it is money."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec import structs

from cambist.domain.intents import SPENDING, AskedBy, IntentKind
from cambist.plugin import ChainUnavailableError
from cambist.services.errors import ConflictError
from cambist.services.sending.context import EngineContext
from cambist.services.sending.engine import Engine
from cambist.signer import answers
from cambist.signer.local import LocalSigner
from cambist.signer.protocol import SignerUnavailableError
from cambist.signer.reading import Reader
from cambist.signer.reports import AnswerToQuestion
from cambist.signer.rules import Rules
from cambist.signer.store import Store
from cambist.testing.memory.blocks import Output
from tests.support.dated_treasury import dated_treasury
from tests.support.fragile import Deeds, Fragile, KilledError, Life, fragile
from tests.support.plays import play
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

KEY = bytes(range(32))
AMOUNT = 5_000_000
FUNDS = 100 * AMOUNT


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await play(treasury, Treasury.open_paid, ("USDX", FUNDS))
        yield treasury
        await treasury.check_books()


def asking_signer(treasury: Treasury, folder: Path) -> LocalSigner:
    """Return a signer of the same keystore that asks a person about a payout of USDX."""
    return LocalSigner(
        treasury.keystore,
        Reader(treasury.keystore, treasury.registry.families, treasury.registry.chains),
        rules=Rules(approval_limits={treasury.asset("USDX"): AMOUNT}),
        store=Store(folder / "asking"),
        clock=treasury.clock,
        answers_key=KEY,
    )


async def told(treasury: Treasury, payout_id: str) -> list[str]:
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT event FROM webhook_events WHERE resource_id = $1", (payout_id,))
        return list(rows.scalars())


async def statuses(treasury: Treasury, *payout_ids: str) -> list[str]:
    return [(await treasury.payout(payout_id)).status for payout_id in payout_ids]


async def available(treasury: Treasury) -> tuple[int, int]:
    """Return what is available, and what is pending."""
    balance = await treasury.balance("USDX")
    return balance.available, balance.pending


async def signed_and_lost(treasury: Treasury, engine: Engine) -> None:
    """Have the engine die when everything is signed, and nothing stored."""

    class DiesSigning(Fragile):
        async def sign(self, requests):
            await self._thing.sign(requests)
            raise KilledError

    signer = DiesSigning(engine.context.signer, Life())
    with pytest.raises(KilledError):
        await Engine(structs.replace(engine.context, signer=signer), treasury.keys).tick()


def refuse(treasury: Treasury, to_address: str) -> None:
    """Have the chain refuse every transfer to somebody."""
    treasury.chain.faults.refusing = {(treasury.token("USDX").contract, to_address)}


@pytest.mark.parametrize("kind", sorted(SPENDING - {IntentKind.REFUND}))
async def test_what_waits_is_cancelled_and_never_sent(treasury, kind):
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address, kind=kind)
    assert await available(treasury) == (FUNDS - AMOUNT, AMOUNT)
    assert await treasury.cancel(payout_id)
    assert not await treasury.cancel(payout_id)
    row = await treasury.payout(payout_id)
    assert (row.status, row.waits_for) == ("cancelling", "cancellation")
    engine = treasury.engine()
    assert (await engine.tick()).told
    row = await treasury.payout(payout_id)
    assert (row.status, row.error, row.tx_id) == ("cancelled", "It was cancelled by the merchant.", None)
    assert await available(treasury) == (FUNDS, 0)
    assert await told(treasury, payout_id) == [f"{'withdrawal' if kind == IntentKind.WITHDRAWAL else 'payout'}.failed"]
    await treasury.work(engine, rounds=5, until="enough")
    assert not await treasury.cancel(payout_id)
    assert await treasury.on_chain(to_address, "USDX") == 0
    # All of it is the merchant's, to be sent to somebody else.
    await treasury.pay_out("USDX", FUNDS, await treasury.stranger(2))
    await treasury.work(engine)
    assert (await treasury.on_chain(await treasury.stranger(2), "USDX"), await available(treasury)) == (FUNDS, (0, 0))


async def test_what_has_a_nonce_is_on_its_way_and_what_has_ended_has_ended(treasury):
    engine = await treasury.ready()
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    with pytest.raises(ConflictError) as refused:
        await treasury.cancel(payout_id)
    assert refused.value.code == "ALREADY_SENT"
    await treasury.work(engine)
    with pytest.raises(ConflictError) as refused:
        await treasury.cancel(payout_id)
    assert refused.value.code == "ALREADY_ENDED"
    assert await statuses(treasury, payout_id) == ["completed"]


async def test_who_asks_while_it_is_signed_waits_and_hears_that_it_is_sent(treasury):
    engine = await treasury.ready()
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    signing, go_on = asyncio.Event(), asyncio.Event()

    class Slow(Fragile):
        async def sign(self, requests):
            signing.set()
            await go_on.wait()
            return await self._thing.sign(requests)

    slow = structs.replace(engine.context, signer=Slow(engine.context.signer, Life()))
    sends = asyncio.create_task(Engine(slow, treasury.keys).tick())
    await signing.wait()
    asks = asyncio.create_task(treasury.cancel(payout_id))
    await asyncio.wait([asks], timeout=0.2)
    assert not asks.done()
    go_on.set()
    await sends
    with pytest.raises(ConflictError, match="on its way"):
        await asks
    await treasury.work(engine)
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT


async def test_who_asks_first_wins_against_engines_that_have_read_it_already(treasury):
    engine = await treasury.ready()
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)

    class AsksBefore(Fragile):
        """Cancels when the engine is about to reserve nonces for what it has planned."""

        async def next_sequence(self, sender):
            if (await treasury.payout(payout_id)).status == "requested":
                await treasury.cancel(payout_id)
            return await self._thing.next_sequence(sender)

    chain = AsksBefore(engine.context.chain, Life())
    await Engine(structs.replace(engine.context, chain=chain), treasury.keys).tick()
    await treasury.work(engine)
    assert await statuses(treasury, payout_id) == ["cancelled"]
    assert await treasury.on_chain(to_address, "USDX") == 0


async def test_a_node_that_does_not_answer_keeps_nothing_from_being_cancelled(treasury):
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    engine = treasury.engine()
    await treasury.cancel(payout_id)
    treasury.chain.faults.unavailable = True
    with suppress(ChainUnavailableError):
        await engine.tick()
    treasury.chain.faults.unavailable = False
    assert await statuses(treasury, payout_id) == ["cancelled"]


async def test_a_signer_that_does_not_answer_keeps_the_money_and_nothing_else_from_being_followed(treasury):
    engine = await treasury.ready()
    sent = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    await treasury.mine(treasury.info.confirmations + 2)
    waits = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await treasury.cancel(waits)

    class Away(Fragile):
        async def void(self, *_):
            raise SignerUnavailableError("It is away.")

    away = structs.replace(engine.context, signer=Away(engine.context.signer, Life()))
    for _ in range(2):
        with pytest.raises(SignerUnavailableError):
            await Engine(away, treasury.keys).tick()
    assert await statuses(treasury, sent, waits) == ["completed", "cancelling"]
    assert (await available(treasury))[1] == AMOUNT
    await engine.tick()
    assert await statuses(treasury, waits) == ["cancelled"]


@pytest.mark.parametrize("end", ["cancelled", "failed"])
async def test_death_at_each_moment_cancels_or_gives_up_once(treasury, end):
    engine, outlived, moment = await treasury.ready(), False, 0
    before = await available(treasury)
    while not outlived:
        moment += 1
        to_address = await treasury.stranger(moment)
        payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
        if end == "cancelled":
            await treasury.cancel(payout_id)
        else:
            refuse(treasury, to_address)
        try:
            await fragile(treasury.engine(), Deeds(moment)).tick()
            outlived = True
        except KilledError:
            pass
        await asyncio.gather(engine.tick(), treasury.engine().tick())
        assert await statuses(treasury, payout_id) == [end], moment
        assert await told(treasury, payout_id) == ["payout.failed"], moment
        assert await available(treasury) == before, moment
    assert moment > (2 if end == "cancelled" else 3)


async def test_what_a_crash_signed_and_lost_goes_back_once_its_nonce_is_used_by_nothing(treasury):
    engine = await treasury.ready()
    before, to_address = await available(treasury), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await signed_and_lost(treasury, engine)
    await treasury.cancel(payout_id)
    await engine.tick()
    row = await treasury.payout(payout_id)
    assert (row.status, row.waits_for, treasury.alerts["cancel_unproven"]) == ("cancelling", "signed_before", 1)
    assert (await available(treasury))[1] == AMOUNT
    for _ in range(4):
        treasury.clock.advance(40)
        await treasury.work(engine, rounds=treasury.info.confirmations + 4, until="enough")
    assert await statuses(treasury, payout_id) == ["cancelled"]
    assert (await available(treasury), await treasury.on_chain(to_address, "USDX")) == (before, 0)
    assert await treasury.is_idle()


@pytest.mark.parametrize("mined", [True, False])
async def test_what_a_database_out_of_a_backup_has_forgotten_to_have_sent_is_not_given_back(treasury, mined):
    engine = await treasury.ready()
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    if mined:
        await treasury.mine(treasury.info.confirmations + 2)
    await treasury.forget_sending(payout_id)
    await treasury.cancel(payout_id)
    for _ in range(6):
        treasury.clock.advance(40)
        await treasury.work(engine, rounds=4, until="enough")
    row = await treasury.payout(payout_id)
    assert (row.status, row.waits_for) == ("cancelling", "signed_before")
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
    assert (await available(treasury))[1] == AMOUNT
    assert treasury.alerts["cancel_unproven"] == 1
    await treasury.post_forgotten()


@pytest.mark.parametrize("when", ["planned", "prepared"])
async def test_what_a_database_out_of_a_backup_has_forgotten_to_have_sent_is_not_given_up(treasury, when):
    """The chain would refuse it now, which does not say that it was refused when it was sent."""
    engine = await treasury.ready()
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    await treasury.mine(treasury.info.confirmations + 2)
    await treasury.forget_sending(payout_id)
    if when == "planned":
        refuse(treasury, to_address)
    else:
        treasury.chain.faults.impossible = {to_address}
    for _ in range(6):
        treasury.clock.advance(40)
        await treasury.work(engine, rounds=4, until="enough")
    row = await treasury.payout(payout_id)
    assert (row.status, row.waits_for) == ("processing", "signed_before")
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
    assert (await available(treasury))[1] == AMOUNT
    assert (treasury.alerts["refused"], treasury.alerts["cancel_unproven"]) == (1, 1)
    # Whoever cancels it now gets no other answer.
    assert await treasury.cancel(payout_id)
    await treasury.work(engine, rounds=2, until="enough")
    assert await statuses(treasury, payout_id) == ["cancelling"]
    await treasury.post_forgotten()


async def test_what_a_database_out_of_a_backup_has_forgotten_to_have_cancelled_is_cancelled_again(treasury):
    engine = await treasury.ready()
    before, to_address = await available(treasury), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    async with treasury.db.transaction() as conn:
        reference = await conn.exec_driver_sql(
            "SELECT i.reference FROM outbound_intents i JOIN payouts p ON p.intent_pk = i.id WHERE p.payout_id = $1",
            (payout_id,),
        )
        await treasury.signer.void("live", treasury.info.id, [reference.scalar_one()])
    await treasury.work(engine, rounds=3, until="enough")
    row = await treasury.payout(payout_id)
    assert (row.status, row.error) == ("cancelled", "It was cancelled.")
    assert (await available(treasury), await treasury.on_chain(to_address, "USDX")) == (before, 0)


async def test_what_a_person_denies_is_never_signed_and_its_money_is_back_within_minutes(treasury, clock, tmp_path):
    await treasury.ready()
    before, to_address = await available(treasury), await treasury.stranger(1)
    signer = treasury.signer = asking_signer(treasury, tmp_path)
    engine = treasury.engine()
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    (asked,) = (await signer.report()).questions
    code = answers.code_for(KEY, "deny", asked.question, int(clock.now().timestamp()))
    answer = AnswerToQuestion(pk=asked.pk, question=asked.question, verdict="deny", code=code)
    assert await signer.answer(answer) == "denied"
    assert (await treasury.payout(payout_id)).waits_for == "signer: APPROVAL_NEEDED"
    clock.advance(seconds=120)
    await treasury.work(engine, rounds=3, until="enough")
    row = await treasury.payout(payout_id)
    assert (row.status, row.error) == ("cancelled", "The operator denied it.")
    assert (await available(treasury), await treasury.on_chain(to_address, "USDX")) == (before, 0)
    await signer.aclose()


async def test_what_cannot_be_sent_any_more_by_its_nonce_is_cancelled_with_it(treasury):
    """Its slot is dead by the database's own books: something else has used the nonce."""
    engine = await treasury.ready()
    before, to_address = await available(treasury), await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    treasury.chain.faults.forgotten_txs = 1
    await engine.tick()
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "WITH s AS (UPDATE outbound_slots SET state = 'dead' WHERE state = 'open' RETURNING id, intent_pk),"
            " t AS (UPDATE outbound_txs SET state = 'gone' FROM s WHERE slot_pk = s.id)"
            " UPDATE outbound_intents i SET state = 'waiting' FROM s WHERE i.id = s.intent_pk"
        )
    chain, wallet = treasury.chain, treasury.wallet.address
    nothing = Output(contract=None, recipient=wallet, amount=0)
    chain.submit([nothing], sender=wallet, sequence=chain.accounts.sequence(wallet))
    await treasury.mine()
    await treasury.cancel(payout_id, AskedBy.OPERATOR)
    await treasury.work(engine, rounds=4, until="enough")
    row = await treasury.payout(payout_id)
    assert (row.status, row.error) == ("cancelled", "It was cancelled by the operator.")
    assert (await available(treasury), await treasury.on_chain(to_address, "USDX")) == (before, 0)


async def test_where_transactions_expire_what_was_signed_and_lost_goes_back_when_it_has(db, clock, ids, tmp_path):
    async with dated_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.receive("USDX", FUNDS)
        engine = await treasury.ready()
        before, to_address = await available(treasury), await treasury.stranger(1)
        payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
        real = EngineContext.sign

        async def sign_and_die(context, items, dead):
            await real(context, items, dead)
            raise KilledError

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(EngineContext, "sign", sign_and_die)
            with pytest.raises(KilledError):
                await engine.tick()
        await treasury.cancel(payout_id)
        await engine.tick()
        assert await statuses(treasury, payout_id) == ["cancelling"]
        await treasury.outlive()
        treasury.clock.advance(120)
        await treasury.work(engine)
        assert await statuses(treasury, payout_id) == ["cancelled"]
        assert (await available(treasury), await treasury.on_chain(to_address, "USDX")) == (before, 0)
        await treasury.check_books()
