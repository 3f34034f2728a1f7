"""The operators' queue: why each transfer waits, in plain words; having it looked at now; having it pay more."""

from __future__ import annotations

import pytest

from cambist.domain.intents import IntentKind
from cambist.plugin import Units
from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.listing import Part
from cambist.services.payouts.cancel import cancel_intent
from cambist.services.sending.giving_way import give_way
from cambist.services.sending.queue import acts, listing
from cambist.services.sending.queue.listing import QueuedIntent
from cambist.services.sending.queue.reasons import Why, why
from cambist.services.sending.queue.waits import Seen
from cambist.services.sending.rests import PAUSE
from cambist.signer.rules import Rules
from tests.support.dated_treasury import dated_treasury
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(funded_treasury):
    yield funded_treasury
    await funded_treasury.check_books()


async def queue(
    treasury: Treasury, *, is_paused: bool = False, is_sendable: bool = True, **filters
) -> list[tuple[QueuedIntent, Why]]:
    """Return what is open, newest first, with why it is."""
    async with treasury.db.transaction() as conn:
        return await read_queue(conn, treasury, is_paused=is_paused, is_sendable=is_sendable, **filters)


async def read_queue(conn, treasury, *, is_paused=False, is_sendable=True, **filters):
    chains, now = [treasury.info.id], treasury.clock.now()
    seen = Seen(sendable=chains * is_sendable, paused=chains * is_paused, now=now)
    page = await listing.list_queue(conn, Part(limit=100), mode="live", seen=seen, **filters)
    txs = await listing.txs_of(conn, page.items)
    info = treasury.info if is_sendable else None
    return [(one, why(one, txs.get(one.pk, []), info, paused=is_paused, now=now)) for one in page.items]


async def raise_fee(treasury: Treasury, one: QueuedIntent, fee_max: int | None = None) -> None:
    async with treasury.db.transaction() as conn:
        found = await listing.find_intent(conn, one.intent_id)
        txs = (await listing.txs_of(conn, [found])).get(found.pk, [])
        most = None if fee_max is None else Units(fee_max)
        await acts.ask_to_raise(conn, found, txs, treasury.info, most, treasury.clock.now())


async def test_each_says_how_far_it_is_and_what_stands_before_it(treasury):
    engine = await treasury.ready()
    treasury.chain.faults.mining_paused = True
    first = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    second = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2), kind=IntentKind.WITHDRAWAL)
    await engine.tick()
    (later, behind), (earlier, pending) = await queue(treasury)
    assert (later.payout_id, earlier.payout_id) == (second, first)
    assert (behind.code, later.behind, earlier.behind, pending.code) == ("behind", earlier.intent_id, None, "pending")
    assert (earlier.sequence, later.sequence, later.shown_state) == (1, 2, "sending")
    async with treasury.db.transaction() as conn:
        (tx,) = (await listing.txs_of(conn, [earlier]))[earlier.pk]
    assert (tx.state, tx.tries, tx.sent_at is not None, tx.fee.cost_max > 0) == ("sent", 1, True, True)
    treasury.chain.faults.mining_paused = False
    await treasury.mine(1)
    await engine.tick()
    assert {reason.code for _, reason in await queue(treasury)} == {"confirming"}
    await treasury.work(engine)
    assert await queue(treasury) == []
    async with treasury.db.transaction() as conn:
        ended = await listing.find_intent(conn, earlier.intent_id)
        assert (ended.state, ended.slot_pk) == ("done", None)
        with pytest.raises(NotFoundError):
            await listing.find_intent(conn, "int_none")


async def test_filters_find_what_an_operator_looks_for(treasury):
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    cancelled = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await treasury.cancel(cancelled)
    asked_at = treasury.clock.now()
    ((waits, reason),) = await queue(treasury, state="waiting")
    assert (waits.payout_id, reason.code, waits.merchant_id) == (payout_id, "new", "mer_1")
    ((one, reason),) = await queue(treasury, state="cancelling")
    assert (one.payout_id, reason.code) == (cancelled, "cancellation")
    assert len(await queue(treasury, merchant_id="mer_1", kind=IntentKind.PAYOUT, chain=treasury.info.id)) == 2
    assert len(await queue(treasury, before=asked_at)) == 2
    treasury.clock.advance(120)
    ((_, reason),) = await queue(treasury, state="waiting")
    assert reason.code == "not_looked_at"
    for nothing in ({"merchant_id": "mer_2"}, {"kind": IntentKind.REFUND}, {"state": "sending"}, {"reason": "gas"}):
        assert await queue(treasury, **nothing) == []
    assert why(waits, [], None, paused=False, now=asked_at).code == "chain_unavailable"
    assert why(waits, [], treasury.info, paused=True, now=asked_at).code == "paused"


