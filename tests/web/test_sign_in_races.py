"""Signing in while the password is changed or reset: whoever comes too late is refused, and nothing deadlocks."""

from __future__ import annotations

import asyncio

import pytest

from cambist.services.errors import InvalidError
from cambist.services.identity import credentials, people
from cambist.services.identity.members import MEMBERS
from tests.support.web import PASSWORD, Merchant

ROUNDS = 25
LOGIN, CHANGE = "/api/auth/login", "/api/auth/password"


@pytest.mark.slow
async def test_signing_in_with_a_sessions_cookie_while_the_password_is_changed(client):
    merchant = Merchant(client)
    await merchant.register("ada@shop.example")
    old, new = PASSWORD, "another good password"
    for number in range(ROUNDS):
        login = {"email": merchant.email, "password": old}
        cookie = {"Cookie": f"cambist_refresh={merchant.refresh_token}"}
        change = {"currentPassword": old, "newPassword": new}
        answers = await asyncio.gather(
            client.post(CHANGE, json=change, headers=merchant.bearer),
            *(_after(number % 10 / 1_000, client.post(LOGIN, json=login, headers=cookie)) for _ in range(4)),
        )
        assert {answer.status_code for answer in answers} <= {200, 401}, [answer.text for answer in answers]
        # A sign-in that was faster has ended the session that would change the password.
        if answers[0].status_code == 200:
            old, new = new, old
        merchant.take(await client.post(LOGIN, json=login | {"password": old}))


async def test_changing_the_password_while_it_is_reset(client, gateway):
    merchant = Merchant(client)
    await merchant.register("ada@shop.example")
    web, now = client._transport.app.state.web, gateway.clock.now()
    sign_in = await credentials.check_password(
        MEMBERS, gateway.db, email=merchant.email, password=PASSWORD, passwords=web.passwords
    )
    async with gateway.db.transaction() as conn:
        token = await credentials.issue_link(conn, MEMBERS, merchant.email, ids=gateway.ids, now=now, lifetime_s=60)

    async def reset():
        async with gateway.db.transaction() as conn:
            await credentials.set_by_link(conn, MEMBERS, token, "by the link", now=now)

    async with gateway.db.transaction() as conn:
        await people.lock(conn, MEMBERS, sign_in.person.pk)
        resetting = asyncio.create_task(reset())
        await _somebody_waits(gateway.db)
        await credentials.change_password(conn, MEMBERS, sign_in, "by hand", now=now)
    with pytest.raises(InvalidError, match="was used already"):
        await resetting


async def _somebody_waits(db):
    """Return once a statement on this database waits for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(30), db.autocommit() as conn:
        while not (await conn.exec_driver_sql(waiting)).scalar_one():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.01)


async def _after(delay_s, request):
    await asyncio.sleep(delay_s)
    return await request
