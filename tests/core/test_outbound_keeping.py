"""The issuer of USDT switches its fee on: what comes is credited as it came, and nothing leaves that would shrink."""

from __future__ import annotations

import pytest

from cambist.domain.intents import IntentKind
from cambist.services.listing import Part
from cambist.services.sending.collections.explaining import list_uncollected

pytestmark = pytest.mark.slow

ONE = 10**6
KEPT = "the token USDT keeps 1 of 100 USDT as a fee of its own: less would arrive"


async def test_what_comes_is_credited_as_it_came_and_waits_with_all_else_until_nothing_is_kept(on_tron):
    usdt, customer, engine = on_tron.tokens["USDT"], on_tron.node.accounts[3], on_tron.engine()
    await on_tron.receive_many("USDT", [1000 * ONE])
    await on_tron.work(engine)
    await usdt.mint(customer, 100 * ONE)
    await usdt.charge(100, 50 * ONE)
    await on_tron.mine()
    address = await on_tron.deposit_address()
    await usdt.transfer(address, 100 * ONE, sender=customer)
    await on_tron.mine(8)
    assert (await on_tron.balance("USDT")).held == 99 * ONE
    await on_tron.release("USDT", 99 * ONE, on_tron.merchant)
    to_address = await on_tron.stranger(1)
    for kind in (IntentKind.PAYOUT, IntentKind.WITHDRAWAL):
        (payout_id,) = await on_tron.pay_out_many("USDT", [(to_address, 100 * ONE)], kind=kind)
        await on_tron.work(engine, rounds=10)
        payout = await on_tron.payout(payout_id)
        assert (payout.status, payout.error) == ("failed", KEPT)
    assert (await on_tron.balance("USDT")).available == 1099 * ONE
    assert await on_tron.on_chain(to_address, "USDT") == 0
    assert await on_tron.on_chain(address, "USDT") == 99 * ONE
    async with on_tron.db.transaction() as conn:
        (waiting,) = (await list_uncollected(conn, Part(limit=2))).items
    assert (waiting.address, waiting.units, str(waiting.reason)) == (address, 99 * ONE, "refused")
    await on_tron.check_books()
    payout_id = await on_tron.pay_out("USDT", 1099 * ONE, to_address)
    await on_tron.work(engine, rounds=4, until="later")
    assert await on_tron.open_intents() == [("payout", "waiting", "collection")]
    await on_tron.check_books()
    await usdt.charge(0, 0)
    await on_tron.mine()
    await on_tron.work(engine)
    assert (await on_tron.payout(payout_id)).status == "completed"
    assert await on_tron.on_chain(to_address, "USDT") == 1099 * ONE
