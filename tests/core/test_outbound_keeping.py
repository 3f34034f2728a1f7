"""The issuer of USDT switches its fee on: what comes is credited as it came, and nothing leaves that would shrink."""

from __future__ import annotations

import pytest

from cambist.domain.intents import IntentKind
from cambist.services.listing import Part
from cambist.services.sending.collections.explaining import list_uncollected
from tests.support.tron_treasury import tron_treasury

pytestmark = pytest.mark.slow

ONE = 10**6
KEPT = "the token USDT keeps 1 of 100 USDT as a fee of its own: less would arrive"


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with tron_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        yield treasury
        await treasury.check_books()


async def test_what_comes_is_credited_as_it_came_and_waits_with_all_else_until_nothing_is_kept(treasury):
    usdt, customer, engine = treasury.tokens["USDT"], treasury.node.accounts[3], treasury.engine()
    await treasury.receive_many("USDT", [1000 * ONE])
    await treasury.work(engine)
    await usdt.mint(customer, 100 * ONE)
    await usdt.charge(100, 50 * ONE)
    await treasury.mine()
    address = await treasury.deposit_address()
    await usdt.transfer(address, 100 * ONE, sender=customer)
    await treasury.mine(8)
    assert (await treasury.balance("USDT")).held == 99 * ONE
    await treasury.release("USDT", 99 * ONE, treasury.merchant)
    to_address = await treasury.stranger(1)
    for kind in (IntentKind.PAYOUT, IntentKind.WITHDRAWAL):
        (payout_id,) = await treasury.pay_out_many("USDT", [(to_address, 100 * ONE)], kind=kind)
        await treasury.work(engine, rounds=10)
        payout = await treasury.payout(payout_id)
        assert (payout.status, payout.error) == ("failed", KEPT)
    assert (await treasury.balance("USDT")).available == 1099 * ONE
    assert await treasury.on_chain(to_address, "USDT") == 0
    assert await treasury.on_chain(address, "USDT") == 99 * ONE
    async with treasury.db.transaction() as conn:
        (waiting,) = (await list_uncollected(conn, Part(limit=2))).items
    assert (waiting.address, waiting.units, str(waiting.reason)) == (address, 99 * ONE, "refused")
    await treasury.check_books()
    payout_id = await treasury.pay_out("USDT", 1099 * ONE, to_address)
    await treasury.work(engine, rounds=4, until="later")
    assert await treasury.open_intents() == [("payout", "waiting", "collection")]
    await treasury.check_books()
    await usdt.charge(0, 0)
    await treasury.mine()
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(to_address, "USDT") == 1099 * ONE
