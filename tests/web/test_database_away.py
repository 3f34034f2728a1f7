"""What callers are told while the database is away, lost, full or read-only: not now, and when to come again."""

from __future__ import annotations

from contextlib import asynccontextmanager

import asyncpg
import pytest
from sqlalchemy import make_url
from structlog.testing import capture_logs

from cambist.db.engine import connect, is_away
from cambist.settings import RateLimitSettings
from cambist_web.api import coins
from cambist_web.errors import TOLD_EVERY_S
from tests.support.web import Merchant, memory_gateway, refused, web_client, web_settings

ORDER = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10"}
CUT = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = $1"


@pytest.mark.parametrize(
    "error, away",
    [
        (asyncpg.CannotConnectNowError("the database system is starting up"), True),
        (asyncpg.AdminShutdownError("terminating connection due to administrator command"), True),
        (asyncpg.TooManyConnectionsError("sorry, too many clients already"), True),
        (asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT in a read-only transaction"), True),
        (ConnectionResetError(104, "Connection reset by peer"), False),
        (TimeoutError(), False),
        (asyncpg.UndefinedTableError('relation "payments" does not exist'), False),
        (asyncpg.InterfaceError("the server expects 1 argument for this query, 2 were passed"), False),
        (FileNotFoundError(2, "No such file or directory", "/etc/x"), False),
        (RuntimeError("a bug"), False),
    ],
)
def test_what_says_that_the_database_is_away(error, away):
    assert is_away(error) is away


@pytest.fixture
async def shop(databases, redis_url, clock, ids):
    """Give a merchant of a gateway with a database of its own, that gateway, and the database's address."""
    with databases.fresh() as url:
        settings = web_settings(url, redis_url, rate_limits=RateLimitSettings())
        async with memory_gateway(settings, clock, ids) as gateway, web_client(gateway) as client:
            yield await Merchant(client).open(), gateway, url


@asynccontextmanager
async def beside(url):
    """Yield a connection to another database of the same server, and the name of this one."""
    parsed = make_url(url)
    other = connect(parsed.set(database="postgres").render_as_string(hide_password=False), application_name="test")
    async with other.autocommit() as conn:
        yield conn, parsed.database
    await other.close()


async def pay(merchant):
    return await merchant.client.post("/api/payment", json=ORDER, headers=merchant.key)


def not_now(answer):
    refused(answer, 503, "UNAVAILABLE")
    assert int(answer.headers["Retry-After"]) > 0
    is_read = answer.request.method == "GET"
    assert answer.json()["error"].endswith("Try again in seconds." if is_read else "repeat it with the same key.")


async def test_who_asks_while_the_database_is_gone_is_told_when_to_come_again_and_the_log_once(shop, clock):
    merchant, _, url = shop
    assert (await pay(merchant)).status_code == 201
    public = f"/api/payment/public/{(await pay(merchant)).json()['payment']['publicId']}"
    async with beside(url) as (conn, name):
        with capture_logs() as lines:
            await conn.exec_driver_sql(CUT, (name,))
            await conn.exec_driver_sql(f"ALTER DATABASE {name} RENAME TO {name}_away")
            for _ in range(2):
                not_now(await pay(merchant))
                not_now(await merchant.client.get("/api/merchant/wallet", headers=merchant.key))
                not_now(await merchant.client.get(public))
            page = await merchant.client.get(public.replace("/api/payment/public", "/pay"))
            assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
            clock.advance(TOLD_EVERY_S)
            not_now(await pay(merchant))
        await conn.exec_driver_sql(f"ALTER DATABASE {name}_away RENAME TO {name}")
    told = [line for line in lines if line["event"] == "database_away"]
    assert [line["log_level"] for line in told] == ["warning"] * 2
    assert not [line for line in lines if line["event"] == "request_failed"]
    assert (await pay(merchant)).status_code == 201


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connect call failed"), TimeoutError()])
async def test_who_finds_nobody_listening_where_the_database_was_is_told_so(shop, monkeypatch, error):
    merchant, gateway, _ = shop

    async def nobody(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr("asyncpg.connect", nobody)
        await gateway.db.engine.dispose()
        not_now(await pay(merchant))
        not_now(await merchant.client.get("/api/merchant/projects", headers=merchant.bearer))
    assert (await pay(merchant)).status_code == 201


@pytest.mark.parametrize("error", [ConnectionRefusedError(111, "Connect call failed"), TimeoutError()])
async def test_what_else_is_not_reached_is_a_mistake_of_ours_and_each_is_in_the_log(shop, monkeypatch, error):
    merchant, *_ = shop

    async def stumbles(*_, **__):
        raise error

    monkeypatch.setattr(coins, "explained", stumbles)
    body = {"coins": [{"chain": "memory", "token": "USDX"}]}
    with capture_logs() as lines:
        for _ in range(2):
            asked = await merchant.client.put("/api/merchant/wallet/coins", json=body, headers=merchant.key)
            refused(asked, 500, "INTERNAL_ERROR")
    told = [line for line in lines if line["event"] in {"request_failed", "database_away"}]
    assert [line["event"] for line in told] == ["request_failed"] * 2


async def test_who_asks_without_a_key_and_whose_answer_is_lost_behind_its_commit_is_told_to_look_first(
    shop, monkeypatch
):
    """The payment is made: who did as was said, and tried again, would have had two."""
    merchant, gateway, _ = shop
    fetch_row = gateway.db.fetch_row

    async def lost(*asked):
        await fetch_row(*asked)
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    with monkeypatch.context() as patched:
        patched.setattr(gateway.db, "fetch_row", lost)
        answer = await pay(merchant)
    not_now(answer)
    assert "Look what is there" in answer.json()["error"]
    assert (await merchant.client.get("/api/payment", headers=merchant.key)).json()["total"] == 1


async def test_who_loses_the_database_in_the_middle_of_a_request_is_told_so(shop):
    merchant, gateway, _ = shop
    async with gateway.db.transaction() as inside:
        await inside.exec_driver_sql(
            "CREATE FUNCTION dies() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$"
        )
        await inside.exec_driver_sql("CREATE TRIGGER dies BEFORE INSERT ON payments EXECUTE FUNCTION dies()")
    with capture_logs() as lines:
        not_now(await pay(merchant))
    assert [line["event"] for line in lines] == ["database_away"]


async def test_who_writes_into_a_database_that_is_only_read_is_told_so_and_who_reads_is_answered(shop):
    merchant, gateway, url = shop
    async with beside(url) as (conn, name):
        await conn.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await gateway.db.engine.dispose()  # as when it fails over to a standby: new connections
        not_now(await pay(merchant))
        assert (await merchant.client.get("/api/payment", headers=merchant.key)).status_code == 200
