"""What operators see of money that no collection takes to a main wallet yet, and that they may ask for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, Literal

from msgspec import Struct, convert, structs
from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Account, Address, Merchant, Payment, UncollectedFunds
from cambist.db.structs import columns_of, to_struct
from cambist.domain.collections import Hindrance, UncollectedReason
from cambist.domain.intents import IntentKind
from cambist.plugin import Units
from cambist.services.errors import NotFoundError
from cambist.services.listing import ALWAYS, Listed, ListOf, Owner, Part, Period, read_list
from cambist.services.paging import read_one

TEXTS: Mapping[UncollectedReason, str] = {
    UncollectedReason.NOT_SENDABLE: "The token was added and does not stand in the signer's file yet: it stays where"
    " it is until it can be sent.",
    UncollectedReason.FAILED_LATELY: "Its last collection failed: the next is made after a pause, longer"
    " each time, or when somebody asks.",
    UncollectedReason.OFF: "Collecting is switched off in the platform settings: only payouts fetch what they need.",
    UncollectedReason.FEES_ABOVE_CEILING: "Sending costs more now than the chain's ceiling allows.",
    UncollectedReason.REFUSED: "The chain would refuse the transfer.",
    UncollectedReason.PRICE_MISSING: "No price source knows what it is worth, or what the fee is.",
    UncollectedReason.FEE_ABOVE_VALUE: "The fee is as much as what it would bring, or more.",
    UncollectedReason.BELOW_MINIMUM: "It is worth less than the least amount that is collected before its time.",
    UncollectedReason.FEE_ABOVE_SHARE: "The fee is a larger share of it than is allowed.",
}


HINDRANCE_TEXTS: Mapping[Hindrance, str] = {
    Hindrance.NO_GAS_STATION: "No gas station is known that could pay for it: the worker makes one known as it begins.",
    Hindrance.NO_NODE_ANSWERS: "The chain's nodes did not answer when it was judged.",
    Hindrance.COST_UNKNOWN: "The chain could not say what it would cost when it was judged.",
}
PAUSED = "paused"
NOT_LOOKED_AT = "not_looked_at"
PAUSED_TEXT = "An operator has paused sending on this chain, so nobody looks at it."
NOT_LOOKED_AT_TEXT = "No worker has looked at it yet: that takes a moment, or none sends on this chain."


class UncollectedRow(Struct, frozen=True, kw_only=True):
    """One token on one address, and why it was not collected when the engine last judged otherwise than before."""

    pk: int
    uncollected_id: str
    merchant_id: str
    merchant_name: str
    chain: str
    scope: int
    address: str
    purpose: str
    payment_id: str | None
    account_id: str | None
    token: str
    contract: str | None
    decimals: int
    units: Units
    reason: UncollectedReason
    detail: str | None
    value_usd: Decimal | None
    fee_usd: Decimal | None
    until: datetime | None
    judged_at: datetime
    asked_at: datetime | None
    asked_fee_share_bps: int | None
    hindrance: Hindrance | None
    hindrance_detail: str | None
    hindered_at: datetime | None
    refusal: UncollectedReason | None
    refused_at: datetime | None
    created_at: datetime

    @property
    def text(self) -> str:
        """Say in a sentence why it stays where it is."""
        return text_of(self.reason, self.detail)


def text_of(reason: UncollectedReason, detail: str | None) -> str:
    """Say in a sentence why something stays where it is; ``detail`` is in the chain's words."""
    return TEXTS[reason] if detail is None else f"{TEXTS[reason]} It says: {detail}"


_SELECT = (
    select(
        *columns_of(
            UncollectedRow,
            UncollectedFunds,
            merchant_id=Merchant.merchant_id,
            merchant_name=Merchant.name,
            address=Address.address,
            purpose=Address.purpose,
            payment_id=Payment.payment_id,
            account_id=Account.account_id,
        )
    )
    .join(Merchant, Merchant.id == UncollectedFunds.merchant_pk)
    .join(Address, Address.id == UncollectedFunds.address_pk)
    .outerjoin(Payment, Payment.id == Address.payment_pk)
    .outerjoin(Account, Account.id == Address.account_pk)
)
_LIST = ListOf(UncollectedFunds.id, UncollectedFunds.created_at, indexed=[UncollectedFunds.reason])


async def list_uncollected(  # noqa: PLR0913  filters, each by name
    conn: AsyncConnection,
    part: Part,
    *,
    merchant_id: str | None = None,
    chain: str | None = None,
    token: str | None = None,
    reason: UncollectedReason | None = None,
    period: Period = ALWAYS,
) -> Listed[UncollectedRow]:
    """Return one part of what lies on addresses, everybody's or a merchant's."""
    own: Owner = {}
    if merchant_id is not None:
        found = await conn.scalar(select(Merchant.id).where(Merchant.merchant_id == merchant_id))
        own = {UncollectedFunds.merchant_pk: found or 0}
    filters = {UncollectedFunds.reason: reason, UncollectedFunds.chain: chain, UncollectedFunds.token: token}
    show = partial(to_struct, UncollectedRow)
    return await read_list(conn, _SELECT, show, _LIST, part, own=own, filters=filters, period=period)


