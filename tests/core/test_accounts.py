"""Accounts: one of each end user, with addresses that are theirs for ever."""

import asyncio

import msgspec
import pytest

from cambist.services.errors import ForbiddenError, InvalidError, NotFoundError, UnavailableError
from tests.support.accounts import AccountEnv
from tests.support.payment_env import PaymentEnv


@pytest.fixture
async def accounts(db, clock, ids):
    return AccountEnv(await PaymentEnv(db, clock, ids).open())


def by_chain(account):
    return {one.chain: one.address for one in account.addresses}


async def rows(accounts, statement, *values):
    async with accounts.payment_env.db.autocommit() as conn:
        return (await conn.exec_driver_sql(statement, values)).all()


async def test_an_account_has_one_address_for_all_chains_of_a_family(accounts):
    made = await accounts.make(chains=["other", "memory", "bsc"], metadata={"plan": [1e308]})
    addresses = by_chain(made.account)
    assert not made.existed
    assert list(addresses) == ["bsc", "memory", "other"]
    assert addresses["memory"] == addresses["other"] != addresses["bsc"]
    assert made.account.deposit_url.startswith("https://pay.example/account/pub_")
    assert msgspec.json.decode(msgspec.json.encode(made.account))["metadata"] == {"plan": [1e308]}
    assert await accounts.payment_env.count("addresses WHERE purpose = 'account'") == 2
    assert await accounts.read(made.account.account_id) == made.account


async def test_the_same_end_user_again_is_the_same_account_with_the_chains_that_it_lacked(accounts):
    first = (await accounts.make(metadata={"a": 1})).account
    accounts.payment_env.clock.advance(60)
    again = await accounts.make(chains=["memory", "other", "other"], metadata={"b": 2})
    assert again.existed
    assert again.account.account_id == first.account_id
    assert by_chain(again.account) == {"memory": by_chain(first)["memory"], "other": by_chain(first)["memory"]}
    assert msgspec.json.decode(msgspec.json.encode(again.account))["metadata"] == {"a": 1}
    grown = await accounts.add(first.account_id, "bsc", "memory")
    assert list(by_chain(grown)) == ["bsc", "memory", "other"]
    assert await accounts.add(first.account_id, "bsc") == grown


async def test_an_end_user_is_one_per_project_and_never_seen_by_another(accounts):
    env = accounts.payment_env
    mine, theirs = (await accounts.make()).account, (await accounts.make(actor=env.test2)).account
    assert mine.account_id != theirs.account_id
    assert by_chain(mine)["memory"] != by_chain(theirs)["memory"]
    with pytest.raises(NotFoundError):
        await accounts.read(mine.account_id, env.test2)
    with pytest.raises(NotFoundError):
        await accounts.add(mine.account_id, "other", actor=env.test2)


@pytest.mark.slow
async def test_concurrent_twins_make_one_account_and_no_index_is_used_twice(accounts):
    chains = (["memory"], ["memory", "other"], ["bsc"], ["other", "bsc"], ["memory", "bsc"]) * 4
    made = await asyncio.gather(*(accounts.make(chains=one) for one in chains))
    others = await asyncio.gather(*(accounts.make(f"user-{number}") for number in range(5, 15)))
    assert [one.existed for one in made].count(False) == 1
    (account_id,) = {one.account.account_id for one in made}
    addresses = by_chain(await accounts.read(account_id))
    assert list(addresses) == ["bsc", "memory", "other"]
    # Nobody was told of an address that is not the account's now.
    assert all(by_chain(one.account).items() <= addresses.items() for one in made)
    used = await rows(accounts, "SELECT family, address_index FROM addresses WHERE purpose = 'account'")
    assert len(used) == len(set(used)) == 2 + len(others)
    leased = await rows(accounts, "SELECT max(next_index) FROM account_keys WHERE merchant_pk IS NOT NULL")
    assert max(row.address_index for row in used) < leased[0][0]


async def test_each_chain_costs_as_much_as_a_payment_and_once(accounts):
    made = await accounts.make(chains=["memory", "other"])
    await accounts.make(chains=["memory", "other"])
    await accounts.add(made.account.account_id, "bsc", "memory")
    found = await rows(accounts, "SELECT operation, chain, weight FROM usage_records ORDER BY chain")
    assert [tuple(row) for row in found] == [("payment", chain, 10) for chain in ("bsc", "memory", "other")]


async def test_chains_that_cannot_be_paid_on_are_refused_by_name_and_nothing_is_made(accounts):
    env = accounts.payment_env
    with pytest.raises(InvalidError) as unknown:
        await accounts.make(chains=["memory", "nowhere"])
    assert (unknown.value.code, unknown.value.details[0].field) == ("UNSUPPORTED_CHAIN", "chains[1]")
    with pytest.raises(UnavailableError) as away:
        await accounts.make(chains=["memory", "unconfigured"], actor=env.live)
    assert away.value.code == "CHAIN_UNAVAILABLE"
    with pytest.raises(InvalidError):
        await accounts.make("user\x00")
    assert await env.count("accounts") == 0


async def test_a_project_that_is_switched_off_gets_no_accounts(accounts):
    env = accounts.payment_env
    await env.change_project(env.test, is_active=False)
    with pytest.raises(ForbiddenError) as refused:
        await accounts.make()
    assert refused.value.code == "PROJECT_INACTIVE"
    assert await env.count("accounts") == 0


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE addresses SET address = 'mem1thief' WHERE purpose = 'account'",
        "UPDATE accounts SET external_id = 'user-2'",
        "UPDATE accounts SET public_id = 'pub_thief'",
        "UPDATE account_chains SET chain = 'other'",
        "UPDATE account_chains SET address_mac = '\\x00'",
    ],
)
async def test_an_address_that_somebody_changed_is_shown_to_nobody(accounts, change):
    made = await accounts.make()
    async with accounts.payment_env.db.transaction() as conn:
        await conn.exec_driver_sql(change)
    with pytest.raises(UnavailableError) as refused:
        await accounts.read(made.account.account_id)
    assert refused.value.code == "ADDRESS_NOT_VERIFIED"


async def test_an_account_is_switched_off_and_on_and_keeps_its_addresses(accounts):
    made = (await accounts.make()).account
    accounts.payment_env.clock.advance(60)
    off = await accounts.switch(made.account_id, is_active=False)
    assert (off.is_active, off.addresses) == (False, made.addresses)
    accounts.payment_env.clock.advance(60)
    assert await accounts.switch(made.account_id, is_active=False) == off
    assert not (await accounts.make()).account.is_active
    assert (await accounts.switch(made.account_id, is_active=True)).is_active
