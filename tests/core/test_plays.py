"""What tests of sending begin with is the same whether it was played in this test or written down again."""

from __future__ import annotations

import sqlite3
from contextlib import asynccontextmanager, closing

import pytest

from cambist.db.engine import connect
from cambist.signer.rules import Rules
from cambist.testing.clock import ManualClock, chance_of, seeded_ids
from tests.core.test_kept_database import picture
from tests.support.plays import play
from tests.support.statements import statements
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

FUNDS = 500_000_000


@pytest.fixture
def another_url(databases):
    with databases.fresh() as url:
        yield url


@pytest.fixture
async def another(another_url):
    database = connect(another_url, application_name="cambist-tests", pool_size=5)
    yield database
    await database.close()


@pytest.fixture
def played():
    """Give the treasuries with which it was played in this test."""
    return []


@pytest.fixture
def paid_and_sent(played):
    """Give something to play that no other test has played."""

    async def paid_and_sent(treasury):
        played.append(treasury)
        await treasury.open_paid(("USDX", FUNDS))
        await treasury.pay_somebody()
        return await treasury.stranger(7)

    return paid_and_sent


@asynccontextmanager
async def opened(db, folder, **more):
    folder.mkdir(0o700)
    async with Treasury(db, ManualClock(), seeded_ids(0), folder, **more) as treasury:
        yield treasury


async def signed(treasury):
    """Return all that the signer remembers."""
    await treasury.signer.aclose()
    (file,) = treasury.folder.glob("*.sqlite")
    with closing(sqlite3.connect(file)) as connection:
        return list(connection.iterdump())


async def paid_and_sent_again(treasury, to_address):
    """Return the payout, its transaction, and how many statements that took."""
    with statements(treasury.db) as executed:
        await treasury.receive("USDX", 7)
        payout_id = await treasury.pay_out("USDX", 5, to_address)
        await treasury.work(treasury.engine())
    await treasury.check_books()
    return payout_id, (await treasury.payout(payout_id)).tx_id, len(executed)


async def test_what_is_written_down_again_is_what_was_played_and_goes_on_likewise(
    db, database_url, another, another_url, tmp_path, paid_and_sent, played
):
    async with opened(db, tmp_path / "first") as first, opened(another, tmp_path / "again") as again:
        to_address = await play(first, paid_and_sent)
        assert await play(again, paid_and_sent) == to_address
        assert played == [first]
        assert await picture(another_url) == await picture(database_url)
        assert again.known() == first.known()
        assert vars(again.clock) == vars(first.clock)
        assert chance_of(again.ids).getstate() == chance_of(first.ids).getstate()
        assert await paid_and_sent_again(again, to_address) == await paid_and_sent_again(first, to_address)
        assert await signed(again) == await signed(first)
        assert len(await signed(first)) > 10


async def change_price(treasury):
    treasury.prices.board["MEM", "usd"] = "5"


async def change_fee(treasury):
    treasury.chain.fees.base_price *= 2


async def change_rows(treasury):
    await treasury.new_merchant("mer_2")


async def change_time(treasury):
    treasury.clock.advance(1)


async def change_chance(treasury):
    treasury.ids.new("one")


@pytest.mark.parametrize("change", [change_price, change_fee, change_rows, change_time, change_chance])
async def test_where_something_is_not_as_it_was_it_is_played_anew(db, another, tmp_path, paid_and_sent, played, change):
    async with opened(db, tmp_path / "first") as first, opened(another, tmp_path / "other") as other:
        await play(first, paid_and_sent)
        await change(other)
        await play(other, paid_and_sent)
        assert played == [first, other]
        await other.check_books()


async def test_under_other_rules_it_is_played_anew(db, another, tmp_path, paid_and_sent, played):
    rules = Rules(fresh_address_delay_s=1)
    async with opened(db, tmp_path / "first") as first, opened(another, tmp_path / "other", rules=rules) as other:
        await play(first, paid_and_sent)
        await play(other, paid_and_sent)
        assert played == [first, other]
