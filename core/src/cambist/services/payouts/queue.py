"""Sets money aside and hands its transfer to the engine, both in the caller's transaction: the one way out.

Payouts, refunds, withdrawals and auto-payouts all pass here, alone or by the hundred, in the same few statements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.payouts import Kind
from cambist.plugin import ChainInfo, Token, Units
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.services import usage
from cambist.services.errors import ForbiddenError
from cambist.services.keys import AccountKeys
from cambist.services.ledger import Account, Movement, Posting, Purpose, asset_key, lock_balances, post
from cambist.services.outbound.intents import NewIntent, submit
from cambist.services.platform import PlatformSettings
from cambist.services.wallet_addresses import OwnAddress, main_wallet

from . import limits
from .records import COLUMNS, PayoutRow, payout_row
from .targets import refuse_source

OPERATIONS = {
    Kind.PAYOUT: "payout",
    Kind.AUTO_PAYOUT: "payout",
    Kind.REFUND: "refund",
    Kind.WITHDRAWAL: "withdrawal",
}


SPENDING = (Purpose.HELD, Purpose.AVAILABLE, Purpose.RECEIVABLE, Purpose.PENDING)
"""The accounts that are locked, all at once, before anything is decided about a merchant's money."""


class Desk(Struct, frozen=True, kw_only=True):
    """What sending money needs, for the life of the process."""

    registry: Registry
    keys: AccountKeys
    clock: Clock
    ids: Ids


class NewPayout(Struct, frozen=True, kw_only=True):
    """A transfer that is to be made. ``target`` is normalized and was checked with ``targets.check_target``.

    ``payout_id`` is a new one (``po_``, ``ref_`` or ``wd_``). Of the units, ``held_units`` come from held.
    """

    kind: Kind
    payout_id: str
    project_row: int
    merchant_row: int
    mode: str
    chain: ChainInfo
    token: Token
    target: str
    units: Units
    held_units: Units = Units(0)
    batch_row: int | None = None
    payment_row: int | None = None
    deposit_row: int | None = None
    reason: str | None = None

    @property
    def scope(self) -> int:
        """Whose chain it is sent on: everybody's, or the simulated one of the project."""
        return self.project_row if self.mode == "sandbox" else 0

    @property
    def reference(self) -> str:
        """Return the name of its intent."""
        return f"{self.kind}:{self.payout_id}"

    def account(self, purpose: Purpose) -> Account:
        """Return the merchant's account of this purpose in what is sent."""
        return Account(self.merchant_row, asset_key(self.chain.id, self.token.contract), purpose)


async def debit_and_queue(
    conn: AsyncConnection, desk: Desk, settings: PlatformSettings, payouts: Sequence[NewPayout]
) -> Sequence[PayoutRow]:
    """Set aside what the payouts need, all or none, and queue them; return them in the order given.

    All are of one mode. Metered here, once each. Raises ForbiddenError: INSUFFICIENT_BALANCE,
    RECEIVABLE_OUTSTANDING, PAYOUT_LIMIT_EXCEEDED, TARGET_NOT_ALLOWED; and KeysUnavailableError. The caller's
    transaction is then lost as a whole. After the commit, publish the hint ``outbound``.
    """
    if not payouts:
        return []
    now = desk.clock.now()
    wallets = await _wallets(conn, desk, payouts)
    for one in payouts:
        refuse_source(one.target, wallets[_owner(one)].address)
        limits.check_one(settings, one.kind, one.chain, one.token, one.target, one.units)
    intents = await submit(conn, [_intent(one, wallets[_owner(one)]) for one in payouts], now)
    rows = await _insert(conn, payouts, intents, now)
    await usage.meter(conn, [_metered(one) for one in payouts], settings, now)
    # The accounts are locked last and for as short as can be: whoever pays the same token waits for them.
    await _check_funds(conn, payouts)
    await limits.check_day(conn, settings, payouts, now)
    await post(conn, payouts[0].mode, [_posting(one) for one in payouts])
    return [rows[one.payout_id] for one in payouts]


def _owner(one: NewPayout) -> tuple[int, str]:
    return one.merchant_row, one.chain.family


async def _wallets(
    conn: AsyncConnection, desk: Desk, payouts: Sequence[NewPayout]
) -> Mapping[tuple[int, str], OwnAddress]:
    mode, families = payouts[0].mode, desk.registry.families
    owners = sorted({_owner(one) for one in payouts})
    return {owner: await main_wallet(conn, desk.keys, families[owner[1]], owner[0], mode) for owner in owners}


def _intent(one: NewPayout, wallet: OwnAddress) -> NewIntent:
    return NewIntent(
        reference=one.reference,
        kind=one.kind,
        mode=one.mode,
        chain=one.chain.id,
        scope=one.scope,
        merchant_row=one.merchant_row,
        source_row=wallet.row,
        target=one.target,
        token=one.token,
        units=one.units,
    )


def _metered(one: NewPayout) -> usage.Metered:
    return usage.Metered(
        merchant_row=one.merchant_row,
        mode=one.mode,
        operation=OPERATIONS[one.kind],
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

    What was held is not the merchant's yet, so that a debt of his does not keep it back.
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


_INSERT = f"""
INSERT INTO payouts AS p (
    created_at, updated_at, payout_id, kind, project_id, merchant_id, mode, chain, scope, token, contract, decimals,
    target, units, held_units, batch_id, payment_id, deposit_id, intent_id, reason
)
SELECT $1, $1, n.payout_id, n.kind, n.project_id, n.merchant_id, n.mode, n.chain, n.scope, n.token, n.contract,
    n.decimals, n.target, n.units, n.held_units, n.batch_id, n.payment_id, n.deposit_id, n.intent_id, n.reason
FROM unnest(
    $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::bigint[], $9::text[], $10::text[],
    $11::bigint[], $12::text[], $13::numeric[], $14::numeric[], $15::bigint[], $16::bigint[], $17::bigint[],
    $18::bigint[], $19::text[]
) WITH ORDINALITY AS n (
    payout_id, kind, project_id, merchant_id, mode, chain, scope, token, contract, decimals, target, units, held_units,
    batch_id, payment_id, deposit_id, intent_id, reason, place
)
ORDER BY n.place
RETURNING {COLUMNS}
"""  # noqa: S608  constants


async def _insert(
    conn: AsyncConnection, payouts: Sequence[NewPayout], intents: Mapping[str, int], now: datetime
) -> dict[str, PayoutRow]:
    rows = await conn.exec_driver_sql(
        _INSERT,
        (
            now,
            [one.payout_id for one in payouts],
            [str(one.kind) for one in payouts],
            [one.project_row for one in payouts],
            [one.merchant_row for one in payouts],
            [one.mode for one in payouts],
            [one.chain.id for one in payouts],
            [one.scope for one in payouts],
            [one.token.symbol for one in payouts],
            [one.token.contract for one in payouts],
            [one.token.decimals for one in payouts],
            [one.target for one in payouts],
            [one.units for one in payouts],
            [one.held_units for one in payouts],
            [one.batch_row for one in payouts],
            [one.payment_row for one in payouts],
            [one.deposit_row for one in payouts],
            [intents[one.reference] for one in payouts],
            [one.reason for one in payouts],
        ),
    )
    return {row.payout_id: payout_row(row) for row in rows}
