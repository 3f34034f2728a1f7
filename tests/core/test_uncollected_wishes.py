"""A wish to have something collected says why it has no answer yet, and may be taken back until it has one."""

from __future__ import annotations

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from cambist.plugin import ChainUnavailableError, InconsistentChainError
from cambist.services.errors import NotFoundError
from cambist.services.listing import Part
from cambist.services.sending.collections import explaining, planning, uncollected
from cambist.services.sending.collections.explaining import ask, find, list_uncollected, wish_waits_for, withdraw

ONE = 10**6


async def small(treasury, count=1):
    """Have something small lie on addresses; return an engine that looks at all of it seldom, and the rows."""
    engine = treasury.engine(structs.replace(treasury.settings, collect_interval_ms=3_600_000))
    for _ in range(count):
        await treasury.receive("USDX", 3 * ONE)
    await engine.tick()
    async with treasury.db.transaction() as conn:
        found = (await list_uncollected(conn, Part(limit=100))).items
    assert len(found) == count
    return engine, found


async def wish(treasury, *found, share=9_000):
    treasury.clock.advance(1)
    async with treasury.db.transaction() as conn:
        for one in found:
            await ask(conn, one.uncollected_id, share, treasury.clock.now())


async def take_back(treasury, one):
    async with treasury.db.transaction() as conn:
        return await withdraw(conn, one.uncollected_id)


async def waits_for(treasury, one, *, paused=False):
    async with treasury.db.transaction() as conn:
        waits = wish_waits_for(await find(conn, one.uncollected_id), paused=paused)
    return None if waits is None else waits.code


async def test_a_wish_says_that_nobody_has_looked_or_that_sending_is_paused(cheap_treasury):
    _, (one,) = await small(cheap_treasury)
    assert await waits_for(cheap_treasury, one) is None
    await wish(cheap_treasury, one)
    assert await waits_for(cheap_treasury, one) == "not_looked_at"
    assert await waits_for(cheap_treasury, one, paused=True) == "paused"


async def test_a_wish_says_that_the_chain_does_not_answer_and_is_met_later(cheap_treasury):
    engine, (one,) = await small(cheap_treasury)
    await wish(cheap_treasury, one)

    async def away(call):
        if call == "plan":
            raise ChainUnavailableError("no node answers")

    cheap_treasury.chain.faults.before = away
    with pytest.raises(ChainUnavailableError):
        await engine.tick()
    assert await waits_for(cheap_treasury, one) == "no_node_answers"
    cheap_treasury.chain.faults.before = None
    await wish(cheap_treasury, one, share=8_000)
    assert await waits_for(cheap_treasury, one) == "not_looked_at", "it is another wish"
    assert (await engine.tick()).collected == 1


async def test_what_no_chain_says_is_named_and_not_quoted(cheap_treasury):
    engine, (one,) = await small(cheap_treasury)
    await wish(cheap_treasury, one)

    async def broken(call):
        if call == "plan":
            raise KeyError("https://node.example/key-of-ours")

    cheap_treasury.chain.faults.before = broken
    with pytest.raises(KeyError):
        await engine.tick()
    async with cheap_treasury.db.transaction() as conn:
        told = wish_waits_for(await find(conn, one.uncollected_id), paused=False)
    assert (told.code, told.text.endswith("It says: KeyError")) == ("cost_unknown", True)


async def test_a_wish_says_that_no_gas_station_is_known(cheap_treasury, monkeypatch):
    _, (one,) = await small(cheap_treasury)
    await wish(cheap_treasury, one)

    async def unknown(*_):
        return None

    with monkeypatch.context() as patch:
        patch.setattr(planning, "gas_station", unknown)
        assert (await cheap_treasury.engine().tick()).collected == 0
    assert await waits_for(cheap_treasury, one) == "no_gas_station"


async def test_one_wish_that_nobody_can_plan_keeps_no_other_from_being_met(cheap_treasury):
    engine, (stuck, *others) = await small(cheap_treasury, count=3)
    cheap_treasury.chain.faults.contradicted = {stuck.address}
    await wish(cheap_treasury, stuck, *others)
    with pytest.raises(InconsistentChainError):
        await engine.tick()
    assert await waits_for(cheap_treasury, stuck) == "cost_unknown"
    async with cheap_treasury.db.transaction() as conn:
        left = (await list_uncollected(conn, Part(limit=100))).items
    assert [one.uncollected_id for one in left] == [stuck.uncollected_id]
    cheap_treasury.chain.faults.contradicted = set()
    await cheap_treasury.work(engine)
    assert [await cheap_treasury.on_chain(one.address, "USDX") for one in others] == [0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, -1])
