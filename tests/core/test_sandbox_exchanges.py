"""Swaps and bridges in a sandbox: the rows, deposits and postings of live ones, on chains that only exist here."""

import pytest
from msgspec import structs

from cambist.services.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from cambist.services.sandbox.requests import AdvanceTime, Mine, Reorg
from tests.support.exchange_booth import DEEP, MEM, ONE, ExchangeBooth
from tests.support.payment_env import PaymentEnv
from tests.support.payout_env import PayoutEnv, person

pytestmark = pytest.mark.slow


@pytest.fixture
async def booth(db, clock, ids):
    booth = ExchangeBooth(await PaymentEnv(db, clock, ids).open())
    await booth.payment_env.change_project(booth.actor, extended_events=True)
    await booth.earn("100")
    yield booth
    await booth.check_books()


async def test_a_swap_goes_through_all_its_states_and_its_output_is_one_deposit(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "memory/MEM")
    sent = await booth.row(txn_id)
    assert (sent.status, sent.step, len(sent.tx_id), sent.provider) == ("pending", "sent", 64, "sandbox")
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE, "pending": 30 * ONE}
    await booth.check_books()
    await booth.mine()
    assert await booth.state(txn_id) == ("pending", "sent")
    await booth.mine(blocks=1)
    done = await booth.row(txn_id)
    assert (done.status, done.step, done.output_units, done.dest_tx_id) == ("succeeded", "ended", 10 * MEM, sent.tx_id)
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE}
    assert await booth.balance("memory/MEM") == {"available": 10 * MEM}
    assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE}
    assert await booth.lies("memory/MEM") == {"custody_wallet": 10 * MEM}
    assert await booth.deposits(txn_id) == [("output", 10 * MEM, "memory", "MEM", "confirmed", 10 * MEM)]
    assert await booth.events() == ["exchange.succeeded"]


async def test_a_bridge_is_between_two_chains_until_it_is_filled_on_the_other(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("pending", "filling")
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE, "pending": 30 * ONE}
    assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE, "between_chains": 30 * ONE}
    assert await booth.balance("other/USDX") == {}
    await booth.check_books()
    await booth.mine("other")
    assert await booth.balance("other/USDX") == {}
    await booth.mine("other", 1)
    done = await booth.row(txn_id)
    assert (done.status, done.step, done.output_units, done.is_closed) == ("succeeded", "ended", 30 * ONE, True)
    assert done.dest_tx_id not in {None, done.tx_id}
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE}
    assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE}
    assert await booth.balance("other/USDX") == {"available": 30 * ONE}
    assert await booth.deposits(txn_id) == [("output", 30 * ONE, "other", "USDX", "confirmed", 30 * ONE)]
    assert await booth.events() == ["exchange.succeeded"]


@pytest.mark.parametrize("bought", ["memory/MEM", "other/USDX", "other/MEM"])
async def test_where_the_project_mines_by_itself_an_exchange_is_over_within_its_request(booth, bought):
    await booth.payment_env.change_project(booth.actor, sandbox_auto_mine=True)
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, bought)
    assert await booth.state(txn_id) == ("succeeded", "ended")
    assert await booth.balance(bought) == {"available": 30 * ONE if bought.endswith("USDX") else 10 * MEM}
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE}


async def test_what_came_of_an_exchange_can_be_exchanged_back(booth):
    await booth.payment_env.change_project(booth.actor, sandbox_auto_mine=True)
    await booth.exchange("memory/USDX", 30 * ONE, "memory/MEM")
    await booth.exchange("memory/MEM", 10 * MEM, "other/USDX")
    await booth.exchange("other/USDX", 30 * ONE, "memory/USDX")
    assert await booth.balance("memory/USDX") == {"available": 100 * ONE}
    assert await booth.balance("memory/MEM") == await booth.balance("other/USDX") == {}


