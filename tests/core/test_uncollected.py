"""Operators see why money stays on an address, as it was last judged, and may have it collected for a bounded fee."""

from __future__ import annotations

import asyncio
import json

import pytest
from msgspec import structs

from cambist.plugin import InconsistentChainError
from cambist.services.errors import NotFoundError
from cambist.services.listing import Part
from cambist.services.sending import engine as engine_module
from cambist.services.sending.collections import explaining, uncollected
from cambist.services.sending.collections.explaining import ask, find, list_uncollected, read_address
from tests.support.anvil_treasury import anvil_treasury

ONE = 10**6


async def listed(treasury, **filters):
    async with treasury.db.transaction() as conn:
        found = await list_uncollected(conn, Part(limit=100), **filters)
    assert found.total == len(found.items)
    return found.items


async def reasons(treasury, **filters):
    return {one.address: str(one.reason) for one in await listed(treasury, **filters)}


async def find_row(treasury, one):
    async with treasury.db.transaction() as conn:
        return await find(conn, one.uncollected_id)


async def wish(treasury, one, share=None):
    async with treasury.db.transaction() as conn:
        return await ask(conn, one.uncollected_id, share, treasury.clock.now())


async def versions(treasury):
    async with treasury.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT id, xmin::text FROM uncollected_funds ORDER BY id")
        return [tuple(row) for row in rows]


async def at(treasury, address):
    async with treasury.db.transaction() as conn:
        found = await read_address(conn, [address], [treasury.family.name])
    return [(one.state, one.units, one.deposits) for one in found]


async def rule(treasury, text):
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO platform_settings (id, settings, updated_at) VALUES (1, $1, now())"
            " ON CONFLICT (id) DO UPDATE SET settings = excluded.settings",
            (text,),
        )


async def test_each_reason_is_told_with_what_it_was_judged_by(cheap_treasury):
    """Of one-time and permanent addresses; and what is collected, is told no more."""
    small = await cheap_treasury.receive("USDX", 3 * ONE)
    dust = await cheap_treasury.receive("USDX", 100)
    unpriced = await cheap_treasury.receive("DAIX", 50 * 10**18)
    del cheap_treasury.prices.board["DAIX", "usd"]
    permanent = await cheap_treasury.permanent_address()
    cheap_treasury.chain.transfer(cheap_treasury.token("USDX"), permanent, 2 * ONE)
    await cheap_treasury.mine(1 + cheap_treasury.info.confirmations)
    worthy = await cheap_treasury.receive("USDX", 50 * ONE)
    await cheap_treasury.work(cheap_treasury.engine(), rounds=20, until="enough")
    assert await cheap_treasury.on_chain(worthy, "USDX") == 0
    assert await reasons(cheap_treasury) == {
        small: "below_minimum",
        dust: "fee_above_value",
        unpriced: "price_missing",
        permanent: "below_minimum",
    }
    by_address = {one.address: one for one in await listed(cheap_treasury)}
    assert by_address[small].value_usd == 3
    assert 0 < by_address[small].fee_usd < 3
    assert by_address[dust].fee_usd > by_address[dust].value_usd
    assert by_address[unpriced].value_usd is None
    assert (by_address[permanent].purpose, by_address[small].purpose) == ("account", "payment")
    assert by_address[permanent].account_id is not None
    assert {one.merchant_id for one in by_address.values()} == {"mer_1"}
    assert await reasons(cheap_treasury, reason="price_missing") == {unpriced: "price_missing"}
    assert await reasons(cheap_treasury, token="DAIX", chain="memory") == {unpriced: "price_missing"}
    assert await reasons(cheap_treasury, merchant_id="mer_2") == {}


