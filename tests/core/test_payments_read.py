"""Reading payments: pages and filters for merchants, and exactly what a customer may see."""

import asyncio
from contextlib import suppress

import asyncpg
import msgspec
import pytest

from cambist.domain.payments import Status
from cambist.services.errors import InvalidError, NotFoundError
from cambist.services.listing import Part
from cambist.services.receiving.payments.read import Filters, get_links, get_public, list_payments


async def listed(payment_env, actor=None, *, status=None, chain=None, page=1, limit=25):
    async with payment_env.db.transaction() as conn:
        found = await list_payments(
            conn,
            (actor or payment_env.live).project_pk,
            payment_env.macs,
            Filters(status=status, chain=chain),
            Part(page=page, limit=limit),
        )
    return [payment.payment_id for payment in found.items], found.total


async def public(payment_env, public_id):
    return await get_public(payment_env.db, payment_env.registry.chains, public_id, payment_env.macs)


async def test_payments_are_found_by_order_time_and_amount(payment_env, clock):
    first = (await payment_env.create(orderId="A-1", amount="12.50")).payment.payment_id
    clock.advance(3600)
    second = (await payment_env.create(orderId="A-2", amount="12.5")).payment.payment_id
    third = (await payment_env.create(amount="7")).payment.payment_id
    await payment_env.create(payment_env.test, orderId="A-1")
    hour = clock.now()

    async def found(**wanted):
        async with payment_env.db.transaction() as conn:
            page = await list_payments(conn, payment_env.live.project_pk, payment_env.macs, Filters(**wanted), Part())
        assert page.total == len(page.items)
        return [payment.payment_id for payment in page.items]

    assert await found(order_id="A-1") == [first]
    assert await found(order_id="A") == []
    assert await found(amount="12.500") == [second, first]
    assert await found(since=hour) == [third, second]
    assert await found(until=hour) == [first]
    assert await found(since=hour, amount="12.5", order_id="A-2") == [second]
    for wrong in ({"amount": "1e1"}, {"since": hour, "until": hour}):
        with pytest.raises(InvalidError):
            await found(**wrong)


async def test_a_total_is_exact_up_to_a_limit_and_counts_no_further(payment_env):
    async def counted():
        async with payment_env.db.transaction() as conn:
            part = Part(limit=2, count_max=3)
            page = await list_payments(conn, payment_env.live.project_pk, payment_env.macs, Filters(), part)
        return page.total, page.exact

    for _ in range(3):
        await payment_env.create()
    assert await counted() == (3, True)
    await payment_env.create()
    assert await counted() == (3, False)


async def test_a_page_that_is_too_deep_is_refused(payment_env):
    await payment_env.create()
    assert await listed(payment_env, page=100, limit=100) == ([], 1)
    with pytest.raises(InvalidError):
        await listed(payment_env, page=101, limit=100)


async def test_payments_are_listed_newest_first_in_pages(payment_env):
    made = [(await payment_env.create()).payment.payment_id for _ in range(5)]
    await payment_env.create(payment_env.test)
    assert await listed(payment_env) == (made[::-1], 5)
    assert await listed(payment_env, limit=2) == ([made[4], made[3]], 5)
    assert await listed(payment_env, page=3, limit=2) == ([made[0]], 5)
    assert await listed(payment_env, page=4, limit=2) == ([], 5)


async def test_payments_are_filtered_by_status_and_chain(payment_env):
    here = (await payment_env.create(payment_env.test)).payment.payment_id
    there = (await payment_env.create(payment_env.test, chain="other")).payment.payment_id
    await payment_env.deposit(here)
    assert await listed(payment_env, payment_env.test, status=Status.DETECTED) == ([here], 1)
    assert await listed(payment_env, payment_env.test, status=Status.PENDING) == ([there], 1)
    assert await listed(payment_env, payment_env.test, chain="other") == ([there], 1)
    assert await listed(payment_env, payment_env.test, status=Status.PAID, chain="other") == ([], 0)
    assert await listed(payment_env, payment_env.test, chain="nowhere") == ([], 0)


async def test_the_public_view_has_exactly_these_fields(payment_env):
    payment = (
        await payment_env.create(
            payment_env.test,
            pricingMode="fiat",
            fiatCurrency="usd",
            customerName="Ada Lovelace",
            customerEmail="ada@example.com",
            metadata={"note": "secret"},
            webhookUrl="https://shop.example/secret-hook",
        )
    ).payment
    await payment_env.deposit(payment.payment_id)
    answer = msgspec.json.encode(await public(payment_env, payment.public_id))
    shown = msgspec.json.decode(answer)
    assert set(shown) == {
        "paymentId", "publicId", "shopName", "mode", "status", "chain", "chainName", "token", "tokenLabel",
        "contractAddress", "decimals", "depositAddress", "pricingMode", "amount", "expectedAmount", "receivedAmount",
        "remainingAmount", "requiredConfirmations", "txHash", "orderId", "successUrl", "cancelUrl", "expiresAt",
        "createdAt", "deposits", "depositsLeftOut", "fiatCurrency", "exchangeRate",
    }  # fmt: skip
    assert set(shown["deposits"][0]) == {
        "txHash", "chain", "token", "amount", "counted", "status", "confirmations", "requiredConfirmations", "seenAt",
        "minedAt", "confirmedAt",
    }  # fmt: skip
    for secret in (b"Ada", b"ada@", b"secret"):
        assert secret not in answer


