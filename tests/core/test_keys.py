"""The stock of account keys, claims on it, and leases of indexes."""

from __future__ import annotations

import asyncio
import os

import pytest
from sqlalchemy import text

from cambist.secrets import SecretsBox, SecretsError
from cambist.services.addresses.account_keys import (
    AccountKeys,
    IndexLeaser,
    KeysUnavailableError,
    claim_accounts,
    fill_stock,
    register_gas_stations,
    set_aside,
    top_up_stock,
)
from cambist.services.addresses.topped_up import is_topped_up
from cambist.signer.keystore import Keystore, KeystoreError, new_keystore
from cambist.signer.local import KeystoreXpubs
from cambist.testing.memory import MemoryFamily

KEYSTORE = Keystore(" ".join(["abandon"] * 11 + ["about"]))


@pytest.fixture
def box():
    return SecretsBox([bytes(32)], os.urandom)


async def _merchant(conn, name: str) -> int:
    return await conn.scalar(
        text("INSERT INTO merchants (merchant_id, email, name) VALUES (:name, :name, :name) RETURNING id"),
        {"name": name},
    )


async def _register(db, name: str) -> tuple[int, int]:
    async with db.transaction() as conn:
        row = await _merchant(conn, name)
        return row, await claim_accounts(conn, row)


async def _top_up(db, box, *, stock=3, coin_types=(60,), keystore=KEYSTORE):
    async with db.transaction() as conn:
        return await top_up_stock(conn, KeystoreXpubs(keystore), box, coin_types=coin_types, stock=stock)


async def _owners(db):
    async with db.autocommit() as conn:
        rows = await conn.execute(
            text("SELECT account_index, mode, coin_type, merchant_pk FROM account_keys ORDER BY 1, 2, 3")
        )
        return [tuple(row) for row in rows]


async def test_the_stock_is_filled_once_with_both_modes_and_the_platforms_account(db, box):
    level = await _top_up(db, box, stock=2)
    assert (level.free, level.added, level.complete) == (2, 6, True)
    assert await _owners(db) == [(index, mode, 60, None) for index in range(3) for mode in ("live", "sandbox")]
    assert (await _top_up(db, box, stock=2)).added == 0


async def test_a_large_stock_is_made_in_bounded_steps(db, box):
    level = await _top_up(db, box, stock=400)
    assert (level.added, level.complete) == (500, False)
    level = await fill_stock(db, KeystoreXpubs(KEYSTORE), box, coin_types=[60], stock=400)
    assert (level.free, level.complete) == (400, True)


async def _topped_up(db, box, *, stock=3, coin_types=(60,), keystore=KEYSTORE):
    async with db.autocommit() as conn:
        return await is_topped_up(conn, KeystoreXpubs(keystore), box, coin_types=coin_types, stock=stock)


async def _found_and_topped_up(db, box, *, stock):
    assert not await _topped_up(db, box, stock=stock)
    await _top_up(db, box, stock=stock)
    assert await _topped_up(db, box, stock=stock)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE account_keys SET merchant_pk = 2 WHERE account_index = 1",
        "UPDATE account_keys SET merchant_pk = 2 WHERE account_index = 4 AND mode = 'live'",
        "UPDATE account_keys SET next_index = 1 WHERE account_index = 4 AND mode = 'live'",
        "DELETE FROM account_keys WHERE account_index = 4 AND mode = 'sandbox'",
        "DELETE FROM account_keys WHERE account_index = 4",
        "DELETE FROM account_keys WHERE account_index = 0",
        "DELETE FROM account_keys",
    ],
)
async def test_whatever_is_to_be_topped_up_is_found(db, box, change):
    """And nothing else is: of what was topped up nothing is left to do, with what was claimed or set aside in it."""
    await _top_up(db, box, stock=6)
    async with db.transaction() as conn:
        assert [await _merchant(conn, name) for name in ("first", "second")] == [1, 2]
        for begun in (
            "UPDATE account_keys SET merchant_pk = 1 WHERE account_index = 2",
            "UPDATE account_keys SET next_index = 5 WHERE account_index IN (0, 2) AND mode = 'live'",
            "UPDATE account_keys SET next_index = 1 WHERE account_index = 3",
        ):
            await conn.execute(text(begun))
    await _top_up(db, box, stock=4)
    assert await _topped_up(db, box, stock=4)
    async with db.transaction() as conn:
        await conn.execute(text(change))
    await _found_and_topped_up(db, box, stock=4)