async def test_a_judgement_is_written_once_and_again_only_when_it_changes(cheap_treasury):
    address, engine = await cheap_treasury.receive("USDX", 3 * ONE), cheap_treasury.engine()
    await cheap_treasury.work(engine, rounds=3, until="enough")
    (first,), before = await listed(cheap_treasury), await versions(cheap_treasury)
    await cheap_treasury.work(engine, rounds=5, until="enough")
    assert await versions(cheap_treasury) == before
    await rule(cheap_treasury, '{"collection": {"enabled": false}}')
    await cheap_treasury.work(engine, rounds=3, until="enough")
    (second,) = await listed(cheap_treasury)
    assert (first.reason, second.reason) == ("below_minimum", "collecting_off")
    assert second.uncollected_id == first.uncollected_id
    assert second.judged_at > first.judged_at
    await rule(cheap_treasury, "{}")
    cheap_treasury.chain.transfer(cheap_treasury.token("USDX"), address, 30 * ONE)
    await cheap_treasury.mine(1 + cheap_treasury.info.confirmations)
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 0
    assert await listed(cheap_treasury) == []
    with pytest.raises(NotFoundError):
        await wish(cheap_treasury, second)


async def test_fees_above_the_ceiling_and_a_price_that_doubled_are_told(cheap_treasury):
    await cheap_treasury.receive("USDX", 3 * ONE)
    engine = cheap_treasury.engine()
    await cheap_treasury.work(engine, rounds=3, until="enough")
    (cheap,) = await listed(cheap_treasury)
    cheap_treasury.chain.fees.base_price *= 2
    await cheap_treasury.work(engine, rounds=3, until="enough")
    (dear,) = await listed(cheap_treasury)
    assert dear.reason == cheap.reason
    assert dear.fee_usd > cheap.fee_usd * 3 / 2
    cheap_treasury.chain.fees.price_max = 1
    await cheap_treasury.work(engine, rounds=3, until="enough")
    assert [one.reason for one in await listed(cheap_treasury)] == ["fees_above_ceiling"]


async def test_what_an_operator_wants_is_collected_at_the_next_look_once(cheap_treasury):
    address, engine = await cheap_treasury.receive("USDX", 3 * ONE), cheap_treasury.engine()
    await cheap_treasury.work(engine, rounds=3, until="enough")
    (one,) = await listed(cheap_treasury)
    asked, is_new = await wish(cheap_treasury, one, 9_000)
    again, is_new_again = await wish(cheap_treasury, one, 9_000)
    assert (is_new, is_new_again) == (True, False)
    assert (asked.asked_at, asked.asked_fee_share_bps) == (again.asked_at, 9_000)
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 0
    async with cheap_treasury.db.autocommit() as conn:
        made = await conn.exec_driver_sql("SELECT state FROM outbound_intents WHERE kind = 'collection'")
        assert made.scalars().all() == ["done"]


async def test_a_wish_is_looked_at_by_the_next_tick_however_seldom_all_deposits_are(cheap_treasury):
    address = await cheap_treasury.receive("USDX", 3 * ONE)
    engine = cheap_treasury.engine(structs.replace(cheap_treasury.settings, collect_interval_ms=3_600_000))
    await cheap_treasury.work(engine, rounds=3, until="enough")
    (one,) = await listed(cheap_treasury)
    await wish(cheap_treasury, one, 0)
    await engine.tick()
    (one,) = await listed(cheap_treasury)
    assert (one.asked_at, one.refusal) == (None, "fee_above_share")
    cheap_treasury.clock.advance(1)
    await wish(cheap_treasury, one, 9_000)
    assert (await engine.tick()).collected == 1
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 0


async def seldom(treasury, small=1):
    """Have a wallet hold money, and the engine look each minute; return it, and rows of what is too small."""
    await treasury.receive("USDX", 50 * ONE)
    engine = treasury.engine(structs.replace(treasury.settings, collect_interval_ms=60_000))
    for _ in range(small):
        await treasury.receive("USDX", 3 * ONE)
    await treasury.pay_out("USDX", 1, await treasury.stranger(999))
    await treasury.work(engine)
    treasury.clock.advance(60)
    await engine.tick()
    return engine, await listed(treasury)


async def failures(treasury, engine, *, ticks):
    """Let chain and engine run side by side, a tick every four seconds; return which ticks failed."""
    failed = []
    for number in range(ticks):
        try:
            await engine.tick()
        except InconsistentChainError:
            failed.append(number)
        await treasury.mine(seconds=4)
    return failed


