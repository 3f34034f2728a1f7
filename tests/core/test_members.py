"""Members of one merchant: each has their own sessions, and nothing of another's."""

from __future__ import annotations

import pytest

from cambist.services.errors import ConflictError, NotFoundError
from cambist.services.identity import members, sessions
from cambist.services.identity.members import MEMBERS
from cambist.services.identity.sessions import RefreshTokens, Sessions, Visitor
from cambist.services.listing import Part
from tests.support.members import a_member, another_member

HERE = Visitor(ip="192.0.2.7", user_agent=None)


@pytest.fixture
def own_sessions(ids):
    return Sessions(MEMBERS, RefreshTokens(b"k" * 32, ids), ids, lifetime_s=86_400, idle_s=3_600)


async def merchant_of(conn, member_pk):
    found = await conn.exec_driver_sql("SELECT merchant_pk FROM members WHERE id = $1", (member_pk,))
    return found.scalar_one()


async def opened_by_three(db, own_sessions, clock):
    """Open a session each of two members of one merchant, and of a stranger; return the merchant and the sessions."""
    async with db.transaction() as conn:
        ada = await a_member(conn, "ada", "ada@shop.example")
        merchant_pk = await merchant_of(conn, ada)
        bob = await another_member(conn, merchant_pk, "bob", "bob@shop.example")
        eve = await a_member(conn, "eve", "eve@shop.example")
        opened = [await own_sessions.open(conn, pk, HERE, now=clock.now()) for pk in (ada, bob, eve)]
    return merchant_pk, [one.principal for one in opened]


async def going_on(db, own_sessions, clock, principals):
    async with db.transaction() as conn:
        found = [await own_sessions.use(conn, one.session_id, HERE.ip, now=clock.now()) for one in principals]
    return [one is not None for one in found]


async def test_each_member_is_known_by_himself_and_acts_for_the_same_merchant(db, own_sessions, clock):
    merchant_pk, (ada, bob, eve) = await opened_by_three(db, own_sessions, clock)
    assert (ada.merchant_pk, bob.merchant_pk) == (merchant_pk, merchant_pk)
    assert (ada.merchant_id, bob.merchant_id, eve.merchant_id) == ("mer_ada", "mer_ada", "mer_eve")
    assert [one.person_id for one in (ada, bob, eve)] == ["mem_ada", "mem_bob", "mem_eve"]
    async with db.transaction() as conn:
        assert await members.merchant_of(conn, "mem_bob") == "mer_ada"


async def test_a_step_up_and_the_end_of_sessions_are_of_one_member_alone(db, own_sessions, clock):
    _, principals = await opened_by_three(db, own_sessions, clock)
    ada, bob, _ = principals
    async with db.transaction() as conn:
        now = clock.now()
        await sessions.step_up(conn, MEMBERS, ada.session_id, until=now.replace(year=now.year + 1))
        stepped_up = [await own_sessions.use(conn, one.session_id, HERE.ip, now=now) for one in (ada, bob)]
        assert [one.has_stepped_up(now) for one in stepped_up] == [True, False]
        await sessions.revoke_all(conn, MEMBERS, ada.person_pk, now=now)
    assert await going_on(db, own_sessions, clock, principals) == [False, True, True]


async def test_a_member_neither_lists_nor_ends_the_sessions_of_another(db, own_sessions, clock):
    _, (ada, bob, _) = await opened_by_three(db, own_sessions, clock)
    async with db.transaction() as conn:
        listed = await own_sessions.list(conn, ada.person_pk, Part(limit=10), now=clock.now())
        assert [one.session_id for one in listed.items] == [ada.session_id]
        with pytest.raises(NotFoundError, match="no such open session"):
            await own_sessions.end(conn, ada.person_pk, bob.session_id, now=clock.now())


async def test_signing_a_merchant_out_ends_the_sessions_of_all_its_members_and_no_others(db, own_sessions, clock):
    merchant_pk, principals = await opened_by_three(db, own_sessions, clock)
    async with db.transaction() as conn:
        await members.sign_out_all(conn, merchant_pk, now=clock.now())
    assert await going_on(db, own_sessions, clock, principals) == [False, False, True]


async def test_who_is_a_member_somewhere_does_not_sign_up_again_with_the_same_address(payment_env):
    told = {"name": "Shop", "password_hash": "-", "ids": payment_env.ids, "now": payment_env.clock.now()}
    async with payment_env.db.transaction() as conn:
        first = await members.register(conn, email="ada@shop.example", **told)
        await another_member(conn, first.merchant_pk, "bob", "bob@shop.example")
    with pytest.raises(ConflictError) as caught:
        async with payment_env.db.transaction() as conn:
            await members.register(conn, email="bob@shop.example", **told)
    assert caught.value.code == "EMAIL_TAKEN"
    async with payment_env.db.transaction() as conn:
        left = await conn.exec_driver_sql("SELECT count(*) FROM merchants WHERE email = 'bob@shop.example'")
        assert left.scalar_one() == 0
