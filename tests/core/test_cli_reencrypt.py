"""``cambist keys reencrypt``: after it, the application key before opens nothing any more."""

from __future__ import annotations

import asyncio

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from cambist.cli import cambist
from cambist.db.models import Base
from cambist.secrets import SecretsBox, SecretsError
from cambist.services.addresses.macs import AddressMacs
from cambist.services.audit.entries import Action, newest
from cambist.services.identity import two_factor
from cambist.services.identity.members import MEMBERS
from cambist.services.recovery.reencryption import COLUMNS, Renewed, reencrypt_some, renew_some
from cambist.settings import KeySettings
from tests.support.accounts import AccountEnv
from tests.support.command import leave_no_config
from tests.support.payment_env import PaymentEnv
from tests.support.tracker_api import make
from tests.support.web import Merchant, memory_gateway, refused, web_client, web_settings

OLD, NEW = "5c" * 32, "ab" * 32


@pytest.fixture
def typed(tmp_path, database_url, redis_url, monkeypatch):
    leave_no_config(monkeypatch)

    def run(*, previous=(OLD,)):
        config = tmp_path / "cambist.toml"
        config.write_text(
            f'[database]\nurl = "{database_url}"\n[redis]\nurl = "{redis_url}"\n'
            f'[keys]\napplication_key = "{NEW}"\nprevious_keys = {list(previous)}\n'
        )
        return CliRunner().invoke(cambist, ["keys", "reencrypt", "--config", str(config)])

    return lambda **how: asyncio.to_thread(run, **how)  # it has a loop of its own


def test_it_knows_every_column_that_is_encrypted():
    encrypted = {
        f"{table.name}.{column.name}"
        for table in Base.metadata.tables.values()
        for column in table.columns
        if column.name.endswith("_encrypted")
    }
    assert {one.name for one in COLUMNS} == encrypted


@pytest.mark.slow
async def test_afterwards_the_new_key_opens_everything_alone(database_url, redis_url, clock, ids, typed):
    settings = web_settings(database_url, redis_url)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = await Merchant(client).open()
        secret = merchant.webhook_secret
        tracker = await make(client, merchant.key, startBlock=1)
        factor = two_factor.TwoFactor(MEMBERS, gateway.db, gateway.secrets, gateway.ids, gateway.clock)
        async with gateway.db.autocommit() as conn:
            pk = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()
        await factor.enrol(pk, merchant.email, None)
        account = await make_account(client, merchant, "carol")
        changed = await make_account(client, merchant, "dave")
        async with gateway.db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE addresses SET address = 'mem1thief' WHERE address = $1", (changed[1],))

    missing = await typed(previous=())
    assert missing.exit_code == 1
    assert "which is not configured" in missing.output

    answer = await typed()
    assert "Proven anew: 1 " in answer.output
    assert answer.exit_code == 1, answer.output
    assert "1 addresses of accounts cannot be verified" in answer.output
    assert "Encrypted anew: " in answer.output
    assert "Encrypted anew: 0." not in answer.output
    assert "Encrypted anew: 0." in (await typed(previous=())).output

    settings = replace(settings, keys=KeySettings(application_key=NEW))
    async with memory_gateway(settings, clock, ids, stock=0) as gateway, web_client(gateway) as client:
        body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
        made = await client.post("/api/payment", json=body, headers=merchant.key)
        assert made.status_code == 201, made.text
        async with gateway.db.autocommit() as conn:
            query = "SELECT project_id, webhook_secret_encrypted FROM projects"
            project_id, sealed = (await conn.exec_driver_sql(query)).one()
            audited = await newest(conn, action=Action.REENCRYPTED, limit=100)
        web = client._transport.app.state.web
        assert web.secrets.reveal(project_id, sealed) == secret
        shown = await client.get("/api/merchant/webhooks", headers=merchant.bearer)
        (listed,) = shown.json()["webhooks"]
        assert listed["authToken"] == tracker.made["authToken"]
        read = await client.get(f"/api/account/{account[0]}", headers=merchant.key)
        assert read.json()["account"]["addresses"] == [{"chain": "memory", "address": account[1]}]
        refused(await client.get(f"/api/account/{changed[0]}", headers=merchant.key), 503, "ADDRESS_NOT_VERIFIED")
        async with gateway.db.autocommit() as conn:
            sealed = (await conn.exec_driver_sql("SELECT secret_encrypted FROM trackers")).scalar_one()
        assert web.trackers.secrets.reveal_secret(tracker.webhook_id, sealed) == tracker.made["secretKey"]
    assert {one.actor_kind for one in audited} == {"operator"}
    assert {one.details["column"] for one in audited} == {
        "projects.webhook_secret_encrypted", "two_factor_states.pending_encrypted", "account_keys.xpub_encrypted",
        "trackers.token_encrypted", "trackers.secret_encrypted", "account_chains.address_mac",
    }  # fmt: skip
    assert f"Encrypted anew: {sum(one.details['rows'] for one in audited) - 1}." in answer.output


async def make_account(client, merchant, external_id):
    body = {"externalId": external_id, "chains": ["memory"]}
    made = await client.post("/api/account", json=body, headers=merchant.key)
    assert made.status_code == 201, made.text
    account = made.json()["account"]
    return account["accountId"], account["addresses"][0]["address"]


async def test_proofs_are_made_anew_in_slices_that_a_later_run_goes_on_from(db, clock, ids):
    accounts = AccountEnv(await PaymentEnv(db, clock, ids).open())
    for name in ("a", "b", "c"):
        await accounts.make(name, chains=["memory", "other"])
    env = accounts.payment_env
    macs = AddressMacs(SecretsBox([bytes.fromhex(NEW), bytes(32)], ids.random_bytes))

    async def step(after):
        async with env.db.transaction() as conn:
            return await renew_some(conn, macs, after, rows_max=4)

    first = await step(None)
    assert (first.rows, first.unverified) == (4, 0)
    again = await step(None)  # a run that knows nothing of the first
    assert (again.rows, again.unverified) == (2, 0)
    assert await step(again.last) == await step(None) == Renewed(rows=0, unverified=0, last=None)


async def test_what_no_key_opens_stays_as_it_is(gateway, ids, db):
    other = SecretsBox([bytes.fromhex(NEW)], ids.random_bytes)
    sealed = next(one for one in COLUMNS if one.column.key == "xpub_encrypted")
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO account_keys (mode, coin_type, account_index, xpub_encrypted) VALUES ('live', 60, 0, $1)",
            (gateway.secrets.encrypt(b"xpub", field=sealed.field, row="another row"),),
        )
    with pytest.raises(SecretsError):
        async with db.transaction() as conn:
            await reencrypt_some(conn, other, sealed)