async def test_a_wish_that_nobody_can_plan_keeps_no_payout_from_being_sent(cheap_treasury):
    """It is tried at once, and then with all other deposits; and it is answered when it can be."""
    engine, (stuck,) = await seldom(cheap_treasury)
    cheap_treasury.chain.faults.contradicted = {stuck.address}
    await wish(cheap_treasury, stuck, 0)
    payout_id = await cheap_treasury.pay_out("USDX", 5 * ONE, await cheap_treasury.stranger(1))
    with pytest.raises(InconsistentChainError):
        await engine.tick()
    assert (await cheap_treasury.payout(payout_id)).status == "broadcast", (
        "sent by the very tick that could not collect"
    )
    await cheap_treasury.mine(seconds=4)
    later = await cheap_treasury.pay_out("USDX", 5 * ONE, await cheap_treasury.stranger(2))
    # The look at once was 4 seconds ago.
    assert await failures(cheap_treasury, engine, ticks=60) == [14, 29, 44, 59]
    assert {(await cheap_treasury.payout(one)).status for one in (payout_id, later)} == {"completed"}
    assert (await find_row(cheap_treasury, stuck)).asked_at is not None
    one = await find_row(cheap_treasury, stuck)
    waits = explaining.wish_waits_for(one, paused=False)
    assert (waits.code, waits.since) == ("cost_unknown", one.hindered_at)
    assert waits.text.startswith("The chain could not say")
    assert waits.text.endswith(f"It says: two balances of {stuck.address}")
    cheap_treasury.chain.faults.contradicted = set()
    assert await failures(cheap_treasury, engine, ticks=15) == []
    one = await find_row(cheap_treasury, stuck)
    assert (one.asked_at, one.refusal, one.hindrance) == (None, "fee_above_share", None)
    assert explaining.wish_waits_for(one, paused=False) is None


async def test_without_a_wish_as_many_ticks_fail(cheap_treasury):
    engine, (stuck,) = await seldom(cheap_treasury)
    cheap_treasury.chain.faults.contradicted = {stuck.address}
    payout_id = await cheap_treasury.pay_out("USDX", 5 * ONE, await cheap_treasury.stranger(1))
    assert await failures(cheap_treasury, engine, ticks=60) == [15, 30, 45]
    assert (await cheap_treasury.payout(payout_id)).status == "completed"


async def test_a_wish_is_met_though_others_cannot_be_planned_and_they_though_it_cannot(cheap_treasury):
    engine, (one, other) = await seldom(cheap_treasury, small=2)
    cheap_treasury.chain.faults.contradicted = {one.address}
    cheap_treasury.clock.advance(60)
    await wish(cheap_treasury, other, 9_000)
    assert await failures(cheap_treasury, engine, ticks=1) == [0]
    assert [left.address for left in await listed(cheap_treasury)] == [one.address]
    worthy = await cheap_treasury.receive("USDX", 50 * ONE)
    await wish(cheap_treasury, one, 9_000)
    assert await failures(cheap_treasury, engine, ticks=10) == [0]
    assert [await cheap_treasury.on_chain(each, "USDX") for each in (other.address, worthy, one.address)] == [
        0,
        0,
        3 * ONE,
    ]


async def test_a_look_that_hangs_leaves_time_to_send(cheap_treasury, monkeypatch):
    engine, (one,) = await seldom(cheap_treasury)
    await wish(cheap_treasury, one, 9_000)
    payout_id = await cheap_treasury.pay_out("USDX", 5 * ONE, await cheap_treasury.stranger(1))
    met, loop = [], asyncio.get_running_loop()
    read = loop.time

    async def hang(call):
        if call == "plan" and not met:
            met.append(call)
            monkeypatch.setattr(loop, "time", lambda: read() + engine_module.COLLECTING_TIMEOUT_S)
            await asyncio.Event().wait()

    cheap_treasury.chain.faults.before = hang
    with pytest.raises(TimeoutError):
        await engine.tick()
    monkeypatch.undo()
    assert (met, (await cheap_treasury.payout(payout_id)).status) == (["plan"], "broadcast")