async def test_what_gives_way_says_so_until_it_is_due_again_and_keeps_a_reason_that_it_has(treasury):
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    treasury.clock.advance(120)
    engine = treasury.engine()
    until = treasury.clock.now() + PAUSE
    await give_way(engine.context, treasury.wallet, until)
    ((one, reason),) = await queue(treasury)
    assert (one.due_at, one.reason, reason.code) == (until, None, "gives_way")
    treasury.clock.advance(PAUSE.total_seconds())
    ((_, reason),) = await queue(treasury)
    assert reason.code == "not_looked_at", "nobody tried it in time"
    await set_reason(treasury, "gas")
    await give_way(engine.context, treasury.wallet, treasury.clock.now() + PAUSE)
    ((one, reason),) = await queue(treasury)
    assert (one.reason, reason.code) == ("gas", "gas")


async def test_what_an_operator_has_looked_at_at_once_no_more_gives_way(treasury):
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    treasury.clock.advance(120)
    await give_way(treasury.engine().context, treasury.wallet, treasury.clock.now() + PAUSE)
    ((one, reason),) = await queue(treasury)
    assert reason.code == "gives_way"
    async with treasury.db.transaction() as conn:
        await acts.retry(conn, one, treasury.clock.now())
    ((_, reason),) = await queue(treasury)
    assert reason.code == "not_looked_at"


async def set_reason(treasury, reason):
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE outbound_intents SET reason = $1", (reason,))


@pytest.mark.parametrize("reason", ["gas", "call", "turn", "paused", "signer: HOURLY_CAP"])
async def test_what_is_found_by_a_reason_says_that_it_waits_for_it(treasury, reason):
    waits = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    cancelled = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await treasury.cancel(cancelled)
    async with treasury.db.autocommit() as conn:
        noted = "UPDATE outbound_intents SET reason = $1 WHERE cancel_asked_at IS NULL"
        await conn.exec_driver_sql(noted, (reason,))

    async def found(asked, *, is_paused=False):
        return [(one.payout_id, said.code) for one, said in await queue(treasury, reason=asked, is_paused=is_paused)]

    assert await found(reason) == [(waits, reason)]
    assert await found("allowance") == []
    assert await found("paused", is_paused=True) == [(waits, "paused")]
    assert await found("cancellation", is_paused=True) == [(cancelled, "cancellation")]
    if reason != "paused":
        assert await found(reason, is_paused=True) == []


NOTED = (
    "collection", "gas", "gas_station_empty", "fees_above_ceiling", "turn", "call", "allowance", "provider", "paused",
    "merchant_suspended", "token_not_sendable", "nonce_doubted", "cancellation", "signed_before", "signer: HOURLY_CAP",
    "signer: HOURLY_FEES", "signer: TARGET_TOO_FRESH", "signer: APPROVAL_NEEDED", "signer: ALREADY_SIGNED",
    "signer: TARGET_NOT_ALLOWED",
    "signer: FEE_ABOVE_CAP", "signer: PRICE_UNKNOWN", "signer: SOMETHING_NEW",
)  # fmt: skip
SEEN = (
    "new", "gives_way", "not_looked_at", "chain_unavailable", "swept", "confirming", "sequence_taken", "gap", "behind",
    "not_taken", "pending",
)  # fmt: skip


