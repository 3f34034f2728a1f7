"""Making payouts: what is set aside, what is refused, and that one key pays once."""

import asyncio
from collections import Counter

import msgspec
import pytest
from sqlalchemy import update

from cambist.db.models import PlatformSettings
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import Status
from cambist.plugin import Units
from cambist.services.addresses.wallets import main_wallet
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError, UnavailableError
from cambist.services.listing import Part
from cambist.services.payouts import read
from cambist.services.payouts.read import payout_view
from cambist.testing.memory.family import spell
from tests.support.payout_env import person

USDX = 10**6


async def code_of(paying):
    with pytest.raises((InvalidError, ForbiddenError, UnavailableError, ConflictError)) as error:
        await paying
    return error.value.code


async def test_a_payout_moves_available_to_pending_and_leaves_an_intent(payout_env, clock):
    await payout_env.fund(25 * USDX)
    made = (await payout_env.pay(amount="10.5")).resource
    assert await payout_env.balances() == {"available": 14_500_000, "pending": 10_500_000, "custody_wallet": 25_000_000}
    assert (made.status, made.kind) == (Status.REQUESTED, IntentKind.PAYOUT)
    assert (made.units, made.to_address) == (10_500_000, person())
    async with payout_env.db.autocommit() as conn:
        intent = (await conn.exec_driver_sql("SELECT * FROM outbound_intents")).mappings().one()
        wallet = (await conn.exec_driver_sql("SELECT id FROM addresses WHERE purpose = 'wallet'")).scalar_one()
        usage = (await conn.exec_driver_sql("SELECT operation, reference FROM usage_records")).all()
    assert {
        "id": made.intent_pk,
        "reference": f"payout:{made.payout_id}",
        "kind": "payout",
        "mode": "live",
        "scope": 0,
        "source_address_pk": wallet,
        "to_address": person(),
        "token": "USDX",
        "units": 10_500_000,
        "state": "waiting",
        "due_at": clock.now(),
    }.items() <= dict(intent).items()
    assert [tuple(row) for row in usage] == [("payout", made.payout_id)]


@pytest.mark.slow
async def test_of_two_hundred_at_once_exactly_those_are_accepted_that_the_balance_covers(payout_env):
    await payout_env.fund(500 * USDX)
    results = await asyncio.gather(*[payout_env.pay() for _ in range(200)], return_exceptions=True)
    assert Counter(getattr(result, "code", "accepted") for result in results) == {
        "accepted": 50,
        "INSUFFICIENT_BALANCE": 150,
    }
    assert await payout_env.balances() == {"pending": 500 * USDX, "custody_wallet": 500 * USDX}
    assert await payout_env.payment_env.count("payouts") == await payout_env.payment_env.count("outbound_intents") == 50


async def test_one_key_a_hundred_times_at_once_pays_once(payout_env):
    await payout_env.fund(25 * USDX)
    made = await asyncio.gather(*[payout_env.pay(header_key="order-7") for _ in range(100)])
    assert len({one.resource.payout_id for one in made}) == 1
    assert [one.replayed for one in made].count(False) == 1
    assert await payout_env.balances() == {"available": 15 * USDX, "pending": 10 * USDX, "custody_wallet": 25 * USDX}


async def test_a_key_with_another_request_or_of_another_project_is_a_conflict(payout_env):
    await payout_env.fund(100 * USDX)
    await payout_env.fund(100 * USDX, mode="sandbox")
    first = await payout_env.pay(header_key="k")
    assert (await payout_env.pay(idempotencyKey="k")).resource.payout_id == first.resource.payout_id
    assert await code_of(payout_env.pay(header_key="k", amount="11")) == "IDEMPOTENCY_KEY_REUSED"
    assert await code_of(payout_env.pay(header_key="k", idempotencyKey="l")) == "IDEMPOTENCY_KEY_MISMATCH"
    await payout_env.pay(payout_env.test, header_key="k")
    assert (
        await code_of(payout_env.pay(payout_env.payment_env.test2, header_key="k")) == "IDEMPOTENCY_KEY_OTHER_PROJECT"
    )
    assert (await payout_env.balances())["pending"] == 10 * USDX


async def test_what_is_refused_stores_nothing_so_that_its_key_can_be_used_again(payout_env):
    assert await code_of(payout_env.pay(header_key="k")) == "INSUFFICIENT_BALANCE"
    assert await code_of(payout_env.pay(header_key="k", toAddress="nowhere")) == "INVALID_ADDRESS"
    for table in ("payouts", "outbound_intents", "idempotency_keys", "usage_records"):
        assert await payout_env.payment_env.count(table) == 0
    await payout_env.fund(10 * USDX)
    assert not (await payout_env.pay(header_key="k")).replayed


