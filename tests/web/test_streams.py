"""Streams of what changes: who is told what, what a page may rely on, and what a stream may cost."""

import asyncio

import pytest

from cambist.db.engine import connect
from cambist.services import changes
from cambist.services.changes import Change
from cambist_web.live.hub import LiveOptions
from cambist_web.live.messages import KINDS, OF_MERCHANTS, OF_TEAMS, with_consequences
from cambist_web.live.reader import Reader
from cambist_web.live.viewers import Viewer
from tests.support.operators import Officer
from tests.support.streams import served
from tests.support.team import Teammate
from tests.support.web import ADMIN_KEY, refused

STREAM, ADMIN_STREAM = "/api/dashboard/stream", "/api/admin/stream"
ADMIN = {"X-Admin-Key": ADMIN_KEY}


@pytest.mark.slow
async def test_a_change_is_told_to_whom_it_concerns_and_to_nobody_else(gateway, two_merchants):
    ada, bob = two_merchants.ada, two_merchants.bob
    async with (
        served(gateway) as here,
        here.stream(STREAM, ada.bearer) as page,
        here.stream(STREAM, bob.bearer) as other,
        here.stream(f"{ADMIN_STREAM}?kinds=payment,balance", ADMIN) as operators,
    ):
        payment_id = await two_merchants.paid()
        told = await page.told_of(kind="payment", id=payment_id, status="paid")
        assert told == {
            "kind": "payment",
            "id": payment_id,
            "projectId": ada.project_id,
            "mode": "sandbox",
            "status": "paid",
        }
        await page.told_of(kind="balance", mode="sandbox")
        seen = await operators.told_of(kind="payment", id=payment_id)
        assert seen["merchantId"] == ada.merchant_id
        await operators.told_of(kind="balance", merchantId=ada.merchant_id)
        assert {change["kind"] for change in operators.changes} <= {"payment", "balance"}
        asked = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
        own = (await two_merchants.post("/api/payment", asked, bob.key))["payment"]["paymentId"]
        await other.told_of(kind="payment", id=own)
        assert {change.get("projectId") for change in other.changes} == {bob.project_id}


async def test_a_stream_that_broke_off_goes_on_where_it_was_without_a_gap(gateway, two_merchants, clock):
    ada = two_merchants.ada
    async with served(gateway) as here:
        async with here.stream(STREAM, ada.bearer) as page:
            assert not page.resumed
            first = await two_merchants.paid()
            await page.told_of(kind="payment", id=first, status="paid")
            where = page.last_event_id
        await here.until_open(0)
        missed = await two_merchants.paid()
        async with here.stream(STREAM, ada.bearer, last_event_id=where) as page:
            assert page.resumed
            await page.told_of(kind="payment", id=missed, status="paid")
        for useless in ("garbage", where[:-4] + "AAAA"):
            async with here.stream(STREAM, ada.bearer, last_event_id=useless) as page:
                assert not page.resumed
        clock.advance(LiveOptions().resume_s + 1)
        async with here.stream(STREAM, ada.bearer, last_event_id=where) as page:
            assert not page.resumed


@pytest.mark.slow
async def test_a_stream_ends_with_the_access_that_it_was_opened_with(client, gateway, two_merchants):
    ada, web = two_merchants.ada, client._transport.app.state.web
    finance = await Teammate(client, ada).sign_in("finance")
    limited = await Teammate(client, ada).sign_in("viewer", projects=[ada.project_id])
    leaving = await Teammate(client, ada).sign_in("developer")
    officer = await Officer(client).sign_in("support")
    async with (
        served(gateway) as here,
        here.stream(STREAM, ada.bearer) as staying,
        here.stream(STREAM, finance.bearer) as promoted,
        here.stream(STREAM, limited.bearer) as withdrawn,
        here.stream(STREAM, leaving.bearer) as signed_out,
        here.stream(ADMIN_STREAM, officer.bearer) as disabled,
    ):
        await change(web, "UPDATE members SET role = 'viewer' WHERE member_id = $1", finance.member_id)
        await change(web, "UPDATE members SET project_pks = '{}' WHERE member_id = $1", limited.member_id)
        await change(web, "UPDATE sessions SET revoked_at = now() WHERE member_pk = $1", leaving.pk)
        await change(web, "UPDATE operators SET disabled_at = now() WHERE id = $1", officer.made.pk)
        assert await promoted.end() == "access_changed"
        assert await withdrawn.end() == "access_changed"
        assert await signed_out.end() == "session_ended"
        assert await disabled.end() == "session_ended"
        await here.until_open(1)
        await staying.told_of(kind="payment", id=await two_merchants.paid())


async def change(web, statement, value):
    async with web.db.transaction() as conn:
        await conn.exec_driver_sql(statement, (value,))


async def test_a_stream_ends_with_its_access_token_and_the_next_one_goes_on(gateway, two_merchants, clock):
    ada = two_merchants.ada
    async with served(gateway) as here, here.stream(STREAM, ada.bearer) as page:
        clock.advance(gateway.settings.auth.access_token_s + 1)
        assert await page.end() == "token_expired"
        await here.until_open(0)


