"""A gas station is looked at, and the operator hears once when it runs low, when it is empty, and when it is well."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from cambist.plugin import LendingChain, Stake
from cambist.services.sending.gas import gas_stations
from cambist.services.sending.gas.gas_stations import LowMarks
from cambist.testing.memory import MemoryChain, MemoryFamily, memory_chain_info

COIN = 10**18


@pytest.fixture
async def chain():
    return MemoryChain(memory_chain_info())


@pytest.fixture
async def address(db):
    address = MemoryFamily().derive_address(XPUB, 0, 0)
    async with db.autocommit() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)"
            " VALUES ('live', 'memory', $1, 'gas', 0, 0, 0)",
            (address,),
        )
    return address


XPUB = "xpub6BosfCnifzxcFwrSzQiqu2DBVTshkCXacvNsWGYJVVhhawA7d4R5WSWGFNbi8Aw6ZRc1brxMyWMzG3DSSSSoekkudhUd9yLb6qx39T9nMdj"


def fund(chain, address, units):
    chain.transfer(chain.info.native, address, units)
    chain.mine()


async def check(db, chain, clock, low="1", low_stake=None):
    marks = LowMarks(
        balances={chain.info.id: low} if low else {}, stakes={chain.info.id: low_stake} if low_stake else {}
    )
    with capture_logs() as logs:
        await gas_stations.check_all(db, {chain.info.id: chain}, marks, clock.now())
    return [entry["event"] for entry in logs]


async def stations(db):
    async with db.transaction() as conn:
        return await gas_stations.list_stations(conn)


async def test_before_there_is_an_address_there_is_nothing_to_tell(db, chain, clock):
    assert await check(db, chain, clock) == []
    assert await stations(db) == []


async def test_each_change_is_told_once(db, chain, clock, address):
    assert await check(db, chain, clock) == ["gas_station_empty"]
    assert await check(db, chain, clock) == []
    fund(chain, address, COIN // 2)
    assert await check(db, chain, clock) == ["gas_station_low"]
    assert await check(db, chain, clock) == []
    fund(chain, address, COIN)
    assert await check(db, chain, clock) == ["gas_station_recovered"]
    clock.advance(60)
    assert await check(db, chain, clock) == []
    (station,) = await stations(db)
    assert (station.balance, station.is_low, station.waiting, station.address) == (COIN * 3 // 2, False, 0, address)
    assert station.low_below == COIN
    assert station.checked_at == clock.now()


async def test_without_a_limit_it_must_pay_for_a_hundred_of_the_dearest_recent_transfers(db, chain, clock, address):
    fund(chain, address, 1_000_000)
    assert await check(db, chain, clock, low=None) == []
    await stored_transaction(db, cost=10_001)
    assert await check(db, chain, clock, low=None) == ["gas_station_low"]
    assert [one.low_below for one in await stations(db)] == [1_000_100]


async def test_it_says_how_many_transfers_wait_for_gas(db, chain, clock, address):
    fund(chain, address, COIN)
    await stored_transaction(db, cost=1, state="waiting", reason="gas")
    await stored_transaction(db, cost=1, state="waiting", reason="turn")
    await check(db, chain, clock)
    (station,) = await stations(db)
    assert station.waiting == 1


async def test_a_chain_that_cannot_be_asked_leaves_what_was_known(db, chain, clock, address):
    fund(chain, address, COIN)
    await check(db, chain, clock)
    chain.faults.unavailable = True
    assert await check(db, chain, clock) == ["gas_station_unknown"]
    (station,) = await stations(db)
    assert station.balance == COIN


class Odd(MemoryChain):
    """Never says what it holds, in the way that the test says."""

    def __init__(self, said):
        super().__init__(structs.replace(memory_chain_info(), id="odd"))
        self.said = said

    async def balance(self, *_):
        await self.said()


async def test_a_plugins_bug_stops_nobody_elses_check(db, chain, clock, address):
    async def fail():
        raise KeyError("result")

    with capture_logs() as logs:
        await gas_stations.check_all(db, {"odd": Odd(fail), "memory": chain}, LowMarks(), clock.now())
    assert [one.chain for one in await stations(db)] == ["memory"]
    (told,) = [entry for entry in logs if entry["event"] == "gas_station_unknown"]
    assert (told["chain"], told["error"]) == ("odd", "KeyError: 'result'")


async def test_others_are_asked_beside_one_that_never_answers(db, chain, clock, address):
    asked, before = asyncio.Event(), chain.balance
    hangs = Odd(asyncio.Event().wait)

    async def balance(*of):
        asked.set()
        return await before(*of)

    chain.balance = balance
    checks = asyncio.create_task(gas_stations.check_all(db, {"odd": hangs, "memory": chain}, LowMarks(), clock.now()))
    async with asyncio.timeout(5):
        await asked.wait()
    checks.cancel()
    with capture_logs() as logs:
        await gas_stations.check_all(db, {"odd": hangs}, LowMarks(), clock.now(), timeout_s=0.01)
    assert [entry["event"] for entry in logs] == ["gas_station_unknown"]


class Staking(MemoryChain, LendingChain):
    """Tells the stake that the test says."""

    staked = Stake()
    own = ""

    async def stake(self, address):
        assert address == self.own
        return self.staked


@pytest.fixture
async def staking(address):
    chain = Staking(memory_chain_info())
    chain.own = address
    fund(chain, address, 5 * COIN)
    return chain


async def test_what_is_staked_is_remembered_where_the_chain_lends(db, chain, staking, clock, address):
    await check(db, chain, clock)
    assert (await stations(db))[0].stake is None
    free_at = clock.now() + timedelta(days=14)
    staking.staked = Stake(staked=50, lent=20, lendable=29, leaving=7, withdrawable=3, free_at=free_at)
    assert await check(db, staking, clock) == ["gas_station_recovered"]
    assert (await stations(db))[0].stake == staking.staked
    assert (await stations(db))[0].stake.total == 60


async def test_a_stake_that_is_used_up_is_told_once_and_what_is_lent_counts_as_left(db, staking, clock):
    staking.staked = Stake(staked=1000, lendable=1000)
    assert await check(db, staking, clock) == []
    staking.staked = Stake(staked=1000, lent=99, lendable=1)
    assert await check(db, staking, clock) == []
    staking.staked = Stake(staked=991, lent=98, lendable=1)
    assert await check(db, staking, clock) == ["gas_station_stake_low"]
    assert (await stations(db))[0].stake_low_below == 100
    assert await check(db, staking, clock) == []
    staking.staked = Stake(staked=1000, lendable=500)
    assert await check(db, staking, clock) == ["gas_station_stake_recovered"]


async def test_where_nothing_is_staked_no_stake_is_low(db, staking, clock):
    staking.staked = Stake(leaving=COIN)
    assert await check(db, staking, clock) == []


async def test_the_operator_says_from_which_stake_on_he_wants_to_know(db, staking, clock):
    staking.staked = Stake(staked=COIN, lendable=COIN)
    assert await check(db, staking, clock, low_stake="1") == []
    assert await check(db, staking, clock, low_stake="1.5") == ["gas_station_stake_low"]
    assert (await stations(db))[0].stake_low_below == COIN * 3 // 2
    assert "gas_low_stake_unusable" in await check(db, staking, clock, low_stake="0.0000000000000000001")


async def stored_transaction(db, *, cost, state="sending", reason=None):
    async with db.transaction() as conn:
        count = (await conn.exec_driver_sql("SELECT count(*) FROM outbound_intents")).scalar_one()
        intent = await conn.exec_driver_sql(
            "INSERT INTO outbound_intents (reference, kind, mode, chain, scope, source_address_pk, to_address, token,"
            " decimals, units, state, reason, due_at, created_at, updated_at) SELECT $1, 'top_up', 'live', 'memory', 0,"
            " id, 'somebody', 'MEM', 18, 1, $2, $3, now(), now(), now() FROM addresses RETURNING id, source_address_pk",
            (f"top_up:{count}", state, reason),
        )
        row = intent.one()
        await conn.exec_driver_sql(
            "WITH slot AS (INSERT INTO outbound_slots (intent_pk, address_pk, chain, scope, sequence, created_at)"
            " VALUES ($1, $2, 'memory', 0, $4, now()) RETURNING id) INSERT INTO outbound_txs (slot_pk, chain, scope,"
            " tx_id, raw, fee_limit, fee_price, fee_extra, created_at) SELECT id, 'memory', 0, 'tx' || id, '', 1, $3,"
            " 0, now() FROM slot",
            (row.id, row.source_address_pk, cost, count),
        )