async def test_the_platform_keeps_its_fee_of_a_bridge_in_the_wallet(booth):
    await PayoutEnv(booth.payment_env).settings(exchanges={"bridgeFeeBps": 100, "swapFeeBps": 100})
    await booth.payment_env.change_project(booth.actor, sandbox_auto_mine=True)
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    row = await booth.row(txn_id)
    assert (row.fee_units, row.output_units) == (300_000, 29_700_000)
    assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE, "float_wallet": 300_000}
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE}
    swap = await booth.row(await booth.exchange("memory/USDX", 30 * ONE, "memory/MEM"))
    assert (swap.fee_units, swap.output_units) == (0, 990 * MEM // 100)


async def test_a_swap_that_is_made_to_fail_gives_everything_back(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "memory/MEM")
    assert (await booth.fail(txn_id)).status == "pending"
    await booth.mine(blocks=DEEP + 1)
    row = await booth.row(txn_id)
    assert (row.status, row.step) == ("failed", "ended")
    assert row.error
    assert await booth.balance("memory/USDX") == {"available": 100 * ONE}
    assert await booth.balance("memory/MEM") == {}
    assert await booth.deposits(txn_id) == []
    assert await booth.events() == ["exchange.failed"]


async def test_one_that_was_not_sent_yet_can_be_made_to_fail_and_is_sent_to_fail(booth):
    txn_id = await booth.ask("memory/USDX", 30 * ONE, "other/USDX")
    await booth.fail(txn_id)
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("failed", "ended")
    assert await booth.balance("memory/USDX") == {"available": 100 * ONE}


async def test_a_bridge_that_nobody_fills_expires_and_its_refund_is_one_deposit(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    await booth.fail(txn_id, "expire")
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("pending", "refunding")
    assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE, "between_chains": 30 * ONE}
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("failed", "ended")
    assert await booth.balance("memory/USDX") == {"available": 100 * ONE}
    assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE, "custody_wallet": 30 * ONE}
    assert await booth.deposits(txn_id) == [("refund", 30 * ONE, "memory", "USDX", "confirmed", 30 * ONE)]
    assert await booth.balance("other/USDX") == {}
    assert await booth.events() == ["exchange.failed"]


async def test_a_fill_that_waits_for_its_block_can_still_be_stopped(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    await booth.mine(blocks=DEEP + 1)
    assert (await booth.row(txn_id)).dest_tx_id is not None
    await booth.fail(txn_id, "expire")
    assert await booth.state(txn_id) == ("pending", "refunding")
    await booth.mine("other", DEEP + 1)
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("failed", "ended")
    assert await booth.balance("memory/USDX") == {"available": 100 * ONE}
    assert await booth.balance("other/USDX") == {}


async def test_what_is_mined_cannot_be_made_to_fail_any_more(booth):
    swap = await booth.exchange("memory/USDX", 10 * ONE, "memory/MEM")
    bridge = await booth.exchange("memory/USDX", 10 * ONE, "other/USDX")
    with pytest.raises(InvalidError):
        await booth.fail(swap, "expire")
    await booth.mine(blocks=DEEP + 1)
    for txn_id, how in ((swap, "revert"), (bridge, "revert")):
        with pytest.raises(ConflictError) as error:
            await booth.fail(txn_id, how)
        assert error.value.code == "EXCHANGE_ALREADY_MINED"
    await booth.mine("other", 1)
    with pytest.raises(ConflictError):
        await booth.fail(bridge, "expire")
    await booth.mine("other", DEEP)
    assert await booth.state(bridge) == ("succeeded", "ended")
    with pytest.raises(ConflictError):
        await booth.fail(bridge, "expire")


async def test_only_its_own_project_makes_an_exchange_fail(booth):
    txn_id = await booth.exchange("memory/USDX", 10 * ONE, "memory/MEM")
    with pytest.raises(NotFoundError) as error:
        await booth.fail(txn_id, actor=booth.payment_env.test2)
    assert error.value.code == "EXCHANGE_NOT_FOUND"
    with pytest.raises(ForbiddenError):
        await booth.fail(txn_id, actor=booth.payment_env.live)


@pytest.mark.parametrize("transactions", ["drop", "return"])
async def test_a_reorg_takes_a_swap_back_and_the_next_block_has_it_again(booth, transactions):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "memory/MEM")
    await booth.mine(blocks=DEEP + 1)
    first = await booth.row(txn_id)
    await booth.payment_env.reorg(DEEP + 1, transactions)
    assert await booth.state(txn_id) == ("pending", "sent")
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE, "pending": 30 * ONE}
    assert await booth.balance("memory/MEM") == {}
    await booth.check_books()
    await booth.mine(blocks=DEEP + 1)
    again = await booth.row(txn_id)
    assert (again.status, again.tx_id, again.output_units) == ("succeeded", first.tx_id, 10 * MEM)
    assert await booth.balance("memory/MEM") == {"available": 10 * MEM}


