"""Blocks that are read again: what was missed is found once, and nothing else changes."""

from __future__ import annotations

import asyncio

import pytest

from cambist.bootstrap import Parts
from cambist.plugin import Token
from cambist.registry import Registry
from cambist.services.accounting.ledger import asset_key
from cambist.services.chains import tokens
from cambist.services.chains.context import ChainContext
from cambist.services.chains.tokens import NewToken
from cambist.services.errors import ConflictError, InvalidError
from cambist.services.jobs import requests
from cambist.services.receiving.history import rescan
from cambist.signer.keystore import Keystore
from cambist.testing.fixtures import TEST_MNEMONIC
from cambist.testing.memory import MemoryFamily
from cambist.testing.memory.family import named_address
from cambist_tasks.chain_keeper import ChainKeeper
from cambist_tasks.requested import JobRunner
from tests.support.shop import Shop
from tests.tasks.test_worker import MEMORY


@pytest.fixture
def gateway_parts(clock, ids):
    chains = Registry({"memory": {"chains": {"memory": {"span_max": 4}}}}, found=[MEMORY])
    return Parts(clock=clock, ids=ids, registry=chains, keystore=Keystore(TEST_MNEMONIC))


class Sight:
    """A shop whose chain is watched to its head, and what is read again of it."""

    def __init__(self, gateway, shop) -> None:
        self.gateway, self.shop = gateway, shop
        self.chain = gateway.chains["memory"].connected
        self.watcher = shop.watcher(self.chain)
        self.usdx = self.chain.info.token("USDX")
        self.asset = asset_key("memory", self.usdx.contract)

    async def poll(self, blocks: int = 0) -> None:
        self.chain.mine(blocks)
        await self.shop.poll(self.watcher)

    async def missed(self, *, fiat: bool = False) -> str:
        """Pay to an address that was not known when its block was read."""
        payer = Shop(self.shop.db, self.shop.family, self.shop.clock, self.shop.ids)
        payer.merchant, payer.project, payer.addresses = self.shop.merchant, self.shop.project, self.shop.addresses
        address = self.shop.family.derive_address("xpubOfTheShopsAccount", 0, payer.addresses)
        self.chain.transfer(self.usdx, address, 100)
        self.chain.mine(1, time=int(self.shop.clock.now().timestamp()))
        await self.poll(10)
        assert await self.shop.payment(self.chain, "USDX", 100, fiat=fiat) == address
        await self.poll()
        return address

    async def ask(self, first: int, last: int | None = None, by: str = "op_1"):
        async with self.gateway.db.transaction() as conn:
            return await rescan.ask(conn, self.gateway.ids, self.gateway.clock, "memory", first, last, by)

    async def run(self, job):
        await JobRunner(self.gateway, "here").run(job.pk)
        async with self.gateway.db.autocommit() as conn:
            return await requests.get(conn, job.job_id)

    async def cursor(self):
        async with self.gateway.db.autocommit() as conn:
            found = await conn.exec_driver_sql("SELECT height, hash, books_from FROM chain_cursors")
            return tuple(found.one())


@pytest.fixture
async def sight(db, worker_gateway, clock, ids):
    sight = Sight(worker_gateway, await Shop(db, MemoryFamily(), clock, ids).open())
    async with db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)"
            " VALUES ('live', 'memory', $1, 'gas', 0, 0, 0)",
            (named_address("station"),),
        )
    await sight.poll(3)
    return sight


async def test_what_was_missed_is_credited_and_told_in_order_and_only_once(sight):
    address = await sight.missed()
    before = await sight.cursor()
    assert await sight.shop.status(address) == ("pending", 0)
    job = await sight.run(await sight.ask(before[2] + 1))
    assert (job.state, job.result["blocks"], job.result["deposits"]) == ("succeeded", before[0] - before[2], 1)
    assert len(job.result["depositIds"]) == 1
    assert await sight.cursor() == before
    assert await sight.shop.status(address) == ("pending", 0), "it is judged by the live watch, at the head"
    await sight.poll()
    assert await sight.shop.status(address) == ("paid", 100)
    assert [event for event, _ in await sight.shop.events(address)] == [
        "payment.detected",
        "payment.confirming",
        "payment.paid",
    ]
    again = await sight.run(await sight.ask(before[2] + 1))
    assert (again.state, again.result["deposits"]) == ("succeeded", 0)
    await sight.poll()
    assert await sight.shop.balance(sight.asset) == {"available": 100}
    await sight.shop.check_books()


async def test_what_is_asked_for_twice_is_one_job_and_other_blocks_must_wait(sight):
    await sight.poll(20)
    first = (await sight.cursor())[2] + 1
    job = await sight.ask(first, first + 5)
    assert (await sight.ask(first, first + 5)).job_id == job.job_id
    with pytest.raises(ConflictError) as refused:
        await sight.ask(first, first + 6)
    assert refused.value.code == "RESCAN_RUNNING"
    async with sight.gateway.db.transaction() as conn:
        await requests.cancel(conn, job.job_id, sight.shop.clock.now())
    assert (await sight.run(job)).state == "cancelled"
    assert (await sight.ask(first, first + 6)).job_id != job.job_id


