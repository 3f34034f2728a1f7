"""``cambist keys reencrypt``: after it, the application key before opens nothing any more."""

from __future__ import annotations

import asyncio

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from cambist.cli import cambist
from cambist.db.models import Base
from cambist.secrets import SecretsBox, SecretsError
from cambist.services.audit.entries import Action, newest
from cambist.services.identity import two_factor
from cambist.services.recovery.reencryption import COLUMNS, reencrypt_some
from cambist.settings import KeySettings
from cambist.settings_file import CONFIG_VARIABLE
from tests.support.web import Merchant, memory_gateway, web_client, web_settings

OLD, NEW = "5c" * 32, "ab" * 32


@pytest.fixture
def typed(tmp_path, database_url, redis_url, monkeypatch):
    monkeypatch.delenv(CONFIG_VARIABLE, raising=False)  # a command leaves it to the processes that it starts

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


async def test_afterwards_the_new_key_opens_everything_alone(database_url, redis_url, clock, ids, typed):
    settings = web_settings(database_url, redis_url)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        merchant = await Merchant(client).open()
        secret = merchant.webhook_secret
        factor = two_factor.TwoFactor(gateway.db, gateway.secrets, gateway.ids, gateway.clock)
        async with gateway.db.autocommit() as conn:
            pk = (await conn.exec_driver_sql("SELECT id FROM merchants")).scalar_one()
        await factor.enrol(pk, merchant.email, None)

    refused = await typed(previous=())
    assert refused.exit_code == 1
    assert "which is not configured" in refused.output

    answer = await typed()
    assert answer.exit_code == 0, answer.output
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
    assert {one.actor_kind for one in audited} == {"operator"}
    assert {one.details["column"] for one in audited} == {
        "projects.webhook_secret_encrypted", "two_factor_states.pending_encrypted", "account_keys.xpub_encrypted"
    }  # fmt: skip
    assert f"Encrypted anew: {sum(one.details['rows'] for one in audited)}." in answer.output


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
