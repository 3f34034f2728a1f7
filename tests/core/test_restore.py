"""A database that is lost comes back from the seed, the manifest and the chain: same addresses, same money."""

from __future__ import annotations

import json
from unittest.mock import ANY

import pytest

from cambist.secrets import SecretsBox
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.addresses.wallets import main_wallet
from cambist.services.recovery import restore
from cambist.services.recovery.reconcile import reconcile_chain
from cambist.services.recovery.restore import RestoreError
from cambist.services.recovery.restore.balances import ConfirmedDeposit, remains_of
from cambist.services.recovery.unfinished import is_unfinished
from cambist.signer.keystore import Keystore
from tests.support.forgetful import FINALITY_LAG, forgetful_chain
from tests.support.payment_env import registry
from tests.support.plays import play
from tests.support.reserving import ReservingChain
from tests.support.restoring import GAP, addresses, manifest_of, money, restorer
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow


@pytest.fixture
def make_chain():
    """Make the chain in memory; a test may ask for another."""
    return lambda: None


@pytest.fixture
async def treasury(db, clock, ids, tmp_path, make_chain):
    async with Treasury(db, clock, ids, tmp_path, chain=make_chain()) as treasury:
        await play(treasury, Treasury.open)
        yield treasury


async def run(treasury, database, manifest=None, **options):
    told = []
    summary = await restorer(treasury, database, **options).restore(
        manifest or await manifest_of(treasury), told.append
    )
    return summary, told


async def paid_addresses(database):
    return [address for address, (purpose, _) in (await addresses(database)).items() if purpose == "payment"]


async def busy(treasury):
    """Have two merchants earn, collect and spend, so that every kind of past is in the chain."""
    other, _ = await treasury.new_merchant("mer_2")
    async with treasury.db.transaction() as conn:
        await main_wallet(conn, treasury.keys, treasury.family, other, "live")
    for units in (5_000_000, 7_000_000, 2_000_000):
        await treasury.receive("USDX", units)
    await treasury.receive("USDX", 4_000_000, merchant=other)
    await treasury.receive("MEM", 3 * 10**18)
    to_address, theirs = await treasury.stranger(1), await treasury.deposit_address(other)
    await treasury.pay_out_many("USDX", [(to_address, 6_000_000), (theirs, 1_500_000)])
    await treasury.pay_out("MEM", 10**18, to_address)
    await treasury.work(treasury.engine())
    await treasury.mine(treasury.info.confirmations + 1)
    await treasury.receive("USDX", 900_000)
    return other


@pytest.mark.parametrize("make_chain", [lambda: None, forgetful_chain], ids=["past kept", "past forgotten"])
async def test_addresses_money_and_where_it_lies_are_the_same(treasury, empty):
    await busy(treasury)
    await treasury.mine(FINALITY_LAG)
    await treasury.check_books()
    before, theirs = await money(treasury.db), await addresses(treasury.db)
    summary, told = await run(treasury, empty)
    assert summary.agrees, told
    after = await money(empty)
    assert after == before
    assert len(after) >= 7
    restored = await addresses(empty)
    assert theirs.items() <= restored.items()
    assert (await reconcile_chain(empty, treasury.chain)).differences == []


async def test_a_reserve_that_stands_is_no_deposit_that_was_not_collected(db, empty, clock, ids, tmp_path):
    """What was brought to a deposit's address and is kept there for ever may be as much as was paid there."""
    known = registry({"memory": {"chains": {"memory": {"least_units": ReservingChain.reserve}}}})
    chain, coins = ReservingChain(known.chains["memory"]), ReservingChain.reserve // 10
    async with Treasury(db, clock, ids, tmp_path, chain=chain, chains=known) as treasury:
        await treasury.open(station=200 * coins)
        for units in (15, 40):
            await treasury.receive("MEM", units * coins)
        await treasury.pay_out("MEM", 50 * coins, await treasury.stranger(1))
        await treasury.work(treasury.engine())
        await treasury.mine(treasury.info.confirmations + 1)
        await treasury.receive("MEM", 12 * coins)
        await treasury.check_books()
        before, lay = await money(treasury.db), await lies(treasury.db)
        assert lay["custody_deposits"] == 12 * coins
        summary, told = await run(treasury, empty)
        assert summary.agrees, told
        assert (await money(empty), await lies(empty)) == (before, lay)


