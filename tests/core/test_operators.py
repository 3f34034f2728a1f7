"""Operators below the API: who is let in, that an owner is left, and that nothing of theirs is a merchant's."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from argon2 import PasswordHasher
from sqlalchemy import insert, update

from cambist.db.models import Operator
from cambist.secrets import SecretsBox
from cambist.services.errors import ConflictError, NotFoundError, ServiceError, UnauthenticatedError
from cambist.services.identity import credentials, operators, sessions
from cambist.services.identity.members import MEMBERS
from cambist.services.identity.operators import OPERATORS
from cambist.services.identity.passwords import Passwords
from cambist.services.identity.sessions import RefreshTokens, Sessions, Visitor
from cambist.services.identity.two_factor import TwoFactor
from tests.support.members import a_member
from tests.support.two_factor import Authenticator

HERE = Visitor(ip="192.0.2.7", user_agent=None)


class Office:
    """The operators of a gateway, without a web server before them."""

    def __init__(self, db, ids, clock):
        self.db, self.ids, self.clock = db, ids, clock
        self.two_factor = TwoFactor(OPERATORS, db, SecretsBox([b"k" * 32], ids.random_bytes), ids, clock)
        tokens = RefreshTokens(b"one key for both kinds of people", ids)
        self.sessions, self.merchants_sessions = (
            Sessions(people, tokens, ids, lifetime_s=86_400, idle_s=3_600) for people in (OPERATORS, MEMBERS)
        )

    async def add(self, name, role="owner", *, enrolled=True):
        async with self.db.transaction() as conn:
            told = {"email": f"{name}@gateway.example", "name": name, "role": role, "password_hash": name}
            made = await operators.add(conn, **told, ids=self.ids, now=self.clock.now())
        if enrolled:
            enrolment = await self.two_factor.enrol(made.pk, made.email, None)
            await self.two_factor.confirm(made.pk, Authenticator(enrolment.secret, self.clock).code(), session_id="")
        return made

    async def do(self, use_case, *arguments, **options):
        async with self.db.transaction() as conn:
            return await use_case(conn, *arguments, **options)

    async def disable(self, operator):
        return await self.do(operators.disable, operator.operator_id, now=self.clock.now())

    async def opened(self, operator):
        return await self.do(self.sessions.open, operator.pk, HERE, now=self.clock.now())


@pytest.fixture
def office(db, ids, clock):
    return Office(db, ids, clock)


async def outcome(work):
    try:
        await work
    except ServiceError as error:
        return error.code
    return "done"


async def test_the_last_owner_who_can_sign_in_stays_one(office):
    ada, _ = await office.add("ada"), await office.add("max", role="operator")
    assert await outcome(office.disable(ada)) == "LAST_OWNER"
    assert await outcome(office.do(operators.set_role, ada.operator_id, "auditor")) == "LAST_OWNER"
    eve = await office.add("eve", enrolled=False)
    assert await outcome(office.disable(ada)) == "LAST_OWNER", "Eve has never signed in, and perhaps never will"
    assert await outcome(office.disable(eve)) == "done"
    bob = await office.add("bob")
    assert await outcome(office.do(operators.set_role, ada.operator_id, "auditor")) == "done"
    assert await outcome(office.disable(bob)) == "LAST_OWNER"
    assert await outcome(office.do(operators.set_role, ada.operator_id, "owner")) == "done"
    assert await outcome(office.disable(bob)) == "done"
    assert await outcome(office.disable(ada)) == "LAST_OWNER"


async def test_of_two_owners_who_demote_each_other_at_once_one_is_left(office):
    ada, bob = await office.add("ada"), await office.add("bob")
    async with office.db.transaction() as conn:
        # Both wait for this lock, and so both have begun when it is released.
        await conn.exec_driver_sql("SELECT FROM operators FOR UPDATE")
        works = [
            asyncio.create_task(outcome(office.do(operators.set_role, one.operator_id, "support")))
            for one in (ada, bob)
        ]
        async with asyncio.timeout(60):
            while await _waiting(office.db) < len(works):  # noqa: ASYNC110  PostgreSQL's, which sets no event
                await asyncio.sleep(0.02)
    assert sorted(await asyncio.gather(*works)) == ["LAST_OWNER", "done"]
    roles = sorted([(await office.do(operators.read, one.operator_id)).role for one in (ada, bob)])
    assert roles == ["owner", "support"]


@pytest.mark.parametrize("change", [{"role": "support"}, {"disabled_at": datetime(2026, 1, 1, tzinfo=UTC)}])
async def test_an_owner_who_is_demoted_or_disabled_while_his_act_waits_is_refused(office, change):
    ada, bob = await office.add("ada"), await office.add("bob")
    assert await outcome(office.do(operators.acting, bob.operator_id)) == "done"
    async with office.db.transaction() as conn:
        await operators.acting(conn, ada.operator_id)
        act = asyncio.create_task(outcome(office.do(operators.acting, bob.operator_id)))
        async with asyncio.timeout(60):
            while not await _waiting(office.db):  # noqa: ASYNC110  PostgreSQL's, which sets no event
                await asyncio.sleep(0.02)
        await conn.execute(update(Operator).where(Operator.id == bob.pk).values(change))
    assert await act == "ROLE_NOT_ALLOWED"
    assert await outcome(office.do(operators.acting, ada.operator_id)) == "done"
    assert await outcome(office.do(operators.acting, None)) == "done", "the command line and the admin key"


async def _waiting(db):
    """Return how many of this database wait for a lock."""
    async with db.autocommit() as conn:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        return (await conn.exec_driver_sql(query)).scalar_one()


async def test_who_is_disabled_has_no_session_and_no_password_until_enabled(office):
    passwords = Passwords(office.ids.random_bytes, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    await office.add("ada")
    bob = await office.add("bob", role="support")
    opened = await office.opened(bob)
    used = {"now": office.clock.now()}
    assert (await office.do(office.sessions.use, opened.principal.session_id, HERE.ip, **used)).role == "support"
    password = "a password that nobody guesses"
    async with office.db.transaction() as conn:
        stored = await passwords.hash(password)
        await conn.exec_driver_sql("UPDATE operators SET password_hash = $1", (stored,))
    asked = {"email": bob.email, "password": password, "passwords": passwords}
    sign_in = await credentials.check_password(OPERATORS, office.db, **asked)
    await office.disable(bob)
    for refused in (
        credentials.check_password(OPERATORS, office.db, **asked),
        office.do(credentials.lock_password, OPERATORS, sign_in),
    ):
        assert await outcome(refused) == "INVALID_CREDENTIALS"
    assert await office.do(office.sessions.use, opened.principal.session_id, HERE.ip, **used) is None
    assert await office.do(office.sessions.rotate, opened.refresh_token, HERE, **used) is None
    await office.do(operators.enable, bob.operator_id)
    assert await office.do(office.sessions.use, opened.principal.session_id, HERE.ip, **used) is None, "it was ended"
    await credentials.check_password(OPERATORS, office.db, **asked)


async def test_a_session_is_found_only_while_its_operator_is_enabled_and_has_a_second_factor(office, db):
    bob = await office.add("bob")
    opened, now = await office.opened(bob), office.clock.now()
    spoil = ("UPDATE operators SET disabled_at = now()", "DELETE FROM operator_two_factors")
    for statement in spoil:
        async with db.transaction() as conn:
            assert await office.sessions.use(conn, opened.principal.session_id, HERE.ip, now=now) is not None
            undone = await conn.begin_nested()
            await conn.exec_driver_sql(statement)
            assert await office.sessions.use(conn, opened.principal.session_id, HERE.ip, now=now) is None
            assert await office.sessions.rotate(conn, opened.refresh_token, HERE, now=now) is None
            await undone.rollback()


async def test_no_session_is_opened_before_there_is_a_second_factor(office):
    bob = await office.add("bob", enrolled=False)
    with pytest.raises(UnauthenticatedError) as caught:
        await office.two_factor.check_sign_in(bob.pk, None)
    assert caught.value.code == "TWO_FACTOR_NOT_ENROLLED"
    async with office.db.transaction() as conn:
        with pytest.raises(UnauthenticatedError) as caught:
            await office.two_factor.lock_sign_in(conn, bob.pk, shown=True)
        assert caught.value.code == "TWO_FACTOR_NOT_ENROLLED"


async def test_a_session_of_one_kind_of_people_is_unknown_to_the_other_even_with_the_same_keys(office, db):
    bob = await office.add("bob")
    async with db.transaction() as conn:
        pk = await a_member(conn, "bob", bob.email)
    now = office.clock.now()
    of_operator = await office.opened(bob)
    of_merchant = await office.do(office.merchants_sessions.open, pk, HERE, now=now)
    for mine, theirs in (
        (office.sessions, of_merchant),
        (office.merchants_sessions, of_operator),
    ):
        assert await office.do(mine.use, theirs.principal.session_id, HERE.ip, now=now) is None
        assert await office.do(mine.rotate, theirs.refresh_token, HERE, now=now) is None
    await office.do(sessions.revoke_all, MEMBERS, bob.pk, now=now)
    assert await office.do(office.sessions.use, of_operator.principal.session_id, HERE.ip, now=now) is not None


async def test_a_link_sets_a_password_once_and_not_for_the_other_kind_of_people(office):
    bob = await office.add("bob")
    now = office.clock.now()
    issue = {"ids": office.ids, "now": now, "lifetime_s": 600}
    old = await office.do(credentials.issue_link, OPERATORS, bob.email, **issue)
    token = await office.do(credentials.issue_link, OPERATORS, bob.email, **issue)
    opened = await office.opened(bob)
    assert await outcome(office.do(credentials.set_by_link, OPERATORS, old, "x", now=now)) == "RESET_TOKEN_INVALID"
    assert await outcome(office.do(credentials.set_by_link, MEMBERS, token, "x", now=now)) == "RESET_TOKEN_INVALID"
    late = now + timedelta(seconds=600)
    assert await outcome(office.do(credentials.set_by_link, OPERATORS, token, "x", now=late)) == "RESET_TOKEN_INVALID"
    assert (await office.do(credentials.set_by_link, OPERATORS, token, "x", now=now)).operator_id == bob.operator_id
    assert await outcome(office.do(credentials.set_by_link, OPERATORS, token, "x", now=now)) == "RESET_TOKEN_INVALID"
    assert await office.do(office.sessions.use, opened.principal.session_id, HERE.ip, now=now) is None
    with pytest.raises(NotFoundError):
        await office.do(credentials.issue_link, OPERATORS, "nobody@gateway.example", **issue)


async def test_who_is_disabled_sets_no_password_by_a_link_from_before_nor_by_one_of_meanwhile(office):
    await office.add("ada")
    bob, now = await office.add("bob"), office.clock.now()

    async def issued():
        return await office.do(credentials.issue_link, OPERATORS, bob.email, ids=office.ids, now=now, lifetime_s=600)

    async def set_by(token):
        return await outcome(office.do(credentials.set_by_link, OPERATORS, token, "x", now=now))

    before = await issued()
    await office.disable(bob)
    await office.do(operators.enable, bob.operator_id)
    assert await set_by(before) == "RESET_TOKEN_INVALID"
    await office.disable(bob)
    meanwhile = await issued()
    assert await set_by(meanwhile) == "RESET_TOKEN_INVALID"
    await office.do(operators.enable, bob.operator_id)
    assert await set_by(meanwhile) == "done"


async def _works(office, people, token):
    """Return whether a link still sets a password, without using it."""
    return await outcome(office.do(credentials.of_link, people, token, now=office.clock.now())) == "done"


async def _handed_out_by(office, by):
    """Have an operator, or whoever has the command line, hand out an invitation, a way back in, and a member's."""
    issue = {"ids": office.ids, "now": office.clock.now(), "lifetime_s": 600}
    name = "nobody's" if by is None else by.name
    invited, lost = [await office.add(f"{name}-{who}", "support", enrolled=False) for who in ("invited", "lost")]
    member = f"{name}@shop.example"
    async with office.db.transaction() as conn:
        await a_member(conn, name, member)
        by_id = None if by is None else by.operator_id
        links = [await operators.issue_link(conn, invited.email, **issue, by=by_id)]
        told = {"password_hash": "nobody knows", "by": by_id}
        links.append(await operators.reset_two_factor(conn, lost.email, **issue, **told))
        issued_by = await operators.letting_merchants_in(conn, by_id, None)
        of_member = await credentials.issue_link(conn, MEMBERS, member, **issue, issued_by=issued_by)
    return links, of_member


