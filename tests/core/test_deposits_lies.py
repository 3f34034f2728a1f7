"""Answers that no honest endpoint gives: they must not stop a chain for longer than that endpoint is asked."""

import msgspec
import pytest

from cambist.domain.money import UNITS_MAX
from cambist.plugin import InconsistentChainError
from cambist.services.receiving.deposits import cursors
from cambist.testing.memory import MemoryChain, MemoryView, memory_chain_info

ONE = 1_000_000


class LyingView(MemoryView):
    """Says what the test makes of the truth."""

    async def scan(self, span, watch):
        result = await super().scan(span, watch)
        return msgspec.structs.replace(result, transfers=self.chain.lie(list(result.transfers)))


class LyingChain(MemoryChain):
    view_type = LyingView
    lie = staticmethod(lambda transfers: transfers)


@pytest.fixture
async def chain(clock):
    return LyingChain(memory_chain_info(), genesis_time=int(clock.now().timestamp()) - 600)


def twice(transfers):
    return transfers * 2


def nothing_moved(transfers):
    return [msgspec.structs.replace(transfer, amount=0) for transfer in transfers]


def of_an_unknown_token(transfers):
    return [msgspec.structs.replace(transfer, contract="nobody registered this") for transfer in transfers]


def in_floats(transfers):
    return [msgspec.structs.replace(transfer, amount=float(transfer.amount)) for transfer in transfers]


@pytest.mark.parametrize("lie", [twice, nothing_moved, of_an_unknown_token, in_floats])
async def test_a_transfer_that_cannot_be_counts_against_the_endpoint(shop, chain, lie):
    """Only a chain's own error makes the plugin ask another endpoint."""
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(chain.info.token("USDX"), address, ONE)
    chain.mine()
    chain.lie = lie
    with pytest.raises(InconsistentChainError):
        await watcher.poll()
    chain.lie = lambda transfers: transfers
    await shop.poll(watcher)
    assert await shop.status(address) == ("detected", ONE)


async def test_what_can_be_looked_at_once_only_is_stored_like_any_answer(shop, chain):
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(chain.info.token("USDX"), address, ONE)
    chain.mine()
    chain.lie = iter
    await shop.poll(watcher)
    assert await shop.status(address) == ("detected", ONE)


async def test_an_answer_that_its_plugin_empties_for_the_next_one_was_stored_before(shop, chain, monkeypatch):
    """The next span is read while the last one is stored, and an author may use one list for both."""
    buffer, stored = [], cursors.move_cursor

    def in_one_list(transfers):
        buffer[:] = transfers
        return buffer

    async def emptied_meanwhile(*args, **named):
        buffer.clear()
        await stored(*args, **named)

    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    address = await shop.payment(chain, "USDX", ONE)
    chain.transfer(chain.info.token("USDX"), address, ONE)
    chain.mine()
    chain.lie = in_one_list
    monkeypatch.setattr(cursors, "move_cursor", emptied_meanwhile)
    await shop.poll(watcher)
    assert await shop.status(address) == ("detected", ONE)


async def test_more_than_any_token_has_is_no_deposit_and_stops_nobody(shop, chain):
    """A registered token that turned hostile may claim any number; ten of the largest are more than a sum can hold."""
    watcher = shop.watcher(chain)
    await shop.poll(watcher)
    address, other = await shop.payment(chain, "USDX", ONE), await shop.payment(chain, "USDX", ONE)
    usdx = chain.info.token("USDX")
    for _ in range(10):
        chain.transfer(usdx, address, 2**256 - 1)
    chain.transfer(usdx, address, UNITS_MAX)
    chain.transfer(usdx, other, ONE)
    chain.mine(5)
    await shop.poll(watcher)
    assert await shop.status(address) == ("overpaid", UNITS_MAX)
    assert await shop.status(other) == ("paid", ONE)
    await shop.check_books()