async def test_nobody_streams_without_a_session_or_what_is_unknown(client, two_merchants):
    ada = two_merchants.ada
    refused(await client.get(STREAM), 401, "SESSION_REQUIRED")
    refused(await client.get(STREAM, headers=ada.key), 401, "SESSION_REQUIRED")
    refused(await client.get(ADMIN_STREAM, headers=ada.bearer), 401, "INVALID_TOKEN")
    refused(await client.get(f"{STREAM}?kinds=chain", headers=ada.bearer), 400, "VALIDATION_ERROR", "kinds")
    begun = await client.get(STREAM, headers=ada.bearer)
    assert begun.headers["cache-control"] == "no-store"
    assert begun.text.startswith("retry: 3000\nid: ")
    assert begun.text.endswith('event: end\ndata: {"reason":"closing"}\n\n')


async def test_a_person_has_so_many_streams_and_a_process_too(gateway, two_merchants):
    ada, bob = two_merchants.ada, two_merchants.bob
    options = LiveOptions(streams_per_person_max=2, streams_max=3)
    async with (
        served(gateway, options) as here,
        here.stream(STREAM, ada.bearer),
        here.stream(STREAM, ada.bearer),
    ):
        async with here.get(STREAM, ada.bearer) as response:
            assert (response.status, (await response.json())["code"]) == (429, "STREAMS_LIMITED")
            assert response.headers["retry-after"] == "3"
        async with here.stream(STREAM, bob.bearer), here.get(ADMIN_STREAM, ADMIN) as response:
            assert (response.status, (await response.json())["code"]) == (503, "STREAMS_BUSY")


@pytest.mark.slow
async def test_who_does_not_take_what_is_sent_is_let_go(gateway, two_merchants):
    ada = two_merchants.ada
    # Heartbeats without a pause fill whatever lies between the two ends.
    options = LiveOptions(heartbeat_s=0, send_s=0.2, poll_s=0.1)
    async with served(gateway, options) as here:
        host, port = here.url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=1)
        sock = writer.get_extra_info("socket")
        writer.transport.pause_reading()
        writer.write(
            f"GET {STREAM} HTTP/1.1\r\nHost: x\r\nAuthorization: {ada.bearer['Authorization']}\r\n\r\n".encode()
        )
        await here.until_open(1)
        await here.until_open(0)
        assert sock.fileno() >= 0
        writer.close()


def viewer(**access):
    return Viewer(person="mem_1", principal=None, expires_at=None, **{"merchant_pk": 1, **access})


def changed(kind="payment", object_id="pay_1", *, merchant=1, project=10, mode="live", status="paid", intent_kind=None):
    return Change(
        kind=kind,
        object_id=object_id,
        status=status,
        mode=mode,
        merchant_pk=merchant,
        project_pk=project,
        merchant_id=f"mer_{merchant}",
        project_id=f"prj_{project}",
        intent_kind=intent_kind,
    )


def test_a_viewer_sees_what_is_open_to_it():
    whole, some = viewer(), viewer(project_pks=[10], modes={"live"})
    operator, asked = viewer(merchant_pk=None), viewer(kinds={"payout"}, mode="live")
    table = [
        #                                                        whole  some   operator  asked
        (changed(), (True, True, True, False)),
        (changed(project=11), (True, False, True, False)),
        (changed(merchant=2), (False, False, True, False)),
        (changed("payout"), (True, True, True, True)),
        (changed("payout", mode="sandbox"), (True, True, True, False)),
        (changed("payout", project=None), (True, False, True, True)),
        (changed("refund", project=None), (True, False, True, False)),
        (changed("exchange", project=None), (True, False, True, False)),
        (changed("withdrawal"), (True, False, True, False)),
        (changed("balance", project=None), (True, True, True, False)),
        (changed("balance", project=None, mode="sandbox"), (True, False, True, False)),
        (changed("collection", project=None), (True, True, True, False)),
        (changed("collection", project=None, mode="sandbox"), (True, False, True, False)),
        (changed("outbound"), (False, False, True, False)),
        (changed("job", merchant=1, project=None), (False, False, True, False)),
        (changed("chain", merchant=None, project=None, mode=None), (False, False, True, False)),
    ]
    for one, expected in table:
        assert tuple(who.sees(one) for who in (whole, some, operator, asked)) == expected, one


@pytest.mark.parametrize(
    "intent_kind, told",
    [
        ("payout", ["payout"]),
        ("auto_payout", ["payout"]),
        ("refund", ["refund"]),
        ("withdrawal", ["withdrawal"]),
        ("collection", ["collection"]),
        ("swap", ["exchange"]),
        ("bridge", ["exchange"]),
        ("sweep", []),
        ("loan", []),
        ("top_up", []),
        ("approval", []),
    ],
)
def test_what_is_sent_is_told_to_its_merchant_by_what_it_is_for(intent_kind, told):
    sent = changed("outbound", "int_1", project=None, status="waiting", intent_kind=intent_kind)
    first, *others = with_consequences([sent])
    assert first is sent
    assert [(one.kind, one.object_id, one.status, one.mode) for one in others] == [
        (kind, "", None, "live") for kind in told
    ]
    assert all(viewer().sees(one) for one in others)
    restricted = viewer(project_pks=[10], modes={"live"})
    known = {project: changed("outbound", "int_1", project=project, intent_kind=intent_kind) for project in (10, 11)}
    heard = {key: [one for one in with_consequences([sent]) if restricted.sees(one)] for key, sent in known.items()}
    assert [one.kind for one in heard[10]] == [kind for kind in told if kind != "withdrawal"]
    assert (heard[11], [one.project_id for one in heard[10]]) == ([], [None] * len(heard[10]))
    assert list(with_consequences([changed("outbound", "int_1", merchant=None, intent_kind=intent_kind)]))[1:] == []