async def find(conn: AsyncConnection, uncollected_id: str) -> UncollectedRow:
    """Return one of them. Raises NotFoundError, also once it is collected."""
    words = "There is nothing of this id that waits to be collected: it may be on its way."
    missing = NotFoundError("UNCOLLECTED_NOT_FOUND", words)
    wanted = UncollectedFunds.uncollected_id == uncollected_id
    return to_struct(UncollectedRow, await read_one(conn, _SELECT.where(wanted), missing))


async def ask(
    conn: AsyncConnection, uncollected_id: str, max_fee_share_bps: int | None, now: datetime
) -> tuple[UncollectedRow, bool]:
    """Want one to be collected at the engine's next check; return it, and whether that was not so already.

    The engine collects it whatever its size and age, for a fee of at most that share of it, or the rule's own share
    for None; or it says anew why not. Raises NotFoundError.
    """
    before = await find(conn, uncollected_id)
    if before.asked_at is not None and before.asked_fee_share_bps == max_fee_share_bps:
        return before, False
    asked = {"asked_at": now, "asked_fee_share_bps": max_fee_share_bps, **_UNHINDERED}
    return await _change(conn, before, {**asked, "refusal": None, "refused_at": None}), True


async def withdraw(conn: AsyncConnection, uncollected_id: str) -> tuple[UncollectedRow, bool]:
    """Take a wish back; return what it was about, and whether there was one.

    It is collected as everything else from then on: when that is worth it. What an engine is judging meanwhile is not
    collected for it either. Raises NotFoundError, also once it is on its way.
    """
    before = await find(conn, uncollected_id)
    if before.asked_at is None:
        return before, False
    return await _change(conn, before, {"asked_at": None, "asked_fee_share_bps": None, **_UNHINDERED}), True


_UNHINDERED = {"hindrance": None, "hindrance_detail": None, "hindered_at": None}


async def _change(conn: AsyncConnection, before: UncollectedRow, values: Mapping[str, Any]) -> UncollectedRow:
    changed = await conn.execute(update(UncollectedFunds).where(UncollectedFunds.id == before.pk).values(**values))
    if not changed.rowcount:
        before = await find(conn, before.uncollected_id)
    return structs.replace(before, **values)


class WishWaits(Struct, frozen=True):
    """Why a wish has no answer yet: a word for programs, a sentence for people, and since when that is known."""

    code: str
    text: str
    since: datetime | None = None


def wish_waits_for(one: UncollectedRow | AtAddress, *, paused: bool) -> WishWaits | None:
    """Say why what somebody wants is neither collected nor refused; None where nobody wants it."""
    if one.asked_at is None:
        return None
    if paused:
        return WishWaits(PAUSED, PAUSED_TEXT)
    if one.hindrance is None:
        return WishWaits(NOT_LOOKED_AT, NOT_LOOKED_AT_TEXT)
    text = HINDRANCE_TEXTS[one.hindrance]
    if one.hindrance_detail is not None:
        text = f"{text} It says: {one.hindrance_detail}"
    return WishWaits(one.hindrance, text, one.hindered_at)


class UncollectedSum(Struct, frozen=True, kw_only=True):
    """What stays on addresses of a chain for one reason, of one token. ``value_usd`` is without ``unpriced`` of them.

    ``since`` is when the oldest of it was confirmed.
    """

    chain: str
    token: str
    contract: str | None
    decimals: int
    reason: UncollectedReason
    units: Units
    addresses: int
    value_usd: Decimal
    unpriced: int
    since: datetime


# Of each reason, chain and token there is one: what is configured bounds them.
_SUMS = """
SELECT u.chain, min(u.token) AS token, u.contract, min(u.decimals) AS decimals, u.reason, sum(u.units) AS units,
    count(*) AS addresses, coalesce(sum(u.value_usd), 0) AS value_usd,
    count(*) FILTER (WHERE u.value_usd IS NULL) AS unpriced, min(u.created_at) AS since
FROM uncollected_funds u GROUP BY u.chain, u.contract, u.reason
ORDER BY u.chain, min(u.token), u.contract, coalesce(sum(u.value_usd), 0) DESC, u.reason LIMIT 1000
"""


async def sum_uncollected(conn: AsyncConnection) -> Sequence[UncollectedSum]:
    """Return how much of each token stays on addresses of each chain, and for which reason."""
    rows = (await conn.exec_driver_sql(_SUMS)).all()
    return [convert({**row._mapping, "units": int(row.units)}, UncollectedSum) for row in rows]  # noqa: SLF001