async def test_what_was_paid_out_of_coin_for_fees_is_the_merchants_debt_and_no_coin_of_the_merchant(treasury, empty):
    debt = await overdrawn(treasury)
    await treasury.mine(treasury.info.confirmations + 1)
    before, lay = await money(treasury.db), await lies(treasury.db)
    assert lay == {"custody_deposits": 10**18, "custody_wallet": -debt, "float_wallet": ANY}
    summary, told = await run(treasury, empty)
    assert summary.agrees, told
    assert (await money(empty), await lies(empty)) == (before, lay)


async def test_a_debt_that_was_collected_since_the_manifest_takes_nothing_from_the_merchant(treasury, empty):
    await overdrawn(treasury)
    manifest = await manifest_of(treasury)
    assert [*manifest.merchants[0].overdrawn] == ["memory"]
    await treasury.pay_out("MEM", (await treasury.balance("MEM")).available, await treasury.stranger(1))
    await treasury.work(treasury.engine())
    await treasury.mine(treasury.info.confirmations + 1)
    before, lay = await money(treasury.db), await lies(treasury.db)
    assert "custody_deposits" not in lay
    assert lay["float_wallet"] < int(manifest.merchants[0].floats["memory"])  # a fee was paid since
    summary, told = await run(treasury, empty, manifest)
    assert summary.agrees, told
    assert (await money(empty), await lies(empty)) == (before, lay)


async def overdrawn(treasury):
    """Have native coin be paid out of what lies on a wallet for fees, and return how much.

    What one fee takes at most is not kept for fees: a payout of so little does not wait for deposits to be collected.
    """
    await treasury.receive("USDX", 5_000_000)
    to_address = await treasury.stranger(1)
    await treasury.pay_out("USDX", 1_000_000, to_address)
    await treasury.work(treasury.engine())
    await treasury.receive("MEM", 10**18)
    debt = (await lies(treasury.db))["float_wallet"] // 100
    await treasury.pay_out("MEM", debt, to_address)
    await treasury.work(treasury.engine())
    return debt


async def lies(database):
    """Return where the native coin of merchants lies, and the platform's with it."""
    async with database.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT purpose, sum(-balance) AS units FROM ledger_accounts WHERE asset = 'memory/native' AND balance <> 0"
            " AND purpose IN ('custody_deposits', 'custody_wallet', 'float_wallet') GROUP BY purpose"
        )
        return {row.purpose: int(row.units) for row in rows}


async def test_restored_money_can_be_spent_and_nothing_is_collected_twice(treasury, empty, clock, ids, tmp_path):
    await busy(treasury)
    await run(treasury, empty)
    async with empty.transaction() as conn:
        merchant = (await conn.exec_driver_sql("SELECT id FROM merchants WHERE merchant_id = 'mer_1'")).scalar_one()
        project = await conn.exec_driver_sql(
            "INSERT INTO projects (project_id, merchant_pk, name, mode) VALUES ('prj_9', $1, 'Shop', 'live')"
            " RETURNING id",
            (merchant,),
        )
        project_pk = project.scalar_one()
        collected = await conn.exec_driver_sql(
            "SELECT count(*) FROM deposits WHERE collection_pk IS NOT NULL AND merchant_pk = $1", (merchant,)
        )
        assert collected.scalar_one() >= 2
    heir = Treasury(empty, clock, ids, tmp_path / "heir", chain=treasury.chain)
    heir.box = SecretsBox([b"\1" * 32], ids.random_bytes)
    heir.keys = AccountKeys(heir.box)
    heir.signer, heir.station, heir.merchant, heir.project = treasury.signer, treasury.station, merchant, project_pk
    everything = (await heir.balance("USDX")).available
    assert everything == 14_900_000 - 7_500_000
    to_address = await heir.stranger(7)
    await heir.pay_out("USDX", everything, to_address)
    await heir.work(heir.engine())
    assert await heir.on_chain(to_address, "USDX") == everything
    await heir.mine(heir.info.confirmations + 1)
    assert (await reconcile_chain(empty, heir.chain)).differences == []