def test_what_changed_again_is_told_once_and_last_and_who_falls_behind_reads_everything_again():
    reader = Reader(viewer(), pending_max=3)
    reader.put([changed(status="detected"), changed("payout", "pay_2"), changed(status="paid")])
    assert [(one.id, one.status) for one in reader.take(10)] == [("pay_2", "paid"), ("pay_1", "paid")]
    assert not reader.woken.is_set()
    reader.put(changed(object_id=f"pay_{number}") for number in range(4))
    assert reader.has_more
    assert reader.take(10) == []
    assert reader.take_resync() == "behind"
    reader.put([changed()])
    assert [one.id for one in reader.take(10)] == ["pay_1"]


def test_what_changed_without_a_state_takes_none_back_that_was_not_told_yet():
    reader = Reader(viewer(merchant_pk=None), pending_max=3)
    reader.put([changed("chain", "ethereum", status="resumed"), changed("chain", "ethereum", status=None)])
    assert [(one.kind, one.id, one.status) for one in reader.take(10)] == [("chain", "ethereum", "resumed")]
    reader.put([changed("chain", "ethereum", status=None)])
    assert [one.status for one in reader.take(10)] == [None]


async def test_what_is_committed_late_is_told_all_the_same(gateway):
    insert = "INSERT INTO changes (kind, object_id) VALUES ('merchant', $1)"
    db = gateway.db
    async with db.autocommit() as conn:
        before = await changes.position(conn)
    async with db.transaction() as slow:
        await slow.exec_driver_sql(insert, ("first",))
        async with db.transaction() as fast:
            await fast.exec_driver_sql(insert, ("second",))
        async with db.autocommit() as conn:
            news = await changes.read(conn, before, 10)
            assert [change.object_id for change in news.changes] == ["second"]
    async with db.autocommit() as conn:
        later = await changes.read(conn, news.snapshot, 10)
        assert [change.object_id for change in later.changes] == ["first"]
        assert (await changes.read(conn, later.snapshot, 10)).changes == []
        # Who resumes where the first look ended hears of both: better one twice than one never.
        resumed = await changes.since(conn, news.resume_xid, None, 10)
        assert [change.object_id for change in resumed] == ["first", "second"]
        assert not (await changes.read(conn, before, 1)).is_whole
        assert await changes.since(conn, news.resume_xid, None, 1) is None
        assert not await changes.is_known(conn, 2**60)


async def test_old_changes_are_forgotten_and_young_ones_kept(gateway):
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("DELETE FROM changes")
        await conn.exec_driver_sql(
            "INSERT INTO changes (kind, object_id, at) VALUES ('chain', 'old', now() - interval '6 minutes'),"
            " ('chain', 'young', now() - interval '4 minutes')"
        )
        assert not await changes.forget(conn)
        left = await conn.exec_driver_sql("SELECT object_id FROM changes")
        assert left.scalars().all() == ["young"]


@pytest.fixture
async def stored(databases, scene):
    """Connect to the scene's rows as they were stored: those that are lent were written again, all at once."""
    with databases.fresh(scene.database) as url:
        database = connect(url, application_name="test", pool_size=1)
        async with database.autocommit() as conn:
            yield conn
        await database.close()


async def test_everything_that_moves_a_merchants_money_is_a_change_of_the_same_transaction(stored, two_merchants):
    """Ada's story has payments, deposits, a surplus, payouts, a refund, a withdrawal and an exchange."""
    told = {
        row.kind
        for row in await stored.exec_driver_sql("SELECT DISTINCT kind FROM changes WHERE merchant_pk IS NOT NULL")
    }
    untold = await stored.exec_driver_sql(
        "SELECT DISTINCT t.kind, t.reference FROM ledger_movements m JOIN ledger_transactions t"
        " ON t.id = m.transaction_pk JOIN ledger_accounts a ON a.id IN (m.debit_account_pk, m.credit_account_pk)"
        " WHERE a.merchant_pk IS NOT NULL AND a.purpose IN ('available', 'held', 'pending', 'receivable')"
        " AND NOT EXISTS (SELECT FROM changes c WHERE c.merchant_pk = a.merchant_pk AND c.mode = m.mode"
        " AND c.xid::text::bigint % 4294967296 = m.xmin::text::bigint)"
    )
    assert untold.all() == []
    assert told >= OF_MERCHANTS - OF_TEAMS - {"balance", "collection", "account_deposit", "delivery", "tracker"}
    assert told <= KINDS
