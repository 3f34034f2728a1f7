"""Simulated chains: every state a payment can come to, made to happen in the sandbox and followed at once."""

import asyncio
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from cambist.plugin import InconsistentChainError, Span
from cambist.services.errors import ForbiddenError, InvalidError, NotFoundError
from cambist.services.receiving.deposits.checking import checked
from cambist.services.sandbox.blocks import AGE_MAX
from cambist.services.sandbox.chain import SandboxChain
from cambist.services.sandbox.requests import SECONDS_MAX, AdvanceTime, Deposit, Mine, Reorg
from cambist.services.sandbox.service import _EveryAddress
from tests.support.payment_env import CHAINS, PaymentEnv, registry
from tests.support.statements import statements

pytestmark = pytest.mark.slow

ONE = 1_000_000


@pytest.fixture
async def pay(payment_env):
    """Make a sandbox payment, and return its id."""

    async def make(**fields):
        return (await payment_env.create(payment_env.test, **fields)).payment.payment_id

    return make


async def state(payment_env, payment_id):
    payment = await payment_env.read(payment_id, payment_env.test)
    return payment.status, payment.received_amount


async def test_a_payment_goes_through_all_its_states(payment_env, pay):
    payment = await pay()
    made = await payment_env.deposit(payment)
    assert (made.payment.status, made.payment.received_amount, made.payment.tx_hash) == ("detected", "10", made.tx_id)
    assert made.state.height == 1
    await payment_env.mine()
    assert await state(payment_env, payment) == ("confirming", "10")
    assert (await payment_env.read(payment, payment_env.test)).deposits[0].confirmations == 1
    assert await payment_env.balance("USDX") == {}
    await payment_env.mine(2)
    assert await state(payment_env, payment) == ("paid", "10")
    assert await payment_env.balance("USDX") == {"available": 10 * ONE}
    assert await payment_env.events(payment) == ["payment.detected", "payment.confirming", "payment.paid"]
    assert (await payment_env.data(payment))["status"] == "paid"


async def test_a_block_of_a_project_that_sends_and_exchanges_nothing_asks_once_whether_it_does(payment_env, pay):
    await payment_env.deposit(await pay())
    with statements(payment_env.db) as asked:
        await payment_env.mine()
    assert sum("outbound_" in one for one in asked) == 3, "what waits, what is mined, and what is deep"
    assert sum("exchange" in one for one in asked) == 2, "what is paid out, and what has come"


async def test_confirmations_can_be_mined_with_the_deposit(payment_env, pay):
    payment = await pay()
    made = await payment_env.deposit(payment, confirmations=3)
    assert made.payment.status == "paid"
    assert await payment_env.events(payment) == ["payment.detected", "payment.confirming", "payment.paid"]


async def test_a_project_that_mines_by_itself_pays_at_once_unless_told_otherwise(payment_env, pay):
    await payment_env.change_project(payment_env.test, sandbox_auto_mine=True)
    assert (await payment_env.deposit(await pay())).payment.status == "paid"
    assert (await payment_env.deposit(await pay(), confirmations=0)).payment.status == "detected"


async def test_a_payment_can_be_paid_in_parts_and_the_rest_is_the_default(payment_env, pay):
    payment = await pay()
    assert (await payment_env.deposit(payment, amount="4")).payment.status == "pending"
    made = await payment_env.deposit(payment)
    assert (made.payment.status, made.payment.received_amount) == ("detected", "10")
    await payment_env.mine(4)
    assert [deposit.amount for deposit in (await payment_env.read(payment, payment_env.test)).deposits] == ["4", "6"]
    assert await state(payment_env, payment) == ("paid", "10")


async def test_too_much_is_overpaid_and_the_surplus_is_held(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment, amount="12.5", confirmations=3)
    assert await state(payment_env, payment) == ("overpaid", "12.5")
    assert await payment_env.balance("USDX") == {"available": 10 * ONE, "held": 2_500_000}


async def test_time_can_be_advanced_until_a_payment_expires(payment_env, pay):
    payment, longer = await pay(expiresInMinutes=5), await pay(expiresInMinutes=60)
    await payment_env.advance(299)
    assert await state(payment_env, payment) == ("pending", "0")
    await payment_env.advance(1)
    assert await state(payment_env, payment) == ("expired", "0")
    assert await state(payment_env, longer) == ("pending", "0")
    assert await payment_env.events(payment) == ["payment.expired"]