@pytest.mark.parametrize("role, members_link_works", [("operator", True), ("support", False), ("auditor", False)])
async def test_links_of_an_owner_who_is_one_no_more_let_nobody_in(office, role, members_link_works):
    ada, bob = await office.add("ada"), await office.add("bob")
    handed_out = {by: await _handed_out_by(office, by) for by in (ada, bob, None)}
    await office.do(operators.set_role, bob.operator_id, role)
    # Also for one who becomes an owner again: what was handed out before is not trusted anew.
    await office.do(operators.set_role, bob.operator_id, "owner")
    for by, (links, of_member) in handed_out.items():
        assert [await _works(office, OPERATORS, link) for link in links] == [by is not bob] * 2, by
        assert await _works(office, MEMBERS, of_member) == (by is not bob or members_link_works), by
    [again, _], _ = handed_out[ada]
    assert await outcome(office.do(credentials.set_by_link, OPERATORS, again, "x", now=office.clock.now())) == "done"


async def test_links_of_who_is_disabled_let_nobody_in_and_what_they_did_before_stays(office):
    await office.add("ada")
    bob, used_at = await office.add("bob"), office.clock.now()
    links, of_member = await _handed_out_by(office, bob)
    assert await outcome(office.do(credentials.set_by_link, OPERATORS, links[0], "x", now=used_at)) == "done"
    await office.disable(bob)
    await office.do(operators.enable, bob.operator_id)
    assert not await _works(office, OPERATORS, links[1])
    assert not await _works(office, MEMBERS, of_member)
    async with office.db.autocommit() as conn:
        used = "SELECT count(*) FROM operator_links WHERE used_at IS NOT NULL"
        assert (await conn.exec_driver_sql(used)).scalar_one() == 1


