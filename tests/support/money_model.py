"""Merchants whose live money real services move from all sides at once, and a model of what must come out."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence

from msgspec import Struct, structs
from sqlalchemy import select

from cambist.db.engine import Database
from cambist.db.models.payouts import Payout
from cambist.domain.intents import IntentKind
from cambist.domain.payouts import FINISHED, Status
from cambist.plugin import Units
from cambist.services.accounting import usage
from cambist.services.accounting.ledger import Purpose, balances
from cambist.services.actor import Actor
from cambist.services.addresses.account_keys import fill_stock
from cambist.services.chain_scope import ChainScope
from cambist.services.errors import ForbiddenError, ServiceError
from cambist.services.intent_handlers import intent_handlers
from cambist.services.payouts.queue import NewPayout, PayoutContext, debit_and_queue
from cambist.services.payouts.read import COLUMNS, PayoutRow, payout_row
from cambist.services.platform import PlatformSettings
from cambist.services.receiving.deposits import crediting
from cambist.services.receiving.deposits.rows import lock_cursor, lock_deposits
from cambist.services.reversals.refunds import parts
from cambist.services.sending.handler import IntentUpdate, lock_spending
from cambist.signer.local import KeystoreXpubs
from cambist.testing.clock import ManualClock, seeded_ids
from cambist.testing.memory.family import named_address
from tests.support.books import broken
from tests.support.payment_env import KEYSTORE, PaymentEnv

MERCHANTS = 3
AT_ONCE_MAX = 16
ASSETS = (("memory", "USDX"), ("memory", "MEM"), ("other", "USDX"))

Asset = tuple[int, int]
"""A merchant and one of ``ASSETS``, by number."""


class Coming(Struct, kw_only=True):
    """A deposit as the model sees it. ``lives`` is how often it came less how often it was taken back."""

    asset: Asset
    units: int
    lives: int = 1


class Going(Struct, kw_only=True):
    """A payout as the model sees it."""

    asset: Asset
    row: PayoutRow
    status: Status = Status.REQUESTED


AFTER = {
    "waiting": lambda status: status if status in FINISHED else Status.PROCESSING,
    "broadcast": lambda status: status if status in FINISHED else Status.BROADCAST,
    "final": lambda _: Status.COMPLETED,
    "failed": lambda status: status if status in FINISHED else Status.FAILED,
    "undone": lambda status: Status.BROADCAST if status is Status.COMPLETED else status,
}
"""What each update makes of a payout."""
ORDER = ("undone", "final", "failed", "broadcast", "waiting")
"""As the engine tells them where one transaction of the database has several."""
LOCKED = ("undone", "final", "failed")
"""What moves money."""


class MoneyModel:
    """Three merchants, each with a live and a sandbox project. What is refused must have changed nothing."""

    def __init__(self, db: Database) -> None:
        self.db, self.clock, self.ids = db, ManualClock(), seeded_ids(0)
        self.payment_env = PaymentEnv(db, self.clock, self.ids)
        self.context = PayoutContext(
            registry=self.payment_env.registry,
            keys=self.payment_env.context.leaser._keys,
            clock=self.clock,
            ids=self.ids,
        )
        self.handlers = intent_handlers(self.ids)
        self.settings = PlatformSettings()
        self.live: list[Actor] = []
        self.test: list[Actor] = []
        self.coming: dict[int, Coming] = {}
        self.going: dict[str, Going] = {}
        self.granted: Counter[int] = Counter()
        self.refused: set[str] = set()
        self.refusals: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self._numbers = 0
        self._room = asyncio.Semaphore(AT_ONCE_MAX)

    async def open(self) -> MoneyModel:
        families = self.payment_env.registry.families.values()
        coin_types = {family.coin_type for family in families}
        await fill_stock(
            self.db, KeystoreXpubs(KEYSTORE), self.payment_env.box, coin_types=coin_types, stock=MERCHANTS + 1
        )
        for number in range(MERCHANTS):
            merchant = await self.payment_env.merchant(f"mer_{number}")
            self.live.append(await self.payment_env.project(merchant, f"prj_live_{number}", "live"))
            self.test.append(await self.payment_env.project(merchant, f"prj_test_{number}", "sandbox"))
        async with self.db.transaction() as conn:
            await conn.exec_driver_sql(
                "INSERT INTO chain_cursors (chain, scope, height, hash, head, updated_at)"
                " SELECT chain, 0, 100, '0x', 100, $2 FROM unnest($1::text[]) AS chain",
                (sorted({chain for chain, _ in ASSETS}), self.clock.now()),
            )
            await conn.exec_driver_sql(
                "INSERT INTO addresses (mode, family, address, merchant_pk, account_index, change, address_index)"
                " SELECT 'live', 'memory', 'address of ' || merchant, merchant, merchant, 0, 0"
                " FROM unnest($1::bigint[]) AS merchant",
                ([actor.merchant_pk for actor in self.live],),
            )
        return self

    async def all_at_once(self, work: Sequence[Awaitable[None]]) -> None:
        """Do everything at the same time; whatever is not done must have been refused in so many words."""

        async def one(doing: Awaitable[None]) -> None:
            async with self._room:
                try:
                    await doing
                except ServiceError as error:
                    self.refusals[error.code] += 1
                else:
                    self.done["done"] += 1

        found = await asyncio.gather(*(one(doing) for doing in work), return_exceptions=True)
        failures = [error for error in found if error is not None]
        if failures:
            raise failures[0]

    def _token(self, asset: Asset):
        chain, symbol = ASSETS[asset[1]]
        info = self.payment_env.registry.chains[chain]
        token = info.token(symbol)
        assert token is not None
        return info, token

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers

    # What comes in: stored and credited as a poll does it, which holds the chain's cursor.

    async def deposit(self, asset: Asset, units: int, order_units: int = 0) -> None:
        """Confirm a deposit, of which so many units belong to an order that ends with it."""
        info, token = self._token(asset)
        merchant = self.live[asset[0]].merchant_pk
        async with self.db.transaction() as conn:
            await lock_cursor(conn, info.id, 0)
            added = await conn.exec_driver_sql(
                "INSERT INTO deposits (deposit_id, chain, scope, tx_id, position, mode, merchant_pk, address_pk,"
                " matches, token, contract, decimals, units, height, block_hash, ordinal, mined_at,"
                " required_confirmations, status) SELECT $1, $2, 0, $1, 'native', 'live', $3, a.id,"
                " false, $4, $5, $6, $7, 50, '0x', 0, $8, 1, 'confirmed'"
                " FROM addresses a WHERE a.address = 'address of ' || $3::bigint RETURNING id",
                (
                    self.ids.new("dep"), info.id, merchant, token.symbol, token.contract, token.decimals, units,
                    self.clock.now(),
                ),
            )  # fmt: skip
            row = added.scalar_one()
            deposit = (await lock_deposits(conn, [row]))[row]
            await crediting.credit_and_allocate(conn, "live", [deposit], [(Units(order_units), [deposit])])
        self.coming[row] = Coming(asset=asset, units=units)

    async def take_back(self, rows: Sequence[int]) -> None:
        """Have a reorg take deposits out of their chain."""
        async with self.db.transaction() as conn:
            await self._lock(conn, rows)
            gone = [row for row in (await lock_deposits(conn, rows)).values() if row.status == "confirmed"]
            await crediting.reverse(conn, "live", gone)
            await conn.exec_driver_sql(
                "UPDATE deposits SET status = 'orphaned', available_units = 0, returned_units = 0, released_units = 0,"
                " resolution = NULL, resolved_at = NULL WHERE id = ANY($1::bigint[])",
                ([row.id for row in gone],),
            )
        for row in gone:
            self.coming[row.id].lives -= 1

    async def come_back(self, rows: Sequence[int]) -> None:
        """Deposits that were orphaned are mined again, in their next incarnation."""
        async with self.db.transaction() as conn:
            await self._lock(conn, rows)
            back = [row.id for row in (await lock_deposits(conn, rows)).values() if row.status == "orphaned"]
            await conn.exec_driver_sql(
                "UPDATE deposits SET status = 'confirmed', incarnation = incarnation + 1 WHERE id = ANY($1::bigint[])",
                (back,),
            )
            await crediting.credit_and_allocate(conn, "live", list((await lock_deposits(conn, back)).values()), [])
        for row in back:
            self.coming[row].lives += 1

    async def end_orders(self, rows: Sequence[int], units: int) -> None:
        """Each of the deposits belongs to an order of so many units, which ends now."""
        async with self.db.transaction() as conn:
            await self._lock(conn, rows)
            deposits = (await lock_deposits(conn, rows)).values()
            await crediting.credit_and_allocate(conn, "live", [], [(Units(units), [row]) for row in deposits])

    async def release(self, row: int) -> None:
        async with self.db.transaction() as conn:
            await self._lock(conn, [row])
            deposit = (await lock_deposits(conn, [row]))[row]
            if not deposit.held_units:
                raise ForbiddenError("NOTHING_HELD", "as the resolution list refuses it")
            await crediting.release(conn, "live", deposit, self.clock.now())

    async def _lock(self, conn, rows: Sequence[int]) -> None:
        """Hold the chains of deposits, in order; a real look and a real decision are about one chain."""
        for chain in sorted({ASSETS[self.coming[row].asset[1]][0] for row in rows}):
            await lock_cursor(conn, chain, 0)

    # What goes out.

    async def pay_out(self, asset: Asset, amounts: Sequence[int], kind: IntentKind) -> None:
        new = [self._new(asset, units, kind) for units in amounts]
        try:
            async with self.db.transaction() as conn:
                rows = await debit_and_queue(conn, self.context, self.settings, new)
        except ForbiddenError:
            self.refused |= {one.payout_id for one in new}
            raise
        self.going |= {row.payout_id: Going(asset=asset, row=row) for row in rows}

    async def refund(self, deposit_pk: int, units: int, *, from_available: int = 0) -> None:
        """Send back what is held of a deposit, and some that is not, as refunds of payments do."""
        asset = self.coming[deposit_pk].asset
        held_units, kind = Units(units), IntentKind.REFUND
        new = self._new(asset, units + from_available, kind, deposit_pk=deposit_pk, held_units=held_units)
        try:
            async with self.db.transaction() as conn:
                await self._lock(conn, [deposit_pk])
                deposit = (await lock_deposits(conn, [deposit_pk]))[deposit_pk]
                if units > deposit.held_units:
                    raise ForbiddenError("REFUND_EXCEEDS_HELD", "as the resolution list does")  # noqa: TRY301  and undo
                (row,) = await debit_and_queue(conn, self.context, self.settings, [new])
                await parts.take(conn, row.pk, [parts.Part(deposit, Units(units))])
        except ForbiddenError:
            self.refused.add(new.payout_id)
            raise
        self.going[row.payout_id] = Going(asset=asset, row=row)

    def _new(self, asset: Asset, units: int, kind: IntentKind, **more) -> NewPayout:
        info, token = self._token(asset)
        actor = self.live[asset[0]]
        return NewPayout(
            kind=kind,
            payout_id=self.ids.new({IntentKind.REFUND: "ref", IntentKind.WITHDRAWAL: "wd"}.get(kind, "po")),
            project_pk=actor.project_pk,
            merchant_pk=actor.merchant_pk,
            mode="live",
            chain=info,
            token=token,
            to_address=named_address("somebody"),
            units=Units(units),
            **more,
        )

    def updates(self, told: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str, int]]:
        """Give each (payout, what) its own number, so that telling it twice is telling the same."""
        return [(payout_id, what, self._number()) for payout_id, what in told]

    async def tell(self, updates: Sequence[tuple[str, str, int]]) -> None:
        """Call the handlers as the engine does: a transaction for each chain, and in it kind by kind."""
        for chain, info in self.payment_env.registry.chains.items():
            told = [(self.going[payout_id], what, number) for payout_id, what, number in updates]
            told = [one for one in told if one[0].row.chain == chain]
            if told:
                await self._tell(ChainScope(info=info, scope=0, mode="live"), told)

    async def _tell(self, chain_scope: ChainScope, told: Sequence[tuple[Going, str, int]]) -> None:
        sent = {what: [_sent(one.row, number) for one, said, number in told if said == what] for what in ORDER}
        async with self.db.transaction() as conn:
            await lock_cursor(conn, *chain_scope.key)
            await lock_spending(conn, chain_scope.mode, [one for what in LOCKED for one in sent[what]])
            for what in ORDER:
                await getattr(self.handlers, f"on_{what}")(conn, sent[what], self.clock.now())
        for what in ORDER:
            for one in (one for one, said, _ in told if said == what):
                one.status = AFTER[what](one.status)

    # Usage credits.

    async def grant(self, merchant: int, units: int) -> None:
        reference = f"grant {self._number()}"
        async with self.db.transaction() as conn:
            await usage.grant(conn, self.live[merchant].merchant_pk, "live", units, reference)
        self.granted[merchant] += units

    async def roll_up(self, rows_max: int) -> None:
        async with self.db.transaction() as conn:
            await usage.post_unposted(conn, rows_max)

    # What must hold.

    async def check(self) -> None:
        assert {one.lives for one in self.coming.values()} <= {0, 1}
        async with self.db.transaction() as conn:
            found = await broken(conn)
            assert not found, found
            rows = await conn.execute(select(*COLUMNS).where(Payout.mode == "live"))
            stored = {row.payout_id: payout_row(row) for row in rows}
            expected = {name: going.status for name, going in self.going.items()}
            wrong = {name: (row.status, expected.get(name)) for name, row in stored.items()}
            wrong = {name: pair for name, pair in wrong.items() if pair[0] is not pair[1]}
            assert not wrong, wrong
            assert stored.keys() == expected.keys()
            for number, actor in enumerate(self.live):
                for index in range(len(ASSETS)):
                    await self._check_asset(conn, (number, index), actor)
            await self._check_refused(conn)

    async def _check_asset(self, conn, asset: Asset, actor: Actor) -> None:
        info, token = self._token(asset)
        name = f"{info.id}/{token.contract or 'native'}"
        found = await balances(conn, actor.merchant_pk, "live", name)
        going = [one for one in self.going.values() if one.asset == asset]
        arrived = sum(one.units * one.lives for one in self.coming.values() if one.asset == asset)
        left = sum(one.row.units for one in going if one.status is Status.COMPLETED)
        pending = sum(one.row.units for one in going if one.status not in FINISHED)
        owned = {field: value for field, value in structs.asdict(found[0]).items() if field != "asset"} if found else {}
        assert owned.get(Purpose.PENDING, 0) == pending, (asset, owned, pending)
        assert sum(owned.values()) == arrived - left, (asset, owned, arrived, left)

    async def _check_refused(self, conn) -> None:
        """Look for traces of what was refused: no row, no intent, no credit used, no posting."""
        traces = await conn.exec_driver_sql(
            "SELECT payout_id FROM payouts WHERE payout_id = ANY($1::text[])"
            " UNION ALL SELECT reference FROM usage_records WHERE reference = ANY($1::text[])"
            " UNION ALL SELECT reference FROM ledger_transactions WHERE split_part(reference, ':', 1) = ANY($1::text[])"
            " UNION ALL SELECT reference FROM outbound_intents WHERE split_part(reference, ':', 2) = ANY($1::text[])",
            (sorted(self.refused),),
        )
        found = traces.all()
        assert not found, found


def _sent(row: PayoutRow, number: int) -> IntentUpdate:
    return IntentUpdate(
        intent_pk=row.intent_pk or 0,
        reference=f"{row.kind}:{row.payout_id}",
        kind=row.kind,
        mode=row.mode,
        chain=row.chain,
        scope=row.scope,
        merchant_pk=row.merchant_pk,
        source_pk=1,
        recipient_pk=None,
        to_address=row.to_address,
        token=row.token,
        contract=row.contract,
        decimals=row.decimals,
        units=row.units,
        tx_id=f"0x{number:x}",
        incarnation=number,
        reason="a reason",
    )