async def test_a_replay_answers_with_how_far_the_payout_has_come_even_while_payouts_are_off(payout_env):
    await payout_env.fund(10 * USDX)
    first = (await payout_env.pay(header_key="k")).resource
    await payout_env.happens("final", first)
    await payout_env.settings(payoutEnabled=False)
    again = await payout_env.pay(header_key="k")
    assert (again.replayed, again.resource.payout_id, again.resource.status) == (True, first.payout_id, "completed")
    assert await code_of(payout_env.pay()) == "PAYOUT_DISABLED"


@pytest.mark.parametrize(
    "fields, code",
    [
        ({"amount": None}, "INVALID_PAYOUT_MODE"),
        ({"slippage": 51}, "VALIDATION_ERROR"),
        ({"chain": "nowhere"}, "UNSUPPORTED_CHAIN"),
        ({"token": "usdx"}, "UNSUPPORTED_TOKEN"),
        ({"chain": "unconfigured"}, "CHAIN_UNAVAILABLE"),
        ({"chain": "simulated"}, "CHAIN_UNAVAILABLE"),
        ({"toAddress": "0x" + "11" * 20}, "INVALID_ADDRESS"),
        ({"toAddress": person()[:-1] + "a"}, "INVALID_ADDRESS"),
        ({"toAddress": spell(bytes(20))}, "INVALID_ADDRESS"),
        ({"amount": "0"}, "INVALID_AMOUNT"),
        ({"amount": "-1"}, "INVALID_AMOUNT"),
        ({"amount": "1e3"}, "INVALID_AMOUNT"),
        ({"amount": "1.0000001"}, "INVALID_AMOUNT"),
    ],
)
async def test_what_cannot_be_meant_is_refused_and_moves_nothing(payout_env, fields, code):
    await payout_env.fund(10 * USDX)
    assert await code_of(payout_env.pay(**fields)) == code
    assert await payout_env.balances() == {"available": 10 * USDX, "custody_wallet": 10 * USDX}


async def test_payouts_that_are_off_are_off_whatever_else_is_wrong(payout_env):
    await payout_env.settings(payoutEnabled=False)
    assert await code_of(payout_env.pay(toAddress="nowhere")) == "PAYOUT_DISABLED"


async def test_contracts_of_tokens_and_the_wallet_itself_are_no_targets(payout_env):
    await payout_env.fund(10 * USDX)
    registry = payout_env.payment_env.registry
    for token in registry.chains["memory"].tokens[1:]:
        assert await code_of(payout_env.pay(toAddress=token.contract)) == "TARGET_IS_CONTRACT"
        assert await code_of(payout_env.pay(toAddress=token.contract.upper())) == "TARGET_IS_CONTRACT"
    async with payout_env.db.transaction() as conn:
        wallet = await main_wallet(
            conn, payout_env.context.keys, registry.families["memory"], payout_env.live.merchant_pk, "live"
        )
    assert await code_of(payout_env.pay(toAddress=wallet.address)) == "INVALID_ADDRESS"


async def test_addresses_are_stored_in_their_one_spelling(payout_env):
    await payout_env.fund(10 * USDX)
    assert (await payout_env.pay(toAddress=person().upper())).resource.to_address == person()


async def test_a_sandbox_payout_is_made_on_the_projects_own_chain(payout_env):
    await payout_env.fund(10 * USDX, mode="sandbox")
    made = (await payout_env.pay(payout_env.test, chain="memory")).resource
    assert (made.mode, made.scope) == ("sandbox", payout_env.test.project_pk)
    assert await payout_env.balances("sandbox") == {"pending": 10 * USDX, "custody_wallet": 10 * USDX}


async def test_a_project_that_is_switched_off_pays_nothing(payout_env):
    await payout_env.fund(10 * USDX)
    await payout_env.payment_env.change_project(payout_env.live, is_active=False)
    assert await code_of(payout_env.pay()) == "PROJECT_INACTIVE"