async def test_advancing_time_moves_no_clock_so_new_payments_have_all_their_time(payment_env, pay, clock):
    await pay()
    await payment_env.advance(10_000)
    new = await payment_env.read(await pay(), payment_env.test)
    assert (new.expires_at - clock.now()).total_seconds() == 3600


async def test_time_that_is_let_pass_for_ever_does_not_lead_out_of_the_calendar(payment_env, pay, clock, monkeypatch):
    assert clock.now() - datetime(1000, 1, 1, tzinfo=UTC) > AGE_MAX
    monkeypatch.setattr("cambist.services.sandbox.blocks.AGE_MAX", timedelta(days=3 * 365))
    payment = await pay()
    await payment_env.deposit(payment, amount="4", confirmations=3)
    for _ in range(6):
        await payment_env.advance(SECONDS_MAX)
    old = await payment_env.read(payment, payment_env.test)
    assert timedelta(days=3 * 365) <= clock.now() - old.created_at <= timedelta(days=4 * 365)
    new = await pay()
    await payment_env.deposit(new, confirmations=3)
    assert await state(payment_env, new) == ("paid", "10")


async def test_a_part_that_stays_a_part_ends_underpaid_and_the_rest_within_the_grace_completes_it(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment, amount="4", confirmations=3)
    await payment_env.advance(3600)
    assert await state(payment_env, payment) == ("underpaid", "4")
    assert await payment_env.balance("USDX") == {"available": 4 * ONE}
    await payment_env.deposit(payment, amount="6", confirmations=3)
    assert await state(payment_env, payment) == ("paid", "10")


async def test_money_after_the_grace_is_held_and_changes_nothing(payment_env, pay):
    payment = await pay()
    await payment_env.advance(3600 + 86_400 + 1)
    await payment_env.deposit(payment, confirmations=3)
    assert (await state(payment_env, payment))[0] == "expired"
    assert await payment_env.balance("USDX") == {"held": 10 * ONE}


async def test_a_late_fiat_payment_stays_expired(payment_env, pay):
    payment = await pay(pricingMode="fiat", fiatCurrency="usd")
    await payment_env.advance(3601)
    await payment_env.deposit(payment, confirmations=3)
    assert (await state(payment_env, payment))[0] == "expired"


async def test_a_reorg_takes_a_deposit_back_for_good(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment, confirmations=1)
    assert (await state(payment_env, payment))[0] == "confirming"
    before = await payment_env.mine()
    after = await payment_env.reorg(3)
    assert after.height == before.height
    assert after.block_hash != before.block_hash
    assert await state(payment_env, payment) == ("pending", "0")
    await payment_env.mine(5)
    assert await state(payment_env, payment) == ("pending", "0")


@pytest.mark.parametrize("depth", [1, 2, 5])
async def test_a_deposit_that_comes_back_in_another_block_is_credited_once(payment_env, pay, depth):
    payment = await pay()
    await payment_env.mine(depth)
    await payment_env.deposit(payment, confirmations=depth - 1)
    await payment_env.reorg(depth, "return")
    expected = "failed" if depth > 3 else "pending"
    assert await state(payment_env, payment) == (expected, "0")
    assert await payment_env.balance("USDX") == {}
    await payment_env.mine(4)
    assert await state(payment_env, payment) == ("paid", "10")
    assert await payment_env.balance("USDX") == {"available": 10 * ONE}
    assert await payment_env.count("deposits") == 1


async def test_a_reorg_deeper_than_the_confirmations_reverses_the_credit(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment, confirmations=3)
    assert await payment_env.balance("USDX") == {"available": 10 * ONE}
    await payment_env.reorg(4)
    assert await state(payment_env, payment) == ("failed", "0")
    assert await payment_env.balance("USDX") == {}


async def test_a_reorg_that_leaves_the_deposit_alone_changes_nothing(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment, confirmations=2)
    await payment_env.reorg(2)
    assert await state(payment_env, payment) == ("confirming", "10")


async def test_a_reorg_is_at_most_as_deep_as_the_gateway_remembers(payment_env, pay):
    with pytest.raises(InvalidError) as error:
        await payment_env.reorg(1)
    assert error.value.code == "REORG_TOO_DEEP"
    payment = await pay()
    await payment_env.deposit(payment, confirmations=100)
    with pytest.raises(InvalidError, match="64 blocks"):
        await payment_env.reorg(65)
    await payment_env.reorg(64)
    assert (await state(payment_env, payment))[0] == "paid"


