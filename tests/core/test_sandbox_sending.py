"""Money that leaves a sandbox: the same states, events and ledger as live, on chains that only exist here."""

import asyncio

import pytest

from cambist.domain.intents import AskedBy, IntentKind
from cambist.plugin import Span, Units
from cambist.services import platform
from cambist.services.accounting.ledger import Account, Purpose, lock_balances
from cambist.services.addresses.wallets import main_wallet
from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cambist.services.payouts.cancel import ask_to_cancel
from cambist.services.payouts.queue import NewPayout, debit_and_queue
from cambist.services.reversals.refunds.create import RefundRequest, create_refund
from cambist.services.sandbox.chain import SandboxChain
from cambist.services.sandbox.requests import FailPayout, Mine
from tests.support.payment_env import PaymentEnv
from tests.support.payout_env import PayoutEnv, person

pytestmark = pytest.mark.slow

ONE = 1_000_000
CHAIN = "memory"
CUSTODY = (Purpose.CUSTODY_DEPOSITS, Purpose.CUSTODY_WALLET)


class Booth:
    """A sandbox project that was paid 100 USDX, and what becomes of what it sends."""

    def __init__(self, payout_env: PayoutEnv) -> None:
        self.payout_env, self.payment_env, self.db = payout_env, payout_env.payment_env, payout_env.db
        self.sandbox, self.actor = self.payment_env.sandbox, self.payment_env.test

    async def earn(self, amount: str, actor=None) -> str:
        payment = (await self.payment_env.create(actor or self.actor, amount=amount)).payment
        await self.payment_env.deposit(payment.payment_id, actor or self.actor, confirmations=3)
        return payment.payment_id

    async def pay(self, amount: str = "30", to: str | None = None, **fields) -> str:
        """Ask for a payout as the API does, and have it sent at once."""
        actor = fields.pop("actor", self.actor)
        made = await self.payout_env.pay(actor, amount=amount, toAddress=to or person(), **fields)
        await self.sandbox.send_queued(actor.project_pk, [CHAIN])
        return made.resource.payout_id

    async def refund(self, payment_id: str, amount: str | None = None) -> str:
        """Ask for a refund as the API does, and have it sent at once."""
        request = RefundRequest(to_address=person("customer"), amount=amount)
        async with self.db.transaction() as conn:
            made = await create_refund(conn, self.payout_env.context, self.actor, payment_id, request, None)
        await self.sandbox.send_queued(self.actor.project_pk, [CHAIN])
        return made.resource.refund_id

    async def payment(self, payment_id: str) -> str:
        return (await self.payment_env.read(payment_id, self.actor)).status

    async def queue(self, kind: IntentKind, units: int) -> str:
        info = self.payment_env.registry.chains[CHAIN]
        new = NewPayout(
            kind=kind,
            payout_id=self.payment_env.ids.new("po"),
            project_pk=self.actor.project_pk,
            merchant_pk=self.actor.merchant_pk,
            mode="sandbox",
            chain=info,
            token=info.token("USDX"),
            to_address=person(),
            units=Units(units),
        )
        async with self.db.transaction() as conn:
            await debit_and_queue(conn, self.payout_env.context, await platform.load(conn), [new])
        return new.payout_id

    async def fail(self, payout_id: str, actor=None):
        return await self.sandbox.fail_payout(actor or self.actor, FailPayout(payout_id=payout_id))

    async def status(self, payout_id: str) -> str:
        return (await self.row(payout_id)).status

    async def row(self, payout_id: str):
        async with self.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT p.status, p.tx_id, p.error, i.state, t.incarnation FROM payouts p"
                " JOIN outbound_intents i ON i.id = p.intent_pk LEFT JOIN outbound_slots s ON s.intent_pk = i.id"
                " LEFT JOIN outbound_txs t ON t.slot_pk = s.id WHERE p.payout_id = $1",
                (payout_id,),
            )
            return rows.one()

    async def custody(self) -> tuple[int, int]:
        """Return what one-time addresses and what the main wallet hold of the merchant's USDX."""
        async with self.db.transaction() as conn:
            accounts = [Account(self.actor.merchant_pk, self.payout_env.asset(), purpose) for purpose in CUSTODY]
            found = await lock_balances(conn, "sandbox", accounts)
        return -found[accounts[0]], -found[accounts[1]]

    async def events(self, payout_id: str) -> list[str]:
        return [name for name, _ in await self.payout_env.events(payout_id)]

    async def check_books(self) -> None:
        """Whatever the merchant has must lie somewhere."""
        assert sum((await self.payment_env.balance("USDX")).values()) == sum(await self.custody())


