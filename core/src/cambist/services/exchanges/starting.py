"""Starts an exchange by one statement, which writes down all of it, or nothing.

Whoever else wants some of the merchant's balance waits from the moment in which it is taken until the commit. Here
both are in one statement's end: the trigger of ``ledger_movements`` locks the accounts after everything else was
written, and where the statement is a transaction of its own, nothing comes between that and the commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct, structs
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.named import Statement
from cambist.domain.intents import FACTS, IntentKind, metered_as
from cambist.domain.money import format_units
from cambist.services.accounting import ledger
from cambist.services.accounting.ledger import Account, InsufficientFundsError, Purpose
from cambist.services.accounting.usage import CREDITS
from cambist.services.audit import entries
from cambist.services.audit.entries import Action, Origin
from cambist.services.errors import ForbiddenError
from cambist.services.idempotency import TAKE_KEY, Claim
from cambist.services.platform import PlatformSettings

from .context import ExchangeContext
from .create import Prepared
from .facts import IS_DISABLED
from .offers import Offer
from .rows import ExchangeRow, when_idle

_WAITS = FACTS[IntentKind.SWAP]
_SAME = (
    *("txn_id", "kind", "made_for", "project_pk", "merchant_pk", "mode", "scope", "provider", "source_chain"),
    *("source_token", "source_contract", "source_decimals", "source_pk", "units", "fee_units", "dest_chain"),
    *("dest_token", "dest_contract", "dest_decimals", "recipient", "recipient_pk", "payout_pk", "quoted_units"),
    *("units_min", "slippage_bps", "fee_bps", "asked_by", "due_at", "give_up_at"),
)
"""Columns of an exchange whose parameters have their names."""

_SHOWN = {"pk": "id", "sender": ":sender::text"}

_WRITTEN = f"""
, intent AS (
    INSERT INTO outbound_intents (
        due_at, created_at, updated_at, reference, kind, mode, chain, scope, merchant_pk, source_address_pk,
        recipient_address_pk, to_address, token, contract, decimals, units, priority, action, asked_by
    )
    SELECT :now, :now, :now, :reference, :kind, :mode, :source_chain, :scope, :merchant_pk, :source_pk,
        :recipient_pk, :recipient, :source_token, :source_contract, :source_decimals, :given, {_WAITS.priority},
        '{_WAITS.action}', :asked_by
    FROM {{allowed}}
    RETURNING id
), exchange AS (
    INSERT INTO exchanges (intent_pk, created_at, updated_at, {", ".join(_SAME)})
    SELECT intent.id, :now, :now, {", ".join(f":{name}" for name in _SAME)} FROM intent
    RETURNING *
), metered AS (
    INSERT INTO usage_records (merchant_pk, mode, operation, chain, reference, weight, created_at)
    SELECT merchant_pk, mode, :metered_as, source_chain, txn_id, :weight::bigint, created_at FROM exchange
    WHERE :weight::bigint > 0
){{audited}}, {ledger.SET_ASIDE.format(kind=":kind", reference=":txn_id", units=":units", source="exchange")}
SELECT account.available_pk, account.pending_pk, account.owes, made.stored, {{actor}} AS actor
FROM account LEFT JOIN (
    SELECT row_to_json(shown)::text AS stored
    FROM (SELECT {", ".join(f"{_SHOWN.get(name, name)} AS {name}" for name in ExchangeRow.__struct_fields__)}
        FROM exchange) AS shown
) AS made ON true
"""  # noqa: S608  constants

# What was read of the database before the providers were asked holds still, or nothing is written.
_ALLOWED = f"""
WITH account AS ({ledger.SPENDABLE}), allowed AS (
    SELECT FROM account
    WHERE NOT owes AND available_pk IS NOT NULL AND pending_pk IS NOT NULL{{conditions}}
)"""
_STILL = _ALLOWED.format(
    conditions=f"""
        AND EXISTS (SELECT FROM projects WHERE id = :project_pk AND is_active)
        AND (SELECT md5(settings::text) FROM platform_settings) IS NOT DISTINCT FROM :settings_mark
        AND NOT {IS_DISABLED.format(side="source")} AND NOT {IS_DISABLED.format(side="dest")}
        AND {CREDITS} >= :credits_floor"""  # noqa: S608  constants
)
_AUDITED = f", audited AS ({entries.INSERT.format(source=' FROM exchange')})"
_RECORDED = {"audited": _AUDITED, "actor": "(SELECT actor FROM audited)"}

_WITHIN = Statement(_ALLOWED.format(conditions="") + _WRITTEN.format(allowed="allowed", audited="", actor="NULL"))
_ALONE = Statement(_STILL + _WRITTEN.format(allowed="allowed", **_RECORDED))
_ALONE_WITH_KEY = Statement(
    f"{_STILL}, claimed AS ({TAKE_KEY.format(source=' FROM allowed')})"
    + _WRITTEN.format(allowed="claimed", **_RECORDED)
)


class NewExchange(Struct, frozen=True, kw_only=True):
    """An exchange that is to be started: what was checked, by which settings, and what was offered for it."""

    txn_id: str
    settings: PlatformSettings
    prepared: Prepared
    offer: Offer
    payout_pk: int | None = None

    @property
    def told(self) -> Mapping[str, object]:
        """What the audit log is told of it."""
        wish, source, dest = self.prepared.wish, self.prepared.wish.source, self.prepared.wish.dest
        return {
            "kind": str(wish.kind),
            "sourceChain": source.chain.id,
            "sourceToken": source.token.symbol,
            "sourceAmount": format_units(wish.units, source.token.decimals),
            "destChain": dest.chain.id,
            "destToken": dest.token.symbol,
            "destAmountMin": format_units(self.offer.units_min, dest.token.decimals),
        }


class Tried(Struct, frozen=True, kw_only=True):
    """What came of it: the exchange as it is stored, or what was missing where nothing was written."""

    row: ExchangeRow | None
    owes: bool
    has_available: bool
    has_pending: bool

    async def mend(self, conn: AsyncConnection, prepared: Prepared) -> None:
        """Refuse a merchant who has nothing, or make the account that was missing. Raises ForbiddenError."""
        if self.owes:
            raise ForbiddenError(
                "RECEIVABLE_OUTSTANDING",
                "A reorganization of the chain took back money that was spent already; nothing is exchanged out of"
                " this balance until deposits have made up for it.",
            )
        if not self.has_available:
            raise InsufficientFundsError
        if not self.has_pending:
            pending = Account(prepared.owner.merchant_pk, prepared.source_asset, Purpose.PENDING)
            await ledger.make_accounts(conn, prepared.owner.mode, [pending])


async def start_exchange(conn: AsyncConnection, context: ExchangeContext, new: NewExchange) -> None:
    """Write down the exchange, queue and meter its call, and post what is given from available to pending.

    In the caller's transaction, at its end: whoever else wants some of the balance waits from then on for the commit.
    That it is enough is the database's to say; a merchant who owes has nothing available. Raises ForbiddenError:
    INSUFFICIENT_BALANCE, RECEIVABLE_OUTSTANDING. The caller's transaction is then lost as a whole. After the commit,
    publish the hint ``outbound``.
    """
    values = _values(new, context.clock.now())
    for _attempt in range(2):
        tried, _ = await _run(conn, _WITHIN, values)
        if tried.row is not None:
            return
        await tried.mend(conn, new.prepared)
    raise AssertionError("the accounts were just made")


async def start_alone(  # noqa: PLR0913, PLR0917  what, on which conditions, and who asked
    conn: AsyncConnection,
    context: ExchangeContext,
    new: NewExchange,
    settings_mark: str | None,
    claim: Claim | None,
    origin: Origin,
) -> Tried:
    """Do the same as a transaction of its own, on a connection that has none open, and write it into the audit log.

    Nothing is written where the key was used before, the project was switched off, the settings are others by now, a
    coin is disabled, or the credits are used up: what decided about it is then to be read again. Raises
    InsufficientFundsError.
    """
    told, now = {**origin.details, **new.told}, context.clock.now()
    values = _values(new, now) | {"settings_mark": settings_mark, "credits_floor": new.settings.cpt.floor}
    values |= entries.entry_values(origin, Action.EXCHANGE_ASKED, now, subject=new.txn_id, details=told)
    if claim is not None:
        values |= structs.asdict(claim) | {"resource_id": new.txn_id}
    tried, actor = await _run(conn, _ALONE if claim is None else _ALONE_WITH_KEY, values)
    if tried.row is not None:
        entries.tell(origin, Action.EXCHANGE_ASKED, actor=actor, subject=new.txn_id, details=told)
    return tried


async def _run(conn: AsyncConnection, statement: Statement, values: Mapping[str, Any]) -> tuple[Tried, str | None]:
    with ledger.guarded():
        row = (await statement.run(conn, values)).one()
    stored = None if row.stored is None else msgspec.json.decode(row.stored, type=ExchangeRow)
    has_both = row.available_pk is not None, row.pending_pk is not None
    return Tried(row=stored, owes=row.owes, has_available=has_both[0], has_pending=has_both[1]), row.actor


def _values(new: NewExchange, now: datetime) -> dict[str, Any]:
    """Return what is stored, under the statement's names."""
    prepared, offer, terms = new.prepared, new.offer, new.prepared.terms
    owner, wish = prepared.owner, prepared.wish
    kind = IntentKind(wish.kind)
    metered = metered_as(kind)
    give_up_at = now + timedelta(minutes=new.settings.exchanges.valid_minutes)
    return {
        "txn_id": new.txn_id,
        "reference": f"{kind}:{new.txn_id}",
        "kind": kind,
        "made_for": prepared.made_for,
        "project_pk": owner.project_pk,
        "merchant_pk": owner.merchant_pk,
        "mode": owner.mode,
        "scope": owner.scope,
        "provider": offer.provider,
        "source_chain": wish.source.chain.id,
        "source_token": wish.source.token.symbol,
        "source_contract": wish.source.token.contract,
        "source_decimals": wish.source.token.decimals,
        "source_pk": prepared.wallet.pk,
        "sender": prepared.wallet.address,
        "asset": prepared.source_asset,
        "units": wish.units,
        "fee_units": terms.fee_units,
        "given": wish.units - terms.fee_units,
        "dest_chain": wish.dest.chain.id,
        "dest_token": wish.dest.token.symbol,
        "dest_contract": wish.dest.token.contract,
        "dest_decimals": wish.dest.token.decimals,
        "recipient": terms.recipient,
        "recipient_pk": prepared.recipient_pk,
        "payout_pk": new.payout_pk,
        "quoted_units": offer.quote.units,
        "units_min": offer.units_min,
        "slippage_bps": offer.slippage_bps,
        "fee_bps": terms.fee_bps,
        "asked_by": owner.asked_by,
        # There is nothing to do for it before the engine has found the money and wants the call: it says when.
        "due_at": when_idle(give_up_at, now),
        "give_up_at": give_up_at,
        "now": now,
        "metered_as": metered,
        "weight": new.settings.cpt.weights.of(metered, wish.source.chain.id),
    }
