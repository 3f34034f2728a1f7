"""Transactions that expire: dead is only what no block holds, and no block ever will."""

from __future__ import annotations

from cambist.plugin import Dated, SignedTx, Step
from cambist.testing.guard import Conformance
from cambist.testing.harness import ChainHarness, Sender

from .helpers import FINALITY_BLOCKS_MAX, a_token, block_at, finalized, head_of, needs, some
from .sends import funded, mined, planned, prepared, sealed, told


class ExpiryConformance(Conformance):
    async def test_what_was_lost_is_dead_when_its_last_block_is_final(self, harness: ChainHarness) -> None:
        """Not while it may still be mined, and not while blocks in which it may stand can still be replaced."""
        _, _, tx, dated = await _ready(harness)
        assert await _expired(harness, dated) == [False]
        await harness.lose_next()
        assert (await told(harness, tx)).state == "accepted"
        await harness.mine(2)
        assert (await harness.chain.transaction(tx.tx_id)).state == "unknown"
        assert await _expired(harness, dated) == [False]
        await harness.outlive(dated.valid_until)
        for _ in range(FINALITY_BLOCKS_MAX):
            if await _all_is_final(harness, dated):
                break
            assert await _expired(harness, dated) == [False]
            await harness.mine()
        await _outlived(harness, dated)
        assert await _expired(harness, dated) == [True]

    async def test_what_was_mined_is_never_dead(self, harness: ChainHarness) -> None:
        """Whether it succeeded or failed, and however long ago."""
        sender, _, tx, dated = await _ready(harness)
        assert (await mined(harness, tx)).state == "succeeded"
        step = await planned(harness, sender, a_token(harness), some(harness))
        failed, dated_failed = await _signed(harness, sender, step)
        assert (await mined(harness, failed)).state == "reverted"
        assert await _expired(harness, dated, dated_failed) == [False, False]
        await _outlived(harness, dated)
        await _outlived(harness, dated_failed)
        assert await _expired(harness, dated, dated_failed) == [False, False]

    async def test_what_is_hidden_is_not_dead(self, harness: ChainHarness) -> None:
        """That a node does not know its id proves nothing: it stands in a block."""
        _, step, tx, dated = await _ready(harness)
        assert (await mined(harness, tx)).state == "succeeded"
        await harness.hide(tx.tx_id)
        assert (await harness.chain.transaction(tx.tx_id)).state == "unknown"
        assert await _expired(harness, dated) == [False]
        await _outlived(harness, dated)
        assert await harness.chain.balance(step.to_address, step.token) == some(harness)
        assert await _expired(harness, dated) == [False]

    async def test_what_a_late_block_holds_is_not_dead(self, harness: ChainHarness) -> None:
        """The first block after its time may hold it or not, by the chain's rule; dead is what it does not hold."""
        _, step, tx, dated = await _ready(harness)
        assert (await told(harness, tx)).state == "accepted"
        await harness.outlive(dated.valid_until)
        await _outlived(harness, dated)
        arrived = await harness.chain.balance(step.to_address, step.token)
        assert arrived in (0, some(harness))
        assert await _expired(harness, dated) == [arrived == 0]

    async def test_what_a_reorg_took_back_is_dead_in_its_time(self, harness: ChainHarness) -> None:
        """It stood in a block that is none any more."""
        needs(harness, "reorgs")
        _, _, tx, dated = await _ready(harness)
        await harness.mine(2)
        assert (await mined(harness, tx)).state == "succeeded"
        await harness.reorg(1)
        assert await _expired(harness, dated) == [False]
        await _outlived(harness, dated)
        assert await _expired(harness, dated) == [True]

    async def test_what_is_dead_stays_dead(self, harness: ChainHarness) -> None:
        """The same bytes are refused from then on, and move nothing."""
        _, step, tx, dated = await _ready(harness)
        await _outlived(harness, dated)
        assert await _expired(harness, dated) == [True]
        assert (await told(harness, tx)).state in ("expired", "unknown")
        await harness.mine(2)
        assert (await harness.chain.transaction(tx.tx_id)).state == "unknown"
        assert await harness.chain.balance(step.to_address, step.token) == 0
        assert await _expired(harness, dated) == [True]

    async def test_several_are_told_apart(self, harness: ChainHarness) -> None:
        """In the order of asking, repeated where one is asked for twice, and each by its own time."""
        _, _, tx, lost = await _ready(harness)
        sender, step, standing, _ = await _ready(harness)  # what was not sent may hold what the first sender has
        assert (await mined(harness, standing)).state == "succeeded"
        await _outlived(harness, lost)
        later = await _signed(harness, sender, step)
        stands = Dated(tx_id=standing.tx_id, valid_until=lost.valid_until)
        assert tx.tx_id == lost.tx_id
        answers = await _expired(harness, lost, stands, later[1], lost)
        assert answers == [True, False, False, True]

    async def test_nothing_is_dead_where_nothing_expires(self, harness: ChainHarness) -> None:
        """A sequence is what keeps a transfer from happening twice there, and waits for ever."""
        needs(harness, "sequences")
        await harness.mine(2)
        assert await _expired(harness, Dated(tx_id="0" * 64, valid_until=1)) == [False]


async def _ready(harness: ChainHarness) -> tuple[Sender, Step, SignedTx, Dated]:
    needs(harness, "expiry")
    sender = await funded(harness)
    step = await planned(harness, sender, harness.chain.info.native, some(harness))
    return sender, step, *await _signed(harness, sender, step)


async def _signed(harness: ChainHarness, sender: Sender, step: Step) -> tuple[SignedTx, Dated]:
    unsigned = await prepared(harness, sender, step)
    tx = sealed(harness, unsigned, sender)
    assert unsigned.valid_until is not None
    return tx, Dated(tx_id=tx.tx_id, valid_until=unsigned.valid_until)


async def _expired(harness: ChainHarness, *txs: Dated) -> list[bool]:
    return list(await harness.chain.expired(txs))


async def _all_is_final(harness: ChainHarness, dated: Dated) -> bool:
    """Whether every block that may hold the transaction is final: the one above the last such block is."""
    head = await head_of(harness)
    assert head.finalized_height is not None
    return (await block_at(harness, head.finalized_height)).time > dated.valid_until


async def _outlived(harness: ChainHarness, dated: Dated) -> None:
    """Let time and blocks pass until every block that may hold the transaction is final."""
    await harness.outlive(dated.valid_until)
    await finalized(harness, (await head_of(harness)).height)