@pytest.fixture
async def booth(db, clock, ids):
    booth = Booth(PayoutEnv(await PaymentEnv(db, clock, ids).open()))
    await booth.earn("100")
    yield booth
    await booth.check_books()


async def test_a_payout_goes_through_all_its_states(booth):
    payout = await booth.pay("30")
    sent = await booth.row(payout)
    assert (sent.status, sent.state, len(sent.tx_id)) == ("broadcast", "sending", 64)
    assert await booth.payment_env.balance("USDX") == {"available": 70 * ONE, "pending": 30 * ONE}
    assert await booth.events(payout) == []
    await booth.payment_env.mine(3)
    assert await booth.status(payout) == "broadcast"
    await booth.payment_env.mine()
    done = await booth.row(payout)
    assert (done.status, done.state, done.tx_id, done.incarnation) == ("completed", "done", sent.tx_id, 1)
    assert await booth.payment_env.balance("USDX") == {"available": 70 * ONE}
    assert await booth.events(payout) == ["payout.completed"]
    assert await booth.custody() == (70 * ONE, 0)


async def test_what_is_cancelled_before_it_is_sent_is_money_again(booth, clock):
    payout = await booth.queue(IntentKind.PAYOUT, 30 * ONE)
    async with booth.db.transaction() as conn:
        await ask_to_cancel(conn, payout, AskedBy.KEY, clock.now())
    assert await booth.status(payout) == "cancelling"
    await booth.sandbox.send_queued(booth.actor.project_pk, [CHAIN])
    done = await booth.row(payout)
    assert (done.status, done.state, done.tx_id) == ("cancelled", "failed", None)
    assert done.error == "It was cancelled by the merchant's program."
    assert await booth.payment_env.balance("USDX") == {"available": 100 * ONE}
    assert await booth.events(payout) == ["payout.failed"]


@pytest.mark.parametrize("kind", [IntentKind.PAYOUT, IntentKind.WITHDRAWAL, IntentKind.AUTO_PAYOUT])
async def test_every_kind_is_sent_by_the_worker_where_no_request_does_it(booth, clock, kind):
    payout = await booth.queue(kind, 5)
    assert await booth.status(payout) == "requested"
    assert await booth.sandbox.judge_due(clock.now()) == 1
    assert await booth.status(payout) == "broadcast"
    assert await booth.sandbox.judge_due(clock.now()) == 0
    await booth.payment_env.mine(4)
    assert await booth.status(payout) == "completed"
    assert await booth.sandbox.judge_due(clock.now()) == 0


async def test_a_refund_goes_through_all_its_states_and_its_payment_with_it(booth):
    payment = await booth.earn("12.5")
    refund = await booth.refund(payment, "10")
    assert (await booth.status(refund), await booth.payment(payment)) == ("broadcast", "refunded")
    await booth.payment_env.mine(4)
    assert (await booth.status(refund), await booth.payment(payment)) == ("completed", "refunded")
    assert (await booth.payment_env.events(payment))[-1] == "payment.refunded"
    assert await booth.payment_env.balance("USDX") == {"available": 102_500_000}


async def test_the_only_refund_fails_and_its_payment_is_paid_again(booth):
    payment = await booth.earn("10")
    refund = await booth.refund(payment)
    await booth.fail(refund)
    await booth.payment_env.mine(4)
    assert (await booth.status(refund), await booth.payment(payment)) == ("failed", "paid")
    assert await booth.payment_env.balance("USDX") == {"available": 110 * ONE}
    assert await booth.sandbox.judge_due(booth.payment_env.clock.now()) == 0


