"""What a merchant can make happen on a project's simulated chains, and how the gateway follows at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from weakref import WeakValueDictionary

import structlog
from msgspec import Struct
from sqlalchemy import exists, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Cursor, Payment, Project
from cambist.hints import Hints
from cambist.plugin import ChainInfo, InconsistentChainError, Watch
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.addresses.macs import AddressMacs
from cambist.services.errors import ForbiddenError, InvalidError, UnavailableError
from cambist.services.exchanges.rows import ExchangeRow
from cambist.services.intent_handlers import endings, intent_handlers
from cambist.services.payouts.read import PayoutRow, find_payout
from cambist.services.pricing.quotes import WORDING, find_asset
from cambist.services.receiving.accounts.deposits import AccountDeposit, find_deposit
from cambist.services.receiving.accounts.read import check_addresses
from cambist.services.receiving.accounts.snapshots import CURRENCIES
from cambist.services.receiving.deposits import AddressCache, Watcher
from cambist.services.receiving.deposits.rows import lock_cursor
from cambist.services.receiving.payments.views import COLUMNS, PaymentView, payment_view
from cambist.services.supported import find_chain
from cambist.services.trackers.fan_out import FanOut

from . import blocks
from .blocks import NewTransfer, Tip
from .chain import SandboxChain
from .due import DUE
from .exchanges import Exchanging, exchange_of_payout, fail_exchange, find_exchange
from .recipient import PaymentRecipient, find_recipient
from .requests import AdvanceTime, Deposit, FailExchange, FailPayout, Mine, Reorg
from .sending import Sender, chain_of_payout, fail_payout, note_mined

log = structlog.get_logger(__name__)

POLLS_MAX = 200
POLLS_LOST_MAX = 50
JUDGED_MAX = 100
BUSY = "This simulated chain is still being read. What you asked for stands in it already: asking again does it twice."
NOT_BEGUN = "This simulated chain could not be begun just now. Nothing of what you asked for was done: ask again."


class SimulatedTip(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a simulated chain stands."""

    chain: str
    height: int
    block_hash: str


class Deposited(Struct, frozen=True, kw_only=True):
    """A transfer that was made and mined, and what became of the payment by it, or what it is to the account."""

    state: SimulatedTip
    tx_id: str
    payment: PaymentView | None = None
    deposit: AccountDeposit | None = None


class _EveryAddress(AddressCache):
    """Watches everything: on a simulated chain, next to all money goes to the project's own addresses."""

    def __contains__(self, key: object, /) -> bool:
        return True

    @property
    def known_xid(self) -> int | None:
        return None

    async def refresh(self) -> Watch:
        """Know already."""
        return self