async def test_limits_of_a_transfer_and_of_a_day_hold_per_merchant_and_token(payout_env, clock):
    await payout_env.fund(1000 * USDX)
    await payout_env.fund(10**21, symbol="MEM")
    await payout_env.settings(limits={"memory/USDX": {"perTransaction": "40", "perDay": "100"}})
    assert await code_of(payout_env.pay(amount="40.000001")) == "PAYOUT_LIMIT_EXCEEDED"
    await payout_env.pay(amount="40")
    failed = (await payout_env.pay(amount="40")).resource
    await payout_env.queue(IntentKind.WITHDRAWAL, 20 * USDX)
    assert await code_of(payout_env.pay(amount="0.000001")) == "PAYOUT_LIMIT_EXCEEDED"
    await payout_env.happens("failed", failed)
    await payout_env.pay(amount="40")
    # Refunds count as well, or who has a session would send anything as one. Other tokens have their own limits.
    for units in (41 * USDX, 1):
        with pytest.raises(ForbiddenError, match="At most"):
            await payout_env.queue(IntentKind.REFUND, units)
    await payout_env.pay(token="MEM", amount="500")
    with pytest.raises(ForbiddenError):
        await payout_env.queue(IntentKind.AUTO_PAYOUT, 1)
    clock.advance(24 * 3600)
    await payout_env.pay(amount="40")


async def test_a_limit_that_a_later_token_of_the_symbol_cannot_have_holds_to_its_nearest_stricter_amount(payout_env):
    await payout_env.fund(1000 * USDX)
    stored = {"memory/USDX": {"minimum": "2.50000001", "perTransaction": "40.00000099", "perDay": "60.1234567"}}
    await payout_env.settings(limits={})
    async with payout_env.db.transaction() as conn:  # as when the token had more decimals
        await conn.execute(update(PlatformSettings).values(settings={"limits": stored}))
    with pytest.raises(InvalidError, match=r"at least 2\.500001\."):
        await payout_env.pay(amount="2.5")
    with pytest.raises(ForbiddenError, match=r"At most 40 USDX may leave in one transfer\."):
        await payout_env.pay(amount="40.000001")
    await payout_env.pay(amount="40")
    with pytest.raises(ForbiddenError, match=r"At most 60\.123456 USDX may leave within 24 hours\."):
        await payout_env.pay(amount="20.123457")
    await payout_env.pay(amount="20.123456")


async def test_refunds_use_the_days_limit_up_and_give_it_back_when_they_fail(payout_env):
    await payout_env.fund(1000 * USDX)
    await payout_env.settings(limits={"memory/USDX": {"perDay": "50"}})
    refund = await payout_env.queue(IntentKind.REFUND, 45 * USDX)
    assert await code_of(payout_env.pay(amount="5.000001")) == "PAYOUT_LIMIT_EXCEEDED"
    rows = [{"toAddress": person(name), "amount": "5"} for name in ("ann", "ben")]
    batch = await payout_env.pay_all(rows)
    assert [(one.row, one.code) for one in batch.rejected] == [(1, "PAYOUT_LIMIT_EXCEEDED")]
    await payout_env.happens("failed", refund)
    await payout_env.pay(amount="45")


async def test_a_payout_of_any_kind_is_worth_its_fee_and_the_refusal_says_the_minimum(payout_env):
    await payout_env.fund(1000 * USDX)
    await payout_env.settings(limits={"memory/USDX": {"minimum": "2.5"}})
    with pytest.raises(InvalidError, match=r"at least 2\.5\.") as error:
        await payout_env.pay(amount="2.499999")
    assert error.value.code == "PAYOUT_BELOW_MINIMUM"
    for kind in (IntentKind.WITHDRAWAL, IntentKind.AUTO_PAYOUT):
        with pytest.raises(InvalidError, match=r"at least 2\.5\."):
            await payout_env.queue(kind, 2_499_999)
    rows = [{"toAddress": person(name), "amount": amount} for name, amount in (("ann", "2.499999"), ("ben", "2.5"))]
    batch = await payout_env.pay_all(rows)
    assert [(one.row, one.code, one.field) for one in batch.rejected] == [(0, "PAYOUT_BELOW_MINIMUM", "amount")]
    assert batch.total == 2_500_000
    await payout_env.queue(IntentKind.REFUND, 1)


async def test_a_days_limit_holds_for_payouts_at_once(payout_env):
    await payout_env.fund(1000 * USDX)
    await payout_env.settings(limits={"memory/USDX": {"perDay": "50"}})
    results = await asyncio.gather(*[payout_env.pay() for _ in range(20)], return_exceptions=True)
    assert Counter(getattr(result, "code", "accepted") for result in results) == {
        "accepted": 5,
        "PAYOUT_LIMIT_EXCEEDED": 15,
    }