async def test_payouts_and_refunds_end_together_well_and_badly(booth):
    payments = [await booth.earn("10") for _ in range(2)]
    sent = [await booth.refund(payment) for payment in payments] + [await booth.pay("1"), await booth.pay("2")]
    await booth.fail(sent[0])
    await booth.fail(sent[2])
    await booth.payment_env.mine(4)
    assert [await booth.status(one) for one in sent] == ["failed", "completed", "failed", "completed"]
    assert await booth.payment_env.balance("USDX") == {"available": 108 * ONE}
    await booth.payment_env.reorg(4)
    assert [await booth.status(one) for one in sent] == ["failed", "broadcast", "failed", "broadcast"]
    await booth.payment_env.mine(4)
    assert await booth.payment_env.balance("USDX") == {"available": 108 * ONE}


async def test_the_next_block_takes_what_nobody_has_sent_yet(booth):
    payout = await booth.queue(IntentKind.PAYOUT, 5)
    await booth.payment_env.mine(4)
    assert await booth.status(payout) == "completed"


async def test_a_project_that_mines_by_itself_completes_at_once(booth):
    await booth.payment_env.change_project(booth.actor, sandbox_auto_mine=True)
    payout = await booth.pay()
    assert (await booth.status(payout), await booth.events(payout)) == ("completed", ["payout.completed"])


async def test_the_simulated_chain_shows_the_transfer_as_sent_by_the_main_wallet(booth):
    payout = await booth.pay("30")
    tx_id = (await booth.row(payout)).tx_id
    info, family = booth.payment_env.registry.chains[CHAIN], booth.payment_env.registry.families[CHAIN]
    chain = SandboxChain(booth.db, info, family, booth.actor.project_pk)
    assert (await chain.transaction(tx_id)).state == "pending"
    height = (await booth.payment_env.mine()).height
    status = await chain.transaction(tx_id)
    assert (status.state, status.block.height, status.fee) == ("succeeded", height, 0)
    async with chain.view() as view:
        watch = {family.address_key(person())}
        (transfer,) = (await view.scan(Span(first=height, last=height), watch)).transfers
    async with booth.db.transaction() as conn:
        wallet = await main_wallet(conn, booth.payout_env.context.keys, family, booth.actor.merchant_pk, "sandbox")
    assert (transfer.sender, transfer.recipient, transfer.amount) == (wallet.address, person(), 30 * ONE)
    assert await chain.balance(person(), info.token("USDX")) == 30 * ONE


async def test_a_payout_fails_when_it_is_asked_to_and_the_money_comes_back(booth):
    payout = await booth.pay("30")
    assert (await booth.fail(payout)).status == "broadcast"
    await booth.payment_env.mine(4)
    row = await booth.row(payout)
    assert (row.status, row.state, row.error) == ("failed", "failed", "The transaction was mined, and failed.")
    assert await booth.payment_env.balance("USDX") == {"available": 100 * ONE}
    assert await booth.events(payout) == ["payout.failed"]
    assert await booth.custody() == (70 * ONE, 30 * ONE)  # it was collected, and never left the wallet
    info, family = booth.payment_env.registry.chains[CHAIN], booth.payment_env.registry.families[CHAIN]
    chain = SandboxChain(booth.db, info, family, booth.actor.project_pk)
    assert (await chain.transaction(row.tx_id)).state == "reverted"
    assert await chain.balance(person(), info.token("USDX")) == 0


async def test_what_failed_stays_failed_whatever_becomes_of_its_block(booth):
    payout = await booth.pay("30")
    await booth.fail(payout)
    await booth.payment_env.mine(4)
    await booth.payment_env.reorg(4)
    assert await booth.status(payout) == "failed"
    await booth.payment_env.mine(9)
    assert (await booth.status(payout), await booth.events(payout)) == ("failed", ["payout.failed"])
    assert await booth.payment_env.balance("USDX") == {"available": 100 * ONE}