async def test_however_many_wishes_nobody_can_plan_the_next_one_has_its_turn(cheap_treasury, monkeypatch, place):
    monkeypatch.setattr(planning, "APART_MAX", 2)
    engine, found = await small(cheap_treasury, count=4)
    fine = found[place]
    stuck = [one for one in found if one is not fine]
    cheap_treasury.chain.faults.contradicted = {one.address for one in stuck}
    await wish(cheap_treasury, fine)
    for share in (9_000, 8_900):  # another wish is looked at once
        await wish(cheap_treasury, *stuck, share=share)
        with pytest.raises(InconsistentChainError):
            await engine.tick()
    async with cheap_treasury.db.transaction() as conn:
        left = {one.uncollected_id for one in (await list_uncollected(conn, Part(limit=100))).items}
    assert left == {one.uncollected_id for one in stuck}
    cheap_treasury.chain.faults.contradicted = set()
    await cheap_treasury.work(engine)


@pytest.mark.slow
@pytest.mark.parametrize("place", range(4))
async def test_wishes_of_which_a_look_sees_a_part_each_have_their_turn(cheap_treasury, monkeypatch, place):
    engine, found = await small(cheap_treasury, count=4)
    monkeypatch.setattr(planning, "APART_MAX", 1)
    monkeypatch.setattr(planning, "FAILED_MAX", 3)
    monkeypatch.setattr(uncollected, "UNCOLLECTED_MAX", 2)
    fine = found[place]
    cheap_treasury.chain.faults.contradicted = {one.address for one in found if one is not fine}
    await wish(cheap_treasury, *found)
    for _ in range(4):
        with pytest.raises(InconsistentChainError):
            await engine._collector.collect()
    async with cheap_treasury.db.transaction() as conn:
        left = {one.uncollected_id for one in (await list_uncollected(conn, Part(limit=100))).items}
    assert left == {one.uncollected_id for one in found if one is not fine}
    assert 0 < len(engine._collector._failed) <= 3, "what is remembered is bounded"
    cheap_treasury.chain.faults.contradicted = set()
    await cheap_treasury.work(engine)


async def test_a_defect_in_judging_is_raised_and_logged_before_an_outage_of_the_same_look(cheap_treasury):
    engine, (one, _) = await small(cheap_treasury, count=2)
    await wish(cheap_treasury, one)
    raised = [ChainUnavailableError("no node answers"), KeyError("a defect")]
    left = list(raised)

    async def fail(call):
        if call == "plan" and left:
            raise left.pop(0)

    cheap_treasury.chain.faults.before = fail
    with capture_logs() as logs, pytest.raises(KeyError):
        await engine.tick()
    told = [entry["exc_info"] for entry in logs if entry["event"] == "judging_failed"]
    assert told == [None, raised[1]]
    await cheap_treasury.work(engine)


async def test_a_wish_that_is_taken_back_is_not_met_and_leaves_nothing_behind(cheap_treasury):
    engine, (one,) = await small(cheap_treasury)
    assert (await take_back(cheap_treasury, one))[1] is False
    await wish(cheap_treasury, one)
    row, was_asked = await take_back(cheap_treasury, one)
    assert (row.asked_at, row.asked_fee_share_bps, was_asked) == (None, None, True)
    assert (await take_back(cheap_treasury, one))[1] is False
    await engine.tick()
    await cheap_treasury.work(engine, rounds=3, until="enough")
    assert await cheap_treasury.on_chain(one.address, "USDX") == 3 * ONE
    await wish(cheap_treasury, one)
    assert (await engine.tick()).collected == 1
    with pytest.raises(NotFoundError):
        await take_back(cheap_treasury, one)
    await cheap_treasury.work(engine)


async def test_a_wish_that_is_taken_back_while_it_is_judged_is_not_met(cheap_treasury):
    """The engine has found that it may be collected, and is about to ask for that."""
    engine, (one,) = await small(cheap_treasury)
    await wish(cheap_treasury, one)
    taken_back = []

    async def take_back_meanwhile(call):
        if call == "plan" and not taken_back:
            taken_back.append(await take_back(cheap_treasury, one))

    cheap_treasury.chain.faults.before = take_back_meanwhile
    assert (await engine.tick()).collected == 0
    assert taken_back[0][1] is True
    assert await waits_for(cheap_treasury, one) is None
    assert await cheap_treasury.open_intents() == []


async def test_a_wish_whose_look_failed_may_be_taken_back(cheap_treasury):
    engine, (one,) = await small(cheap_treasury)
    cheap_treasury.chain.faults.contradicted = {one.address}
    await wish(cheap_treasury, one)
    with pytest.raises(InconsistentChainError):
        await engine.tick()
    row, was_asked = await take_back(cheap_treasury, one)
    assert (row.hindrance, row.hindered_at, was_asked) == (None, None, True)
    assert explaining.wish_waits_for(row, paused=False) is None
