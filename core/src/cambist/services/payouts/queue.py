"""Sets money aside and hands its transfer to the engine, both in the caller's transaction: the one way out.

Payouts, refunds, withdrawals and auto-payouts all pass here, alone or by the hundred, in the same few statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct, structs
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payout, Project
from cambist.domain.destinations import destination
from cambist.domain.intents import AskedBy, IntentKind, metered_as
from cambist.domain.payouts import Limits
from cambist.plugin import ChainInfo, Token, Units
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.services.accounting import ledger, usage
from cambist.services.accounting.ledger import SPENDING, Account, Movement, Posting, Purpose, asset_key
from cambist.services.actor import Actor
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.addresses.checks import refuse_source
from cambist.services.addresses.wallets import OwnAddress, known_wallet, main_wallet
from cambist.services.chain_scope import ChainScope, scope_of
from cambist.services.errors import ForbiddenError
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset
from cambist.services.sending.intents import NewIntent, submit

from . import limits
from .read import COLUMNS, PayoutRow, payout_row


class PayoutContext(Struct, frozen=True, kw_only=True):
    """What sending money needs, for the life of the process."""

    registry: Registry
    keys: AccountKeys
    clock: Clock
    ids: Ids


class NewPayout(Struct, frozen=True, kw_only=True):
    """A transfer that is to be made.

    ``to_address`` and ``to_tag`` are normalized and were checked with ``checks.check_to_address`` and ``check_tag``.
    ``payout_id`` is a new one (``po_``, ``ref_`` or ``wd_``). Of the units, ``held_units`` come from held.
    ``asked_by`` is what the signer is told of who asked.
    """

    kind: IntentKind
    payout_id: str
    project_pk: int
    merchant_pk: int
    mode: str
    chain: ChainInfo
    token: Token
    to_address: str
    units: Units
    to_tag: str | None = None
    asked_by: AskedBy = AskedBy.PLATFORM
    held_units: Units = Units(0)
    batch_pk: int | None = None
    payment_pk: int | None = None
    deposit_pk: int | None = None
    reason: str | None = None

    @classmethod
    def of(  # noqa: PLR0913, PLR0917  who sends what to whom
        cls,
        actor: Actor,
        kind: IntentKind,
        payout_id: str,
        asset: Asset,
        to_address: str,
        units: Units,
        to_tag: str | None = None,
    ) -> NewPayout:
        return cls(
            kind=kind,
            payout_id=payout_id,
            project_pk=actor.project_pk,
            merchant_pk=actor.merchant_pk,
            mode=actor.mode,
            chain=asset.chain,
            token=asset.token,
            to_address=to_address,
            units=units,
            to_tag=to_tag,
            asked_by=AskedBy.PLATFORM if kind is IntentKind.AUTO_PAYOUT else actor.asked_by,
        )

    @property
    def scope(self) -> int:
        """Whose chain it is sent on: everybody's, or the simulated one of the project."""
        return scope_of(self.mode, self.project_pk)

    @property
    def reference(self) -> str:
        return f"{self.kind}:{self.payout_id}"

    def account(self, purpose: Purpose) -> Account:
        return Account(self.merchant_pk, asset_key(self.chain.id, self.token.contract), purpose)


async def debit_and_queue(
    conn: AsyncConnection,
    context: PayoutContext,
    settings: PlatformSettings,
    payouts: Sequence[NewPayout],
    allowed: Limits | None = None,
) -> Sequence[PayoutRow]:
    """Set aside what the payouts need, all or none, and queue them; return them in the order given.

    All are of one project, in one token. Who has judged them passes on the limits used for that, as the least of a
    payout can be another by now. Metered here, once each. Raises ForbiddenError:
    INSUFFICIENT_BALANCE, RECEIVABLE_OUTSTANDING, PAYOUT_LIMIT_EXCEEDED, TARGET_NOT_ALLOWED; and KeysUnavailableError.
    The caller's transaction is then lost as a whole. After the commit, publish the hint ``outbound``.
    """
    if not payouts:
        return []
    first, now = payouts[0], context.clock.now()
    if any(_together(one) != _together(first) for one in payouts):
        raise AssertionError("only payouts of one project, in one token, are queued together")
    family = context.registry.families[first.chain.family]
    wallet = await main_wallet(conn, context.keys, family, first.merchant_pk, first.mode)
    asset = Asset(first.chain, first.token)
    if allowed is None:
        allowed = await limits.limits_of(conn, settings, first.merchant_pk, first.mode, asset, now)
    for one in payouts:
        refuse_source(one.to_address, wallet.address)
        limits.check_one(settings, allowed, one.kind, asset, destination(one.to_address, one.to_tag), one.units)
    work_max = await _work_max(conn, settings, first)
    intents = await submit(conn, [_intent(one, wallet, work_max) for one in payouts], now)
    rows = await insert_rows(conn, payouts, intents, now)
    metered = [
        usage.Metered(one.merchant_pk, one.mode, metered_as(one.kind), one.chain.id, one.payout_id) for one in payouts
    ]
    await usage.meter(conn, metered, settings, now)
    # The accounts are locked last and for as short as can be: whoever pays the same token waits for them.
    await _check_funds(conn, payouts)
    await _check_day(conn, allowed, first, now)
    await ledger.post(conn, first.mode, [_posting(one) for one in payouts])
    return [rows[one.payout_id] for one in payouts]


