"""A tag says for whom at an address money is: it is part of the target, from the request to the signed payload."""

from __future__ import annotations

import msgspec
import pytest

from cambist.domain.intents import IntentKind
from cambist.hints import Hints
from cambist.services.errors import ForbiddenError, InvalidError
from cambist.services.payouts import approved_addresses, auto_payout, coin_settings, withdrawals
from cambist.services.payouts.approved_addresses import ApprovalRequest
from cambist.services.payouts.coin_settings import Coin, CoinPatch
from cambist.services.payouts.read import payout_view
from cambist.services.payouts.signer_learning import Learner
from cambist.services.payouts.withdrawals import WithdrawalRequest
from cambist.signer.rules import Rules
from cambist.testing.memory import MemoryChain
from cambist.testing.memory.payload import open_raw
from tests.support.payment_env import PaymentEnv, registry
from tests.support.payout_env import PayoutEnv, person
from tests.support.refunds import CUSTOMER, RefundEnv
from tests.support.signing import answer, opening, request, stranger
from tests.support.treasury import Treasury

USDX = 10**6
EVM = "0x" + "ab" * 20


@pytest.fixture
async def payout_env(db, clock, ids):
    payout_env = PayoutEnv(await PaymentEnv(db, clock, ids).open())
    await payout_env.fund(1000 * USDX)
    return payout_env


async def code_of(awaitable) -> str:
    with pytest.raises((InvalidError, ForbiddenError)) as error:
        await awaitable
    return error.value.code


async def intent_tags(payout_env) -> list[str | None]:
    async with payout_env.db.autocommit() as conn:
        return [row.tag for row in await conn.exec_driver_sql("SELECT tag FROM outbound_intents ORDER BY id")]


# What is asked for.


async def test_a_payouts_tag_is_normalized_stored_and_shown(payout_env):
    made = (await payout_env.pay(toTag="007")).resource
    plain = (await payout_env.pay()).resource
    assert (made.to_tag, plain.to_tag) == ("7", None)
    assert await intent_tags(payout_env) == ["7", None]
    shown = [msgspec.to_builtins(payout_view(one, payout_env.payment_env.registry)) for one in (made, plain)]
    assert (shown[0]["toTag"], "toTag" in shown[1]) == ("7", False)
    await payout_env.happens("broadcast", made, plain)
    await payout_env.happens("final", made, plain)
    told = [(await payout_env.events(one.payout_id))[0][1] for one in (made, plain)]
    assert (told[0]["toTag"], "toTag" in told[1]) == ("7", False)


async def test_what_is_no_tag_is_refused_and_so_is_any_where_addresses_have_none(payout_env):
    assert await code_of(payout_env.pay(toTag="seven")) == "INVALID_TAG"
    assert await code_of(payout_env.pay(toAddress=f"{person()}#7")) == "INVALID_ADDRESS"
    on_evm = {"chain": "bsc", "token": "USDT", "toAddress": EVM}
    assert await code_of(payout_env.pay(payout_env.test, **on_evm, toTag="7")) == "TAG_NOT_SUPPORTED"
    assert await code_of(payout_env.pay(payout_env.test, **on_evm)) == "INSUFFICIENT_BALANCE"


async def test_the_tag_is_part_of_what_a_key_asks_for(payout_env):
    first = await payout_env.pay(header_key="k", toTag="7")
    assert (await payout_env.pay(header_key="k", toTag="7")).resource.payout_id == first.resource.payout_id
    for other in ({"toTag": "8"}, {}):
        with pytest.raises(Exception, match="another") as error:
            await payout_env.pay(header_key="k", **other)
        assert error.value.code == "IDEMPOTENCY_KEY_REUSED"


async def test_a_batchs_rows_have_tags_of_their_own_and_a_bad_one_is_refused_alone(payout_env):
    rows = [{"toAddress": person(), "amount": "1", **tag} for tag in ({"toTag": "1"}, {"toTag": "x"}, {"toTag": "2"})]
    batch = await payout_env.pay_all([*rows, {"toAddress": person(), "amount": "1"}])
    assert [(one.row, one.code) for one in batch.rejected] == [(1, "INVALID_TAG")]
    assert [one.to_tag for one in batch.payouts] == ["1", "2", None]
    assert await intent_tags(payout_env) == ["1", "2", None]


