"""A backup that was restored hands out no address again that was handed out since, and knows whose those are."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from cambist.services.addresses.account_keys import claim_accounts, top_up_stock
from cambist.services.identity.suspension import reinstate, suspend
from cambist.services.receiving.deposits import AddressCache
from cambist.services.recovery import restore
from cambist.services.recovery.reconcile import reconcile_chain
from cambist.services.recovery.restore import RestoreError
from tests.support.account_rows import give_account
from tests.support.plays import play
from tests.support.restoring import ACCOUNT_GAP, GAP, addresses, manifest_of, money, restorer
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

_NEXT = """
SELECT m.merchant_id, k.next_index FROM account_keys k JOIN merchants m ON m.id = k.merchant_pk WHERE k.mode = 'live'
"""
_ACCOUNTS = "SELECT a.account_id, d.address FROM accounts a JOIN addresses d ON d.account_pk = a.id ORDER BY 1"


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await play(treasury, Treasury.open)
        yield treasury


@pytest.fixture
def backup(empty):
    return empty


@pytest.fixture
def path(tmp_path):
    return restore.accounts_path(tmp_path / "recovery.json")


async def rows(database, statement):
    async with database.transaction() as conn:
        return [tuple(row) for row in await conn.exec_driver_sql(statement)]


async def pay(treasury, address, units):
    treasury.chain.transfer(treasury.token("USDX"), address, units)
    await treasury.mine(1 + treasury.info.confirmations)


async def back_up(treasury, backup, path):
    """Make a database that knows what the treasury's knows now."""
    await restore.write_accounts(treasury.db, path)
    made = restorer(treasury, backup, gap=0)
    await made.restore(await manifest_of(treasury), print, restore.read_accounts(path))


async def test_what_was_handed_out_since_is_added_and_never_handed_out_again(treasury, backup, path):
    _, early = await give_account(treasury, "carol")
    await pay(treasury, early, 5_000_000)
    await back_up(treasury, backup, path)
    other, shop = await treasury.new_merchant("mer_2")
    treasury._index += 3 * GAP
    _, late = await give_account(treasury, "dave")
    _, theirs = await give_account(treasury, "erin", merchant=other, project=shop)
    for address, units in ((early, 1_000_000), (late, 2_000_000), (theirs, 3_000_000)):
        await pay(treasury, address, units)
    manifest = await manifest_of(treasury)
    await restore.write_accounts(treasury.db, path)

    added = await restorer(treasury, backup).add(manifest, restore.read_accounts(path))
    assert (added.merchants, added.accounts) == (1, 3)
    assert await rows(backup, _ACCOUNTS) == await rows(treasury.db, _ACCOUNTS)
    assert (await addresses(treasury.db)).items() <= (await addresses(backup)).items()
    first_unused = treasury._index + 1 + GAP
    assert set(await rows(backup, _NEXT)) == {("mer_1", first_unused), ("mer_2", first_unused)}

    caches = AddressCache(backup, treasury.family, "live")
    await restorer(treasury, backup)._scan(treasury.chain, caches, 0, print)
    assert await money(backup) == await money(treasury.db)
    assert (await reconcile_chain(backup, treasury.chain)).differences == []
    again = await restorer(treasury, backup).add(manifest, restore.read_accounts(path))
    assert (again.merchants, again.addresses, again.accounts) == (0, 0, 3)


async def test_what_was_leased_before_the_backup_and_handed_out_after_it_is_watched(treasury, backup, path):
    """A busy web process leases a thousand indexes at once: the backup counts them, and has none of their addresses."""
    await treasury.receive("USDX", 1_000_000)
    await back_up(treasury, backup, path)
    async with backup.transaction() as conn:
        ahead = "UPDATE account_keys SET next_index = $1 WHERE merchant_pk IS NOT NULL"
        await conn.exec_driver_sql(ahead, (treasury._index + 1 + 3 * GAP,))
    paid = await treasury.receive("USDX", 2_000_000)
    _, home = await give_account(treasury, "carol")
    await restorer(treasury, backup).add(await manifest_of(treasury))
    known = await addresses(backup)
    assert (known[paid], known[home]) == (("payment", "mer_1"), ("account", "mer_1"))
    caches = AddressCache(backup, treasury.family, "live")
    await restorer(treasury, backup)._scan(treasury.chain, caches, 0, print)
    assert await rows(backup, "SELECT sum(balance) FROM ledger_accounts WHERE purpose = 'held'") == [(2_000_000,)]