async def refuse_own_wallet(  # noqa: PLR0913, PLR0917  whose, where, and what says it
    conn: AsyncConnection, chain: ChainInfo, merchant_pk: int, mode: str, to_address: str, field: str = "toAddress"
) -> None:
    """Refuse, before anybody's code is spent, what ``debit_and_queue`` would refuse. Raises InvalidError."""
    wallet = await known_wallet(conn, chain.family, merchant_pk, mode)
    if wallet is not None:
        refuse_source(to_address, wallet.address, field)


def _together(one: NewPayout) -> tuple[Account, str, int]:
    return one.account(Purpose.PENDING), one.mode, one.project_pk


async def _work_max(conn: AsyncConnection, settings: PlatformSettings, one: NewPayout) -> int | None:
    """Return how much gas the operator lets the project's transfers of native coin take, where that is said."""
    if not settings.native_gas_max or not one.token.is_native:
        return None
    project_id = await conn.scalar(select(Project.project_id).where(Project.id == one.project_pk))
    return settings.native_gas_max.get(project_id or "")


def _intent(one: NewPayout, wallet: OwnAddress, work_max: int | None) -> NewIntent:
    return NewIntent(
        reference=one.reference,
        kind=one.kind,
        chain_scope=ChainScope(info=one.chain, scope=one.scope, mode=one.mode),
        merchant_pk=one.merchant_pk,
        source_pk=wallet.pk,
        to_address=one.to_address,
        token=one.token,
        units=one.units,
        asked_by=one.asked_by,
        work_max=work_max,
        tag=one.to_tag,
    )


def _posting(one: NewPayout) -> Posting:
    pending = one.account(Purpose.PENDING)
    parts = ((Purpose.HELD, one.held_units), (Purpose.AVAILABLE, one.units - one.held_units))
    moves = [Movement(one.account(purpose), pending, Units(units)) for purpose, units in parts if units]
    return Posting(mode=one.mode, kind=one.kind, reference=one.payout_id, movements=moves)


async def _check_funds(conn: AsyncConnection, payouts: Sequence[NewPayout]) -> None:
    """Refuse what the merchant does not have; the ledger's own guard would, too, without saying why.

    What was held is not the merchant's yet, so that the merchant's debt does not keep it back.
    """
    account = payouts[0].account
    held = sum(one.held_units for one in payouts)
    available = sum(one.units for one in payouts) - held
    found = await ledger.lock_balances(conn, payouts[0].mode, map(account, SPENDING))
    if available and found[account(Purpose.RECEIVABLE)] < 0:
        raise ForbiddenError(
            "RECEIVABLE_OUTSTANDING",
            "A reorganization of the chain took back money that was spent already; nothing is paid out of this"
            " balance until deposits have made up for it.",
        )
    if found[account(Purpose.HELD)] < held or found[account(Purpose.AVAILABLE)] < available:
        raise ForbiddenError("INSUFFICIENT_BALANCE", "The wallet balance is too low.")


async def _check_day(conn: AsyncConnection, allowed: Limits, one: NewPayout, now: datetime) -> None:
    """Refuse payouts like this, stored in this transaction already, with which a day's sum would be too large.

    The merchant's accounts are locked by now, so that nobody else adds to the sum at the same moment.
    """
    if allowed.per_day is None:
        return
    sent = await limits.sent_today(conn, one.merchant_pk, one.mode, one.chain, one.token, now)
    if allowed.day_refuses(Units(0), sent):
        raise limits.day_limit_error(allowed, one.token)


async def insert_rows(
    conn: AsyncConnection, payouts: Sequence[NewPayout], intents: Mapping[str, int], now: datetime
) -> dict[str, PayoutRow]:
    """Store payouts, and return them by their ids. ``intents`` are by reference; what an exchange pays out has none."""
    rows = await conn.execute(
        insert(Payout).returning(*COLUMNS, sort_by_parameter_order=True),
        [
            structs.asdict(one)
            | {
                "chain": one.chain.id,
                "scope": one.scope,
                "token": one.token.symbol,
                "contract": one.token.contract,
                "decimals": one.token.decimals,
                "intent_pk": intents.get(one.reference),
                "created_at": now,
                "updated_at": now,
            }
            for one in payouts
        ],
    )
    return {row.payout_id: payout_row(row) for row in rows}
