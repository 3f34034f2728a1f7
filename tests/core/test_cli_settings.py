"""``cambist settings``, as an operator types it where this version cannot read what is stored."""

from __future__ import annotations

import json

import pytest

from cambist.domain.collections import CollectionRule
from cambist.services import platform
from cambist.services.audit.entries import newest
from tests.support.command import run_command

STORED = {
    "payoutEnabled": False,
    "targets": {"memory": ["mem1"]},
    "collection": {"minValueUsd": "5", "minimum": "1"},
    "limits": {"memory/USDC.e": {"perDay": "9", "perWeek": "1"}, "memory/USDX": {"perDay": "7"}},
    "payoutMinimumFees": 2_000,
    "exchanges": {"swapFeeBps": 30},
}
UNREAD = ["collection.minimum", "limits.memory/USDC.e.perWeek", "payoutMinimumFees", "targets"]


@pytest.fixture
def cambist(tmp_path, database_url):
    (tmp_path / "cambist.toml").write_text(f'[database]\nurl = "{database_url}"\n')

    def run(*arguments):
        return run_command("settings", *arguments, cwd=tmp_path)

    return run


async def store(db, settings):
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO platform_settings (id, settings, version, updated_at) VALUES (1, $1::text::jsonb, 7, now())",
            (json.dumps(settings),),
        )


async def version_of(db):
    async with db.autocommit() as conn:
        return (await conn.exec_driver_sql("SELECT version FROM platform_settings")).scalar_one()


async def logged(db):
    async with db.autocommit() as conn:
        return await newest(conn, limit=10)


def test_nothing_that_is_stored_is_nothing_to_mend(cambist, db):
    told = cambist()
    assert (told.returncode, told.stdout) == (0, "Nothing is stored: every setting has its default.\n"), told.stderr
    refused = cambist("remove", "targets")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Everything that is stored is read." in refused.stderr


async def test_what_is_not_read_is_named_and_removed_until_the_settings_are_read_again(cambist, db):
    await store(db, STORED)
    told = cambist()
    assert told.returncode == 1, told.stderr
    assert told.stdout.splitlines() == [
        'collection.minValueUsd  "5"',
        'collection.minimum  "1"  NOT READ: This version does not know it.',
        "exchanges.swapFeeBps  30",
        'limits.memory/USDC.e.perDay  "9"',
        'limits.memory/USDC.e.perWeek  "1"  NOT READ: This version does not know it.',
        'limits.memory/USDX.perDay  "7"',
        "payoutEnabled  false",
        "payoutMinimumFees  2000  NOT READ: Expected `int` <= 1000",
        'targets  {"memory":["mem1"]}  NOT READ: This version does not know it.',
    ]
    for number, name in enumerate(UNREAD, start=1):
        async with db.autocommit() as conn:
            with pytest.raises(platform.StoredSettingsError):
                await platform.load(conn)
        removed = cambist("remove", name)
        assert removed.returncode == 0, removed.stderr
        assert removed.stdout.startswith(f"Removed {name}  ")
        assert await version_of(db) == 7 + number
    told = cambist()
    assert (told.returncode, "NOT READ" in told.stdout, len(told.stdout.splitlines())) == (0, False, 4)
    async with db.autocommit() as conn:
        found = await platform.load(conn)
    assert (found.payout_enabled, found.payout_minimum_fees, found.exchanges.swap_fee_bps) == (False, 1, 30)
    assert found.collection == CollectionRule(min_value_usd="5")
    assert {name: limit.per_day for name, limit in found.limits.items()} == {"memory/USDC.e": "9", "memory/USDX": "7"}
    values = {"collection.minimum": '"1"', "limits.memory/USDC.e.perWeek": '"1"', "payoutMinimumFees": "2000"} | {
        "targets": '{"memory":["mem1"]}'
    }
    entries = (await logged(db))[::-1]
    assert [(one.action, one.details) for one in entries] == [
        ("platform_settings.changed", {"removed": name, "value": values[name]}) for name in UNREAD
    ]
    assert all("at the command line" in one.actor for one in entries)


@pytest.mark.parametrize("name", ["payoutEnabled", "limits", "collection", "limits.memory/USDX", "nothing", ""])
async def test_what_is_read_is_not_removed(cambist, db, name):
    await store(db, STORED)
    refused = cambist("remove", name)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"What is stored and not read is {', '.join(UNREAD)}." in refused.stderr
    assert (await version_of(db), await logged(db)) == (7, [])