@pytest.mark.parametrize(
    "had",
    [
        "UPDATE account_keys SET next_index = 1 WHERE account_index = 4 AND mode = 'live'",
        "UPDATE account_keys SET merchant_pk = 1 WHERE account_index = 4 AND mode = 'live'",
    ],
)
async def test_an_account_that_somebody_has_in_part_is_found_though_enough_others_are_free(db, box, had):
    await _top_up(db, box, stock=6)
    async with db.transaction() as conn:
        await _merchant(conn, "first")
        await conn.execute(text(had))
    await _found_and_topped_up(db, box, stock=3)


async def test_another_stock_or_coin_type_is_to_be_topped_up_and_another_keystore_is_refused(db, box):
    await _top_up(db, box, coin_types=(60, 195))
    assert await _topped_up(db, box, coin_types=(60, 195))
    assert await _topped_up(db, box)
    assert not await _topped_up(db, box, stock=4)
    assert not await _topped_up(db, box, coin_types=(60, 0))
    with pytest.raises(KeystoreError):
        await _topped_up(db, box, keystore=new_keystore(os.urandom))


async def test_a_merchant_claims_one_index_in_both_modes_and_never_the_platforms(db, box):
    await _top_up(db, box, coin_types=(60, 195))
    row, index = await _register(db, "first")
    assert index == 1
    assert [owner for owner in await _owners(db) if owner[3] == row] == [
        (1, "live", 60, row),
        (1, "live", 195, row),
        (1, "sandbox", 60, row),
        (1, "sandbox", 195, row),
    ]


async def test_what_is_set_aside_is_nobodys_in_a_lower_coin_type_that_comes_later_too(db, box):
    await _top_up(db, box)
    async with db.transaction() as conn:
        await set_aside(conn, 2)
    assert (await _top_up(db, box, coin_types=(60, 7))).free == 3
    assert [(await _register(db, name))[1] for name in ("first", "second")] == [3, 4]


async def test_an_empty_stock_refuses_a_merchant_and_leaves_nothing_behind(db, box):
    await _top_up(db, box, stock=1)
    await _register(db, "first")
    with pytest.raises(KeysUnavailableError):
        await _register(db, "second")
    async with db.autocommit() as conn:
        assert await conn.scalar(text("SELECT count(*) FROM merchants")) == 1


async def test_a_claim_that_is_undone_returns_to_the_stock(db, box):
    await _top_up(db, box, stock=1)
    with pytest.raises(ZeroDivisionError):  # noqa: PT012  the point is where it is raised
        async with db.transaction() as conn:
            await claim_accounts(conn, await _merchant(conn, "first"))
            _ = 1 / 0
    assert (await _register(db, "second"))[1] == 1


async def test_merchants_who_register_at_once_get_different_indexes(db, box):
    await _top_up(db, box, stock=20)
    claimed = await asyncio.gather(*(_register(db, f"m{number}") for number in range(20)))
    assert sorted(index for _, index in claimed) == list(range(1, 21))


async def test_a_coin_type_that_comes_later_is_given_to_the_merchants_there_are(db, box):
    await _top_up(db, box)
    row, index = await _register(db, "first")
    await _top_up(db, box, coin_types=(60, 195, 0))
    mine = [(coin, mode) for at, mode, coin, owner in await _owners(db) if owner == row and at == index]
    assert sorted(mine) == [(coin, mode) for coin in (0, 60, 195) for mode in ("live", "sandbox")]
    assert (await _register(db, "second"))[1] == index + 1


async def test_registering_while_a_coin_type_is_added_never_splits_an_index(db, box):
    await _top_up(db, box, stock=30)
    jobs = [_register(db, f"m{number}") for number in range(20)]
    await asyncio.gather(*jobs[:10], _top_up(db, box, stock=30, coin_types=(0, 60)), *jobs[10:])
    by_index: dict[int, set] = {}
    for index, _, _, owner in await _owners(db):
        by_index.setdefault(index, set()).add(owner)
    assert all(len(owners) == 1 for owners in by_index.values())
    assert sum(owners != {None} for owners in by_index.values()) == 20


async def test_account_keys_are_those_of_the_keystore(db, box):
    await _top_up(db, box)
    row, index = await _register(db, "first")
    keys = AccountKeys(box)
    async with db.autocommit() as conn:
        key = await keys.get(conn, row, "sandbox", 60)
        assert key.account_index == index
        assert key.xpub == KEYSTORE.account_xpub("sandbox", 60, index)
        assert (await keys.get(conn, None, "live", 60)).xpub == KEYSTORE.account_xpub("live", 60, 0)
        with pytest.raises(KeysUnavailableError):
            await keys.get(conn, row, "live", 195)