async def test_where_the_operator_lists_targets_money_goes_nowhere_else(payout_env):
    await payout_env.fund(100 * USDX)
    await payout_env.settings(allowedAddresses={"memory": [person("bob")]})
    assert await code_of(payout_env.pay()) == "TARGET_NOT_ALLOWED"
    with pytest.raises(ForbiddenError, match="listed"):
        await payout_env.queue(IntentKind.REFUND, 1)
    await payout_env.pay(toAddress=person("bob"))


async def test_usage_credits_past_their_limit_stop_payouts(payout_env):
    await payout_env.fund(100 * USDX)
    await payout_env.settings(cpt={"initialAllowance": 0, "floor": 0})
    await payout_env.pay()
    assert await code_of(payout_env.pay()) == "INSUFFICIENT_CPT"


async def test_a_debt_keeps_back_what_is_available_but_not_what_was_held(payout_env):
    await payout_env.fund(100 * USDX)
    await payout_env.fund(30 * USDX, "held")
    await payout_env.move("receivable", "custody_wallet", 1)
    assert await code_of(payout_env.pay(amount="1")) == "RECEIVABLE_OUTSTANDING"
    with pytest.raises(ForbiddenError, match="reorganization"):
        await payout_env.queue(IntentKind.REFUND, 30 * USDX + 1, held_units=Units(30 * USDX))
    refund = await payout_env.queue(IntentKind.REFUND, 30 * USDX, held_units=Units(30 * USDX))
    assert refund.held_units == 30 * USDX
    assert "held" not in await payout_env.balances()


async def test_held_money_is_taken_and_never_more_than_there_is(payout_env):
    await payout_env.fund(10, "held")
    await payout_env.fund(10)
    with pytest.raises(ForbiddenError, match="too low"):
        await payout_env.queue(IntentKind.REFUND, 15, held_units=Units(11))
    await payout_env.queue(IntentKind.REFUND, 15, held_units=Units(10))
    assert await payout_env.balances() == {"available": 5, "pending": 15, "custody_wallet": 20}


async def test_payouts_are_listed_newest_first_by_status_chain_and_token(payout_env):
    await payout_env.fund(100 * USDX)
    await payout_env.fund(10**18, symbol="MEM")
    ids = [(await payout_env.pay(amount=str(number))).resource.payout_id for number in (1, 2, 3)]
    native = (await payout_env.pay(token="MEM", amount="1")).resource
    await payout_env.queue(IntentKind.WITHDRAWAL, 1)
    await payout_env.happens("final", native)

    async def listed(**filters):
        part = Part(page=filters.pop("page", 1), limit=filters.pop("limit", 25))
        async with payout_env.db.autocommit() as conn:
            page = await read.list_payouts(conn, payout_env.live.project_pk, part, **filters)
        return [payout.payout_id for payout in page.items], page.total

    assert await listed() == ([native.payout_id, *reversed(ids)], 4)
    assert await listed(status=Status.COMPLETED) == ([native.payout_id], 1)
    assert await listed(token="USDX", page=2, limit=2) == ([ids[0]], 3)
    assert await listed(chain="other") == ([], 0)
    async with payout_env.db.autocommit() as conn:
        with pytest.raises(NotFoundError):
            await read.find_payout(conn, payout_env.test.project_pk, ids[0])


async def test_the_view_tells_amounts_in_whole_tokens(payout_env):
    await payout_env.fund(100 * USDX)
    view = payout_view((await payout_env.pay(amount="1.50")).resource, payout_env.payment_env.registry)
    shown = msgspec.to_builtins(view)
    assert {"amount": "1.5", "toAddress": person(), "status": "requested", "txHash": None}.items() <= shown.items()


async def test_the_operator_lets_a_projects_transfers_of_native_coin_take_more_gas(payout_env):
    """Without that, the chain's own small bound holds: whoever is paid decides what runs, and burns what is let."""
    await payout_env.fund(10**21, symbol="MEM")
    await payout_env.fund(100 * USDX)
    projects = {payout_env.live.project_id: 250_000}
    with pytest.raises(msgspec.ValidationError):
        await payout_env.settings(nativeGasMax={payout_env.live.project_id: 3_000_001})
    await payout_env.pay(token="MEM", amount="1")
    await payout_env.settings(nativeGasMax=projects)
    await payout_env.pay(token="MEM", amount="1")
    await payout_env.pay()
    await payout_env.settings(nativeGasMax={})
    await payout_env.pay(token="MEM", amount="1")
    async with payout_env.db.autocommit() as conn:
        rows = await conn.exec_driver_sql("SELECT work_max FROM outbound_intents ORDER BY id")
        assert list(rows.scalars()) == [None, 250_000, None, None]