async def test_what_is_asked_for_without_an_end_is_the_same_job_while_the_watch_goes_on(sight):
    await sight.poll(20)
    first = (await sight.cursor())[2] + 1
    job = await sight.ask(first)
    await sight.poll(3)
    assert await sight.ask(first) == job
    assert (await sight.ask(first, job.arguments["last"])).job_id == job.job_id, "by the end that it was given"
    for other in ((first + 1, None), (first, job.arguments["last"] + 1)):
        with pytest.raises(ConflictError) as refused:
            await sight.ask(*other)
        assert refused.value.code == "RESCAN_RUNNING"
    ended = await sight.run(job)
    assert (ended.state, ended.result["toHeight"]) == ("succeeded", job.arguments["last"])
    named = await sight.ask(first, first + 5)
    with pytest.raises(ConflictError):
        await sight.ask(first)
    assert named.job_id != job.job_id


async def test_blocks_that_are_in_the_books_or_ahead_are_refused(sight):
    height, _, books_from = await sight.cursor()
    for first, last in ((books_from, None), (0, height), (books_from + 1, height + 1), (height + 1, None)):
        with pytest.raises(InvalidError) as refused:
            await sight.ask(first, last)
        assert refused.value.code == "RESCAN_OUT_OF_RANGE"
    async with sight.gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET height = height + 2000000")
    with pytest.raises(InvalidError):
        await sight.ask(books_from + 1)


async def test_a_worker_that_dies_half_way_is_followed_by_one_that_goes_on_there(sight, monkeypatch):
    address = await sight.missed()
    await sight.poll(30)
    first = (await sight.cursor())[2] + 1
    job = await sight.ask(first)
    read = []

    async def read_past(*args, **more):
        if len(read) == 4:
            raise asyncio.CancelledError
        read.append(args[3])
        return await original(*args, **more)

    original = rescan.read_past
    monkeypatch.setattr(rescan, "read_past", read_past)
    with pytest.raises(asyncio.CancelledError):
        await JobRunner(sight.gateway, "dies").run(job.pk)
    monkeypatch.setattr(rescan, "read_past", original)
    ended = await sight.run(job)
    assert (ended.state, ended.result["deposits"]) == ("succeeded", 1)
    assert ended.result["blocks"] == ended.result["toHeight"] - first + 1, "no block was read twice, and none left out"
    await sight.poll()
    assert await sight.shop.status(address) == ("paid", 100)


async def test_a_node_on_another_branch_is_not_believed(sight):
    address = await sight.missed()
    first = (await sight.cursor())[2] + 1
    job = await sight.ask(first)
    sight.chain.reorg(12, new_blocks=14)
    waiting = await sight.run(job)
    assert waiting.state == "queued"
    assert "another block" in waiting.error
    assert await sight.shop.status(address) == ("pending", 0)
    async with sight.gateway.db.autocommit() as conn:
        assert (await conn.exec_driver_sql("SELECT count(*) FROM deposits")).scalar_one() == 0


async def test_a_transaction_that_the_chain_does_not_know_when_asked_for_is_not_credited(sight):
    await sight.missed()
    job = await sight.ask((await sight.cursor())[2] + 1)

    async def forget(tx_ids):
        return [status.__class__(state="unknown") for status in await known(tx_ids)]

    known, sight.chain.transactions = sight.chain.transactions, forget
    waiting = await sight.run(job)
    assert (waiting.state, "when asked for" in waiting.error) == ("queued", True)
    async with sight.gateway.db.autocommit() as conn:
        assert (await conn.exec_driver_sql("SELECT count(*) FROM deposits")).scalar_one() == 0


async def test_a_payment_that_ended_gets_what_it_had_been_paid_in_time(sight):
    address = await sight.missed(fiat=True)
    sight.shop.clock.advance(7_200)
    await sight.poll(1)
    assert await sight.shop.status(address) == ("expired", 0)
    await sight.run(await sight.ask((await sight.cursor())[2] + 1))
    await sight.poll(1)
    assert await sight.shop.status(address) == ("paid", 100)


async def test_what_came_before_a_token_was_added_is_found_by_reading_its_blocks_again(sight):
    eurx = Token(symbol="EURX", contract=named_address("deployed/EURX"), decimals=2, label="Example euro")
    sight.chain.contracts[eurx.contract] = eurx
    address = await sight.shop.payment(sight.chain, "USDX", 100)
    sight.chain.transfer(eurx, address, 7)
    await sight.poll(10)
    gateway, keeper = sight.gateway, ChainKeeper(sight.gateway, ())
    context = ChainContext(registry=gateway.registry, secrets=gateway.secrets, ids=gateway.ids)
    async with gateway.db.transaction() as conn:
        new = NewToken(chain="memory", contract=eurx.contract)
        await tokens.add(conn, context, gateway.registry.chains["memory"], new, gateway.clock.now())
    assert await keeper.ask()
    await keeper.follow()
    job = await sight.run(await sight.ask((await sight.cursor())[2] + 1))
    assert (job.state, job.result["deposits"]) == ("succeeded", 1)
    async with gateway.db.autocommit() as conn:
        found = (await conn.exec_driver_sql("SELECT token, units, decimals FROM deposits")).one()
    assert tuple(found) == ("EURX", 7, 2)