async def test_old_blocks_are_forgotten_and_those_with_transfers_kept(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment, confirmations=3)
    for _ in range(3):
        await payment_env.mine(200)
    assert await payment_env.count("sandbox_blocks") < 350
    await payment_env.reorg(64)
    assert (await state(payment_env, payment))[0] == "paid"


async def test_another_token_or_chain_is_held_and_does_not_pay(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment, token="DAIX", amount="10", confirmations=3)
    await payment_env.deposit(payment, chain="other", amount="10", confirmations=3)
    assert await state(payment_env, payment) == ("pending", "0")
    assert await payment_env.balance("DAIX") == {"held": 10**19}
    assert await payment_env.balance("USDX", "other") == {"held": 10 * ONE}
    assert [deposit.counted for deposit in (await payment_env.read(payment, payment_env.test)).deposits] == [
        False,
        False,
    ]


async def test_the_address_names_the_payment_as_well_as_its_id(payment_env):
    payment = (await payment_env.create(payment_env.test)).payment
    request = Deposit(address=payment.deposit_address.upper(), amount="10")
    assert (await payment_env.sandbox.deposit(payment_env.test, request)).payment.payment_id == payment.payment_id


async def test_an_evm_chain_is_simulated_with_real_addresses_and_its_own_spelling(payment_env, pay):
    payment = await pay(chain="bsc", token="USDT", amount="1.5")
    made = await payment_env.deposit(payment, confirmations=20)
    assert made.payment.status == "paid"
    assert (made.tx_id[:2], len(made.tx_id), made.state.block_hash[:2]) == ("0x", 66, "0x")
    native = await pay(chain="bsc", token="BNB", amount="0.000000000000000001")
    assert (await payment_env.deposit(native, confirmations=20)).payment.status == "paid"


async def test_a_chain_that_counts_only_final_blocks_works_in_the_sandbox(db, clock, ids):
    tables = {**CHAINS, "memory": {"chains": {"memory": {"finality_required": True}}}}
    payment_env = await PaymentEnv(db, clock, ids, registry(tables)).open()
    payment = (await payment_env.create(payment_env.test)).payment.payment_id
    assert (await payment_env.deposit(payment, confirmations=3)).payment.status == "paid"


async def test_twenty_deposits_at_once_are_all_counted(payment_env, pay):
    payment = await pay(amount="20")
    await asyncio.gather(*(payment_env.deposit(payment, amount="1") for _ in range(20)))
    await payment_env.mine(3)
    assert await state(payment_env, payment) == ("paid", "20")
    assert await payment_env.balance("USDX") == {"available": 20 * ONE}


async def test_projects_have_chains_of_their_own(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment)
    state = await payment_env.sandbox.mine(payment_env.test2, Mine(chain="memory", blocks=3))
    assert state.height == 3
    assert (await payment_env.read(payment, payment_env.test)).status == "detected"
    with pytest.raises(NotFoundError):
        await payment_env.deposit(payment, payment_env.test2)


async def test_a_live_project_has_nothing_simulated(payment_env):
    payment = (await payment_env.create()).payment.payment_id
    for attempt in (
        payment_env.sandbox.deposit(payment_env.live, Deposit(payment_id=payment)),
        payment_env.sandbox.mine(payment_env.live, Mine(chain="memory")),
        payment_env.sandbox.reorg(payment_env.live, Reorg(chain="memory", depth=1)),
        payment_env.sandbox.advance_time(payment_env.live, AdvanceTime(seconds=1)),
    ):
        with pytest.raises(ForbiddenError) as error:
            await attempt
        assert error.value.code == "SANDBOX_ONLY"
    assert await payment_env.count("sandbox_chains") == 0


@pytest.mark.parametrize(
    "fields, field",
    [
        ({"paymentId": None}, "paymentId"),
        ({"address": "mem1"}, "paymentId"),
        ({"paymentId": None, "address": "nothing"}, "address"),
        ({"amount": "0"}, "amount"),
        ({"amount": "-1"}, "amount"),
        ({"token": "DAIX"}, "amount"),
        ({"token": "NOPE", "amount": "1"}, "token"),
        ({"chain": "nowhere", "amount": "1"}, "chain"),
        ({"chain": "bsc", "token": "BNB", "amount": "1"}, "chain"),
    ],
)
async def test_a_deposit_that_cannot_be_meant_is_refused_with_its_field(payment_env, pay, fields, field):
    request = msgspec.convert({"paymentId": await pay(), **fields}, Deposit)
    with pytest.raises(InvalidError) as error:
        await payment_env.sandbox.deposit(payment_env.test, request)
    assert error.value.details[0].field == field
    assert await payment_env.count("sandbox_transfers") == 0