async def test_a_reorg_of_the_other_chain_takes_the_fill_back_and_the_next_block_has_it_again(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    await booth.mine(blocks=DEEP + 1)
    await booth.mine("other", DEEP + 1)
    first = await booth.row(txn_id)
    assert first.status == "succeeded"
    await booth.payment_env.reorg(DEEP + 1, "drop", "other")
    assert await booth.state(txn_id) == ("pending", "filling")
    assert await booth.balance("other/USDX") == {}
    assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE, "between_chains": 30 * ONE}
    await booth.check_books()
    await booth.mine("other", DEEP + 1)
    assert (await booth.row(txn_id)).dest_tx_id == first.dest_tx_id
    assert await booth.state(txn_id) == ("succeeded", "ended")
    assert await booth.balance("other/USDX") == {"available": 30 * ONE}


async def test_a_reorg_of_both_chains_at_once_pays_a_bridge_once(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    await booth.mine(blocks=DEEP + 1)
    await booth.mine("other", DEEP + 1)
    await booth.payment_env.reorg(DEEP + 1)
    assert await booth.state(txn_id) == ("succeeded", "ended")
    await booth.check_books()
    await booth.payment_env.reorg(DEEP + 1, "drop", "other")
    await booth.mine("other", DEEP + 1)
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("succeeded", "ended")
    assert await booth.balance("other/USDX") == {"available": 30 * ONE}
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE}


async def test_a_reorg_takes_back_what_a_bridge_paid_to_somebody_until_it_is_mined_again(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX", recipient=person())
    await booth.mine(blocks=DEEP + 1)
    await booth.mine("other", DEEP + 1)
    filled = await booth.row(txn_id)
    assert (filled.status, filled.step) == ("succeeded", "ended")
    for transactions in ("return", "drop"):
        await booth.payment_env.reorg(DEEP + 1, transactions, "other")
        assert await booth.state(txn_id) == ("pending", "filling")
        assert await booth.balance("memory/USDX") == {"available": 70 * ONE, "pending": 30 * ONE}
        assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE, "between_chains": 30 * ONE}
        await booth.check_books()
        await booth.mine("other", DEEP + 1)
        again = await booth.row(txn_id)
        assert (again.status, again.step, again.dest_tx_id) == ("succeeded", "ended", filled.dest_tx_id)
        assert await booth.lies("memory/USDX") == {"custody_deposits": 70 * ONE}


async def test_a_reorg_takes_a_refund_back_and_the_next_block_has_it_again(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    await booth.fail(txn_id, "expire")
    await booth.mine(blocks=DEEP + 1)
    await booth.mine(blocks=DEEP + 1)
    await booth.payment_env.reorg(DEEP + 1)
    assert await booth.state(txn_id) == ("pending", "refunding")
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE, "pending": 30 * ONE}
    await booth.check_books()
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("failed", "ended")
    assert await booth.balance("memory/USDX") == {"available": 100 * ONE}


@pytest.mark.parametrize("bought", ["memory/MEM", "other/USDX"])
async def test_the_worker_goes_on_with_what_a_crash_left_behind(booth, monkeypatch, bought):
    txn_id = await booth.ask("memory/USDX", 30 * ONE, bought)
    assert await booth.sandbox.judge_due(booth.clock.now()) == 1
    assert await booth.state(txn_id) == ("pending", "sent")

    async def crash(*_):
        raise RuntimeError("down")

    with monkeypatch.context() as patch:
        patch.setattr(booth.sandbox._exchanging, "claim_arrived", crash)
        with pytest.raises(RuntimeError):
            await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("pending", "arriving" if bought == "memory/MEM" else "filling")
    assert await booth.sandbox.judge_due(booth.clock.now()) == 1
    if bought == "other/USDX":
        await booth.mine("other", DEEP + 1)
    assert await booth.state(txn_id) == ("succeeded", "ended")
    assert await booth.sandbox.judge_due(booth.clock.now()) == 0


async def test_an_exchange_that_waits_for_blocks_keeps_no_worker_busy(booth):
    await booth.exchange("memory/USDX", 10 * ONE, "memory/MEM")
    await booth.exchange("memory/USDX", 10 * ONE, "other/USDX")
    await booth.mine(blocks=1)
    assert await booth.sandbox.judge_due(booth.clock.now()) == 0
    await booth.mine(blocks=DEEP)
    assert await booth.sandbox.judge_due(booth.clock.now()) == 0