async def test_an_account_key_is_read_from_the_database_once(db, box):
    await _top_up(db, box)
    row, _ = await _register(db, "first")
    keys = AccountKeys(box)
    async with db.autocommit() as conn:
        first = await keys.get(conn, row, "live", 60)
        await conn.execute(text("UPDATE account_keys SET xpub_encrypted = ''"))
        assert await keys.get(conn, row, "live", 60) is first


async def test_a_key_that_was_copied_to_another_row_is_not_accepted(db, box):
    await _top_up(db, box)
    row, _ = await _register(db, "first")
    async with db.autocommit() as conn:
        await conn.execute(
            text(
                "UPDATE account_keys SET xpub_encrypted = (SELECT xpub_encrypted FROM account_keys"
                " WHERE account_index = 0 AND mode = 'live') WHERE account_index = 1"
            )
        )
        with pytest.raises(SecretsError, match="belongs to another row"):
            await AccountKeys(box).get(conn, row, "live", 60)


async def test_a_stock_from_another_keystore_is_not_mixed(db, box):
    await _top_up(db, box)
    with pytest.raises(KeystoreError, match="another keystore"):
        await _top_up(db, box, stock=10, keystore=new_keystore(os.urandom))
    assert len(await _owners(db)) == 8


async def test_indexes_are_never_repeated_not_between_processes_either(db, box, clock):
    await _top_up(db, box)
    async with db.autocommit() as conn:
        key = await AccountKeys(box).get(conn, None, "live", 60)
    leasers = [IndexLeaser(db, AccountKeys(box), clock) for _ in range(3)]
    indexes = await asyncio.gather(*(leasers[number % 3].next_index(key) for number in range(300)))
    assert len(set(indexes)) == 300


async def test_a_place_is_the_merchants_own_with_a_new_index_each_time(db, box, clock):
    await _top_up(db, box)
    row, account_index = await _register(db, "first")
    leaser = IndexLeaser(db, AccountKeys(box), clock)
    places = [await leaser.lease(row, "live", 60) for _ in range(3)]
    assert [place.index for place in places] == [0, 1, 2]
    assert {(place.xpub, place.account_index) for place in places} == {
        (KEYSTORE.account_xpub("live", 60, account_index), account_index)
    }


@pytest.mark.slow
async def test_a_lease_grows_while_demand_is_high_and_shrinks_after(db, box, clock):
    await _top_up(db, box)
    async with db.autocommit() as conn:
        key = await AccountKeys(box).get(conn, None, "live", 60)
    leaser = IndexLeaser(db, AccountKeys(box), clock)

    async def leased() -> int:
        async with db.autocommit() as conn:
            return await conn.scalar(text("SELECT next_index FROM account_keys WHERE id = :id"), {"id": key.pk})

    assert await leaser.next_index(key) == 0
    assert await leased() == 1
    assert [await leaser.next_index(key) for _ in range(7)] == list(range(1, 8))
    assert await leased() == 15
    for _ in range(5_000):
        await leaser.next_index(key)
    assert await leased() <= 5_008 + 1_000
    for _ in range(40):
        clock.advance(60)
        before = await leased()
        while await leased() == before:
            await leaser.next_index(key)
    assert await leased() == before + 1


async def test_the_last_index_is_used_and_then_no_other(db, box, clock):
    await _top_up(db, box)
    async with db.autocommit() as conn:
        key = await AccountKeys(box).get(conn, None, "live", 60)
        await conn.execute(text("UPDATE account_keys SET next_index = 2147483647"))
    leaser = IndexLeaser(db, AccountKeys(box), clock)
    assert await leaser.next_index(key) == 2**31 - 1
    with pytest.raises(KeysUnavailableError):
        await leaser.next_index(key)


async def test_the_platforms_own_address_is_known_as_ours_once(db, box):
    class Evm(MemoryFamily):
        name, coin_type = "evm", 60

    class Broken(Evm):
        name = "broken"

        def derive_address(self, *path):
            raise KeyError(path)

    await _top_up(db, box)
    keys = AccountKeys(box)
    for _ in range(2):
        async with db.transaction() as conn:
            await register_gas_stations(conn, keys, [Broken(), Evm()])
    async with db.transaction() as conn:
        rows = (await conn.exec_driver_sql("SELECT mode, address, merchant_pk FROM addresses ORDER BY mode")).all()
    expected = [
        (mode, Evm().derive_address(KEYSTORE.account_xpub(mode, 60, 0), 0, 0), None) for mode in ("live", "sandbox")
    ]
    assert [tuple(row) for row in rows] == expected