async def test_the_public_view_follows_deposits_and_what_remains(payment_env):
    payment = (await payment_env.create(payment_env.test)).payment
    made = await payment_env.deposit(payment.payment_id, amount="4")
    seen = await public(payment_env, payment.public_id)
    assert (seen.status, seen.received_amount, seen.remaining_amount) == ("pending", "4", "6")
    assert [(item.tx_hash, item.amount, item.status, item.confirmations) for item in seen.deposits] == [
        (made.tx_id, "4", "detected", 0)
    ]
    await payment_env.deposit(payment.payment_id, amount="6", confirmations=2)
    seen = await public(payment_env, payment.public_id)
    assert [(item.amount, item.status, item.confirmations) for item in seen.deposits] == [
        ("4", "confirmed", 3),
        ("6", "detected", 2),
    ]
    assert (seen.status, seen.remaining_amount) == ("confirming", "0")
    await payment_env.reorg(3)
    seen = await public(payment_env, payment.public_id)
    assert ([item.amount for item in seen.deposits], seen.remaining_amount) == (["4"], "6")


async def test_its_merchant_sees_what_a_reorganization_took_away(payment_env):
    payment_id = (await payment_env.create(payment_env.test)).payment.payment_id
    kept = await payment_env.deposit(payment_id, amount="4", confirmations=3)
    gone = await payment_env.deposit(payment_id, amount="6", confirmations=2)
    before = await payment_env.read(payment_id, payment_env.test)
    assert before.orphaned_deposits == []
    (seen,) = [one for one in before.deposits if one.tx_hash == gone.tx_id]
    await payment_env.reorg(3)
    after = await payment_env.read(payment_id, payment_env.test)
    assert [one.tx_hash for one in after.deposits] == [kept.tx_id]
    (orphaned,) = after.orphaned_deposits
    assert (orphaned.deposit_id, orphaned.tx_hash, orphaned.amount, orphaned.counted) == (
        seen.deposit_id,
        gone.tx_id,
        "6",
        True,
    )
    assert orphaned.seen_at == seen.seen_at <= orphaned.orphaned_at
    assert (seen.confirmed_at, orphaned.confirmed_at) == (None, None)


async def test_what_had_its_confirmations_before_it_was_taken_away_says_when(payment_env):
    payment_id = (await payment_env.create(payment_env.test)).payment.payment_id
    await payment_env.deposit(payment_id, amount="4", confirmations=3)
    (seen,) = (await payment_env.read(payment_id, payment_env.test)).deposits
    assert (seen.status, seen.resolution) == ("confirmed", None)
    await payment_env.reorg(4)
    after = await payment_env.read(payment_id, payment_env.test)
    assert (after.deposits, after.deposits_left_out, after.orphaned_deposits_left_out) == ([], 0, 0)
    (orphaned,) = after.orphaned_deposits
    assert orphaned.deposit_id == seen.deposit_id
    assert orphaned.seen_at <= orphaned.confirmed_at <= orphaned.orphaned_at
    assert orphaned.confirmed_at == seen.confirmed_at


async def test_an_ended_payment_asks_for_nothing_more(payment_env):
    payment = (await payment_env.create(payment_env.test)).payment
    await payment_env.deposit(payment.payment_id, amount="4", confirmations=3)
    await payment_env.advance(3600)
    seen = await public(payment_env, payment.public_id)
    assert (seen.status, seen.remaining_amount) == ("underpaid", "0")


async def test_many_small_deposits_do_not_make_the_answer_large(payment_env):
    payment = (await payment_env.create(payment_env.test)).payment
    await payment_env.deposit(payment.payment_id, amount="0.000001")
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk,"
            " payment_pk, matches, token, decimals, units, height, block_hash, ordinal, mined_at,"
            " required_confirmations)"
            " SELECT deposit_id || n, chain, scope, tx_id || n, position, mode, merchant_pk, address_pk, payment_pk,"
            " matches, token, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations"
            " FROM deposits, generate_series(1, 60) n"
        )
    seen = await public(payment_env, payment.public_id)
    assert (len(seen.deposits), seen.deposits_left_out) == (50, 11)
    assert not hasattr(seen.deposits[0], "deposit_id"), "a customer has no use for it"
    mine = await payment_env.read(payment.payment_id, payment_env.test)
    assert (len(mine.deposits), mine.deposits_left_out) == (50, 11)
    assert (mine.orphaned_deposits, mine.orphaned_deposits_left_out) == ([], 0)
    assert len({one.deposit_id for one in mine.deposits}) == 50
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE deposits SET status = 'orphaned', orphaned_at = mined_at")
    mine = await payment_env.read(payment.payment_id, payment_env.test)
    assert (mine.deposits, mine.deposits_left_out) == ([], 0)
    assert (len(mine.orphaned_deposits), mine.orphaned_deposits_left_out) == (50, 11)


async def test_what_is_not_there_is_not_found(payment_env):
    for public_id in ("pub_none", "", (await payment_env.create()).payment.payment_id):
        with pytest.raises(NotFoundError):
            await public(payment_env, public_id)


async def test_links_are_made_of_the_payments_ids(payment_env):
    payment = (await payment_env.create()).payment
    async with payment_env.db.autocommit() as conn:
        links = await get_links(conn, payment_env.live.project_pk, payment.payment_id)
        assert (links.public_id, links.status) == (payment.public_id, "pending")
        with pytest.raises(NotFoundError):
            await get_links(conn, payment_env.test.project_pk, payment.payment_id)


async def test_a_connection_that_broke_is_not_used_again(payment_env):
    payment = (await payment_env.create()).payment
    async with payment_env.db.transaction() as conn:
        await conn.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
        await public(payment_env, payment.public_id)
    await asyncio.sleep(0.1)
    assert (await public(payment_env, payment.public_id)).payment_id == payment.payment_id
