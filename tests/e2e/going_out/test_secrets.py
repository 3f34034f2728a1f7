"""Keys stay where they are: not in a log, not in an answer, not in a column, and in no process but the one that signs.

Who is given the passphrase in the environment is seen in test_signer_process.py and in tests/core/test_cli.py, where
processes are started by ``exec``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path

import aiohttp
import psutil
import pytest

from tests.support.gateway import until
from tests.support.secrets import COIN_TYPES, Finder, family_of, keystore_of, secrets_of, watch_openings

BAD_REQUESTS = [
    ("GET", "/api/nothing/here", None),
    ("GET", "/api/payment/pay_nobody", None),
    ("POST", "/api/payment", b"{"),
    ("POST", "/api/payment", b'{"chain": "ethereum", "token": "USDX", "pricingMode": "direct_crypto", "amount": "-1"}'),
    ("POST", "/api/merchant/wallet/payout", b'{"chain": "ethereum", "token": "USDX", "toAddress": "x", "amount": "1"}'),
    ("POST", "/api/merchant/wallet/payout", b"\x00\xff"),
    ("GET", "/api/merchant/wallet/payouts/po_nobody", None),
    ("POST", "/api/payment/pay_nobody/refund", b"{}"),
    ("GET", "/api/admin/gas-stations", None),
    ("PUT", "/api/admin/settings", b'{"payoutEnabled": "perhaps"}'),
    ("POST", "/api/auth/login", b'{"email": "a@b.example", "password": "wrong password"}'),
    ("GET", "/metrics", None),
    ("GET", "/health/ready", None),
]


# What answers is the same on every kind of chain; logs and columns are not.


@pytest.fixture(scope="module")
def keystore_files(gateway) -> tuple[Path, Path]:
    """Name the gateway's keystore, and its passphrase."""
    data = gateway.folder / "data"
    return data / "keystore.json", data / "keystore.passphrase"


@pytest.fixture(scope="module")
async def finder(keystore_files, merchant, busy, story_db) -> Finder:
    """Know every secret there is, the key of each address that is in use included."""
    keystore = await asyncio.to_thread(keystore_of, keystore_files[0].parent)
    secrets = secrets_of(keystore, keystore_files[1].read_text().strip())
    async with story_db.transaction() as conn:
        rows = await conn.exec_driver_sql(
            "SELECT mode, family, account_index, change, address_index, address FROM addresses"
        )
        for row in rows:
            path = (row.account_index, row.change, row.address_index)
            key = keystore.private_key(row.mode, COIN_TYPES[row.family], *path)
            secrets[f"key of {row.mode} {row.address}"] = key.secret
    return Finder(secrets)


@pytest.fixture(scope="module")
async def busy(merchant, station, blocks, network, onlooker, usdx, receiver) -> str:
    """Have money come in and go out, well and badly."""
    payment = await merchant.pay(usdx, 30)
    await usdx.send(payment["depositAddress"], 30)
    await merchant.until(payment, "paid", seconds=180)
    to_address = network.stranger()
    await merchant.completed(await merchant.pay_out(usdx, 10, to_address))
    await merchant.completed(await merchant.refund(payment, network.stranger(), amount="5"))
    assert await onlooker.holds(to_address, usdx, 10)
    return to_address


@pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")
async def test_no_answer_shows_a_secret_whatever_is_asked(finder, gateway, merchant, session):
    statuses = set()
    for method, path, body in BAD_REQUESTS:
        for headers in ({}, merchant.headers, merchant.bearer):
            sent = {**headers, "Content-Type": "application/json"}
            async with session.request(method, gateway.url + path, data=body, headers=sent) as response:
                content = await response.read() + repr(response.raw_headers).encode()
            assert not finder.find(content), path
            assert b"Traceback" not in content, path
            statuses.add(response.status)
    assert {400, 401, 404} <= statuses
    assert not {status for status in statuses if status >= 500}


async def test_no_log_shows_a_secret(finder, gateway):
    assert gateway.log.stat().st_size > 0
    assert finder.find(gateway.log.read_bytes()) == set()


async def test_no_column_of_the_database_holds_a_secret(finder, story_db):
    async with story_db.transaction() as conn:
        signed = await conn.exec_driver_sql("SELECT count(*) FROM outbound_txs WHERE length(raw) > 0")
        assert signed.scalar_one() >= 3, "a top-up, a collection, a payout"
    assert await finder.in_database(story_db) == {}


async def test_the_file_beside_the_database_that_holds_no_secret_is_the_keystore_alone(finder, keystore_files, gateway):
    """Of all that the gateway wrote, only the passphrase's own file says the passphrase; the keystore is encrypted."""
    found = {}
    for path in gateway.folder.rglob("*"):
        if path.is_file() and (names := finder.find(path.read_bytes())):
            found[path.name] = names
    assert found == {keystore_files[1].name: {"passphrase"}}


async def test_the_memory_of_who_does_not_sign_holds_no_secret(finder, gateway, network):
    signer, *others = ("signer", "worker", "web") if network.family == "tron" else ("worker", "web")

    def signs(found: Collection[str]) -> bool:
        return {"mnemonic", "passphrase"} <= found and any(name.startswith("key of live") for name in found)

    def held_by(name: str) -> set[str]:
        return {secret for one in family_of(gateway.child(name)) for secret in finder.in_memory(one)}

    try:
        # What is looked for would be found.
        assert signs(await asyncio.to_thread(finder.in_memory, gateway.child(signer), enough=signs))
        for name in others:
            assert await asyncio.to_thread(held_by, name) == set(), name
    except PermissionError:
        pytest.skip("this machine does not let one process read another's memory")


@pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")
async def test_web_never_opens_the_keystore_or_its_passphrase(
    gateway, keystore_files, merchant, session, network, usdx
):
    before = gateway.child("web")
    with watch_openings(keystore_files) as openings:
        keystore_files[0].read_bytes()
        assert openings.count() == 1, "who opens it is noticed"
        for process in reversed(family_of(before)):
            process.kill()

        async def is_back() -> bool:
            try:
                async with session.get(f"{gateway.url}/health/ready") as response:
                    return response.status == 200 and gateway.child("web").pid != before.pid
            except (aiohttp.ClientError, psutil.Error, ValueError):
                return False

        await until(is_back)
        payment = await merchant.pay(usdx, 3)
        assert len(payment["depositAddress"]) == len(network.stranger())
        to_address = network.stranger()
        await merchant.completed(await merchant.pay_out(usdx, 2, to_address))
        assert await network.onlooker.holds(to_address, usdx, 2)
        assert openings.count() == 0