async def test_each_reason_that_is_said_finds_what_says_it_and_nothing_else(treasury):
    engine = await treasury.ready()
    treasury.chain.faults.mining_paused = True
    for number in range(4):
        await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(number))
    await engine.tick()
    payouts = [await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(9)) for _ in range(len(NOTED) + 4)]
    treasury.clock.advance(120)
    now, said_in_all = treasury.clock.now(), set[str]()

    async def compare(conn, **besides):
        every = [(one.intent_id, said.code) for one, said in await read_queue(conn, treasury, **besides)]
        assert len(every) >= 4 + len(payouts)
        for reason in {*NOTED, *SEEN, *(code for _, code in every)}:
            found = await read_queue(conn, treasury, reason=reason, **besides)
            said = [intent_id for intent_id, code in every if code == reason]
            assert [one.intent_id for one, _ in found] == said, (reason, besides)
        said_in_all.update(code for _, code in every)

    async with treasury.db.transaction() as conn:
        before = await conn.begin_nested()
        ids = "SELECT id FROM outbound_intents WHERE state = $1 ORDER BY id"
        waiting = list((await conn.exec_driver_sql(ids, ("waiting",))).scalars())
        first, second, _, last = (await conn.exec_driver_sql(ids, ("sending",))).scalars()
        noted = "UPDATE outbound_intents SET reason = $2 WHERE id = $1"
        for pk, reason in zip(waiting, NOTED, strict=False):
            await conn.exec_driver_sql(noted, (pk, reason))
        is_new, gives_way, is_swept = waiting[len(NOTED) :][:3]
        await conn.exec_driver_sql("UPDATE outbound_intents SET created_at = $2 WHERE id = $1", (is_new, now))
        later = now + PAUSE
        await conn.exec_driver_sql("UPDATE outbound_intents SET due_at = $2 WHERE id = $1", (gives_way, later))
        await conn.exec_driver_sql("UPDATE outbound_intents SET state = 'sending' WHERE id = $1", (is_swept,))
        await compare(conn)
        tx = "UPDATE outbound_txs t SET {} FROM outbound_slots s WHERE s.id = t.slot_pk AND s.intent_pk = $1"
        await conn.exec_driver_sql(tx.format("sent_at = NULL"), (first,))
        await compare(conn)
        await conn.exec_driver_sql(tx.format("state = 'mined', height = 7"), (first,))
        await conn.exec_driver_sql("UPDATE outbound_slots SET missing_since = 7 WHERE intent_pk = $1", (second,))
        await conn.exec_driver_sql("UPDATE outbound_slots SET sequence = sequence + 9 WHERE intent_pk = $1", (last,))
        await compare(conn)
        await compare(conn, is_paused=True)
        await compare(conn, is_sendable=False)
        await before.rollback()
    assert said_in_all == {*NOTED, *SEEN}
    treasury.chain.faults.mining_paused = False
    await treasury.work(engine)


async def test_what_waits_is_looked_at_at_once_when_that_is_asked_for(db, clock, ids, tmp_path):
    rules = Rules(fresh_address_delay_s=3_600)
    async with Treasury(db, clock, ids, tmp_path, rules=rules) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 100 * AMOUNT)
        engine, to_address = treasury.engine(), await treasury.stranger(1)
        await treasury.pay_out("USDX", AMOUNT, to_address, kind=IntentKind.WITHDRAWAL)
        await treasury.work(engine, rounds=12, until="enough")
        ((one, reason),) = await queue(treasury, kind=IntentKind.WITHDRAWAL)
        assert reason.code == "signer: TARGET_TOO_FRESH"
        assert "fresh address" in reason.text
        assert one.due_at > treasury.clock.now()
        async with treasury.db.transaction() as conn:
            await acts.retry(conn, one, treasury.clock.now())
        ((one, _),) = await queue(treasury, kind=IntentKind.WITHDRAWAL)
        assert one.due_at <= treasury.clock.now()
        # It is asked for again, and refused again: looking is all that a retry does.
        await engine.tick()
        ((one, reason),) = await queue(treasury, kind=IntentKind.WITHDRAWAL)
        assert (reason.code, one.due_at > treasury.clock.now()) == ("signer: TARGET_TOO_FRESH", True)
        async with treasury.db.transaction() as conn:
            assert await cancel_intent(conn, one.intent_id, treasury.clock.now())
        await engine.tick()
        assert (await treasury.balance("USDX")).available == 100 * AMOUNT


async def stuck(treasury: Treasury) -> tuple[str, QueuedIntent]:
    """Have a payout be sent that no block takes, and the market rise above the ceiling."""
    engine = await treasury.ready()
    fees = treasury.chain.fees
    fees.price_max = 3 * fees.base_price
    payout_id = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    fees.base_price *= 4
    ((one, _),) = await queue(treasury)
    return payout_id, one


