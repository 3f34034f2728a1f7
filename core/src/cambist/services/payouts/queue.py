"""Sets money aside and hands its transfer to the engine, both in the caller's transaction: the one way out.

Payouts, refunds, withdrawals and auto-payouts all pass here, alone or by the hundred, in the same few statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Payout
from cambist.domain.intents import IntentKind, metered_as
from cambist.plugin import ChainInfo, Token, Units
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.services.accounting import usage
from cambist.services.accounting.ledger import (
    SPENDING,
    Account,
    Movement,
    Posting,
    Purpose,
    asset_key,
    lock_balances,
    post,
)
from cambist.services.actor import Actor
from cambist.services.addresses.account_keys import AccountKeys
from cambist.services.addresses.checks import refuse_source
from cambist.services.addresses.wallets import OwnAddress, main_wallet
from cambist.services.chain_scope import ChainScope
from cambist.services.errors import ForbiddenError
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset
from cambist.services.sending.intents import NewIntent, submit

from . import limits
from .rows import COLUMNS, PayoutRow, payout_row


class PayoutContext(Struct, frozen=True, kw_only=True):
    """What sending money needs, for the life of the process."""

    registry: Registry
    keys: AccountKeys
    clock: Clock
    ids: Ids


class NewPayout(Struct, frozen=True, kw_only=True):
    """A transfer that is to be made. ``to_address`` is normalized and was checked with ``checks.check_to_address``.

    ``payout_id`` is a new one (``po_``, ``ref_`` or ``wd_``). Of the units, ``held_units`` come from held.
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
    held_units: Units = Units(0)
    batch_pk: int | None = None
    payment_pk: int | None = None
    deposit_pk: int | None = None
    reason: str | None = None

    @classmethod
    def of(  # noqa: PLR0913, PLR0917  who sends what to whom
        cls, actor: Actor, kind: IntentKind, payout_id: str, asset: Asset, to_address: str, units: Units
    ) -> NewPayout:
        """Return a payout of the actor's project."""
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
        )

    @property
    def scope(self) -> int:
        """Whose chain it is sent on: everybody's, or the simulated one of the project."""
        return self.project_pk if self.mode == "sandbox" else 0

    @property
    def reference(self) -> str:
        """Return the name of its intent."""
        return f"{self.kind}:{self.payout_id}"

    def account(self, purpose: Purpose) -> Account:
        """Return the merchant's account of this purpose in what is sent."""
        return Account(self.merchant_pk, asset_key(self.chain.id, self.token.contract), purpose)


async def debit_and_queue(
    conn: AsyncConnection, context: PayoutContext, settings: PlatformSettings, payouts: Sequence[NewPayout]
) -> Sequence[PayoutRow]:
    """Set aside what the payouts need, all or none, and queue them; return them in the order given.

    All are of one mode. Metered here, once each. Raises ForbiddenError: INSUFFICIENT_BALANCE,
    RECEIVABLE_OUTSTANDING, PAYOUT_LIMIT_EXCEEDED, TARGET_NOT_ALLOWED; and KeysUnavailableError. The caller's
    transaction is then lost as a whole. After the commit, publish the hint ``outbound``.
    """
    if not payouts:
        return []
    now = context.clock.now()
    wallets = await _wallets(conn, context, payouts)
    for one in payouts:
        refuse_source(one.to_address, wallets[_owner(one)].address)
        limits.check_one(settings, one.kind, one.chain, one.token, one.to_address, one.units)
    intents = await submit(conn, [_intent(one, wallets[_owner(one)]) for one in payouts], now)
    rows = await _insert(conn, payouts, intents, now)
    await usage.meter(conn, [_metered(one) for one in payouts], settings, now)
    # The accounts are locked last and for as short as can be: whoever pays the same token waits for them.
    await _check_funds(conn, payouts)
    await limits.check_day(conn, settings, payouts, now)
    await post(conn, payouts[0].mode, [_posting(one) for one in payouts])
    return [rows[one.payout_id] for one in payouts]


def _owner(one: NewPayout) -> tuple[int, str]:
    return one.merchant_pk, one.chain.family


async def _wallets(
    conn: AsyncConnection, context: PayoutContext, payouts: Sequence[NewPayout]
) -> Mapping[tuple[int, str], OwnAddress]:
    mode, families = payouts[0].mode, context.registry.families
    owners = sorted({_owner(one) for one in payouts})
    return {owner: await main_wallet(conn, context.keys, families[owner[1]], owner[0], mode) for owner in owners}


def _intent(one: NewPayout, wallet: OwnAddress) -> NewIntent:
    return NewIntent(
        reference=one.reference,
        kind=one.kind,
        chain_scope=ChainScope(info=one.chain, scope=one.scope, mode=one.mode),
        merchant_pk=one.merchant_pk,
        source_pk=wallet.pk,
        to_address=one.to_address,
        token=one.token,
        units=one.units,
    )


def _metered(one: NewPayout) -> usage.Metered:
    return usage.Metered(
        merchant_pk=one.merchant_pk,
        mode=one.mode,
        operation=metered_as(one.kind),
        chain=one.chain.id,
        reference=one.payout_id,
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
    needed: dict[Account, int] = {}
    for one in payouts:
        for purpose, units in ((Purpose.HELD, one.held_units), (Purpose.AVAILABLE, one.units - one.held_units)):
            account = one.account(purpose)
            needed[account] = needed.get(account, 0) + units
    found = await lock_balances(conn, payouts[0].mode, [one.account(own) for one in payouts for own in SPENDING])
    if any(found[one.account(Purpose.RECEIVABLE)] < 0 for one in payouts if one.units > one.held_units):
        raise ForbiddenError(
            "RECEIVABLE_OUTSTANDING",
            "A reorganization of the chain took back money that was spent already; nothing is paid out of this"
            " balance until deposits have made up for it.",
        )
    if any(found[account] < units for account, units in needed.items()):
        raise ForbiddenError("INSUFFICIENT_BALANCE", "The wallet balance is too low.")


async def _insert(
    conn: AsyncConnection, payouts: Sequence[NewPayout], intents: Mapping[str, int], now: datetime
) -> dict[str, PayoutRow]:
    rows = await conn.execute(
        insert(Payout).returning(*COLUMNS, sort_by_parameter_order=True),
        [
            {
                "payout_id": one.payout_id,
                "kind": one.kind,
                "project_pk": one.project_pk,
                "merchant_pk": one.merchant_pk,
                "mode": one.mode,
                "chain": one.chain.id,
                "scope": one.scope,
                "token": one.token.symbol,
                "contract": one.token.contract,
                "decimals": one.token.decimals,
                "to_address": one.to_address,
                "units": one.units,
                "held_units": one.held_units,
                "batch_pk": one.batch_pk,
                "payment_pk": one.payment_pk,
                "deposit_pk": one.deposit_pk,
                "intent_pk": intents[one.reference],
                "reason": one.reason,
                "created_at": now,
                "updated_at": now,
            }
            for one in payouts
        ],
    )
    return {row.payout_id: payout_row(row) for row in rows}