async def register(treasury, database, merchant_id):
    """Have a merchant register after a worker has filled the stock, and return its account."""
    box = treasury.box if database is treasury.db else restorer(treasury, database).box
    async with database.transaction() as conn:
        await top_up_stock(conn, treasury.signer, box, coin_types=[treasury.family.coin_type], stock=1)
        merchant_pk = await conn.scalar(
            text("INSERT INTO merchants (merchant_id, email, name) VALUES (:id, :id, 'Shop') RETURNING id"),
            {"id": merchant_id},
        )
        return await claim_accounts(conn, merchant_pk)


@pytest.mark.parametrize("is_backup", [True, False], ids=["a backup", "nothing but the manifest"])
async def test_who_registers_afterwards_never_gets_the_account_of_one_the_manifest_does_not_know(
    treasury, backup, path, is_backup
):
    if is_backup:
        await back_up(treasury, backup, path)
    await treasury.new_merchant("mer_2")
    manifest = await manifest_of(treasury)
    lost = [await register(treasury, treasury.db, f"mer_lost{number}") for number in range(ACCOUNT_GAP)]
    if is_backup:
        await restorer(treasury, backup).add(manifest)
    else:
        await restorer(treasury, backup).restore(manifest, print)
    assert await register(treasury, backup, "mer_new") == max(lost) + 1

    # Whose entry is added by hand has that account again, with addresses that were never handed out.
    entry = replace(manifest.merchants[0], merchant_id="mer_lost0", email="lost@example.com", account=lost[0])
    whole = replace(manifest, merchants=[*manifest.merchants, replace(entry, indexes={})])
    assert (await restorer(treasury, backup).add(whole)).merchants == 1
    assert ("mer_lost0", GAP) in await rows(backup, _NEXT)


async def test_who_registers_before_the_backup_is_told_anything_does_not_get_the_account_of_somebody_newer(
    treasury, backup, path
):
    """A worker on the backup has seen the manifest: with that account gone, nothing could add its merchant any more."""
    await back_up(treasury, backup, path)
    _, theirs = await give_account(treasury, "erin", merchant=(await treasury.new_merchant("mer_2"))[0])
    manifest = await manifest_of(treasury)
    async with backup.transaction() as conn:
        # A gateway that was never restored has set nothing aside.
        await conn.exec_driver_sql("UPDATE account_keys SET next_index = 0 WHERE merchant_pk IS NULL")
        await restore.keep_indexes(conn, manifest)
    assert await register(treasury, backup, "mer_new") != manifest.merchants[1].account
    assert (await restorer(treasury, backup).add(manifest)).merchants == 1
    assert (await addresses(backup))[theirs] == ("account", "mer_2")


async def test_accounts_that_a_restore_was_not_given_can_be_added_afterwards(treasury, backup, path):
    _, address = await give_account(treasury, "carol")
    await pay(treasury, address, 5_000_000)
    await restore.write_accounts(treasury.db, path)
    manifest = await manifest_of(treasury)
    await restorer(treasury, backup).restore(manifest, print)
    assert await rows(backup, _ACCOUNTS) == []
    await restorer(treasury, backup).add(manifest, restore.read_accounts(path))
    assert await rows(backup, _ACCOUNTS) == [("acc_carol", address)]
    await pay(treasury, address, 2_000_000)
    caches = AddressCache(backup, treasury.family, "live")
    await restorer(treasury, backup)._scan(treasury.chain, caches, 0, print)
    counted = "SELECT units, matches FROM deposits WHERE account_pk IS NOT NULL"
    assert await rows(backup, counted) == [(2_000_000, True)]


