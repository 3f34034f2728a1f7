"""After a loss, each end user's account is there again with the address that the user wrote down, and its money."""

from __future__ import annotations

import json
import os

import msgspec
import pytest

from cambist.secrets import SecretsBox
from cambist.services.addresses.macs import AddressMacs
from cambist.services.receiving.account_page import load_account_page
from cambist.services.recovery import restore
from cambist.services.recovery.reconcile import reconcile_chain
from cambist.services.recovery.restore import RestoreError
from cambist_tasks.per_process import ACCOUNTS_INTERVAL_S, AccountsFile
from tests.support.account_rows import give_account
from tests.support.plays import play
from tests.support.restoring import GAP, addresses, manifest_of, money, restorer
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

_OF_ACCOUNTS = """
SELECT a.account_id, a.public_id, a.external_id, a.is_active, j.project_id, j.name, m.merchant_id, d.family, d.address,
    d.purpose, ARRAY(SELECT chain FROM account_chains c WHERE c.account_pk = a.id AND c.address_pk = d.id) AS chains
FROM accounts a JOIN projects j ON j.id = a.project_pk JOIN merchants m ON m.id = a.merchant_pk
    JOIN addresses d ON d.account_pk = a.id
WHERE a.mode = 'live' ORDER BY 1
"""


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await play(treasury, Treasury.open)
        yield treasury


@pytest.fixture
def path(tmp_path):
    return restore.accounts_path(tmp_path / "recovery.json")


async def accounts(database):
    async with database.transaction() as conn:
        return [tuple(row) for row in await conn.exec_driver_sql(_OF_ACCOUNTS)]


async def run(treasury, database, path, manifest=None):
    told = []
    lines = restore.read_accounts(path) if path else ()
    manifest = manifest or await manifest_of(treasury)
    summary = await restorer(treasury, database).restore(manifest, told.append, lines)
    return summary, told


async def pay(treasury, address, units, symbol="USDX"):
    treasury.chain.transfer(treasury.token(symbol), address, units)
    await treasury.mine(1 + treasury.info.confirmations)


async def test_accounts_come_back_with_their_addresses_proofs_and_money(treasury, empty, path):
    other, shop = await treasury.new_merchant("mer_2")
    carol, hers = await give_account(treasury, "carol")
    _, theirs = await give_account(treasury, "dave", merchant=other, project=shop)
    await treasury.receive("USDX", 700_000)
    for address, units in ((hers, 5_000_000), (theirs, 3_000_000), (hers, 2_500_000)):
        await pay(treasury, address, units)
    await pay(treasury, hers, 10**18, "MEM")
    assert (await reconcile_chain(treasury.db, treasury.chain)).differences == []
    before, known = await money(treasury.db), await accounts(treasury.db)
    assert await restore.write_accounts(treasury.db, path) == 2

    summary, told = await run(treasury, empty, path)
    assert summary.agrees, told
    assert summary.accounts == 2
    assert "2 accounts have their addresses again" in told
    assert await accounts(empty) == known
    assert await money(empty) == before
    assert (await reconcile_chain(empty, treasury.chain)).differences == []
    async with empty.transaction() as conn:
        page = await load_account_page(conn, carol, AddressMacs(SecretsBox([b"\1" * 32], treasury.ids.random_bytes)))
    assert [chain.address for chain in page.chains] == [hers]
    counted = [(int(one.units), one.status, one.matches) for one in page.deposits if one.token == "USDX"]
    assert counted == [(2_500_000, "confirmed", True), (5_000_000, "confirmed", True)]


async def test_an_account_newer_than_the_manifest_comes_back_however_far_it_is(treasury, empty, path):
    manifest = await manifest_of(treasury)
    treasury._index += 10 * GAP
    index = treasury._index + 1
    _, address = await give_account(treasury, "carol")
    await pay(treasury, address, 5_000_000)
    await restore.write_accounts(treasury.db, path)
    summary, _ = await run(treasury, empty, path, manifest)
    assert summary.agrees
    assert await accounts(empty) == await accounts(treasury.db)
    assert (await addresses(empty))[address] == ("account", "mer_1")
    async with empty.transaction() as conn:
        found = await conn.exec_driver_sql(
            "SELECT next_index FROM account_keys k JOIN merchants m ON m.id = k.merchant_pk"
            " WHERE k.mode = 'live' AND k.coin_type = $1",
            (treasury.family.coin_type,),
        )
        assert list(found.scalars()) == [index + 1], "nobody else is ever given the address"


async def test_without_the_file_nothing_is_lost_but_whose_address_it_is(treasury, empty):
    _, address = await give_account(treasury, "carol")
    await pay(treasury, address, 5_000_000)
    before = await money(treasury.db)
    summary, _ = await run(treasury, empty, None)
    assert (summary.agrees, summary.accounts) == (True, 0)
    assert (await addresses(empty))[address] == ("account", "mer_1")
    assert await money(empty) == before


