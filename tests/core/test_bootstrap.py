"""The composition root: what each role gets, and what it refuses to do without."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from cambist.bootstrap import Parts, open_gateway
from cambist.settings import DatabaseSettings, KeySettings, SettingsError
from tests.support.web import Merchant, memory_gateway, web_client, web_settings

ROOT = Path(__file__).parents[2]


async def test_the_gateway_reaches_its_servers(gateway):
    async with gateway.db.transaction() as conn:
        assert await conn.scalar(text("SELECT current_setting('timezone')")) == "UTC"
    assert await gateway.redis.ping()
    sealed = gateway.secrets.encrypt(b"x", field="t.c", row="1")
    assert gateway.secrets.decrypt(sealed, field="t.c", row="1") == b"x"


async def test_only_the_worker_can_sign(gateway, worker_gateway):
    assert gateway.signer is None
    assert gateway.chains == {}
    assert worker_gateway.signer is not None


async def test_a_transaction_commits_at_its_end_and_never_when_it_raises(db):
    async with db.transaction() as conn:
        await conn.execute(text("CREATE TABLE kept (number int)"))
    with pytest.raises(ZeroDivisionError):  # noqa: PT012  the point is where it is raised
        async with db.transaction() as conn:
            await conn.execute(text("INSERT INTO kept VALUES (1)"))
            _ = 1 / 0
    async with db.autocommit() as conn:
        await conn.execute(text("INSERT INTO kept VALUES (2)"))
    async with db.autocommit() as conn:
        assert (await conn.execute(text("SELECT number FROM kept"))).scalars().all() == [2]


@pytest.mark.parametrize(
    "change, role, sentence",
    [
        ({"database": DatabaseSettings()}, "web", "database.url and redis.url must be set"),
        ({"keys": KeySettings()}, "web", "application_key must be set"),
        ({"keys": KeySettings(application_key="00" * 32)}, "worker", "keys.keystore must be set"),
    ],
)
async def test_what_is_missing_is_told_before_anything_is_opened(gateway_settings, clock, ids, change, role, sentence):
    settings = msgspec.structs.replace(gateway_settings, **change)
    with pytest.raises(SettingsError, match=sentence):
        async with open_gateway(settings, role=role, parts=Parts(clock=clock, ids=ids)):
            pass


async def test_nothing_secret_shows(gateway, gateway_settings):
    assert gateway_settings.auth.jwt_secret not in repr(gateway)
    assert "00" * 32 not in repr(gateway_settings)


async def test_an_error_of_the_database_shows_nothing_that_was_to_be_stored(db):
    with pytest.raises(DBAPIError) as raised:
        async with db.autocommit() as conn:
            await conn.exec_driver_sql(
                "INSERT INTO merchants (email, no_such_column) VALUES ($1, $2)", ("ada@x", "hash")
            )
    assert "no_such_column" in str(raised.value)
    assert "ada@x" not in str(raised.value)


@pytest.fixture
async def lesser_url(db, database_url, ids):
    """Make the account that the operator's page describes, and give its address."""
    page = (ROOT / "docs/operators/running.md").read_text()
    told = re.search(r"```sql\n(.*?)```", page, re.DOTALL)[1]
    name = f"app_{ids.random_bytes(6).hex()}"
    async with db.autocommit() as conn:
        for statement in told.replace("cambist_app", name).strip().splitlines():
            await conn.exec_driver_sql(statement)
    address = make_url(database_url).set(username=name, password="a long random one")
    yield address.render_as_string(hide_password=False)
    async with db.autocommit() as conn:
        await conn.exec_driver_sql(f"DROP OWNED BY {name}")
        await conn.exec_driver_sql(f"DROP ROLE {name}")


@pytest.mark.slow
async def test_an_account_that_owns_no_table_runs_the_gateway_and_changes_no_rule(lesser_url, redis_url, clock, ids):
    settings = web_settings(lesser_url, redis_url)
    async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
        shop = await Merchant(client).open(mode="sandbox")
        body = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
        payment = (await client.post("/api/payment", json=body, headers=shop.key)).json()["payment"]
        paid = {"paymentId": payment["paymentId"]}
        for path, asked in (("deposit", paid), ("mine", {"chain": "memory", "blocks": 6})):
            assert (await client.post(f"/api/sandbox/{path}", json=asked, headers=shop.key)).is_success
        balance = await client.get("/api/merchant/wallet/balance?chain=memory&token=USDX", headers=shop.key)
        assert '"available":"10"' in balance.text
        for statement in (
            "ALTER TABLE ledger_movements DISABLE TRIGGER ALL",
            "DROP TABLE ledger_movements",
            "TRUNCATE ledger_movements CASCADE",
            "SET session_replication_role = replica",
            "CREATE TABLE mine (number int)",
            "UPDATE ledger_movements SET units = units + 1",
            "DELETE FROM ledger_movements",
        ):
            with pytest.raises(DBAPIError):
                async with gateway.db.autocommit() as conn:
                    await conn.exec_driver_sql(statement)