async def test_a_wish_that_costs_more_than_was_allowed_is_answered_and_ends(cheap_treasury):
    """So it is with one that costs all of it, however much is allowed; and it is not asked twice."""
    address, dust, engine = (
        await cheap_treasury.receive("USDX", 3 * ONE),
        await cheap_treasury.receive("USDX", 100),
        cheap_treasury.engine(),
    )
    await cheap_treasury.work(engine, rounds=3, until="enough")
    before = {one.address: one for one in await listed(cheap_treasury)}
    await wish(cheap_treasury, before[address], 0)
    await wish(cheap_treasury, before[dust], 9_999)
    cheap_treasury.clock.advance(60)
    await cheap_treasury.work(engine, rounds=10, until="enough")
    after = {one.address: one for one in await listed(cheap_treasury)}
    assert {one.address: (one.reason, one.refusal, one.asked_at) for one in after.values()} == {
        address: ("below_minimum", "fee_above_share", None),
        dust: ("fee_above_value", "fee_above_value", None),
    }
    assert all(one.refused_at is not None and one.asked_fee_share_bps is None for one in after.values())
    assert await cheap_treasury.on_chain(address, "USDX") == 3 * ONE


async def test_a_wish_of_the_meantime_is_for_the_next_time(cheap_treasury):
    """The look has read one wish, and another is written before it has written down its answer."""
    await cheap_treasury.receive("USDX", 3 * ONE)
    await cheap_treasury.work(cheap_treasury.engine(), rounds=3, until="enough")
    (one,) = await listed(cheap_treasury)
    await wish(cheap_treasury, one, 0)
    scope = cheap_treasury.engine().context.chain_scope
    async with cheap_treasury.db.transaction() as conn:
        (seen,), _ = await uncollected.read_page(conn, scope, cheap_treasury.clock.now(), 0)
    cheap_treasury.clock.advance(1)
    await wish(cheap_treasury, one, 9_000)
    async with cheap_treasury.db.transaction() as conn:
        await uncollected.note(conn, scope, cheap_treasury.ids, [(seen, seen.judged)], cheap_treasury.clock.now())
        assert (await find(conn, one.uncollected_id)).asked_fee_share_bps == 9_000


async def test_switched_off_it_is_collected_for_who_asks(cheap_treasury):
    await rule(cheap_treasury, '{"collection": {"enabled": false}}')
    address, engine = await cheap_treasury.receive("USDX", 50 * ONE), cheap_treasury.engine()
    await cheap_treasury.work(engine, rounds=3, until="enough")
    (one,) = await listed(cheap_treasury)
    assert one.reason == "collecting_off"
    await wish(cheap_treasury, one)
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 0


async def test_a_token_that_the_signer_does_not_know_is_told_and_not_collected_for_anybody(cheap_treasury):
    address, engine = await cheap_treasury.receive("USDX", 50 * ONE), cheap_treasury.engine()
    async with cheap_treasury.db.autocommit() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO chain_tokens (token_id, chain, origin, state, contract, symbol, decimals, label, sendable,"
            " created_at, changed_at, revision) VALUES ('tkn_1', 'memory', 'added', 'enabled', $1,"
            " 'USDX', 6, 'x', false, now(), now(), 1)",
            (cheap_treasury.token("USDX").contract,),
        )
    await cheap_treasury.work(engine, rounds=3, until="enough")
    (one,) = await listed(cheap_treasury)
    assert one.reason == "token_not_sendable"
    await wish(cheap_treasury, one, 9_999)
    await cheap_treasury.work(engine, rounds=3, until="enough")
    assert await cheap_treasury.on_chain(address, "USDX") == 50 * ONE