async def test_a_fee_is_raised_up_to_the_ceiling_and_beyond_it_as_far_as_is_said(treasury):
    payout_id, one = await stuck(treasury)
    engine = treasury.engine()
    await raise_fee(treasury, one)
    await engine.tick()
    ((one, _),) = await queue(treasury)
    assert (one.raise_asked_at, "above the ceiling" in one.raise_refusal) == (None, True)
    async with treasury.db.transaction() as conn:
        (tx,) = (await listing.txs_of(conn, [one]))[one.pk]
    with pytest.raises(InvalidError, match="must be more than"):
        await raise_fee(treasury, one, tx.fee.cost_max)
    await raise_fee(treasury, one, tx.fee.cost_max + 1)
    await engine.tick()
    ((one, _),) = await queue(treasury)
    assert "ceiling" in one.raise_refusal
    await raise_fee(treasury, one, 4 * tx.fee.cost_max)
    await treasury.work(engine, rounds=3, until="enough")
    async with treasury.db.transaction() as conn:
        txs = (await listing.txs_of(conn, [one]))[one.pk]
    assert len(txs) == 2
    assert {tx.sequence for tx in txs} == {one.sequence}
    assert txs[0].fee.cost_max < txs[1].fee.cost_max <= 4 * tx.fee.cost_max
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).tx_id == txs[1].tx_id
    assert await treasury.on_chain(await treasury.stranger(1), "USDX") == AMOUNT


async def test_what_was_raised_is_not_outbid_for_what_nodes_refused_before(treasury):
    engine, fees = await treasury.ready(), treasury.chain.fees
    fees.price_max = fees.current(1).price
    fees.price_min = fees.price_max + 1
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
    await engine.tick()
    treasury.clock.advance(treasury.settings.rebroadcast_s + 1)
    await engine.tick()
    ((one, _),) = await queue(treasury)
    await raise_fee(treasury, one, 10**18)
    await engine.tick()
    fees.price_max *= 10
    treasury.clock.advance(1)
    await engine.tick()
    assert treasury.alerts["replaced"] == 1
    await treasury.work(engine)


async def test_a_fee_is_raised_no_further_than_the_signer_allows(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path, rules=Rules(fee_caps={"memory": 2 * 10**15})) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 100 * AMOUNT)
        _, one = await stuck(treasury)
        await raise_fee(treasury, one, 10**16)
        await treasury.work(treasury.engine(), rounds=3, until="enough")
        ((one, _),) = await queue(treasury, kind=IntentKind.PAYOUT)
        assert "fee_caps" in (one.raise_refusal or "")
        async with treasury.db.transaction() as conn:
            assert len((await listing.txs_of(conn, [one]))[one.pk]) == 1


async def test_a_fee_is_not_raised_where_there_is_none_or_it_is_too_late(treasury):
    waits = await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(9))
    ((one, _),) = await queue(treasury)
    with pytest.raises(ConflictError) as refused:
        await raise_fee(treasury, one)
    assert (refused.value.code, one.payout_id) == ("FEE_NOT_RAISABLE", waits)
    engine = treasury.engine()
    await treasury.work(engine)
    with pytest.raises(ConflictError) as refused:
        await raise_fee(treasury, one)
    assert refused.value.code == "ALREADY_ENDED"
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(2))
    await engine.tick()
    ((one, _),) = await queue(treasury)
    await raise_fee(treasury, one)
    # A block is faster: the wish is over, and nothing was replaced.
    await treasury.mine(1)
    await engine.tick()
    ((one, _),) = await queue(treasury)
    assert (one.raise_asked_at, "was mined" in one.raise_refusal) == (None, True)
    with pytest.raises(ConflictError) as refused:
        await raise_fee(treasury, one)
    assert refused.value.code == "ALREADY_MINED"
    await treasury.work(engine)


async def test_where_nothing_is_replaced_no_fee_is_raised(db, clock, ids, tmp_path):
    async with dated_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 100 * AMOUNT)
        engine = await treasury.ready()
        await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1))
        await engine.tick()
        ((one, _),) = await queue(treasury)
        with pytest.raises(ConflictError) as refused:
            await raise_fee(treasury, one)
        assert refused.value.code == "FEE_NOT_RAISABLE"
        await treasury.work(engine)
