"""Withdrawals: out of available, once for each key, and told of by events of their own."""

import msgspec
import pytest

from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnavailableError
from cambist.services.listing import Part
from cambist.services.payouts import withdrawals
from cambist.services.payouts.read import lock_by_intents
from cambist.services.payouts.withdrawals import WithdrawalRequest
from tests.support.payment_env import PaymentEnv
from tests.support.payout_env import PayoutEnv, person

USDX = 10**6


@pytest.fixture
async def payout_env(db, clock, ids):
    payout_env = PayoutEnv(await PaymentEnv(db, clock, ids).open())
    await payout_env.fund(100 * USDX)
    return payout_env


def request(**fields):
    body = {"projectId": "prj_live", "chain": "memory", "token": "USDX", "toAddress": person(), "amount": "10"}
    return msgspec.convert({**body, **fields}, WithdrawalRequest)


async def withdraw(payout_env, key=None, **fields):
    async with payout_env.db.transaction() as conn:
        return await withdrawals.create_withdrawal(conn, payout_env.context, payout_env.live, request(**fields), key)


async def before(payout_env, key=None, **fields):
    async with payout_env.db.transaction() as conn:
        return await withdrawals.before(conn, payout_env.context, payout_env.live, request(**fields), key)


async def refused(awaitable, kind, code):
    with pytest.raises(kind) as error:
        await awaitable
    assert error.value.code == code


async def row(payout_env, withdrawal_id):
    async with payout_env.db.transaction() as conn:
        found = await conn.exec_driver_sql("SELECT intent_pk FROM payouts WHERE payout_id = $1", (withdrawal_id,))
        intent_pk = found.scalar_one()
        return (await lock_by_intents(conn, [intent_pk]))[intent_pk]


async def test_a_withdrawal_is_set_aside_sent_and_told_of(payout_env):
    made = (await withdraw(payout_env)).resource
    assert (made.status, made.amount, made.project_id, made.mode) == ("requested", "10", "prj_live", "live")
    assert made.withdrawal_id.startswith("wd_")
    assert await payout_env.balances() == {"available": 90 * USDX, "pending": 10 * USDX, "custody_wallet": 100 * USDX}
    payout = await row(payout_env, made.withdrawal_id)
    await payout_env.happens("waiting", payout, reason="a new target has to wait")
    async with payout_env.db.autocommit() as conn:
        waiting = await withdrawals.get_withdrawal(
            conn, payout_env.payment_env.registry, payout_env.live.merchant_pk, made.withdrawal_id
        )
    assert (waiting.status, waiting.waits_for) == ("processing", "a new target has to wait")
    await payout_env.happens("broadcast", payout)
    await payout_env.happens("final", payout)
    assert await payout_env.balances() == {"available": 90 * USDX, "custody_wallet": 90 * USDX}
    ((event, data),) = await payout_env.events(made.withdrawal_id)
    assert (event, data["resource"], data["withdrawalId"]) == ("withdrawal.completed", "withdrawal", made.withdrawal_id)


async def test_a_withdrawal_that_fails_gives_back_and_is_told_of(payout_env):
    made = (await withdraw(payout_env)).resource
    await payout_env.happens("failed", await row(payout_env, made.withdrawal_id), reason="reverted")
    assert (await payout_env.balances())["available"] == 100 * USDX
    assert [event for event, _ in await payout_env.events(made.withdrawal_id)] == ["withdrawal.failed"]


async def test_one_key_withdraws_once_and_is_found_before_a_code_is_asked_for(payout_env):
    assert await before(payout_env, "key") is None
    first = await withdraw(payout_env, "key", totpCode="111111")
    assert await before(payout_env, "key", totpCode="222222") == first.resource
    again = await withdraw(payout_env, "key", totpCode="222222")
    assert (again.replayed, again.resource) == (True, first.resource)
    await refused(before(payout_env, "key", amount="11"), ConflictError, "IDEMPOTENCY_KEY_REUSED")
    assert (await payout_env.balances())["pending"] == 10 * USDX


async def test_what_could_never_be_meant_is_refused_before_a_code_is_spent(payout_env):
    await refused(before(payout_env, toAddress="nowhere"), InvalidError, "INVALID_ADDRESS")
    await refused(before(payout_env, amount="0"), InvalidError, "INVALID_AMOUNT")
    await refused(before(payout_env, chain="nowhere"), InvalidError, "UNSUPPORTED_CHAIN")
    await refused(before(payout_env, token="NOPE"), InvalidError, "UNSUPPORTED_TOKEN")


async def test_no_more_than_is_available_and_allowed_is_withdrawn(payout_env):
    await refused(withdraw(payout_env, amount="100.000001"), ForbiddenError, "INSUFFICIENT_BALANCE")
    await payout_env.settings(limits={"memory/USDX": {"perTransaction": "5"}})
    await refused(withdraw(payout_env), ForbiddenError, "PAYOUT_LIMIT_EXCEEDED")
    await payout_env.settings(payoutEnabled=False)
    await refused(withdraw(payout_env, amount="1"), UnavailableError, "PAYOUT_DISABLED")
    assert await payout_env.balances() == {"available": 100 * USDX, "custody_wallet": 100 * USDX}


async def test_withdrawals_are_listed_for_their_merchant_alone(payout_env):
    made = [(await withdraw(payout_env, amount=amount)).resource for amount in ("1", "2")]
    other = await payout_env.payment_env.merchant("mer_2")

    async def listed(merchant_pk, **filters):
        async with payout_env.db.transaction() as conn:
            registry = payout_env.payment_env.registry
            return await withdrawals.list_withdrawals(conn, registry, merchant_pk, Part(), **filters)

    page = await listed(payout_env.live.merchant_pk)
    assert (page.items, page.total) == (made[::-1], 2)
    assert (await listed(payout_env.live.merchant_pk, project_id="prj_test")).total == 0
    assert (await listed(payout_env.live.merchant_pk, status="failed")).total == 0
    assert (await listed(other)).total == 0
    async with payout_env.db.autocommit() as conn:
        with pytest.raises(NotFoundError):
            await withdrawals.get_withdrawal(conn, payout_env.payment_env.registry, other, made[0].withdrawal_id)