class AtAddress(Struct, frozen=True, kw_only=True):
    """Deposits of one token at an address that are not in a main wallet.

    ``state``: ``confirming``, ``uncollected``, or ``collecting``, by the intent ``intent_id``. ``height`` is that of
    the newest of them, ``confirmations`` what they need, ``reached`` up to where the chain was read. ``reason`` is why
    it was not collected, None before it was judged; ``detail`` is in the chain's words. What follows is as in
    ``UncollectedRow``.
    """

    state: Literal["confirming", "uncollected", "collecting"]
    merchant_id: str
    merchant_name: str
    mode: str
    chain: str
    address: str
    purpose: str
    token: str
    contract: str | None
    decimals: int
    units: Units
    deposits: int
    height: int
    confirmations: int
    reached: int | None
    intent_id: str | None
    uncollected_id: str | None
    reason: UncollectedReason | None
    detail: str | None
    value_usd: Decimal | None
    fee_usd: Decimal | None
    asked_at: datetime | None
    asked_fee_share_bps: int | None
    hindrance: Hindrance | None
    hindrance_detail: str | None
    hindered_at: datetime | None
    refusal: UncollectedReason | None
    refused_at: datetime | None


# Each part by an index of what is open, however many deposits an address has seen: what waits for confirmations lies in
# the newest blocks, and what is not collected is found by its merchant.
AT_ADDRESS = f"""
WITH mine AS (
    SELECT id, merchant_pk FROM addresses WHERE address = ANY($1::text[]) AND family = ANY($2::text[]) LIMIT 100
), deposit AS (
    SELECT d.* FROM deposits d WHERE d.status = 'detected' AND d.address_pk IN (SELECT id FROM mine)
    UNION ALL SELECT d.* FROM chain_cursors k CROSS JOIN mine JOIN deposits d ON d.chain = k.chain AND d.scope = k.scope
        AND d.merchant_pk = mine.merchant_pk AND d.address_pk = mine.id
        AND d.status = 'confirmed' AND d.collection_pk IS NULL
    UNION ALL SELECT d.* FROM mine JOIN outbound_intents o ON o.source_address_pk = mine.id
        AND o.state IN ('waiting', 'sending') AND o.kind = '{IntentKind.COLLECTION}'
        JOIN deposits d ON d.collection_pk = o.id AND d.status = 'confirmed'
)
SELECT CASE WHEN d.status = 'detected' THEN 'confirming' WHEN d.collection_pk IS NULL THEN 'uncollected'
        ELSE 'collecting' END AS state,
    r.merchant_id, r.name AS merchant_name, d.mode, d.chain, a.address, a.purpose, min(d.token) AS token, d.contract,
    min(d.decimals) AS decimals, sum(d.units) AS units, count(*) AS deposits, max(d.height) AS height,
    max(d.required_confirmations) AS confirmations, c.height AS reached, i.intent_id,
    min(u.uncollected_id) AS uncollected_id, min(u.reason) AS reason, min(u.detail) AS detail,
    min(u.value_usd) AS value_usd, min(u.fee_usd) AS fee_usd, min(u.asked_at) AS asked_at,
    min(u.asked_fee_share_bps) AS asked_fee_share_bps, min(u.hindrance) AS hindrance,
    min(u.hindrance_detail) AS hindrance_detail, min(u.hindered_at) AS hindered_at,
    min(u.refusal) AS refusal, min(u.refused_at) AS refused_at
FROM deposit d JOIN addresses a ON a.id = d.address_pk AND a.purpose IN ('payment', 'account')
    JOIN merchants r ON r.id = d.merchant_pk
    LEFT JOIN chain_cursors c ON c.chain = d.chain AND c.scope = d.scope
    LEFT JOIN outbound_intents i ON i.id = d.collection_pk
    LEFT JOIN uncollected_funds u ON u.chain = d.chain AND u.scope = d.scope AND u.address_pk = d.address_pk
        AND coalesce(u.contract, '') = coalesce(d.contract, '') AND d.status = 'confirmed' AND d.collection_pk IS NULL
GROUP BY 1, r.merchant_id, r.name, d.mode, d.chain, a.address, a.purpose, d.contract, c.height, i.intent_id
ORDER BY d.chain, min(d.token), 1, i.intent_id LIMIT 200
"""  # noqa: S608  a constant


_IS_OURS = """
SELECT EXISTS (SELECT FROM addresses WHERE address = ANY($1::text[]) AND family = ANY($2::text[])
    AND purpose IN ('payment', 'account'))
"""


async def read_address(conn: AsyncConnection, spellings: Sequence[str], families: Sequence[str]) -> Sequence[AtAddress]:
    """Return what is at an address of ours and not in a main wallet, however it is spelled. Raises NotFoundError."""
    values = (list(spellings), list(families))
    rows = (await conn.exec_driver_sql(AT_ADDRESS, values)).all()
    if rows:
        return [convert({**row._mapping, "units": int(row.units)}, AtAddress) for row in rows]  # noqa: SLF001
    if not (await conn.exec_driver_sql(_IS_OURS, values)).scalar_one():
        raise NotFoundError("ADDRESS_NOT_FOUND", "There is no such address of a payment or an account.")
    return []