async def test_however_much_dust_lies_there_everything_else_is_looked_at(cheap_treasury, monkeypatch):
    """As many as one look takes stay for good, and others too: what is new is looked at, and all of it again."""
    monkeypatch.setattr(uncollected, "UNCOLLECTED_MAX", 3)
    engine = cheap_treasury.engine()
    small = [await cheap_treasury.receive("USDX", 3 * ONE) for _ in range(7)]
    await cheap_treasury.work(engine, rounds=6, until="enough")
    assert await reasons(cheap_treasury) == dict.fromkeys(small, "below_minimum")
    worthy = await cheap_treasury.receive("USDX", 50 * ONE)
    await cheap_treasury.work(engine, rounds=12, until="enough")
    assert await cheap_treasury.on_chain(worthy, "USDX") == 0
    await rule(cheap_treasury, '{"collection": {"enabled": false}}')
    await cheap_treasury.work(engine, rounds=6, until="enough")
    assert await reasons(cheap_treasury) == dict.fromkeys(small, "collecting_off")


async def test_what_a_payout_waits_for_and_what_cannot_be_collected_keeps_nothing_else(cheap_treasury, monkeypatch):
    engine = cheap_treasury.engine()
    stuck = [await cheap_treasury.receive("USDX", 50 * ONE) for _ in range(4)]
    assert await engine._collector.collect() == len(stuck)
    async with cheap_treasury.db.transaction() as conn:
        failed = "UPDATE outbound_intents SET state = 'failed', finished_at = $1 WHERE kind = 'collection'"
        await conn.exec_driver_sql(failed, (cheap_treasury.clock.now(),))
        await conn.exec_driver_sql("UPDATE deposits SET collection_pk = NULL")
    # As many as one look takes, and one more.
    monkeypatch.setattr(uncollected, "UNCOLLECTED_MAX", 3)
    await cheap_treasury.pay_out("USDX", 150 * ONE, await cheap_treasury.stranger(1))
    await cheap_treasury.work(engine, rounds=3, until="enough")
    merchant, _ = await cheap_treasury.new_merchant("mer_other")
    other = await cheap_treasury.receive("USDX", 50 * ONE, merchant=merchant)
    await cheap_treasury.work(engine, rounds=12, until="enough")
    assert await cheap_treasury.on_chain(other, "USDX") == 0
    assert [await cheap_treasury.on_chain(one, "USDX") for one in stuck] == [50 * ONE] * 4
    assert set(await reasons(cheap_treasury)) == set(stuck)
    async with cheap_treasury.db.autocommit() as conn:
        (waits,) = await conn.exec_driver_sql("SELECT reason FROM outbound_intents WHERE kind = 'payout'")
    assert waits.reason == "collection"


async def test_the_row_of_what_is_there_no_more_goes(cheap_treasury):
    await cheap_treasury.receive("USDX", 3 * ONE)
    await cheap_treasury.work(cheap_treasury.engine(), rounds=3, until="enough")
    (one,) = await listed(cheap_treasury)
    async with cheap_treasury.db.autocommit() as conn:
        others = {name: getattr(one, name) for name in ("chain", "scope", "token", "decimals", "units")}
        assert others["chain"] == "memory"
        await conn.exec_driver_sql(
            "INSERT INTO uncollected_funds (uncollected_id, chain, scope, address_pk, merchant_pk, token, contract,"
            " decimals, units, reason, judged_at, created_at) SELECT 'unc_gone', chain, scope, address_pk, merchant_pk,"
            " 'GONE', 'mem1gone', decimals, units, reason, judged_at, created_at FROM uncollected_funds"
        )
    await cheap_treasury.work(cheap_treasury.engine(), rounds=2, until="enough")
    assert [left.uncollected_id for left in await listed(cheap_treasury)] == [one.uncollected_id]


