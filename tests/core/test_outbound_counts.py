"""How far the engine follows a chain that counts more of a sender's transactions than our books know of."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs

from cambist.services.sending.engine import Engine
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000
FAR = 1_000_000


@pytest.fixture
async def treasury(ready_treasury):
    yield ready_treasury
    await ready_treasury.check_books()


async def waits_for(treasury: Treasury, payout_id: str) -> str | None:
    return (await treasury.payout(payout_id)).waits_for


async def nonces(treasury: Treasury) -> list[int]:
    """Return the nonces of the wallet that are reserved, lowest first."""
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT sequence FROM outbound_slots WHERE address_pk = $1 AND sequence IS NOT NULL ORDER BY sequence",
            (treasury.wallet.pk,),
        )
        return list(rows.scalars())


def counting(treasury: Treasury, engine: Engine, **changed) -> Engine:
    """Return an engine with other settings."""
    settings = structs.replace(treasury.settings, **changed)
    return Engine(structs.replace(engine.context, settings=settings), treasury.keys)


async def pay(treasury: Treasury, number: int) -> str:
    return await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(number))


async def calm_down(treasury: Treasury, engine: Engine, rounds: int = 6) -> None:
    for _ in range(rounds):
        await treasury.work(engine, rounds=3, until="enough")
        treasury.clock.advance(61)


async def test_each_sender_goes_on_behind_its_own_last_nonce(treasury):
    merchant, project = await treasury.new_merchant("mer_2")
    await treasury.receive("USDX", AMOUNT, merchant=merchant)
    await treasury.pay_out("USDX", AMOUNT, await treasury.stranger(1), merchant=merchant, project=project)
    for number in (2, 3):
        await pay(treasury, number)
    await treasury.work(treasury.engine())
    async with treasury.db.autocommit() as conn:
        found = await conn.exec_driver_sql(
            "SELECT next_sequence, (SELECT max(sequence) + 1 FROM outbound_slots s WHERE s.address_pk = o.address_pk)"
            " FROM outbound_senders o"
        )
        rows = found.all()
    assert {stored for stored, _ in rows} > {1, 3}
    assert [stored for stored, _ in rows] == [used for _, used in rows]


async def test_nothing_is_signed_on_the_word_of_one_endpoint_that_counts_far_too_many(treasury):
    engine, before = treasury.engine(), await nonces(treasury)
    treasury.chain.faults.sequences_ahead = FAR
    paid = [await pay(treasury, number) for number in (1, 2)]
    for _ in range(5):
        await engine.tick()
        await treasury.mine()
    assert [await waits_for(treasury, one) for one in paid] == ["nonce_doubted"] * 2
    assert (await nonces(treasury), treasury.alerts["nonce_doubted"]) == (before, 1)
    treasury.chain.faults.sequences_ahead = 0
    await calm_down(treasury, engine, 3)
    assert [(await treasury.payout(one)).status for one in paid] == ["completed"] * 2
    assert treasury.alerts["gap"] == 0
    assert await treasury.is_idle()


@pytest.mark.parametrize("ahead, is_sent", [(100, True), (101, False)])
async def test_as_many_as_somebody_with_the_same_key_may_have_sent_are_believed(treasury, ahead, is_sent):
    treasury.chain.faults.sequences_ahead = ahead
    payout_id = await pay(treasury, 1)
    await treasury.engine().tick()
    assert await waits_for(treasury, payout_id) == (None if is_sent else "nonce_doubted")


async def test_a_count_that_grows_with_what_is_signed_leads_no_further_away(treasury):
    """As a liar tells who sees what waits."""
    engine, before = treasury.engine(), await nonces(treasury)
    for number in range(6):
        treasury.chain.faults.sequences_ahead = (await nonces(treasury))[-1] - len(before) + 61
        await pay(treasury, number)
        await engine.tick()
    reserved = await nonces(treasury)
    assert reserved[-1] - reserved[0] + 1 - len(reserved) <= treasury.settings.nonce_jump_max
    treasury.chain.faults.sequences_ahead = 0
    await calm_down(treasury, engine, 10)
    assert await treasury.is_idle()


@pytest.mark.parametrize("told", [0, 500])
async def test_what_a_second_endpoint_tells_is_followed(treasury, monkeypatch, told):
    """It outvotes a liar, or says that the key was used elsewhere."""
    engine, before = treasury.engine(), await nonces(treasury)

    async def witnessed_sequence(sender: str) -> int:
        return treasury.chain.accounts.sequence(sender) + told

    monkeypatch.setattr(treasury.chain, "witnessed_sequence", witnessed_sequence)
    treasury.chain.faults.sequences_ahead = FAR
    payout_id = await pay(treasury, 1)
    await engine.tick()
    assert (await nonces(treasury))[-1] == len(before) + told
    assert treasury.alerts["nonce_doubted"] == 0
    if not told:
        await calm_down(treasury, engine, 2)
        assert (await treasury.payout(payout_id)).status == "completed"


async def test_an_operator_accepts_it_and_a_gap_that_is_wider_than_accepted_is_not_filled(treasury):
    """Each of its nonces costs a transfer."""
    treasury.chain.faults.sequences_ahead = 50
    payout_id = await pay(treasury, 1)
    wary, bold = (counting(treasury, treasury.engine(), nonce_jump_max=most) for most in (40, 50))
    await wary.tick()
    assert await waits_for(treasury, payout_id) == "nonce_doubted"
    treasury.clock.advance(61)
    await bold.tick()
    treasury.chain.faults.sequences_ahead = 0
    before = await nonces(treasury)
    await calm_down(treasury, wary, 3)
    assert (await nonces(treasury), treasury.alerts["gap"]) == (before, 0)
    assert treasury.alerts["gap_too_wide"] > 0
    await calm_down(treasury, bold, 6)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.is_idle()


async def test_senders_whose_counts_are_doubted_are_asked_for_together(treasury, monkeypatch):
    """A liar counts too many for each, and a slow endpoint that is asked for one after the other outlasts the tick."""
    engine = treasury.engine()
    second, project = await treasury.new_merchant("mer_2")
    await treasury.receive("USDX", 10 * AMOUNT, merchant=second)
    wanted = {"merchant": second, "project": project}
    await treasury.pay_out_many("USDX", [(await treasury.stranger(8), AMOUNT)], **wanted)
    await treasury.work(engine)
    treasury.chain.faults.mining_paused = True
    await pay(treasury, 1)
    await treasury.pay_out_many("USDX", [(await treasury.stranger(2), AMOUNT)], **wanted)
    await engine.tick()
    both = asyncio.Barrier(2)

    async def witnessed_sequence(sender: str) -> int:
        async with asyncio.timeout(5):
            await both.wait()
        return treasury.chain.accounts.sequence(sender)

    treasury.chain.faults.sequences_ahead = FAR
    with monkeypatch.context() as patched:
        patched.setattr(treasury.chain, "witnessed_sequence", witnessed_sequence)
        await engine.tick()
    assert treasury.alerts["sequence_taken"] == 0
    treasury.chain.faults.sequences_ahead, treasury.chain.faults.mining_paused = 0, False
    await treasury.work(engine)