async def test_those_that_wait_for_blocks_are_in_nobodys_way(booth, monkeypatch):
    monkeypatch.setattr("cambist.services.sandbox.exchanges.LOOKED_AT_MAX", 1)
    bridge = await booth.exchange("memory/USDX", 10 * ONE, "other/USDX")
    await booth.mine(blocks=DEEP + 1)
    swap = await booth.exchange("memory/USDX", 10 * ONE, "memory/MEM")
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(bridge) == ("pending", "filling")
    assert await booth.state(swap) == ("succeeded", "ended")


@pytest.mark.parametrize("bought", ["memory/MEM", "other/USDX"])
async def test_the_output_can_go_to_somebody_else_and_is_no_deposit_then(booth, bought):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, bought, recipient=person())
    await booth.mine(blocks=DEEP + 1)
    await booth.mine("other", DEEP + 1)
    row = await booth.row(txn_id)
    assert (row.status, row.recipient_pk, row.output_units) == ("succeeded", None, row.quoted_units)
    assert await booth.balance("memory/USDX") == {"available": 70 * ONE}
    assert await booth.balance(bought) == {}
    assert await booth.deposits(txn_id) == []


async def test_time_that_passes_makes_exchanges_older_too(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    before = await booth.row(txn_id)
    await booth.sandbox.advance_time(booth.actor, AdvanceTime(seconds=3600))
    after = await booth.row(txn_id)
    assert (before.created_at - after.created_at).total_seconds() == 3600
    assert (before.broadcast_at - after.broadcast_at).total_seconds() == 3600


async def test_a_transfer_to_a_main_wallet_is_a_deposit_of_its_merchant_in_this_project_alone(booth):
    """A wallet belongs to all projects of a merchant, and is nobody else's in a sandbox."""
    env = booth.payment_env
    stranger = await env.merchant("mer_2")
    theirs = structs.replace(await env.project(stranger, "prj_theirs", "sandbox"), merchant_id="mer_2")
    await booth.earn("50", theirs)
    wallet = (await booth.row(await booth.exchange("memory/USDX", ONE, "memory/MEM"))).sender
    txn_id = await booth.exchange("memory/USDX", 5 * ONE, "memory/MEM", actor=theirs, recipient=wallet)
    await booth.sandbox.mine(theirs, Mine(chain="memory", blocks=DEEP + 1))
    assert await booth.state(txn_id) == ("succeeded", "ended")
    found = "SELECT count(*) FROM deposits WHERE scope = $1 AND payment_pk IS NULL"
    assert await booth.rows(found, theirs.project_pk) == [(0,)]
    await booth.mine(blocks=DEEP + 1)
    assert await booth.rows(found, booth.actor.project_pk) == [(1,)]
    assert await booth.rows(found, env.test2.project_pk) == [(0,)]


async def test_two_projects_of_a_merchant_exchange_each_on_chains_of_its_own(booth):
    await booth.earn("20", booth.payment_env.test2)
    one = await booth.exchange("memory/USDX", 30 * ONE, "other/USDX")
    two = await booth.exchange("memory/USDX", 20 * ONE, "other/USDX", actor=booth.payment_env.test2)
    await booth.mine(blocks=DEEP + 1)
    await booth.mine("other", DEEP + 1)
    assert await booth.state(one) == ("succeeded", "ended")
    assert await booth.state(two) == ("pending", "sent")
    for chain in ("memory", "other"):
        await booth.sandbox.mine(booth.payment_env.test2, Mine(chain=chain, blocks=DEEP + 1))
    assert await booth.state(two) == ("succeeded", "ended")
    assert await booth.balance("other/USDX") == {"available": 50 * ONE}


async def test_a_swap_that_a_reorg_gave_back_can_be_made_to_fail_after_all(booth):
    txn_id = await booth.exchange("memory/USDX", 30 * ONE, "memory/MEM")
    await booth.mine(blocks=DEEP + 1)
    await booth.sandbox.reorg(booth.actor, Reorg(chain="memory", depth=DEEP + 1))
    await booth.fail(txn_id)
    await booth.mine(blocks=DEEP + 1)
    assert await booth.state(txn_id) == ("failed", "ended")
    assert await booth.balance("memory/USDX") == {"available": 100 * ONE}
    assert await booth.balance("memory/MEM") == {}