async def test_nothing_more_is_sent_by_default_to_a_payment_that_has_everything(payment_env, pay):
    payment = await pay()
    await payment_env.deposit(payment)
    with pytest.raises(InvalidError, match="amount"):
        await payment_env.deposit(payment)


async def test_the_worker_lets_payments_expire_that_nobody_touches(payment_env, pay, clock):
    payment = await pay()
    assert await payment_env.sandbox.judge_due(clock.now()) == 0
    clock.advance(3601)
    assert await payment_env.sandbox.judge_due(clock.now()) == 1
    assert await state(payment_env, payment) == ("expired", "0")
    assert await payment_env.sandbox.judge_due(clock.now()) == 0


async def test_the_worker_finishes_what_a_crash_left_unread(payment_env, pay, clock, monkeypatch):
    payment = await pay()
    await payment_env.mine()

    async def crash(*_):
        raise SystemError

    with monkeypatch.context() as patched:
        patched.setattr(payment_env.sandbox, "follow", crash)
        with pytest.raises(SystemError):
            await payment_env.deposit(payment)
        assert await payment_env.sandbox.judge_due(clock.now()) == 0
    assert await state(payment_env, payment) == ("pending", "0")
    assert await payment_env.sandbox.judge_due(clock.now()) == 1
    assert await state(payment_env, payment) == ("detected", "10")


async def test_the_simulated_chain_tells_what_a_node_would(payment_env, pay):
    payment = await payment_env.read(await pay(), payment_env.test)
    made = await payment_env.deposit(payment.payment_id, confirmations=2)
    info, family = payment_env.registry.chains["memory"], payment_env.registry.families["memory"]
    chain = SandboxChain(payment_env.db, info, family, payment_env.test.project_pk)
    usdx = info.token("USDX")
    assert await chain.balance(payment.deposit_address, usdx) == 10 * ONE
    assert await chain.balance(payment.deposit_address, usdx, at=0) == 0
    status = await chain.transaction(made.tx_id)
    assert (status.state, status.block.height) == ("succeeded", 1)
    assert (await chain.transaction("00")).state == "unknown"
    async with chain.view() as view:
        scanned = await view.scan(Span(first=0, last=3), _EveryAddress(payment_env.db, family, "sandbox"))
        assert [block.parent_hash for block in scanned.blocks[1:]] == [block.hash for block in scanned.blocks[:-1]]
        assert [transfer.tx_id for transfer in scanned.transfers] == [made.tx_id]
        assert (await view.scan(Span(first=0, last=3), frozenset())).transfers == []
    await payment_env.reorg(3, "return")
    assert (await chain.transaction(made.tx_id)).state == "pending"
    assert await chain.balance(payment.deposit_address, usdx) == 0


@pytest.mark.parametrize("blocks_at_once", [1, 7, 1000])
async def test_what_was_forgotten_reads_as_empty_blocks_that_link_what_is_left(payment_env, pay, blocks_at_once):
    """Long chains keep what holds something alone. A past is read through the gaps, however it is cut."""
    info = payment_env.registry.chains["memory"]
    first = await payment_env.deposit(await pay())
    await payment_env.mine(20)
    second = await payment_env.deposit(await pay())
    for blocks in (3 * info.hashes_kept, 1):
        tip = await payment_env.mine(blocks)
    async with payment_env.db.autocommit() as conn:
        left = (await conn.exec_driver_sql("SELECT count(*) FROM sandbox_blocks")).scalar_one()
    assert left < tip.height // 2 + info.hashes_kept
    family = payment_env.registry.families[info.family]
    chain = SandboxChain(payment_env.db, info, family, payment_env.test.project_pk)
    everything, parent, found = _EveryAddress(payment_env.db, family, "sandbox"), None, []
    async with chain.view() as view:
        for height in range(0, tip.height + 1, blocks_at_once):
            span = Span(first=height, last=min(tip.height, height + blocks_at_once - 1))
            result = await view.scan(span, everything)
            checked(result, span, parent, (await view.block(span.last)).hash)
            parent = result.blocks[-1].hash
            found += result.transfers
        assert parent == tip.block_hash
        assert [one.tx_id for one in found] == [first.tx_id, second.tx_id]
        with pytest.raises(InconsistentChainError, match="not all there"):
            await view.scan(Span(first=tip.height, last=tip.height + 1), everything)
