"""The audit log: what is written stays as it is, and seals tell of what was changed, removed or slipped in."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import msgspec
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from cambist.secrets import SecretsBox
from cambist.services.audit import seals
from cambist.services.audit import verify as verifying
from cambist.services.audit.entries import Action, Origin, newest, record
from cambist.services.audit.seals import LATE_S, append_lines, read_lines, read_seals, seal
from cambist.services.audit.sums import (
    EMAILS_MAX,
    KINDS_MAX,
    KINDS_PER_ADDRESS_MAX,
    KINDS_PER_MERCHANT_MAX,
    KINDS_PER_NETWORK_MAX,
    Kind,
    Sums,
)
from cambist.services.audit.verify import Progress, Report, Verifier, verify

OPERATOR = Origin(actor_kind="operator", address="192.0.2.1")


@pytest.fixture
def box(ids):
    return SecretsBox([bytes(32)], ids.random_bytes)


async def write(db, clock, count=1, **facts):
    for number in range(count):
        async with db.transaction() as conn:
            await record(
                conn,
                OPERATOR,
                Action.CREDITS_GRANTED,
                clock.now(),
                subject=f"mer_{number}",
                details={"amount": 5} | facts,
            )


async def seal_all(db, box, clock):
    made = []
    while True:
        async with db.transaction() as conn:
            one = await seal(conn, box, clock.now())
        if one is None:
            return made
        made.append(one)


async def problems(db, box, clock, lines=()):
    async with db.transaction() as conn:
        return (await verify(conn, box, lines, clock.now())).problems


async def tamper(db, *statements):
    """Change the tables as their owner can, past the triggers."""
    async with db.transaction() as conn:
        await conn.execute(text("SET LOCAL session_replication_role = replica"))
        for statement in statements:
            await conn.exec_driver_sql(statement)


@pytest.mark.parametrize("table", ["audit_entries", "audit_seals"])
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {}", "UPDATE {} SET {} = {}"])
async def test_what_was_written_can_be_neither_changed_nor_deleted(db, box, clock, table, statement):
    await write(db, clock, 2)
    await seal_all(db, box, clock)
    column = {"audit_entries": "action", "audit_seals": "mac"}[table]
    with pytest.raises(DBAPIError, match="append-only"):
        async with db.transaction() as conn:
            await conn.execute(text(statement.format(table, column, column)))


async def test_an_act_that_is_undone_leaves_no_entry(db, clock):
    with suppress(RuntimeError):
        async with db.transaction() as conn:
            await record(conn, OPERATOR, Action.CREDITS_GRANTED, clock.now())
            raise RuntimeError
    async with db.autocommit() as conn:
        assert await newest(conn, limit=10) == []


async def test_every_entry_is_sealed_once_in_a_chain_of_seals(db, box, clock, monkeypatch):
    monkeypatch.setattr(seals, "BATCH_MAX", 4)
    await write(db, clock, 10)
    made = await seal_all(db, box, clock)
    assert [one.count for one in made] == [4, 4, 2]
    assert [one.previous_hash for one in made[1:]] == [one.hash for one in made[:-1]]
    assert await seal_all(db, box, clock) == []
    async with db.autocommit() as conn:
        assert [one async for one in read_seals(conn)] == made
    assert await problems(db, box, clock) == []


async def test_what_commits_late_is_in_a_later_seal_also_after_its_neighbours_seals_are_old(db, box, clock):
    await write(db, clock)
    async with db.transaction() as late:
        await record(late, OPERATOR, Action.CREDITS_GRANTED, clock.now())
        await write(db, clock, 3)
        (first,) = await seal_all(db, box, clock)
        clock.advance(50 * 60)
    (second,) = await seal_all(db, box, clock)
    assert (first.entries, second.entries) == ("{[1,2),[3,6)}", "{[2,3)}")
    for minutes in (30, 30, 120):
        clock.advance(minutes * 60)
        assert await seal_all(db, box, clock) == []
    await write(db, clock)
    assert [one.entries for one in await seal_all(db, box, clock)] == ["{[6,7)}"]
    assert await problems(db, box, clock) == []


async def test_many_who_write_and_seal_at_once_leave_nothing_out(db, box, clock):
    async def sealing():
        for _ in range(10):
            async with db.transaction() as conn:
                await seal(conn, box, clock.now())
            await asyncio.sleep(0.005)

    await asyncio.gather(*(write(db, clock, 20) for _ in range(6)), sealing(), sealing())
    await seal_all(db, box, clock)
    async with db.transaction() as conn:
        report = await verify(conn, box, [], clock.now())
    assert (report.entries, report.waiting, report.problems) == (120, 0, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement, said",
    [
        ("UPDATE audit_entries SET address = '198.51.100.9' WHERE id = 3", "entry 3 of seal 1 was changed"),
        ("UPDATE audit_entries SET details = '{\"amount\": 6}' WHERE id = 3", "entry 3 of seal 1 was changed"),
        ("UPDATE audit_entries SET at = at - interval '1 us' WHERE id = 3", "entry 3 of seal 1 was changed"),
        ("UPDATE audit_entries SET count = 2 WHERE id = 3", "entry 3 of seal 1 was changed"),
        ("DELETE FROM audit_entries WHERE id = 3", "entry 3 of seal 1 was removed"),
        ("DELETE FROM audit_seals WHERE number = 2", "seal 2 was removed"),
        ("DELETE FROM audit_seals WHERE number < 3", "seals 1 to 2 were removed"),
        ("UPDATE audit_seals SET mac = '\\x00' WHERE number = 2", "seal 2 was not made by this gateway"),
        ("UPDATE audit_seals SET sealed_at = now() WHERE number = 2", "seal 2 was changed"),
        ("UPDATE audit_seals SET entries = '{[1,1000000000000)}' WHERE number = 2", "seal 2 was changed"),
    ],
)
async def test_each_change_past_the_triggers_is_told_by_its_number(db, box, clock, statement, said):
    for _ in range(3):
        await write(db, clock, 4)
        await seal_all(db, box, clock)
    assert await problems(db, box, clock) == []
    await tamper(db, statement)
    assert any(problem.startswith(said) for problem in await problems(db, box, clock))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change, said",
    [
        ("entries = '{[1,)}'", "seal 2 does not hold as many entries as it names"),
        ("entries = '{(,9)}'", "seal 2 does not hold as many entries as it names"),
        ("entries = '{(,)}'", "seal 2 does not hold as many entries as it names"),
        ("entries = '{[-9223372036854775808,9223372036854775806)}'", "seal 2 does not hold as many entries"),
        ("entries = '{}'", "seal 2 does not hold as many entries as it names"),
        ("digests = ''", "seal 2 does not hold as many entries as it names"),
        ("previous_hash = ''", "seal 2 does not follow the one before"),
        ("hash = ''", "seal 2 was changed"),
        ("mac = ''", "seal 2 was not made by this gateway"),
        ("sealed_at = 'infinity'", "seal 2 was changed"),
        ("sealed_at = '-infinity'", "seal 2 was changed"),
        ("sealed_at = '200000-01-01T00:00:00Z'", "seal 2 was changed"),
    ],
)
async def test_a_seal_of_what_no_gateway_writes_is_told_as_a_difference(db, box, clock, tmp_path, change, said):
    path = tmp_path / "seals"
    for _ in range(3):
        await write(db, clock, 4)
        append_lines(path, await seal_all(db, box, clock))
    await tamper(db, f"UPDATE audit_seals SET {change} WHERE number = 2")  # noqa: S608  of this module
    assert any(problem.startswith(said) for problem in await problems(db, box, clock, read_lines(path)))
    await write(db, clock, 1)
    assert len(await seal_all(db, box, clock)) <= 1, "sealing goes on"


@pytest.mark.parametrize(
    "change",
    [
        "at = 'infinity'",
        "at = '-infinity'",
        "at = '200000-01-01T00:00:00Z'",
        """details = '{"amount": 10000000000000000000000000000000000000000}'""",
        """details = '{"amount": 1e5000}'""",
        """details = (repeat('[', 5000) || repeat(']', 5000))::jsonb""",
    ],
)
async def test_an_entry_of_what_no_gateway_writes_is_told_as_a_difference(db, box, clock, change):
    await write(db, clock, 4)
    await seal_all(db, box, clock)
    await tamper(db, f"UPDATE audit_entries SET {change} WHERE id = 3")  # noqa: S608  as above
    assert await problems(db, box, clock) == ["entry 3 of seal 1 was changed"]


async def test_a_report_says_whether_every_step_had_seals_from_outside_to_compare_with(
    db, box, clock, small_steps, tmp_path
):
    path = tmp_path / "seals"
    for _ in range(2):
        await write(db, clock, 1)
        append_lines(path, await seal_all(db, box, clock))
    lines, found, told = read_lines(path), Progress(), []
    clock.advance(LATE_S + 1)
    for known in ([lines], [lines, []], [[]], [lines[:1]]):
        found, steps = Progress(), 0
        while not isinstance(found, Report):
            verifier = Verifier(box, known[min(steps, len(known) - 1)], after=found.number)
            async with db.transaction() as conn:
                found = await verifier.step(conn, found, clock.now())
            steps += 1
        told.append((found.compared_with_file, found.problems))
    assert told == [(True, []), (False, []), (False, []), (False, [])]


@pytest.fixture
def small_steps(monkeypatch):
    """Have one seal and three entries be the work of a step."""
    for name, most in (("SEALS_MAX", 1), ("SEARCHED_MAX", 3), ("ENTRIES_AT_ONCE", 2)):
        monkeypatch.setattr(verifying, name, most)


async def in_steps(db, box, clock, lines=(), after_each=None):
    """Verify as a job does, by another worker at each step; return the report, and where each step ended."""
    found, ended = Progress(), []
    while not isinstance(found, Report):
        verifier = Verifier(box, lines, after=found.number, told_max=2)
        async with db.transaction() as conn:
            found = await verifier.step(conn, found, clock.now())
        if isinstance(found, Progress):
            found = msgspec.convert(msgspec.to_builtins(found), Progress)
            ended.append((found.number, found.searched))
            if after_each is not None:
                await after_each()
    return found, ended


async def test_a_long_log_is_verified_step_by_step_and_what_comes_meanwhile_is_no_problem(
    db, box, clock, small_steps, tmp_path
):
    path = tmp_path / "seals"
    for _ in range(3):
        await write(db, clock, 4)
        append_lines(path, await seal_all(db, box, clock))
        clock.advance(2 * 3600)
    later = []

    async def meanwhile():
        if not later:
            await write(db, clock, 2)
            later.extend(await seal_all(db, box, clock))

    report, ended = await in_steps(db, box, clock, read_lines(path), meanwhile)
    assert (report.seals, report.entries, report.waiting, report.problems) == (4, 14, 0, [])
    assert ended == [(1, 0), (2, 0), (3, 0), (4, 0), (4, 0), (4, 3), (4, 6), (4, 9), (4, 12)]
    async with db.transaction() as conn:
        assert await verify(conn, box, read_lines(path), clock.now()) == report


async def test_steps_tell_what_one_go_tells(db, box, clock, small_steps, tmp_path):
    path = tmp_path / "seals"
    for _ in range(4):
        await write(db, clock, 4)
        append_lines(path, await seal_all(db, box, clock))
        clock.advance(2 * 3600)
    await write(db, clock, 1)
    clock.advance(2 * 3600)
    await tamper(
        db,
        "UPDATE audit_entries SET count = 2 WHERE id = 3",
        "DELETE FROM audit_seals WHERE number = 2",
        "DELETE FROM audit_entries WHERE id = 16",
    )
    lines = read_lines(path)
    all_told = await problems(db, box, clock, lines)
    assert sorted(all_told) == sorted([
        "entry 3 of seal 1 was changed",
        "seal 2 was removed",
        "seal 2 is in the file and not in the database: it was removed",
        *[f"entry {pk} is in no seal, among others that are: it was added later" for pk in range(5, 9)],
        "entry 16 of seal 4 was removed",
        f"1 entries wait for their seal, the oldest since {clock.now() - timedelta(hours=2):%Y-%m-%d %H:%M}",
    ])  # fmt: skip
    report, _ = await in_steps(db, box, clock, lines)
    assert report.problems == [*all_told[:2], f"and {len(all_told) - 2} more"]


async def test_an_entry_that_is_slipped_in_later_is_told(db, box, clock):
    await write(db, clock, 3)
    await tamper(db, "DELETE FROM audit_entries WHERE id = 2")
    await seal_all(db, box, clock)
    clock.advance(2 * 3600)
    await write(db, clock)
    await seal_all(db, box, clock)
    await tamper(
        db,
        "INSERT INTO audit_entries (id, at, action, actor_kind) OVERRIDING SYSTEM VALUE"
        " VALUES (2, now(), 'api_key.issued', 'operator')",
    )
    assert await seal_all(db, box, clock) == []
    assert await problems(db, box, clock) == ["entry 2 is in no seal, among others that are: it was added later"]


async def test_seals_that_are_made_anew_by_who_has_the_database_alone_are_not_this_gateways(db, box, clock, ids):
    await write(db, clock, 2)
    await seal_all(db, box, clock)
    await tamper(db, "UPDATE audit_entries SET action = 'job.asked'", "DELETE FROM audit_seals")
    await seal_all(db, SecretsBox([b"x" * 32], ids.random_bytes), clock)
    (problem,) = await problems(db, box, clock)
    assert problem.startswith("seal 1 was not made by this gateway")


async def test_a_rotated_application_key_still_vouches_for_what_it_sealed(db, box, clock, ids):
    await write(db, clock)
    await seal_all(db, box, clock)
    rotated = SecretsBox([b"x" * 32, bytes(32)], ids.random_bytes)
    await write(db, clock)
    await seal_all(db, rotated, clock)
    assert await problems(db, rotated, clock) == []


async def test_the_file_tells_of_newest_seals_that_were_removed_with_their_entries(db, box, clock, tmp_path):
    path = tmp_path / "folder" / "seals"
    for _ in range(3):
        await write(db, clock, 2)
        append_lines(path, await seal_all(db, box, clock))
    assert await problems(db, box, clock, read_lines(path)) == []
    await tamper(db, "DELETE FROM audit_entries WHERE id > 4", "DELETE FROM audit_seals WHERE number = 3")
    assert await problems(db, box, clock) == []
    (problem,) = await problems(db, box, clock, read_lines(path))
    assert problem.startswith("seal 3 is in the file and not in the database")
    clock.advance(60)
    await write(db, clock, 2)
    append_lines(path, await seal_all(db, box, clock))
    (problem,) = await problems(db, box, clock, read_lines(path))
    assert problem.startswith("the file tells of two seals 3: the database was set back")


async def test_entries_that_wait_too_long_for_their_seal_are_told(db, box, clock):
    await write(db, clock)
    assert await problems(db, box, clock) == []
    clock.advance(2 * 3600)
    (problem,) = await problems(db, box, clock)
    assert problem.startswith("1 entries wait for their seal")


def refusal(number=0, **origin):
    origin = Origin(**{"actor_kind": "stranger", "address": f"a{number}"} | origin)
    return Kind(action=Action.CREDENTIAL_REFUSED, code="API_KEY_INVALID", origin=origin)


async def entries(db):
    async with db.autocommit() as conn:
        return [(one.at, one.address, one.details, one.count) for one in await newest(conn, limit=5_000)][::-1]


async def test_refusals_are_summed_by_address_and_minute(db, clock):
    sums = Sums(db, clock)
    for _ in range(1_000):
        sums.add(refusal(1))
        sums.add(refusal(2))
    await sums.write()
    assert await entries(db) == []
    clock.advance(60)
    sums.add(refusal(1))
    await sums.write()
    minute = clock.now().replace(second=0, microsecond=0) - timedelta(minutes=1)
    code = {"code": "API_KEY_INVALID"}
    assert await entries(db) == [(minute, "a1", code, 1_000), (minute, "a2", code, 1_000)]
    await sums.write(unfinished=True)
    assert (await entries(db))[2:] == [(minute + timedelta(minutes=1), "a1", code, 1)]


async def test_a_flood_from_everywhere_is_summed_as_well(db, clock):
    sums = Sums(db, clock)
    for number in range(20 * KINDS_MAX):
        sums.add(refusal(number))
    await sums.write(unfinished=True)
    found = await entries(db)
    assert len(found) == KINDS_MAX + 1
    assert sum(count for *_, count in found) == 20 * KINDS_MAX
    assert (None, {"code": "API_KEY_INVALID"}) in [(address, details) for _, address, details, _ in found]


async def test_a_flood_from_one_address_costs_no_entry_of_another(db, clock):
    sums = Sums(db, clock)
    for number in range(2 * KINDS_MAX):
        sums.add(refusal(1, actor_kind="merchant", actor=f"ses_{number}"))
    sums.add(refusal(2, actor_kind="merchant", actor="ses_bob"))
    await sums.write(unfinished=True)
    found = await entries(db)
    assert [count for _, address, _, count in found if address == "a1"] == [
        *[1] * KINDS_PER_ADDRESS_MAX,
        2 * KINDS_MAX - KINDS_PER_ADDRESS_MAX,
    ]
    assert [count for _, address, _, count in found if address != "a1"] == [1]
    async with db.autocommit() as conn:
        assert (await newest(conn, limit=1))[0].actor == "ses_bob"


async def test_a_flood_from_one_network_of_ipv6_costs_no_entry_of_another(db, clock):
    sums = Sums(db, clock)
    for number in range(2 * KINDS_MAX):
        sums.add(refusal(address=f"2001:db8:1:{number:x}::/64"))
    sums.add(refusal(address="2001:db8:2:1::/64"))
    await sums.write(unfinished=True)
    found = {address: count for _, address, _, count in await entries(db)}
    assert len(found) == KINDS_PER_NETWORK_MAX + 2
    assert found["2001:db8:1::/48"] == 2 * KINDS_MAX - KINDS_PER_NETWORK_MAX
    assert found["2001:db8:2:1::/64"] == 1


async def test_no_flood_hides_whose_key_is_refused(db, clock):
    sums = Sums(db, clock)
    for number in range(2 * KINDS_MAX):
        sums.add(refusal(number))
    for number in range(2 * KINDS_PER_MERCHANT_MAX):
        sums.add(refusal("thief", actor_kind="merchant", actor="ses_ada", merchant_id="mer_ada"))
        sums.add(refusal("thief", actor_kind="operator", actor="opr_ada"))
        sums.add(refusal("eve", actor_kind="merchant", actor=f"ses_{number}", merchant_id="mer_eve"))
    await sums.write(unfinished=True)
    async with db.autocommit() as conn:
        told = await newest(conn, limit=5_000)
    (officer,) = (one for one in told if one.actor_kind == "operator")
    assert (officer.actor, officer.address, officer.count) == ("opr_ada", None, 2 * KINDS_PER_MERCHANT_MAX)
    found = [one for one in told if one.merchant_id is not None]
    (ada,) = (one for one in found if one.merchant_id == "mer_ada")
    assert (ada.actor, ada.address, ada.count) == ("ses_ada", None, 2 * KINDS_PER_MERCHANT_MAX)
    assert [one.count for one in found if one.merchant_id == "mer_eve"] == [1] * KINDS_PER_MERCHANT_MAX


async def test_of_the_e_mail_addresses_that_were_given_the_first_are_told_and_the_others_counted(db, clock):
    sums = Sums(db, clock)
    for number in range(500):
        sums.add(refusal(), email=f"{number}@shop.example")
        sums.add(refusal(), email="0@shop.example")
    await sums.write(unfinished=True)
    ((_, _, details, count),) = await entries(db)
    assert count == 1_000
    assert details == {
        "code": "API_KEY_INVALID",
        "emails": {"0@shop.example": 501} | {f"{number}@shop.example": 1 for number in range(1, EMAILS_MAX)},
        "other_emails": 500 - EMAILS_MAX,
    }


async def test_what_cannot_be_written_is_written_the_next_time(db, clock):
    sums = Sums(db, clock)
    sums.add(refusal(), email="ada@shop.example")
    await tamper(db, "ALTER TABLE audit_entries RENAME TO away")
    with pytest.raises(DBAPIError):
        await sums.write(unfinished=True)
    await tamper(db, "ALTER TABLE away RENAME TO audit_entries")
    sums.add(refusal(), email="ada@shop.example")
    await sums.write(unfinished=True)
    ((_, _, details, count),) = await entries(db)
    assert (details["emails"], count) == ({"ada@shop.example": 2}, 2)


@pytest.mark.slow
async def test_a_write_that_is_cancelled_loses_no_sum(db, clock):
    sums = Sums(db, clock)
    sums.add(refusal())
    async with db.transaction() as conn:
        await conn.execute(text("LOCK TABLE audit_entries"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(sums.write(unfinished=True), 0.2)
    await sums.write(unfinished=True)
    assert [count for *_, count in await entries(db)] == [1]