async def test_what_is_not_confirmed_yet_is_confirmed_after_the_restore(treasury, empty):
    address = await treasury.deposit_address()
    treasury.chain.transfer(treasury.token("USDX"), address, 1_000_000)
    await treasury.mine(1)
    summary, _ = await run(treasury, empty)
    assert summary.agrees
    (line,) = [line for line in summary.reports[0].groups if line.token == "USDX"]
    assert (line.booked, line.in_transit) == ("0", "+1")


async def test_an_address_handed_out_after_the_manifest_is_found_within_the_gap(treasury, empty):
    await treasury.receive("USDX", 1_000_000)
    manifest = await manifest_of(treasury)
    await treasury.receive("USDX", 2_000_000)
    summary, _ = await run(treasury, empty, manifest)
    assert summary.deposits - 1 == 2  # and the gas station's own
    assert summary.further == [], "this is what the gap is for"
    async with empty.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT DISTINCT next_index FROM account_keys WHERE mode = 'live' AND merchant_pk IS NOT NULL"
        )
        # What the manifest did not know was address 2, and is among those that are never handed out again.
        assert list(rows.scalars()) == [treasury._index + GAP]


async def test_what_was_paid_behind_the_gap_is_told_by_what_was_paid_at_its_end(treasury, empty):
    """As where the manifest is of yesterday: nobody watches what lies behind the gap."""
    manifest = await manifest_of(treasury)
    for _ in range(GAP + 3):
        await treasury.receive("USDX", 1_000_000)
    summary, _ = await run(treasury, empty, manifest)
    assert summary.further == ["mer_1"]
    assert sum(units for (_, _, what), units in (await money(empty)).items() if what == "owned") < (GAP + 3) * 1_000_000


async def test_what_is_handed_out_behind_the_gap_after_a_restore_is_no_reason_to_restore_anew(treasury, empty):
    """Repeating it on a gateway at work is harmless, so it must not send its operator to another new database."""
    manifest = await manifest_of(treasury)
    await run(treasury, empty, manifest)
    at_work = Treasury(empty, treasury.clock, treasury.ids, treasury.folder, chain=treasury.chain)
    at_work.keys, at_work._index = restorer(treasury, empty).keys, treasury._index + GAP
    async with empty.transaction() as conn:
        merchant = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()
    address = await at_work.deposit_address(merchant)
    treasury.chain.transfer(treasury.token("USDX"), address, 5_000_000)
    await treasury.mine(1 + treasury.info.confirmations)
    before = await money(empty)
    summary, _ = await run(treasury, empty, manifest)
    assert await money(empty) != before, "it was paid"
    assert summary.further == []


async def test_nobody_knows_the_passwords_until_the_operator_resets_them(treasury, empty):
    await run(treasury, empty)
    async with empty.transaction() as conn:
        row = (await conn.exec_driver_sql("SELECT email, name, password_hash FROM members")).one()
    assert tuple(row) == ("mer_1@example.com", "Shop", "!")


async def test_a_database_in_use_is_left_alone(treasury, db):
    before = await money(db)
    with pytest.raises(RestoreError, match="in use already"):
        await run(treasury, db)
    assert await money(db) == before


async def test_another_seed_is_refused_and_leaves_the_database_to_the_right_one(treasury, empty):
    await busy(treasury)
    other = Keystore("legal winner thank year wave sausage worth useful legal winner thank yellow")
    with pytest.raises(RestoreError, match="not the one of the manifest"):
        await run(treasury, empty, keystore=other)
    summary, _ = await run(treasury, empty)
    assert summary.agrees
    assert (await money(empty)) == (await money(treasury.db))