async def test_withdrawals_and_refunds_have_tags(payout_env):
    asked = WithdrawalRequest(
        project_id="prj_live", chain="memory", token="USDX", to_address=person(), to_tag="07", amount="1"
    )
    async with payout_env.db.transaction() as conn:
        made = await withdrawals.create_withdrawal(conn, payout_env.context, payout_env.live, asked, None)
    assert made.resource.to_tag == "7"
    refund_env = RefundEnv(payout_env.payment_env)
    payment_id = await refund_env.paid("10")
    assert await code_of(refund_env.refund(payment_id, amount="1", toTag="-1")) == "INVALID_TAG"
    refund = (await refund_env.refund(payment_id, amount="1", toTag="9")).resource
    assert (refund.to_address, refund.to_tag) == (CUSTOMER, "9")
    assert await intent_tags(payout_env) == ["7", "9"]


# Where it may go.


async def test_the_operators_list_has_the_tag_in_it(payout_env):
    await payout_env.settings(allowedAddresses={"memory": [f"{person().upper()}#007", person("ben")]})
    await payout_env.pay(toTag="7")
    await payout_env.pay(toAddress=person("ben"))
    for other in ({"toTag": "8"}, {}, {"toAddress": person("ben"), "toTag": "7"}):
        assert await code_of(payout_env.pay(**other)) == "TARGET_NOT_ALLOWED"
    rows = [{"toAddress": person(), "amount": "1", "toTag": tag} for tag in ("7", "8")]
    [refused] = (await payout_env.pay_all(rows)).rejected
    assert (refused.row, refused.code, refused.field) == (1, "TARGET_NOT_ALLOWED", "toAddress")
    assert await code_of(payout_env.settings(allowedAddresses={"memory": [f"{person()}#x"]})) == "VALIDATION_ERROR"


async def approve(payout_env, text: str) -> str:
    registry = payout_env.payment_env.registry
    asked = ApprovalRequest(chain="memory", address=text)
    async with payout_env.db.transaction() as conn:
        merchant, now = payout_env.live.merchant_pk, payout_env.clock.now()
        address = await approved_addresses.check(conn, registry, merchant, asked, live=True)
        return (await approved_addresses.approve(conn, merchant, asked, address, payout_env.ids, now)).address


async def rule(payout_env, address: str) -> None:
    patch = {"autopayoutPolicy": "limit", "autopayoutThreshold": "0", "autopayoutAddress": address}
    async with payout_env.db.transaction() as conn:
        await coin_settings.change_settings(
            conn, payout_env.payment_env.registry, payout_env.live, Coin(chain="memory", token="USDX"),
            msgspec.convert(patch, CoinPatch), payout_env.clock.now(),
        )  # fmt: skip


async def test_an_approved_address_is_approved_with_its_tag_alone_and_auto_payouts_carry_it(payout_env):
    assert await approve(payout_env, f"{person().upper()}#007") == f"{person()}#7"
    for other in (person(), f"{person()}#8"):
        assert await code_of(rule(payout_env, other)) == "ADDRESS_NOT_APPROVED"
    assert await code_of(rule(payout_env, f"{person()}#x")) == "INVALID_TAG"
    await rule(payout_env, f"{person()}#7")
    rates = payout_env.payment_env.rates
    assert await auto_payout.run(payout_env.db, payout_env.context, rates, Hints(None)) == 1
    async with payout_env.db.autocommit() as conn:
        paid = (await conn.exec_driver_sql("SELECT to_address, to_tag FROM payouts")).one()
    assert tuple(paid) == (person(), "7")
    assert await intent_tags(payout_env) == ["7"]


# What is signed and sent.


