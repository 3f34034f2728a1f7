"""Money comes in and goes out while everything goes wrong: books, chain, payouts and statements agree in the end.

Each seed is a life of two merchants who share a chain in memory and a gas station. Deposits, decisions, payouts alone
and several at once, refunds, cancellations, pauses, suspensions, dear fees, forgetful nodes, nonces that somebody else
uses up and reorgs give back, reorgs shallow and deep, and engines that are killed at any moment, two at a time, come
by chance. So do nodes some blocks apart, nodes that do not find what is mined, branches that come back, transactions
that fail where they had not, gifts, a gas station that is nearly empty, and several of all this at the same moment.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from random import Random

import pytest
from sqlalchemy.exc import DBAPIError

from cambist.domain.intents import IntentKind
from cambist.plugin import ChainError, SignedTx, Units
from cambist.services.accounting import ledger
from cambist.services.accounting.statements import entries
from cambist.services.errors import ServiceError
from cambist.services.payouts.queue import NewPayout, PayoutContext, debit_and_queue
from cambist.services.receiving.deposits import crediting
from cambist.services.receiving.deposits.rows import lock_cursor, lock_deposits
from cambist.services.recovery.reconcile import reconcile_chain
from cambist.services.reversals.refunds import parts
from cambist.testing.memory.blocks import Output
from tests.support.books import broken
from tests.support.fragile import KilledError, Life, fragile
from tests.support.payment_env import registry
from tests.support.torn_chain import TornChain
from tests.support.treasury import RICH, Treasury

SEEDS = 60 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 2
FIRST = int(os.environ.get("CAMBIST_TEST_SEED", "0"))
STEPS = 250
KINDS = (IntentKind.PAYOUT, IntentKind.PAYOUT, IntentKind.WITHDRAWAL, IntentKind.AUTO_PAYOUT)
WHOLE = {"USDX": 10**6, "MEM": 10**18}
GIVEN_BACK = {"cancelled", "failed"}
EXPECTED = (ServiceError, ChainError, KilledError)
DEEP_MAX = 8
COMES_BACK_MAX = 14
STRANGERS = 1_000


class Business:
    """What merchants, customers and the world do next, by chance."""

    def __init__(self, treasury: Treasury, chance: Random) -> None:
        self.treasury, self.chance = treasury, chance
        self.merchants: list[tuple[int, int]] = []
        self.addresses: list[tuple[int, str]] = []
        self.going: dict[str, tuple[str, str, int]] = {}
        self.strangers = 0
        self.acts = {
            self.pay_in: 12, self.decide: 16, self.pay_out: 14, self.pay_many: 4, self.pay_each_other: 2,
            self.refund: 3, self.cancel: 4, self.pause: 1, self.suspend: 1, self.price: 2, self.break_node: 3,
            self.mend_node: 6, self.mine: 18, self.reorganise: 3, self.kill: 8, self.tick: 20,
            self.steal: 2, self.resurface: 3, self.tear: 2, self.hide: 1, self.leave: 2, self.come_back: 3,
            self.fail_again: 2, self.give: 3, self.fund: 2, self.wait: 1, self.do_at_once: 8,
        }  # fmt: skip
        self.at_once = {
            self.tick: 6, self.poll: 4, self.pay_out: 3, self.cancel: 3, self.decide: 3, self.refund: 2,
            self.suspend: 1, self.appear: 2, self.kill: 2, self.pay_many: 1,
        }  # fmt: skip

    async def open(self) -> None:
        treasury = self.treasury
        self.merchants = [(treasury.merchant, treasury.project), await treasury.new_merchant("mer_2")]

    async def act(self) -> None:
        act = self.chance.choices(list(self.acts), list(self.acts.values()))[0]
        with suppress(*EXPECTED):
            await act()

    async def do_at_once(self) -> None:
        """Do several things at the same moment."""
        acts = self.chance.choices(list(self.at_once), list(self.at_once.values()), k=self.chance.randint(2, 5))
        _raise_what_is_wrong(await asyncio.gather(*(act() for act in acts), return_exceptions=True))

    def _next_stranger(self) -> int:
        self.strangers += 1
        return STRANGERS + self.strangers

    def _amount(self, symbol: str) -> int:
        return self.chance.randint(1, 40) * WHOLE[symbol] // self.chance.choice([1, 1, 4])

    async def pay_in(self) -> None:
        merchant, _ = self.chance.choice(self.merchants)
        symbol = self.chance.choice(list(WHOLE))
        if self.addresses and self.chance.random() < 1 / 3:
            address = self.chance.choice(self.addresses)[1]
        else:
            address = await self.treasury.deposit_address(merchant)
            self.addresses.append((merchant, address))
        self.treasury.chain.transfer(self.treasury.token(symbol), address, 3 * self._amount(symbol))

    async def _a_deposit(self, conn) -> int | None:
        await lock_cursor(conn, self.treasury.info.id, 0)
        rows = await conn.exec_driver_sql(
            "SELECT id FROM deposits WHERE status = 'confirmed' AND merchant_pk IS NOT NULL"
            " AND units > available_units + returned_units ORDER BY id"
        )
        found = list(rows.scalars())
        return self.chance.choice(found) if found else None

    async def decide(self) -> None:
        async with self.treasury.db.transaction() as conn:
            pk = await self._a_deposit(conn)
            if pk is not None:
                row = (await lock_deposits(conn, [pk]))[pk]
                await crediting.release(conn, "live", row, self.treasury.clock.now())

    async def pay_out(self) -> None:
        merchant, project = self.chance.choice(self.merchants)
        symbol, kind = self.chance.choice(list(WHOLE)), self.chance.choice(KINDS)
        await self._pay(symbol, 1, merchant, project, kind)

    async def pay_many(self) -> None:
        merchant, project = self.chance.choice(self.merchants)
        await self._pay(self.chance.choice(list(WHOLE)), self.chance.randint(2, 6), merchant, project, KINDS[0])

    async def _pay(self, symbol: str, count: int, merchant: int, project: int, kind: IntentKind) -> None:
        wanted = [
            (await self.treasury.stranger(self._next_stranger()), self._amount(symbol) // count + 1)
            for _ in range(count)
        ]
        more = {"kind": kind, "merchant": merchant, "project": project}
        made = await self.treasury.pay_out_many(symbol, wanted, **more)
        self.going |= {one: (to, symbol, units) for one, (to, units) in zip(made, wanted, strict=True)}

    async def pay_each_other(self) -> None:
        """Pay to an address of ours, where it is somebody's deposit."""
        if self.addresses:
            merchant, project = self.chance.choice(self.merchants)
            symbol = self.chance.choice(list(WHOLE))
            wanted = [(self.chance.choice(self.addresses)[1], self._amount(symbol))]
            await self.treasury.pay_out_many(symbol, wanted, merchant=merchant, project=project)

    async def refund(self) -> None:
        treasury = self.treasury
        context = PayoutContext(registry=treasury.registry, keys=treasury.keys, clock=treasury.clock, ids=treasury.ids)
        async with treasury.db.transaction() as conn:
            pk = await self._a_deposit(conn)
            if pk is None:
                return
            row = (await lock_deposits(conn, [pk]))[pk]
            units = Units(self.chance.choice([row.unsent_units, row.unsent_units // 2]))
            if not units:
                return
            new = NewPayout(
                kind=IntentKind.REFUND,
                payout_id=treasury.ids.new("ref"),
                project_pk=dict(self.merchants)[row.merchant_pk],
                merchant_pk=row.merchant_pk,
                mode="live",
                chain=treasury.info,
                token=treasury.token(row.token),
                to_address=await treasury.stranger(self._next_stranger()),
                units=units,
                held_units=units,
                deposit_pk=pk,
            )
            (made,) = await debit_and_queue(conn, context, treasury.platform, [new])
            await parts.take(conn, made.pk, [parts.Part(row, units)])
        self.going[new.payout_id] = (new.to_address, row.token, units)

    async def cancel(self) -> None:
        if self.going:
            await self.treasury.cancel(self.chance.choice(list(self.going)))

    async def pause(self) -> None:
        async with self.treasury.db.transaction() as conn:
            gone = await conn.exec_driver_sql("DELETE FROM chain_pauses")
            if not gone.rowcount:
                await conn.exec_driver_sql(
                    "INSERT INTO chain_pauses (chain, what, reason, paused_by, paused_at)"
                    " VALUES ('memory', 'sending', 'a reason', 'admin key', $1)",
                    (self.treasury.clock.now(),),
                )

    async def suspend(self, merchant: int | None = None) -> None:
        async with self.treasury.db.transaction() as conn:
            await conn.exec_driver_sql(
                "UPDATE merchants SET suspended_at = CASE WHEN suspended_at IS NULL THEN $2::timestamptz END,"
                " suspension_reason = CASE WHEN suspended_at IS NULL THEN 'a reason' END WHERE id = $1",
                (merchant or self.chance.choice(self.merchants)[0], self.treasury.clock.now()),
            )

    async def price(self) -> None:
        self.treasury.chain.fees.base_price = 10**9 * self.chance.choice([1, 10, 10, 40, 200])

    async def break_node(self) -> None:
        faults = self.treasury.chain.faults
        match self.chance.choice(
            ["lose", "forget", "silent", "pause", "restart", "lag", "balances", "refuse", "reject"]
        ):
            case "lose":
                faults.unanswered_txs, faults.lost_txs = self.chance.randint(0, 3), self.chance.randint(0, 3)
            case "forget":
                faults.forgotten_txs = self.chance.randint(1, 4)
            case "silent":
                faults.unavailable_calls = {self.chance.choice(["plan", "broadcast", "transaction", "balance"])}
            case "pause":
                faults.mining_paused = True
            case "restart":
                self.treasury.chain.forget()
            case "lag":
                faults.lag_blocks = 1
            case "balances":
                faults.balances_lag_blocks = self.chance.randint(1, 2)
            case "refuse" if self.going:
                to_address, symbol, _ = self.chance.choice(list(self.going.values()))
                faults.refusing.add((self.treasury.token(symbol).contract, to_address))
            case "reject":
                faults.rejection = "exceeds block gas limit"

    async def mend_node(self) -> None:
        faults = self.treasury.chain.faults
        faults.unavailable_calls, faults.mining_paused = set(), False
        faults.unanswered_txs = faults.lost_txs = faults.forgotten_txs = 0
        faults.lag_blocks = faults.balances_lag_blocks = 0
        faults.rejection, self.treasury.chain.behind = None, 0
        faults.refusing.clear()
        faults.hidden.clear()

    async def tear(self) -> None:
        """Have calls meet one of two nodes, of which one is behind, by less than what proves a nonce to be lost."""
        self.treasury.chain.behind = self.chance.randint(0, 2)

    async def hide(self) -> None:
        """Have no node find some of what is mined by its id, as where an index is behind.

        Only of what moves something: that nothing else was lost is not told by blocks, and its fee is not booked.
        """
        moved = self.treasury.chain.moved(DEEP_MAX)
        self.treasury.chain.faults.hidden.update(self.chance.sample(moved, min(3, len(moved))))

    async def steal(self) -> None:
        """Whoever holds the same keys uses up a nonce, and moves nothing."""
        async with self.treasury.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT a.address FROM outbound_senders s JOIN addresses a ON a.id = s.address_pk ORDER BY a.id"
            )
            senders = list(rows.scalars())
        if senders:
            sender = self.chance.choice(senders)
            nothing = Output(contract=None, recipient=sender, amount=0)
            accounts = self.treasury.chain.accounts
            self.treasury.chain.submit([nothing], sender=sender, sequence=accounts.sequence(sender))

    async def resurface(self) -> None:
        """Have somebody tell nodes again of what was given up, as something else had used its nonce."""
        async with self.treasury.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT t.tx_id, t.raw FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
                " JOIN outbound_intents i ON i.id = s.intent_pk"
                " WHERE s.state = 'dead' AND i.state = 'waiting' ORDER BY t.id"
            )
            given_up = [SignedTx(tx_id=row.tx_id, raw=row.raw) for row in rows]
        if given_up:
            await self.treasury.chain.broadcast([self.chance.choice(given_up)])

    async def mine(self) -> None:
        await self.treasury.mine(self.chance.randint(1, 4), seconds=self.chance.choice([2, 2, 20, 70]))

    async def reorganise(self) -> None:
        """Replace blocks. What stood there is mined again in the last of the new ones, or is gone for ever."""
        await self._leave([1, 2, DEEP_MAX], again=True)

    async def leave(self) -> None:
        """Replace blocks by empty ones. What stood there waits for later ones."""
        await self._leave([1, 2, 4, DEEP_MAX], again=False)

    async def _leave(self, depths: Sequence[int], *, again: bool) -> None:
        chain = self.treasury.chain
        depth = min(self.chance.choice(depths), chain.height - 2)
        if depth < 1:
            return
        # What customers and the station's owner sent comes back most of the time, and what the gateway sent, too.
        likely = self.chance.choice([0.3, 0.9])
        back = [one.id for one in chain.dropped(depth) if self.chance.random() < likely]
        longer = self.chance.randint(0, 1)
        chain.faults.hidden.clear()
        chain.leave(depth, again=back if again else (), waits=() if again else back, longer=longer)
        await self.treasury.poll()

    async def come_back(self) -> None:
        """Have the branch that was left last win after all."""
        self.treasury.chain.faults.hidden.clear()
        if self.treasury.chain.come_back(COMES_BACK_MAX):
            await self.treasury.poll()

    async def fail_again(self) -> None:
        """Have tokens refuse some recipients when their transactions are mined again."""
        refusing = self.treasury.chain.faults.refusing
        for to_address, symbol, _ in self.chance.sample(list(self.going.values()), min(4, len(self.going))):
            refusing.add((self.treasury.token(symbol).contract, to_address))
        await self.reorganise()
        if self.chance.random() < 1 / 2:
            refusing.clear()

    async def give(self) -> None:
        """Have somebody send to a main wallet or the gas station what nobody asked for."""
        async with self.treasury.db.autocommit() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT address FROM addresses WHERE mode = 'live' AND family = $1 AND purpose IN ('wallet', 'gas')"
                " ORDER BY id",
                (self.treasury.family.name,),
            )
            own = list(rows.scalars())
        symbol = self.chance.choice(list(WHOLE))
        self.treasury.chain.transfer(self.treasury.token(symbol), self.chance.choice(own), self._amount(symbol))

    async def fund(self) -> None:
        coin = 10**16 * self.chance.choice([1, 3, 10])
        self.treasury.chain.transfer(self.treasury.info.native, self.treasury.station, coin)

    async def wait(self) -> None:
        self.treasury.clock.advance(self.chance.choice([600, 3_600, 86_400]))

    async def poll(self) -> None:
        await self.treasury.watcher.poll()

    async def appear(self) -> None:
        """Have blocks come in the middle of whatever else is done."""
        await asyncio.sleep(0)
        self.treasury.chain.mine(self.chance.randint(1, 3))

    async def kill(self) -> None:
        await fragile(self.treasury.engine(), Life(self.chance.randint(1, 80))).tick()

    async def tick(self) -> None:
        engines = [self.treasury.engine() for _ in range(self.chance.randint(1, 2))]
        _raise_what_is_wrong(await asyncio.gather(*(engine.tick() for engine in engines), return_exceptions=True))

    async def clear_up(self) -> None:
        """Have all be well again, and work until nothing is left to be done but what has no money."""
        treasury = self.treasury
        await self.mend_node()
        treasury.chain.fees.base_price = 10**10
        treasury.chain.transfer(treasury.info.native, treasury.station, RICH)
        async with treasury.db.transaction() as conn:
            await conn.exec_driver_sql("DELETE FROM chain_pauses")
            await conn.exec_driver_sql("UPDATE merchants SET suspended_at = NULL, suspension_reason = NULL")
        treasury.clock.advance(700)
        was_over = False
        for number in range(12):
            await treasury.work(treasury.engine(), rounds=12, until="enough")
            treasury.clock.advance(70 if number % 3 else 700)
            is_over = {(kind, state) for kind, state, _ in await treasury.open_intents()} <= {("collection", "waiting")}
            if is_over and was_over:  # and nothing has begun again meanwhile
                break
            was_over = is_over
            if number == 6:
                for payout_id in self.going:
                    with suppress(ServiceError):
                        await treasury.cancel(payout_id)

    async def check(self) -> None:
        treasury = self.treasury
        assert [one for one in await treasury.open_intents() if one[0] != "collection"] == []
        async with treasury.db.transaction() as conn:
            assert await broken(conn) == {}
        await treasury.check_books()
        assert not (await reconcile_chain(treasury.db, treasury.chain)).differences
        for payout_id, (to_address, symbol, units) in self.going.items():
            status, got = (await treasury.payout(payout_id)).status, await treasury.on_chain(to_address, symbol)
            assert status in {*GIVEN_BACK, "completed"}, payout_id
            assert got == (units if status == "completed" else 0), (payout_id, status)
        for merchant, _ in self.merchants:
            await self.check_statement(merchant)

    async def check_statement(self, merchant: int) -> None:
        """Sum up all that a merchant's statement says, and compare it with the balances."""
        treasury, told = self.treasury, dict[tuple[str, str], int]()
        async with treasury.db.autocommit() as conn:
            scope = await entries.scope_of(conn, treasury.registry, merchant, "live", entries.Filters())
            found, more = await entries.read(conn, scope, entries.Filters(), entries.Bounds(), entries.BATCH)
            balances = await ledger.balances(conn, merchant, "live")
        assert not more
        for one in found:
            asset = ledger.asset_key(one.chain, one.token.contract)
            for purpose, units in ((one.from_balance, -abs(one.units)), (one.to_balance, abs(one.units))):
                if purpose is not None:
                    told[asset, purpose] = told.get((asset, purpose), 0) + units
        for balance in balances:
            for purpose in ("available", "pending", "held", "receivable"):
                assert told.get((balance.asset, purpose), 0) == getattr(balance, purpose), (balance.asset, purpose)


def _raise_what_is_wrong(found: Iterable[object]) -> None:
    for error in found:
        if isinstance(error, BaseException) and not isinstance(error, EXPECTED):
            raise error


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
async def test_whatever_goes_wrong_books_chain_and_statements_agree(db, clock, ids, tmp_path, seed):
    chance = Random(seed)
    chain = TornChain(registry().chains["memory"], chance)
    async with Treasury(db, clock, ids, tmp_path, stock=4, chain=chain) as treasury:
        await treasury.open(station=chance.choice([RICH, 10**16, 3 * 10**16]))
        business = Business(treasury, chance)
        await business.open()
        for _ in range(STEPS):
            try:
                await business.act()
            except DBAPIError as error:
                raise AssertionError(f"after {len(business.going)} payouts: {error.orig}") from error
        await business.clear_up()
        await business.check()
        assert len(business.going) > 5