async def test_an_address_tells_what_waits_for_confirmations_what_stays_and_what_is_on_its_way(cheap_treasury):
    address, engine = await cheap_treasury.receive("USDX", 3 * ONE), cheap_treasury.engine()
    await cheap_treasury.work(engine, rounds=3, until="enough")
    cheap_treasury.chain.transfer(cheap_treasury.token("USDX"), address, 40 * ONE)
    await cheap_treasury.mine()
    assert await at(cheap_treasury, address) == [("confirming", 40 * ONE, 1), ("uncollected", 3 * ONE, 1)]
    await cheap_treasury.mine(1 + cheap_treasury.info.confirmations)
    assert await at(cheap_treasury, address) == [("uncollected", 43 * ONE, 2)]
    await engine.tick()
    assert await at(cheap_treasury, address) == [("collecting", 43 * ONE, 2)]
    await cheap_treasury.work(engine, rounds=20, until="enough")
    assert await at(cheap_treasury, address) == []
    with pytest.raises(NotFoundError):
        await at(cheap_treasury, cheap_treasury.wallet.address)


async def test_on_a_real_node_it_is_judged_by_its_fees_and_collected_for_what_was_allowed(db, clock, ids, tmp_path):
    async with anvil_treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        (address,) = await treasury.receive_many("USDT", [4 * ONE])
        engine = treasury.engine()
        await treasury.work(engine, rounds=3, until="enough")
        (one,) = await listed(treasury)
        assert (one.reason, one.value_usd) == ("below_minimum", 4)
        assert 0 < one.fee_usd < 4
        share = int(one.fee_usd / 4 * 10_000)
        await wish(treasury, one, share // 2)
        await treasury.work(engine, rounds=3, until="enough")
        (one,) = await listed(treasury)
        assert (one.reason, one.refusal, one.asked_at) == ("below_minimum", "fee_above_share", None)
        await wish(treasury, one, min(9_999, share * 2))
        before = await treasury.wei(treasury.station)
        await treasury.work(engine)
        assert await treasury.on_chain(address, "USDT") == 0
        assert await treasury.on_chain(treasury.wallet.address, "USDT") == 4 * ONE
        spent, price = before - await treasury.wei(treasury.station), int(treasury.prices.board["ETH", "usd"])
        assert 0 < spent * price < 4 * 10**18
        assert await listed(treasury) == []
        await treasury.check_books()


def test_every_reason_has_a_sentence():
    assert set(explaining.TEXTS) == set(explaining.UncollectedReason)


async def test_an_address_is_read_by_its_merchants_deposits_however_many_others_lie_there(cheap_treasury):
    address = await cheap_treasury.receive("USDX", 3 * ONE)
    async with cheap_treasury.db.autocommit() as conn:
        # Of another merchant, who has none of the addresses that are asked about.
        await conn.exec_driver_sql(
            "WITH other AS (INSERT INTO merchants (merchant_id, email, name) VALUES ('mer_2', 'b@b.example', 'B')"
            " RETURNING id), theirs AS (INSERT INTO addresses (mode, family, address, merchant_pk, account_index,"
            " change, address_index) SELECT mode, family, 'mem1theirs', other.id, 9, 0, 0 FROM addresses, other"
            " WHERE address = $1 RETURNING id, merchant_pk)"
            " INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk, matches,"
            " token, contract, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations, status)"
            " SELECT deposit_id || n, chain, scope, tx_id || n, position, mode, theirs.merchant_pk, theirs.id, matches,"
            " token, contract, decimals, units, height, block_hash, ordinal, mined_at, required_confirmations, status"
            " FROM deposits, theirs, generate_series(1, 5000) n",
            (address,),
        )
    async with cheap_treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("ANALYZE deposits, addresses, chain_cursors")
        values = ([address], [cheap_treasury.family.name])
        for _ in range(7):  # from the sixth time on, PostgreSQL may plan without looking at the values
            told = await conn.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {explaining.AT_ADDRESS}", values)
            text = told.scalar_one()
            plan = (json.loads(text) if isinstance(text, str) else text)[0]["Plan"]
        assert sum(map(_rows_of_deposits, _nodes(plan))) < 50
        (one,) = await read_address(conn, [address], [cheap_treasury.family.name])
    assert (one.state, one.units) == ("uncollected", 3 * ONE)


def _nodes(plan):
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _rows_of_deposits(node):
    if node.get("Relation Name") != "deposits":
        return 0
    return (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