async def test_a_payout_that_is_not_sent_yet_can_be_made_to_fail_too(booth):
    payout = await booth.queue(IntentKind.WITHDRAWAL, 5)
    await booth.fail(payout)
    await booth.payment_env.mine(4)
    assert (await booth.status(payout), await booth.events(payout)) == ("failed", ["withdrawal.failed"])


async def test_what_is_mined_can_fail_no_more(booth):
    payout = await booth.pay()
    await booth.payment_env.mine()
    with pytest.raises(ConflictError) as error:
        await booth.fail(payout)
    assert error.value.code == "PAYOUT_ALREADY_MINED"
    await booth.payment_env.mine(3)
    with pytest.raises(ConflictError):
        await booth.fail(payout)
    assert await booth.status(payout) == "completed"


async def test_only_a_payout_of_the_same_sandbox_project_can_be_made_to_fail(booth):
    payout = await booth.pay()
    with pytest.raises(NotFoundError):
        await booth.fail(payout, booth.payment_env.test2)
    with pytest.raises(NotFoundError):
        await booth.fail("po_nothing")
    with pytest.raises(ForbiddenError) as error:
        await booth.fail(payout, booth.payment_env.live)
    assert error.value.code == "SANDBOX_ONLY"


@pytest.mark.parametrize("transactions", ["drop", "return"])
async def test_a_reorg_before_it_is_final_lets_it_wait_for_another_block(booth, transactions):
    payout = await booth.pay()
    await booth.payment_env.mine(2)
    await booth.payment_env.reorg(2, transactions)
    await booth.payment_env.mine(3)
    assert await booth.status(payout) == "broadcast"
    await booth.payment_env.mine()
    assert (await booth.status(payout), await booth.events(payout)) == ("completed", ["payout.completed"])


@pytest.mark.parametrize("transactions", ["drop", "return"])
async def test_a_reorg_after_it_was_final_undoes_it_and_it_becomes_final_again(booth, transactions):
    payout = await booth.pay("30")
    await booth.payment_env.mine(4)
    await booth.payment_env.reorg(4, transactions)
    undone = await booth.row(payout)
    assert (undone.status, undone.state) == ("broadcast", "sending")
    assert await booth.payment_env.balance("USDX") == {"available": 70 * ONE, "pending": 30 * ONE}
    assert await booth.custody() == (70 * ONE, 30 * ONE)
    await booth.payment_env.mine(4)
    again = await booth.row(payout)
    assert (again.status, again.incarnation, again.tx_id) == ("completed", 2, undone.tx_id)
    assert await booth.payment_env.balance("USDX") == {"available": 70 * ONE}
    assert await booth.events(payout) == ["payout.completed", "payout.completed"]


async def test_what_was_undone_can_be_made_to_fail_before_it_is_mined_again(booth):
    payout = await booth.pay("30")
    await booth.payment_env.mine(4)
    await booth.payment_env.reorg(4)
    await booth.fail(payout)
    await booth.payment_env.mine(4)
    assert await booth.events(payout) == ["payout.completed", "payout.failed"]
    assert await booth.payment_env.balance("USDX") == {"available": 100 * ONE}


async def test_a_reorg_that_is_too_deep_changes_nothing(booth):
    payout = await booth.pay()
    await booth.payment_env.mine(4)
    with pytest.raises(InvalidError):
        await booth.payment_env.reorg(1000)
    assert await booth.status(payout) == "completed"


async def test_a_payout_to_another_payment_of_the_project_pays_it(booth):
    payment = (await booth.payment_env.create(booth.actor, amount="30")).payment
    payout = await booth.pay("30", payment.deposit_address)
    await booth.payment_env.mine(4)
    assert await booth.status(payout) == "completed"
    assert (await booth.payment_env.read(payment.payment_id, booth.actor)).status == "paid"
    assert await booth.payment_env.balance("USDX") == {"available": 100 * ONE}
    await booth.payment_env.reorg(4)
    assert (await booth.payment_env.read(payment.payment_id, booth.actor)).status == "failed"
    await booth.payment_env.mine(4)
    assert (await booth.payment_env.read(payment.payment_id, booth.actor)).status == "paid"
    assert await booth.custody() == (100 * ONE, 0)


