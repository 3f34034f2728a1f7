"""The books beside a chain that keeps no past: it tells only what is final now, and goes on while it is asked."""

from __future__ import annotations

import pytest

from cambist.services.recovery.reconcile import Impossible, balances, reconcile_chain
from cambist.testing.memory import Output
from tests.support.forgetful import FINALITY_LAG, forgetful_chain
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path, chain=forgetful_chain()) as treasury:
        await treasury.open()
        await treasury.mine(FINALITY_LAG + 1)
        yield treasury


@pytest.fixture
def reconcile(db, treasury):
    """Compare; where it has to wait, a block comes."""
    return lambda: reconcile_chain(db, treasury.chain, pause=treasury.mine)


async def test_the_gas_stations_opening_waits_until_its_balance_can_be_told(treasury, reconcile):
    assert {(line.group, line.difference) for line in (await reconcile()).groups} == {("gas", "0")}
    await treasury.check_books()


async def test_it_compares_at_the_height_that_is_final(treasury, reconcile):
    await treasury.receive("USDX", 1_000_000)
    await treasury.receive("MEM", 10**18)
    report = await reconcile()
    assert report.height == treasury.chain.height - FINALITY_LAG
    assert report.differences == []
    assert {line.in_transit for line in report.groups} == {"0"}


async def test_a_deposit_that_is_not_final_yet_is_no_difference(treasury, reconcile):
    for blocks in range(1, 6):
        address = await treasury.deposit_address()
        treasury.chain.transfer(treasury.token("USDX"), address, 1_000_000)
        await treasury.mine(blocks)
        assert (await reconcile()).differences == []


async def test_at_every_block_of_a_busy_gateway_there_is_no_difference(treasury, reconcile):
    for number in range(3):
        await treasury.receive("USDX", 1_000_000 + number)
    other, _ = await treasury.new_merchant("mer_2")
    recipients = [(await treasury.stranger(number), 300_000) for number in range(4)]
    await treasury.pay_out_many("USDX", [*recipients, (await treasury.deposit_address(other), 500_000)])
    engine, seen = treasury.engine(), set()
    for _ in range(40):
        while (await engine.tick()).more:
            pass
        report = await reconcile()
        assert report.differences == [], report.differences
        seen |= {line.group for line in report.groups if line.in_transit != "0"}
        if await treasury.is_idle():
            break
        await treasury.mine()
    assert seen == {"deposits", "wallet", "gas"}


async def test_the_chain_may_go_on_and_money_move_while_addresses_are_asked_one_by_one(treasury, reconcile):
    for number in range(6):
        await treasury.receive("USDX", 1_000_000 + number)
    treasury.chain.at_once_max = 1
    busy = await treasury.deposit_address()
    asked = 0

    async def meanwhile(call):
        nonlocal asked
        if call == "balance" and (asked := asked + 1) % 3 == 0 and asked < 30:
            treasury.chain.transfer(treasury.token("USDX"), busy, 1_000)
            await treasury.mine()

    treasury.chain.faults.before = meanwhile
    report = await reconcile()
    assert asked > 9
    assert report.differences == []


async def test_money_that_left_behind_our_back_is_told(treasury, reconcile):
    address = await treasury.receive("USDX", 1_000_000)
    usdx = treasury.token("USDX")
    treasury.chain.submit([Output(contract=usdx.contract, recipient=treasury.chain.faucet, amount=1)], sender=address)
    await treasury.mine(FINALITY_LAG + 1)
    (line,) = (await reconcile()).differences
    assert (line.group, line.difference, line.addresses[0].address) == ("deposits", "-0.000001", address)


async def test_a_worker_that_stands_still_is_no_difference(db, treasury, monkeypatch):
    monkeypatch.setattr(balances, "ROUNDS_MAX", 3)
    treasury.chain.mine(FINALITY_LAG + 5)

    async def wait() -> None:
        treasury.clock.advance(1)

    with pytest.raises(Impossible, match="has not read and opened it as far as it is final"):
        await reconcile_chain(db, treasury.chain, pause=wait)