@pytest.mark.parametrize("change", [{"role": "support"}, {"disabled_at": datetime(2026, 1, 1, tzinfo=UTC)}])
async def test_a_link_holds_by_what_its_issuer_is_when_it_is_used(office, change):
    """Not by its row alone, which somebody may have stored while the issuer was being demoted."""
    await office.add("ada")
    bob = await office.add("bob")
    links, of_member = await _handed_out_by(office, bob)
    async with office.db.transaction() as conn:
        await conn.execute(update(Operator).where(Operator.id == bob.pk).values(change))
    for people, token in ((OPERATORS, links[0]), (OPERATORS, links[1]), (MEMBERS, of_member)):
        setting = office.do(credentials.set_by_link, people, token, "x", now=office.clock.now())
        assert await outcome(setting) == "RESET_TOKEN_INVALID"


async def test_of_links_issued_at_once_one_works_and_a_password_set_by_it_ends_any_other(office):
    bob, now = await office.add("bob"), office.clock.now()
    issue = {"ids": office.ids, "now": now, "lifetime_s": 600}
    async with office.db.transaction() as conn:
        first = await credentials.issue_link(conn, OPERATORS, bob.email, **issue)
        later = asyncio.create_task(office.do(credentials.issue_link, OPERATORS, bob.email, **issue))
        async with asyncio.timeout(60):
            while not later.done() and not await _waiting(office.db):  # noqa: ASYNC110  PostgreSQL's, which sets no event
                await asyncio.sleep(0.02)
    token = await later
    assert await outcome(office.do(credentials.of_link, OPERATORS, first, now=now)) == "RESET_TOKEN_INVALID"
    another = {"token_hash": sessions.token_hash(first), "person_pk": bob.pk, "expires_at": now + timedelta(600)}
    async with office.db.transaction() as conn:
        await conn.execute(insert(OPERATORS.link).values(another))
    await office.do(credentials.set_by_link, OPERATORS, token, "x", now=now)
    assert await outcome(office.do(credentials.of_link, OPERATORS, first, now=now)) == "RESET_TOKEN_INVALID"


async def test_an_address_is_one_operators(office):
    await office.add("ada")
    with pytest.raises(ConflictError, match="exists already"):
        await office.add("ada")