async def test_projects_of_one_merchant_spend_the_same_money_on_chains_of_their_own(booth):
    payouts = [await booth.pay("30", actor=actor) for actor in (booth.payment_env.test, booth.payment_env.test2)]
    assert await booth.custody() == (40 * ONE, 60 * ONE)
    await booth.payment_env.mine(4)
    assert [await booth.status(payout) for payout in payouts] == ["completed", "broadcast"]
    assert await booth.custody() == (40 * ONE, 30 * ONE)


async def test_payouts_of_two_projects_at_once_collect_what_both_need(booth):
    for _ in range(4):
        await asyncio.gather(
            *(booth.pay("5", actor=actor) for actor in (booth.payment_env.test, booth.payment_env.test2))
        )
    assert await booth.custody() == (60 * ONE, 40 * ONE)
    await booth.payment_env.mine(4)
    assert await booth.custody() == (60 * ONE, 20 * ONE)


async def test_a_batch_is_sent_in_one_go(booth):
    rows = [{"toAddress": person(f"number {number}"), "amount": "1"} for number in range(40)]
    made = await booth.payout_env.pay_all(rows, actor=booth.actor)
    await booth.payment_env.mine(4)
    assert {await booth.status(payout.payout_id) for payout in made.payouts} == {"completed"}
    assert await booth.payment_env.balance("USDX") == {"available": 60 * ONE}


async def test_the_worker_finishes_what_a_crash_left_in_its_block(booth, clock, monkeypatch):
    payout = await booth.pay()

    async def crash(*_):
        raise SystemError

    with monkeypatch.context() as patched:
        patched.setattr(booth.sandbox._sender, "finalize", crash)
        with pytest.raises(SystemError):
            await booth.payment_env.mine(4)
    assert await booth.status(payout) == "broadcast"
    assert await booth.sandbox.judge_due(clock.now()) == 1
    assert await booth.status(payout) == "completed"


async def test_time_that_passes_makes_payouts_older_so_that_daily_limits_start_again(booth):
    await booth.payout_env.settings(limits={"memory/USDX": {"perDay": "30"}})
    payout = await booth.pay("30")
    with pytest.raises(ForbiddenError) as error:
        await booth.pay("1")
    assert error.value.code == "PAYOUT_LIMIT_EXCEEDED"
    await booth.payment_env.advance(86_401)
    await booth.pay("30")
    await booth.payment_env.mine(4)
    assert await booth.status(payout) == "completed"


async def test_a_live_payout_is_none_of_the_sandboxs_business(booth, clock):
    await booth.payout_env.fund(50 * ONE)
    live = (await booth.payout_env.pay()).resource.payout_id
    await booth.payment_env.mine(4)
    assert await booth.sandbox.judge_due(clock.now()) == 0
    assert await booth.status(live) == "requested"


async def test_requests_at_the_same_time_never_wait_in_a_circle(booth):
    info = booth.payment_env.registry.chains[CHAIN]
    payment = (await booth.payment_env.create(booth.actor, amount="20")).payment
    paid = [await booth.earn("2") for _ in range(4)]
    doomed = await booth.pay("1")
    await booth.fail(doomed)

    async def mine():
        for _ in range(5):
            await booth.payment_env.mine()
        await booth.payment_env.reorg(3, "return")

    await asyncio.gather(
        *(booth.pay("1", actor=actor) for actor in (booth.payment_env.test, booth.payment_env.test2) for _ in range(4)),
        *(booth.payment_env.deposit(payment.payment_id, amount="1") for _ in range(5)),
        *(booth.refund(one) for one in paid),
        mine(),
        booth.payment_env.advance(1),
        booth.sandbox.follow(booth.actor.project_pk, info),
    )
    await booth.payment_env.mine(4)
    await booth.sandbox.mine(booth.payment_env.test2, Mine(chain=CHAIN, blocks=4))
    assert await booth.payment_env.balance("USDX") == {"available": 92 * ONE, "held": 5 * ONE}
    assert await booth.status(doomed) == "failed"
    assert {await booth.payment(one) for one in paid} == {"refunded"}
