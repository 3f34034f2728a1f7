"""Withdrawals: out of available, once for each key, and told of by events of their own."""

import msgspec
import pytest

from cambist.services import withdrawals
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnavailableError
from cambist.services.payouts.records import lock_by_intents
from cambist.services.withdrawals import WithdrawalRequest
from tests.support.purse import Purse, person
from tests.support.till import Till

USDX = 10**6


@pytest.fixture
async def purse(db, clock, ids):
    purse = Purse(await Till(db, clock, ids).open())
    await purse.fund(100 * USDX)
    return purse


def request(**fields):
    body = {"projectId": "prj_live", "chain": "memory", "token": "USDX", "toAddress": person(), "amount": "10"}
    return msgspec.convert({**body, **fields}, WithdrawalRequest)


async def withdraw(purse, key=None, **fields):
    async with purse.db.transaction() as conn:
        return await withdrawals.create_withdrawal(conn, purse.desk, purse.live, request(**fields), key)


async def before(purse, key=None, **fields):
    async with purse.db.transaction() as conn:
        return await withdrawals.before(conn, purse.desk, purse.live, request(**fields), key)


async def refused(awaitable, kind, code):
    with pytest.raises(kind) as error:
        await awaitable
    assert error.value.code == code


async def row(purse, withdrawal_id):
    async with purse.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT intent_id FROM payouts WHERE payout_id = $1", (withdrawal_id,))
        intent_row = found.scalar_one()
        return (await lock_by_intents(conn, [intent_row]))[intent_row]


async def test_a_withdrawal_is_set_aside_sent_and_told_of(purse):
    made = (await withdraw(purse)).withdrawal
    assert (made.status, made.amount, made.project_id, made.mode) == ("requested", "10", "prj_live", "live")
    assert made.withdrawal_id.startswith("wd_")
    assert await purse.balances() == {"available": 90 * USDX, "pending": 10 * USDX, "custody_wallet": 100 * USDX}
    payout = await row(purse, made.withdrawal_id)
    await purse.happens("waiting", payout, reason="a new target has to wait")
    async with purse.db.autocommit() as conn:
        waiting = await withdrawals.get_withdrawal(
            conn, purse.till.registry, purse.live.merchant_row, made.withdrawal_id
        )
    assert (waiting.status, waiting.waits_for) == ("processing", "a new target has to wait")
    await purse.happens("broadcast", payout)
    await purse.happens("final", payout)
    assert await purse.balances() == {"available": 90 * USDX, "custody_wallet": 90 * USDX}
    ((event, data),) = await purse.events(made.withdrawal_id)
    assert (event, data["resource"], data["withdrawalId"]) == ("withdrawal.completed", "withdrawal", made.withdrawal_id)


async def test_a_withdrawal_that_fails_gives_back_and_is_told_of(purse):
    made = (await withdraw(purse)).withdrawal
    await purse.happens("failed", await row(purse, made.withdrawal_id), reason="reverted")
    assert (await purse.balances())["available"] == 100 * USDX
    assert [event for event, _ in await purse.events(made.withdrawal_id)] == ["withdrawal.failed"]


async def test_one_key_withdraws_once_and_is_found_before_a_code_is_asked_for(purse):
    assert await before(purse, "key") is None
    first = await withdraw(purse, "key", totpCode="111111")
    assert await before(purse, "key", totpCode="222222") == first.withdrawal
    again = await withdraw(purse, "key", totpCode="222222")
    assert (again.replayed, again.withdrawal) == (True, first.withdrawal)
    await refused(before(purse, "key", amount="11"), ConflictError, "IDEMPOTENCY_KEY_REUSED")
    assert (await purse.balances())["pending"] == 10 * USDX


async def test_what_could_never_be_meant_is_refused_before_a_code_is_spent(purse):
    await refused(before(purse, toAddress="nowhere"), InvalidError, "INVALID_ADDRESS")
    await refused(before(purse, amount="0"), InvalidError, "INVALID_AMOUNT")
    await refused(before(purse, chain="nowhere"), InvalidError, "UNSUPPORTED_CHAIN")
    await refused(before(purse, token="NOPE"), InvalidError, "UNSUPPORTED_TOKEN")


async def test_no_more_than_is_available_and_allowed_is_withdrawn(purse):
    await refused(withdraw(purse, amount="100.000001"), ForbiddenError, "INSUFFICIENT_BALANCE")
    await purse.settings(limits={"memory/USDX": {"perTransaction": "5"}})
    await refused(withdraw(purse), ForbiddenError, "PAYOUT_LIMIT_EXCEEDED")
    await purse.settings(payoutEnabled=False)
    await refused(withdraw(purse, amount="1"), UnavailableError, "PAYOUT_DISABLED")
    assert await purse.balances() == {"available": 100 * USDX, "custody_wallet": 100 * USDX}


async def test_withdrawals_are_listed_for_their_merchant_alone(purse):
    made = [(await withdraw(purse, amount=amount)).withdrawal for amount in ("1", "2")]
    other = await purse.till.merchant("mer_2")

    async def listed(merchant_row, **filters):
        asked = {"project_id": None, "status": None, "page": 1, "limit": 25, **filters}
        async with purse.db.transaction() as conn:
            return await withdrawals.list_withdrawals(conn, purse.till.registry, merchant_row, **asked)

    page = await listed(purse.live.merchant_row)
    assert (page.withdrawals, page.total) == (made[::-1], 2)
    assert (await listed(purse.live.merchant_row, project_id="prj_test")).total == 0
    assert (await listed(purse.live.merchant_row, status="failed")).total == 0
    assert (await listed(other)).total == 0
    async with purse.db.autocommit() as conn:
        with pytest.raises(NotFoundError):
            await withdrawals.get_withdrawal(conn, purse.till.registry, other, made[0].withdrawal_id)
