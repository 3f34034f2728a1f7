"""Permanent addresses are collected again and again, and stay as they are: never delegated, activated once."""

from __future__ import annotations

import pytest

from tests.support.anvil_treasury import anvil_treasury
from tests.support.tron_treasury import SUN, tron_treasury

ONE = 10**6
ETHER = 10**18


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.batch()
        yield treasury
        await treasury.check_books()


async def test_a_plain_transfer_of_21000_gas_arrives_after_every_collection(treasury):
    """Of tokens, of native coin and of both, while sweeps are on and take whatever else there is."""
    permanent = await treasury.permanent_address()
    engine = treasury.engine()
    for token, native in ((20 * ONE, 0), (0, ETHER // 10), (30 * ONE, ETHER // 10)):
        if token:
            await treasury.pay("USDT", permanent, token)
            await treasury.mine(1 + treasury.info.confirmations)
            await treasury.release("USDT", token, treasury.merchant)
        if native:
            await treasury.withdraw(permanent, native)
            await treasury.release("ETH", native, treasury.merchant)
        swept = await treasury.receive_many("USDT", [10 * ONE, 10 * ONE])
        await treasury.work(engine)
        assert await treasury.on_chain(permanent, "USDT") == 0
        assert await treasury.code(permanent) == "0x"
        assert [await treasury.on_chain(one, "USDT") for one in swept] == [0, 0]
        await treasury.withdraw(permanent, ETHER // 10)
        await treasury.release("ETH", ETHER // 10, treasury.merchant)
    await treasury.work(engine)
    assert await treasury.intents("sweep") == [("done", False)] * 3
    assert sorted(await treasury.intents("collection")) == [("done", False)] * 5 + [("done", True)] * 6
    assert await treasury.on_chain(treasury.wallet.address, "USDT") == 110 * ONE


async def test_an_address_that_is_made_a_payments_in_the_database_is_not_delegated_either(treasury):
    """The signer knows by the branch of its key, so what is swept with it goes one by one, too."""
    permanent = await treasury.permanent_address()
    async with treasury.db.transaction() as conn:
        for constraint in ("ck_addresses_account_has_owner", "ck_addresses_account_has_branch"):
            await conn.exec_driver_sql(f"ALTER TABLE addresses DROP CONSTRAINT {constraint}")
        await conn.exec_driver_sql("UPDATE addresses SET purpose = 'payment' WHERE address = $1", (permanent,))
    await treasury.pay("USDT", permanent, 20 * ONE)
    await treasury.receive_many("USDT", [30 * ONE])
    await treasury.release("USDT", 20 * ONE, treasury.merchant)
    await treasury.work(treasury.engine())
    assert treasury.alerts["signer_refused"] >= 1
    assert await treasury.code(permanent) == "0x"
    assert await treasury.on_chain(treasury.wallet.address, "USDT") == 50 * ONE


async def test_on_tron_an_address_is_activated_for_its_first_collection_alone(db, clock, ids, tmp_path):
    """What later ones cost is the transfer, and bringing its fee."""
    async with tron_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        permanent = await treasury.permanent_address()
        for _ in range(3):
            await treasury.pay("USDT", permanent, 200 * ONE)
            await treasury.mine(1 + treasury.info.confirmations)
            await treasury.release("USDT", 200 * ONE, treasury.merchant)
            await treasury.work(treasury.engine())
            assert await treasury.on_chain(permanent, "USDT") == 0
        async with db.transaction() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT t.fee_paid FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
                " JOIN outbound_intents i ON i.id = s.intent_pk WHERE i.kind = 'top_up' ORDER BY i.id"
            )
            first, *later = rows.scalars()
        assert first >= treasury.node.chain.parameters.new_account_fee
        assert len(later) == 2
        assert max(later) < SUN // 2
        assert await treasury.intents("collection") == [("done", False)] * 3
        await treasury.check_books()