async def test_a_tagged_payout_is_sent_with_its_tag(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 100 * USDX)
        engine = await treasury.ready()
        payout_id = await treasury.pay_out("USDX", USDX, await treasury.stranger(1), to_tag="7")
        await engine.tick()
        treasury.chain.fees.base_price *= 10
        await treasury.work(engine, rounds=2, until="enough")
        treasury.clock.advance(120)
        await treasury.work(engine)
        paid = await treasury.payout(payout_id)
        async with treasury.db.transaction() as conn:
            raws = await conn.exec_driver_sql(
                "SELECT t.raw FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk WHERE s.intent_pk = $1",
                (paid.intent_pk,),
            )
            tags = [open_raw(raw)[0].tag for raw in raws.scalars()]
        assert (paid.status, len(tags) > 1, set(tags)) == ("completed", True, {"7"}), "a replacement has it, too"
        await treasury.check_books()


class ForgetsTags(MemoryChain):
    """Plans with the tag, and leaves it out of what is signed."""

    def _unsigned(self, step, sequence):
        return super()._unsigned(msgspec.structs.replace(step, tag=None), sequence)


@pytest.mark.slow
async def test_what_a_chain_prepares_with_another_tag_is_not_sent(db, clock, ids, tmp_path):
    known = registry()
    chain = ForgetsTags(known.chains["memory"])
    async with Treasury(db, clock, ids, tmp_path, chain=chain, chains=known) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 100 * USDX)
        engine, to_address = await treasury.ready(), await treasury.stranger(1)
        await treasury.pay_out("USDX", USDX, to_address, to_tag="7")
        await treasury.work(engine, rounds=6, until="enough")
        assert await treasury.on_chain(to_address, "USDX") == 0
        assert ("payout", "waiting", "signer: WRONG_TAG") in await treasury.open_intents()
        await treasury.pay_out("USDX", USDX, to_address)
        await treasury.work(engine, rounds=6, until="enough")
        assert await treasury.on_chain(to_address, "USDX") == USDX, "what has no tag is not kept back"
        await treasury.check_books()


async def test_the_signer_signs_nothing_with_a_tag_that_was_not_asked_for(tmp_path, clock):
    async with opening(tmp_path, clock) as make:
        signer = make()
        for said, asked_for in (("7", None), ("7", "8"), (None, "7")):
            asked = request(stranger("shop"), 1, tag=said, asked_tag=asked_for)
            assert (await answer(signer, asked)).refusal == "WRONG_TAG"
        assert (await answer(signer, request(stranger("shop"), 1, tag="7"))).refusal is None


@pytest.mark.slow
async def test_the_delay_of_a_fresh_address_runs_for_each_tag_alone(db, clock, ids, tmp_path):
    async with Treasury(db, clock, ids, tmp_path, rules=Rules(fresh_address_delay_s=3600)) as treasury:
        await treasury.open()
        await treasury.receive("USDX", 100 * USDX)
        to_address, learner = await treasury.stranger(1), Learner(treasury.signer)

        async def withdraw(units, tag):
            await treasury.pay_out("USDX", units, to_address, kind=IntentKind.WITHDRAWAL, to_tag=tag)
            async with treasury.db.autocommit() as conn:
                await learner.learn(conn)
            await treasury.work(treasury.engine(), rounds=12, until="enough")
            return await treasury.on_chain(to_address, "USDX")

        assert await withdraw(1, "7") == 0
        treasury.clock.advance(3601)
        assert await withdraw(10, "7") == 11
        assert await withdraw(100, "8") == 11
        assert await withdraw(1000, None) == 11
        treasury.clock.advance(3601)
        await treasury.work(treasury.engine(), rounds=12)
        assert await treasury.on_chain(to_address, "USDX") == 1111
        await treasury.check_books()


async def test_the_signer_signs_no_other_tag_than_the_one_in_its_list(tmp_path, clock):
    allowed = {"memory": (f"{stranger('shop').upper()}#007",)}
    async with opening(tmp_path, clock, allowed_addresses=allowed) as make:
        signer = make()
        for number, (tag, refusal) in enumerate(
            [("7", None), ("8", "TARGET_NOT_ALLOWED"), (None, "TARGET_NOT_ALLOWED")]
        ):
            assert (await answer(signer, request(stranger("shop"), 1, sequence=number, tag=tag))).refusal == refusal