async def stopped(treasury, empty, monkeypatch):
    """Begin a restore that ends as the chain cannot be read, and return its manifest."""
    manifest = await manifest_of(treasury)
    monkeypatch.setattr("cambist.services.recovery.restore.scan.PAUSE_FIRST_S", 0)
    treasury.chain.faults.unavailable = True
    with pytest.raises(RestoreError, match="goes on from there"):
        await run(treasury, empty, manifest)
    treasury.chain.faults.unavailable = False
    return manifest


async def test_it_goes_on_where_it_stopped_and_repeating_it_changes_nothing(treasury, empty, monkeypatch):
    await busy(treasury)
    manifest = await stopped(treasury, empty, monkeypatch)
    await run(treasury, empty, manifest)
    once, begin = await money(empty), await books_from(empty)
    summary, _ = await run(treasury, empty, manifest)
    assert summary.agrees
    assert await money(empty) == once
    # Not even much later, when customers have paid again.
    treasury.chain.transfer(
        treasury.token("USDX"), next(one for one in await paid_addresses(empty) if one.startswith("mem1")), 1_000
    )
    treasury.chain.mine(treasury.info.confirmations + 1)
    await run(treasury, empty, manifest)
    async with empty.transaction() as conn:
        held = await conn.exec_driver_sql("SELECT sum(balance) FROM ledger_accounts WHERE purpose = 'held'")
        waiting = await conn.exec_driver_sql("SELECT sum(units - available_units) FROM deposits WHERE merchant_pk > 0")
        assert (int(held.scalar_one()), int(waiting.scalar_one())) == (1_000, 1_000)
    assert await books_from(empty) == begin, "what a node kept back since the first time can be read again"


async def books_from(database):
    async with database.transaction() as conn:
        return (await conn.exec_driver_sql("SELECT books_from FROM chain_cursors")).scalar_one()


async def test_a_chain_that_a_worker_began_to_read_meanwhile_is_refused_and_not_taken_for_read(
    treasury, empty, monkeypatch
):
    """A worker begins at the head: a restore that went on from there would miss every deposit before, untold."""
    await treasury.receive("USDX", 1_000_000)
    manifest = await stopped(treasury, empty, monkeypatch)
    await Treasury(empty, treasury.clock, treasury.ids, treasury.folder, chain=treasury.chain).poll()
    with pytest.raises(RestoreError, match=r"memory is read by a worker already.* restore into another new database"):
        await run(treasury, empty, manifest)
    async with empty.transaction() as conn:
        assert await is_unfinished(conn)


async def test_a_restore_is_unfinished_until_it_has_come_to_its_end(treasury, empty, monkeypatch):
    async def unfinished(database):
        async with database.transaction() as conn:
            return await is_unfinished(conn)

    assert not await unfinished(empty)
    monkeypatch.setattr("cambist.services.recovery.restore.scan.PAUSE_FIRST_S", 0)
    treasury.chain.faults.unavailable = True
    with pytest.raises(RestoreError):
        await run(treasury, empty)
    assert await unfinished(empty)
    treasury.chain.faults.unavailable = False
    await run(treasury, empty)
    assert not await unfinished(empty)
    assert not await unfinished(treasury.db)


async def test_without_a_manifest_accounts_and_indexes_are_given_by_hand(treasury, empty):
    await busy(treasury)
    before = await money(treasury.db)
    by_hand = restore.by_hand(treasury.registry, range(1, 4), 20, {"memory": 0})
    summary, _ = await run(treasury, empty, by_hand)
    assert (summary.merchants, summary.agrees) == (3, True)
    usdx = treasury.asset("USDX")
    owned = {units for (_, asset, what), units in (await money(empty)).items() if (asset, what) == (usdx, "owned")}
    assert owned == {units for (_, asset, what), units in before.items() if (asset, what) == (usdx, "owned")}


async def test_a_chain_that_is_not_configured_is_asked_for(treasury, empty):
    by_hand = restore.by_hand(treasury.registry, range(1, 2), 1, {"moon": 0})
    with pytest.raises(RestoreError, match="not configured here: moon"):
        await run(treasury, empty, by_hand)