async def test_repeating_it_adds_nothing(treasury, empty, path):
    _, address = await give_account(treasury, "carol")
    await pay(treasury, address, 5_000_000)
    await restore.write_accounts(treasury.db, path)
    await run(treasury, empty, path)
    once = await accounts(empty), await money(empty)
    summary, _ = await run(treasury, empty, path)
    assert summary.agrees
    assert (await accounts(empty), await money(empty)) == once


async def test_the_file_is_its_owners_and_says_nothing_of_metadata_or_sandboxes(treasury, path):
    await give_account(treasury, "carol")
    await give_account(treasury, "eve")
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE accounts SET mode = 'sandbox' WHERE external_id = 'eve'")
        await conn.exec_driver_sql("UPDATE accounts SET is_active = false WHERE external_id = 'carol'")
    assert await restore.write_accounts(treasury.db, path) == 1
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir() if "recovery" in one.name] == ["recovery.json.accounts"]
    project, account = map(json.loads, path.read_text().splitlines())
    assert project == {
        "type": "project", "projectId": "prj_mer_1", "merchantId": "mer_1", "name": "Shop", "isActive": True,
    }  # fmt: skip
    assert account == {
        "type": "account", "accountId": "acc_carol", "publicId": "pub_carol", "externalId": "carol",
        "projectId": "prj_mer_1", "isActive": False, "chains": ["memory"], "indexes": {"memory": 1},
    }  # fmt: skip
    assert "secret of the shop" not in path.read_text()


async def test_many_accounts_are_written_and_made_again_in_parts(treasury, empty, path, monkeypatch):
    monkeypatch.setattr("cambist.services.recovery.restore.accounts.ROWS_AT_ONCE", 3)
    monkeypatch.setattr("cambist.services.recovery.restore.account_rows.LINES_AT_ONCE", 2)
    for number in range(7):
        await give_account(treasury, f"user-{number}")
    assert await restore.write_accounts(treasury.db, path) == 7
    summary, _ = await run(treasury, empty, path)
    assert summary.accounts == 7
    assert await accounts(empty) == await accounts(treasury.db)


PROJECT = b'{"type":"project","projectId":"prj_1","merchantId":"mer_1","name":"Shop","isActive":true}\n'
ACCOUNT = msgspec.json.encode(
    {
        "type": "account", "accountId": "acc_1", "publicId": "pub_1", "externalId": "carol", "projectId": "prj_1",
        "isActive": True, "chains": ["memory"], "indexes": {"memory": 1},
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "content, problem",
    [
        (b"\n", "Line 1 of .* is none"),
        (PROJECT + b'{"type": "wallet"}', "Line 2 of .* is none"),
        (PROJECT + ACCOUNT[:40], "Line 2 of .* is none"),
        (ACCOUNT, "does not say whose project prj_1 is"),
        (PROJECT.replace(b"mer_1", b"mer_9"), "does not name the merchant mer_9"),
        (PROJECT + ACCOUNT.replace(b'{"memory":1}', b'{"moon":1}'), "enable the plugin"),
    ],
)
async def test_a_file_that_cannot_be_used_stops_the_restore_in_a_sentence(treasury, empty, path, content, problem):
    path.write_bytes(content)
    with pytest.raises(RestoreError, match=problem):
        await run(treasury, empty, path)


async def test_a_missing_file_is_told(treasury, empty, path):
    with pytest.raises(RestoreError, match="cannot be read"):
        await run(treasury, empty, path)


async def test_the_worker_writes_new_accounts_at_once_and_changes_within_the_hour(treasury, clock, path):
    file = AccountsFile(treasury.db, path.with_name("recovery.json"), clock)
    assert await file.write_if_due(), "also without any accounts, so that the file is of this database"
    assert path.read_text() == ""
    assert not await file.write_if_due()
    await give_account(treasury, "carol")
    assert await file.write_if_due()
    assert "carol" in path.read_text()
    async with treasury.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE accounts SET is_active = false")
    assert not await file.write_if_due()
    clock.advance(ACCOUNTS_INTERVAL_S)
    assert await file.write_if_due()
    assert '"isActive":false' in path.read_text()


async def test_what_killed_processes_left_half_written_is_removed_and_what_is_being_written_is_not(treasury, path):
    long_ago, now = path.with_name(f"{path.name}.1.partial"), path.with_name(f"{path.name}.2.partial")
    for file in (long_ago, now):
        file.touch()
    os.utime(long_ago, (0, 0))
    await restore.write_accounts(treasury.db, path)
    assert [one.name for one in sorted(path.parent.glob(f"{path.name}*"))] == [path.name, now.name]