class Sandbox:
    """The simulated chains of every sandbox project, for the life of the process."""

    def __init__(  # noqa: PLR0913  each by name
        self,
        *,
        db: Database,
        registry: Registry,
        clock: Clock,
        ids: Ids,
        hints: Hints,
        macs: AddressMacs,
        fiat_currencies: Sequence[str] = CURRENCIES,
    ) -> None:
        self._db = db
        self._registry = registry
        self._clock = clock
        self._ids = ids
        self._hints = hints
        self._macs = macs
        self._fiat_currencies = fiat_currencies
        self._sender = Sender(intent_handlers(ids), ids)
        self._exchanging = Exchanging(db, registry.chains, endings(ids), clock, ids)
        self._fan_out = FanOut(db, clock, hints)
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()

    async def deposit(self, actor: Actor, request: Deposit) -> Deposited:
        """Send money to one of the project's payments or accounts, in a new block, and follow."""
        _sandbox_only(actor)
        async with self._db.autocommit() as conn:
            recipient = await find_recipient(conn, self._registry, actor, request)
        info, token = find_asset(self._registry.chains, *recipient.asset(request), actor.mode)
        recipient.check_chain(self._registry, info)
        units = recipient.units(request, token)
        async with self._changing(actor.project_pk, info) as (conn, tip, now):
            new = NewTransfer(recipient=recipient.address, contract=token.contract, units=units)
            [tx_id] = await blocks.transactions(conn, tip, [[new]], ids=self._ids)
            mined = await blocks.mine(conn, tip, 1 + recipient.confirmations(request, info), now)
        if isinstance(recipient, PaymentRecipient):
            return Deposited(state=_state(mined), tx_id=tx_id, payment=await self._payment(recipient.pk))
        async with self._db.autocommit() as conn:
            deposit = await find_deposit(conn, recipient.pk, info.id, tx_id)
            if deposit is not None:
                await check_addresses(conn, [(deposit.account_id, deposit.address)], self._macs)
        return Deposited(state=_state(mined), tx_id=tx_id, deposit=deposit)

    async def mine(self, actor: Actor, request: Mine) -> SimulatedTip:
        """Mine blocks on one of the project's chains, and follow."""
        _sandbox_only(actor)
        info = find_chain(self._registry.chains, request.chain, wording=WORDING)
        async with self._changing(actor.project_pk, info) as (conn, tip, now):
            mined = await blocks.mine(conn, tip, request.blocks, now)
        return _state(mined)

    async def reorg(self, actor: Actor, request: Reorg) -> SimulatedTip:
        """Replace the newest blocks of one of the project's chains, and follow."""
        _sandbox_only(actor)
        info = find_chain(self._registry.chains, request.chain, wording=WORDING)
        async with self._changing(actor.project_pk, info) as (conn, tip, now):
            deepest = await blocks.reorg_depth_max(conn, tip)
            if request.depth > deepest:
                raise InvalidError.field(
                    "depth", f"is more than the {deepest} blocks that can be replaced now", "REORG_TOO_DEEP"
                )
            await self._sender.undo_above(conn, tip, tip.height - request.depth, now)
            replaced = await blocks.reorganise(conn, tip, request.depth, now, drop=request.transactions == "drop")
        return _state(replaced)

    async def fail_payout(self, actor: Actor, request: FailPayout) -> PayoutRow:
        """Have a payout fail when it is mined, and return it as it is until then."""
        _sandbox_only(actor)
        project_pk, payout_id = actor.project_pk, request.payout_id
        async with self._db.transaction() as conn:
            exchange = await exchange_of_payout(conn, project_pk, payout_id)
            if exchange is None:
                await self._lock_tips(conn, project_pk, [await chain_of_payout(conn, project_pk, payout_id)])
                return await fail_payout(conn, project_pk, payout_id)
            # Its call takes the money, on the chain of what is given.
            await self._lock_tips(conn, project_pk, {exchange.source_chain, exchange.dest_chain})
            await fail_exchange(conn, exchange.pk, "revert", self._clock.now(), too_late="PAYOUT_ALREADY_MINED")
            return await find_payout(conn, project_pk, payout_id)

    async def fail_exchange(self, actor: Actor, request: FailExchange) -> ExchangeRow:
        """Have an exchange fail when its call is mined, or nobody fill a bridge; return it as it is by then."""
        _sandbox_only(actor)
        async with self._db.transaction() as conn:
            found = await find_exchange(conn, actor.project_pk, request.txn_id)
            await self._lock_tips(conn, actor.project_pk, {found.source_chain, found.dest_chain})
            failing = await fail_exchange(conn, found.pk, request.how, self._clock.now())
        # What nobody will fill comes back from now on.
        await self._follow_all(actor.project_pk, [failing.source_chain])
        return failing

    async def send_queued(self, project_pk: int, chain_ids: Collection[str]) -> None:
        """Send what a request has just queued on these chains, and mine it where the project mines by itself."""
        await self._follow_all(project_pk, [chain for chain in chain_ids if chain in self._registry.chains])

    async def advance_time(self, actor: Actor, request: AdvanceTime) -> Sequence[SimulatedTip]:
        """Let time pass on one or all of the project's chains, and follow: what is due by then, happens."""
        _sandbox_only(actor)
        if request.chain is not None:
            find_chain(self._registry.chains, request.chain, wording=WORDING)
        async with self._db.transaction() as conn:
            wanted = [request.chain] if request.chain else await blocks.used_chains(conn, actor.project_pk)
            known = [chain for chain in wanted if chain in self._registry.chains]
            tips = await self._lock_tips(conn, actor.project_pk, known)
            for tip in tips:
                await blocks.pass_time(conn, tip, request.seconds, self._clock.now())
        await self._follow_all(actor.project_pk, [tip.info.id for tip in tips])
        return [_state(tip) for tip in tips]

    async def judge_due(self, now: datetime) -> int:
        """Follow where time alone has made something due, or a crash left something undone; return how many chains.

        At most ``JUDGED_MAX``. For the worker's recurring job: requests follow by themselves.
        """
        async with self._db.autocommit() as conn:
            chains = self._registry.chains
            depths = [max(1, info.confirmations) for info in chains.values()]
            rows = await conn.exec_driver_sql(DUE, (list(chains), now, JUDGED_MAX, depths))
            due = rows.all()
        followed = 0
        for row in due:
            try:
                await self._follow_all(row.project_pk, [row.chain])
                followed += 1
            except Exception:
                # One project's chain must not keep the others' payments from expiring.
                log.exception("sandbox_not_followed", project=row.project_pk, chain=row.chain)
        return followed

    @asynccontextmanager
    async def _changing(self, project_pk: int, info: ChainInfo) -> AsyncIterator[tuple[AsyncConnection, Tip, datetime]]:
        """Lend the chain's newest block, locked, to who changes it now; then have the gateway follow.

        What waits to be sent is sent before, so that a block that is mined now takes it.
        """
        if not await self._begin(project_pk, info):
            raise UnavailableError("SANDBOX_NOT_BEGUN", NOT_BEGUN)
        async with self._db.transaction() as conn:
            now = self._clock.now()
            tip = await self._lock(conn, project_pk, info, now)
            await self._send(conn, tip, now)
            yield conn, tip, now
            await note_mined(conn, tip)
        await self.follow(project_pk, info)

    async def _send(self, conn: AsyncConnection, tip: Tip, now: datetime) -> int:
        """Send what waits on this chain, what exchanges pay out included; return how many transactions that are."""
        if not await self._sender.any_waits(conn, tip):
            return 0
        await self._sender.cancel_asked(conn, tip, now)
        sent = await self._sender.send_waiting(conn, tip, now)
        return sent + await self._exchanging.pay_out(conn, tip, now)

    async def _lock_tips(self, conn: AsyncConnection, project_pk: int, chain_ids: Collection[str]) -> Sequence[Tip]:
        infos = [find_chain(self._registry.chains, one, wording=WORDING) for one in sorted(chain_ids)]
        return [await blocks.lock_tip(conn, project_pk, info, self._clock.now()) for info in infos]

    async def _lock(self, conn: AsyncConnection, project_pk: int, info: ChainInfo, now: datetime) -> Tip:
        """Let nobody change or store the chain until the transaction ends: before any row or account is locked."""
        tip = await blocks.lock_tip(conn, project_pk, info, now)
        await lock_cursor(conn, info.id, project_pk)
        return tip

    async def follow(self, project_pk: int, info: ChainInfo) -> None:
        """Let the gateway read the chain up to its head, as a watcher does with a live one, and finish what is deep."""
        async with self._locks.setdefault((project_pk, info.id), asyncio.Lock()):
            watcher = self._watcher(project_pk, info)
            await self._read(watcher)
            if await self._sender.finalize(self._db, project_pk, info, self._clock.now()):
                # A refund that failed leaves its payment to be judged again.
                await self._read(watcher)
        await self._fan_out.drain(info.id, project_pk)
        # An exchange may go on elsewhere; each of them pays out once, so that this comes to an end.
        elsewhere = await self._exchanging.claim_arrived(project_pk)
        await self._follow_all(project_pk, [chain for chain in elsewhere if chain in self._registry.chains])
        # What was sent, finished or taken back may have made events, though the poll itself made none.
        await self._hints.publish("webhooks")

    async def _read(self, watcher: Watcher) -> None:
        lost = 0
        for _ in range(POLLS_MAX):
            try:
                polled = await watcher.poll()
            except InconsistentChainError as error:
                # The chain changed while it was read.
                if (lost := lost + 1) >= POLLS_LOST_MAX:
                    raise UnavailableError("SANDBOX_BUSY", BUSY) from error
                continue
            if not polled.behind:
                return
        raise UnavailableError("SANDBOX_BUSY", BUSY)

    async def _follow_all(self, project_pk: int, chain_ids: Sequence[str]) -> None:
        for chain_id in chain_ids:
            info = self._registry.chains[chain_id]
            if not await self._begin(project_pk, info):
                raise UnavailableError("SANDBOX_BUSY", BUSY)
            async with self._db.transaction() as conn:
                now = self._clock.now()
                tip = await self._lock(conn, project_pk, info, now)
                mines_itself = select(Project.sandbox_auto_mine).where(Project.id == project_pk)
                if await self._send(conn, tip, now) and await conn.scalar(mines_itself):
                    await blocks.mine(conn, tip, 1 + max(1, info.confirmations), now)
                    await note_mined(conn, tip)
            await self.follow(project_pk, info)

    async def _begin(self, project_pk: int, info: ChainInfo) -> bool:
        """Have a new chain read from its first block, before anything stands in it; return whether it is.

        How far others have changed it meanwhile does not matter: what they did is read with what is done next.
        """
        if await self._is_begun(project_pk, info):
            return True
        async with self._db.transaction() as conn:
            await blocks.lock_tip(conn, project_pk, info, self._clock.now())
        watcher = self._watcher(project_pk, info)
        for _ in range(POLLS_LOST_MAX):
            try:
                await watcher.poll()
            except InconsistentChainError:
                # The chain changed while it was read: whoever changed it has begun it, or lets time pass.
                if await self._is_begun(project_pk, info):
                    return True
            else:
                return True
        return False

    async def _is_begun(self, project_pk: int, info: ChainInfo) -> bool:
        async with self._db.autocommit() as conn:
            return bool(await conn.scalar(select(exists().where(Cursor.chain == info.id, Cursor.scope == project_pk))))

    def _watcher(self, project_pk: int, info: ChainInfo) -> Watcher:
        family = self._registry.families[info.family]
        return Watcher(
            db=self._db,
            chain=SandboxChain(self._db, info, family, project_pk),
            family=family,
            address_cache=_EveryAddress(self._db, family, "sandbox"),
            scope=project_pk,
            mode="sandbox",
            clock=self._clock,
            ids=self._ids,
            hints=self._hints,
            fiat_currencies=self._fiat_currencies,
        )

    async def _payment(self, payment_pk: int) -> PaymentView:
        async with self._db.autocommit() as conn:
            wanted = select(text(COLUMNS)).select_from(Payment).where(Payment.id == payment_pk)
            return payment_view((await conn.execute(wanted)).mappings().one(), self._macs)


def _sandbox_only(actor: Actor) -> None:
    if actor.mode != "sandbox":
        raise ForbiddenError("SANDBOX_ONLY", "Only a sandbox project has simulated chains.")


def _state(tip: Tip) -> SimulatedTip:
    return SimulatedTip(chain=tip.info.id, height=tip.height, block_hash=tip.hash)
