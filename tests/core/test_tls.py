"""PostgreSQL on another machine: with sslmode=verify-full, only the server that the certificate names is talked to."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager

import pytest

from cambist.bootstrap import redis_tls
from cambist.cli.up import _has_keys
from cambist.db.direct import connect_once, tls_of
from cambist.db.engine import connect, driver_url
from tests.support.certificates import certificate

NO_SUCH_USER = b"SFATAL\0VFATAL\0C28000\0Mnobody here\0\0"


@asynccontextmanager
async def server(paths):
    """Speak PostgreSQL as far as TLS goes, then refuse everybody; yield its port and how many got that far."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*paths)
    got_through = []

    async def talk(reader, writer):
        try:
            await reader.readexactly(8)
            writer.write(b"S")
            await writer.start_tls(context)
            await reader.readexactly(8)
            got_through.append(True)
            writer.write(b"E" + (len(NO_SUCH_USER) + 4).to_bytes(4, "big") + NO_SUCH_USER)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    serving = await asyncio.start_server(talk, "127.0.0.1", 0)
    async with serving:
        yield serving.sockets[0].getsockname()[1], got_through


async def asked(url):
    """Ask in all three ways; return how they end."""
    database = connect(url, application_name="test", pool_timeout_s=5)
    ends = []
    for ask in (
        lambda: database.fetch_row("SELECT 1"),
        lambda: enter(database),
        lambda: connect_once(url, timeout_s=5),
    ):
        try:
            await ask()
        except Exception as error:  # noqa: BLE001  which one is what is looked at
            ends.append(str(error))
    await database.close()
    return ends


async def enter(database):
    async with database.autocommit():
        pass


async def test_only_the_server_that_the_certificate_names_is_told_anything(tmp_path):
    ours, others = (certificate(tmp_path, host).paths for host in ("localhost", "db.example"))
    base = "postgresql://cambist:secret@localhost:{port}/cambist?sslmode={mode}&sslrootcert={root}"
    async with server(ours) as (port, through):
        good = await asked(base.format(port=port, mode="verify-full", root=ours[0]))
        assert all("nobody here" in end for end in good)
        assert len(through) == len(good) == 3
        for root in (others[0], "system"):
            bad = await asked(base.format(port=port, mode="verify-full", root=root))
            assert all("certificate verify failed" in end.lower() for end in bad), bad
        assert len(through) == 3
    async with server(others) as (port, through):
        bad = await asked(base.format(port=port, mode="verify-full", root=others[0]))
        assert all("hostname mismatch" in end.lower() for end in bad), bad
        assert through == []


@pytest.mark.parametrize("url", ["postgresql://db/cambist", "postgresql://db/cambist?sslmode=require"])
def test_other_modes_are_the_drivers(url):
    assert tls_of(url) == ({"ssl": "require"} if "require" in url else {})
    assert "ssl" not in driver_url(url).query


def test_a_redis_proves_whose_certificate_it_shows_unless_it_is_not_asked():
    assert redis_tls("rediss://cache/0") == {"ssl_check_hostname": True}
    assert redis_tls("redis://cache/0") == redis_tls("unix:///run/valkey.sock") == {}


async def test_what_asks_once_takes_every_address_that_the_gateway_takes(database_url):
    name = database_url.split("://", 1)[1]
    mark = "&" if "?" in name else "?"
    for url in (f"postgres://{name}", f"postgresql+asyncpg://{name}{mark}ssl=prefer", f"postgresql://{name}"):
        connection = await connect_once(url, timeout_s=10)
        assert await connection.fetchval("SELECT current_database()") in name
        await connection.close()


def test_asking_whether_there_are_keys_survives_an_address_with_tls(tmp_path):
    """The machine's own authorities suffice for verify-full: the driver would want a file of its own, or raise."""
    assert not _has_keys("postgresql://cambist:secret@127.0.0.1:1/cambist?sslmode=verify-full")