async def test_the_manifest_is_written_for_its_owner_alone_and_holds_no_secret(treasury, tmp_path):
    await treasury.receive("USDX", 1_000_000)
    path = tmp_path / "recovery.json"
    manifest = await manifest_of(treasury)
    restore.write_manifest(path, manifest)
    restore.write_manifest(path, manifest)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir() if "recovery" in one.name] == ["recovery.json"]
    assert restore.read_manifest(path) == manifest
    text = path.read_text()
    assert "xpub" not in text
    (merchant,) = json.loads(text)["merchants"]
    assert merchant["indexes"]["live/1"] == 2
    first = json.loads(text)["chains"][0]["firstHeight"]
    async with treasury.db.transaction() as conn:
        lowest = (await conn.exec_driver_sql("SELECT min(height) FROM deposits")).scalar_one()
    assert first <= lowest


@pytest.mark.parametrize(
    "text, problem",
    [
        ("", "no recovery manifest"),
        ('{"version": 2, "merchants": [], "chains": []}', "no recovery manifest"),
        ('{"merchants": [], "chains": [], "seed": "x"}', "no recovery manifest"),
        ('{"merchants": [], "chains": [{"chain": "a", "firstHeight": -1}]}', "no recovery manifest"),
        ('{"merchants": [], "chains": [{"chain": "a", "firstHeight": 1}, {"chain": "a", "firstHeight": 2}]}', "twice"),
    ],
)
def test_a_file_that_is_no_manifest_is_refused_in_a_sentence(tmp_path, text, problem):
    path = tmp_path / "recovery.json"
    path.write_text(text)
    with pytest.raises(RestoreError, match=problem):
        restore.read_manifest(path)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(RestoreError, match="cannot be read"):
        restore.read_manifest(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    "held, left, surplus", [(0, [], 0), (10, [10], 0), (14, [10], 4), (15, [5, 10], 0), (9, [], 9), (18, [3, 5, 10], 0)]
)
def test_what_is_left_are_the_newest_deposits_that_the_address_can_hold(held, left, surplus):
    deposits = [ConfirmedDeposit(row, units, units) for row, units in enumerate([3, 5, 10])]
    remains = remains_of(deposits, held, pays_fees=False)
    assert [one.units for one in remains.left] == left
    assert remains.surplus == surplus
    assert [*remains.collected, *remains.left] == deposits


@pytest.mark.parametrize(
    "held, left, surplus",
    [
        (0, [], 0),
        (3, [], 3),
        (980, [1000], -20),
        (1004, [1000], 4),
        (1490, [500, 1000], -10),
        (9000, [500, 1000], 7500),
    ],
)
def test_of_the_coin_that_pays_fees_the_nearest_sum_is_what_is_left(held, left, surplus):
    deposits = [ConfirmedDeposit(1, 500, 500), ConfirmedDeposit(2, 1000, 1000)]
    remains = remains_of(deposits, held, pays_fees=True)
    assert ([one.units for one in remains.left], remains.surplus) == (left, surplus)


@pytest.mark.parametrize(
    "held, left, surplus",
    [
        (0, [], 0),
        (1001, [], 1001),
        (1800, [600, 1200], 0),
        (2803, [600, 1200], 1003),
        (2201, [1200], 1001),
        (1000, [], 1000),
        (9000, [600, 1200], 7200),
    ],
)
def test_what_an_account_keeps_is_none_of_its_deposits(held, left, surplus):
    deposits = [ConfirmedDeposit(1, 600, 600), ConfirmedDeposit(2, 1200, 1200)]
    remains = remains_of(deposits, held, pays_fees=True, least_units=1000)
    assert ([one.units for one in remains.left], remains.surplus) == (left, surplus)


def test_by_hand_reserves_indexes_in_both_modes():
    manifest = restore.by_hand(registry(), range(2, 3), 7, {})
    assert manifest.merchants[0].indexes == {"live/1": 7, "live/60": 7, "sandbox/1": 7, "sandbox/60": 7}