async def test_who_was_suspended_since_is_suspended_again_and_nobody_is_let_out(treasury, backup, path):
    await treasury.new_merchant("mer_2")
    async with treasury.db.transaction() as conn:
        await suspend(conn, "mer_2", "of then", now=treasury.clock.now())
    await back_up(treasury, backup, path)
    async with treasury.db.transaction() as conn:
        await suspend(conn, "mer_1", "stolen goods", now=treasury.clock.now())
        await reinstate(conn, "mer_2")
    manifest = await manifest_of(treasury)
    added = await restorer(treasury, backup).add(manifest)
    assert (added.merchants, added.suspended) == (0, 1)
    found = await rows(backup, "SELECT merchant_id, suspended_at IS NOT NULL, suspension_reason FROM merchants")
    assert sorted(found) == [("mer_1", True, "stolen goods"), ("mer_2", True, "of then")]
    assert (await restorer(treasury, backup).add(manifest)).suspended == 0


async def test_who_signed_up_anew_meanwhile_does_not_keep_the_old_account_from_coming_back(treasury, backup, path):
    await back_up(treasury, backup, path)
    manifest = await manifest_of(treasury)
    await register(treasury, backup, "anew@example.com")
    entry = replace(manifest.merchants[0], merchant_id="mer_2", email="anew@example.com", account=2)
    whole = replace(manifest, merchants=[*manifest.merchants, entry])
    with pytest.raises(RestoreError, match=r"the e-mail address of mer_2, is anew@example.com's in the database"):
        await restorer(treasury, backup).add(whole)
    async with backup.transaction() as conn:
        await conn.exec_driver_sql("UPDATE merchants SET email = 'other' WHERE email = 'anew@example.com'")
        await conn.exec_driver_sql(
            "INSERT INTO members (member_id, merchant_pk, email, name, password_hash)"
            " SELECT 'mem_9', id, 'anew@example.com', 'Anew', '!' FROM merchants WHERE merchant_id = 'mer_1'"
        )
    with pytest.raises(RestoreError, match=r"is mer_1's in the database, or of one who signs in for it"):
        await restorer(treasury, backup).add(whole)
    named = replace(manifest, merchants=[*manifest.merchants, replace(entry, email="before@example.com")])
    assert (await restorer(treasury, backup).add(named)).merchants == 1


async def test_a_database_without_merchants_is_no_backup(treasury, backup):
    with pytest.raises(RestoreError, match="it is no backup"):
        await restorer(treasury, backup).add(await manifest_of(treasury))


async def test_a_manifest_of_another_gateway_changes_nothing(treasury, backup, path):
    await back_up(treasury, backup, path)
    manifest = await manifest_of(treasury)
    moved = replace(manifest, merchants=[replace(one, account=2) for one in manifest.merchants])
    before = await rows(backup, _NEXT)
    with pytest.raises(RestoreError, match="mer_1 has account 1 in the database, not 2"):
        await restorer(treasury, backup).add(moved)
    assert await rows(backup, _NEXT) == before


async def test_an_address_that_the_backup_gave_to_somebody_else_meanwhile_is_not_taken_away(treasury, backup, path):
    await back_up(treasury, backup, path)
    _, address = await give_account(treasury, "carol")
    await restore.write_accounts(treasury.db, path)
    async with backup.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO projects (project_id, merchant_pk, name, mode)"
            " SELECT 'prj_new', id, 'Shop', 'live' FROM merchants"
        )
        await conn.exec_driver_sql(
            "INSERT INTO accounts (account_id, public_id, project_pk, merchant_pk, mode, external_id)"
            " SELECT 'acc_new', 'pub_new', id, merchant_pk, mode, 'new' FROM projects"
        )
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_pk, account_index, change,"
            " address_index) SELECT 'live', $1, $2, 'account', merchant_pk, id, 1, 2, $3 FROM accounts",
            (treasury.family.name, address, treasury._index),
        )
    with pytest.raises(RestoreError, match="has given an address of the accounts' file to another account"):
        await restorer(treasury, backup).add(await manifest_of(treasury), restore.read_accounts(path))
    assert await rows(backup, _ACCOUNTS) == [("acc_new", address)]
