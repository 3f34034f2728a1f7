"""What a text that somebody was sent names: an id, an address, a transaction, an order, an e-mail address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.registry import Registry
from cambist.services.addresses.spelling import spelt
from cambist.services.errors import InvalidError

from .kinds import Name

FOUND_MAX = 1_000
"""Of each kind, in each way, so many are found at most: the newest of them."""
OWNERS_MAX = 100
"""Accounts of many projects with one external id whose deposits are looked for: those of the newest."""

TEXT_CHARS_MAX = 320

_MADE = "created_at DESC, id DESC"
_SEEN = "first_seen_at DESC, id DESC"


class _Way(NamedTuple):
    """One way to find something: what is selected for one spelling of the text, ``one.text``, and the newest first.

    An index begins with what is looked for and goes on in that order, or there are never more than a few. Where
    ``own`` stands, what many projects may have alike is narrowed to the project $6 or the merchant $7.
    """

    select: str
    newest: str = "id DESC"


def _named(table: str, *columns: str) -> Sequence[_Way]:
    return [_Way(f"SELECT id FROM {table} WHERE {column} = one.text") for column in columns]  # noqa: S608


_AT = "mode = ANY($3) AND family = ANY($4) AND address = one.text"
_OF_ADDRESS = f"FROM addresses WHERE {_AT}"
_OF_TX = "FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
_BY_ORDER = "FROM payments WHERE order_id = one.text{own}"
_BY_EXTERNAL_ID = "FROM accounts WHERE external_id = one.text{own}"
_THOSE_PAYMENTS = (
    "(SELECT id FROM payments WHERE payment_id = one.text"  # noqa: S608
    f" UNION ALL (SELECT id {_BY_ORDER} ORDER BY {_MADE} LIMIT {FOUND_MAX})) AS those"
)
_THOSE_ACCOUNTS = (
    "(SELECT id FROM accounts WHERE account_id = one.text"  # noqa: S608
    f" UNION ALL (SELECT id {_BY_EXTERNAL_ID} ORDER BY {_MADE} LIMIT {OWNERS_MAX})) AS those"
)
_MORE_PAYMENTS = f"SELECT {_BY_ORDER} ORDER BY {_MADE} OFFSET {FOUND_MAX} LIMIT 1"
_MORE_ACCOUNTS = f"SELECT {_BY_EXTERNAL_ID} ORDER BY {_MADE} OFFSET {OWNERS_MAX} LIMIT 1"
_NEWEST_OF_ACCOUNT = (
    "CROSS JOIN LATERAL (SELECT id, first_seen_at FROM deposits WHERE account_pk = {pk}"  # noqa: S608
    f" ORDER BY {_SEEN} LIMIT {FOUND_MAX + 1}) AS d"
)
_TO_ADDRESS = "SELECT id, created_at FROM payouts WHERE to_address = one.text"
_SENT = (
    *_named("payouts", "payout_id"),
    _Way("{to_address}", _MADE),
    _Way(f"SELECT p.id {_OF_TX} JOIN payouts p ON p.intent_pk = s.intent_pk WHERE t.tx_id = one.text"),
    _Way(f"SELECT p.id FROM {_THOSE_PAYMENTS} JOIN payouts p ON p.payment_pk = those.id"),  # noqa: S608
)
_WAYS: Mapping[Name, Sequence[_Way]] = {
    Name.PAYMENTS: (
        *_named("payments", "payment_id", "public_id"),
        _Way(f"SELECT id, created_at {_BY_ORDER}", _MADE),
        _Way(f"SELECT payment_pk AS id {_OF_ADDRESS}"),
        _Way("SELECT payment_pk AS id FROM deposits WHERE tx_id = one.text"),
        _Way("SELECT payment_pk AS id FROM deposits WHERE deposit_id = one.text"),
        _Way("SELECT payment_pk AS id FROM payouts WHERE payout_id = one.text"),
    ),
    Name.DEPOSITS: (
        *_named("deposits", "deposit_id", "tx_id"),
        _Way(f"SELECT d.id FROM {_THOSE_PAYMENTS} JOIN deposits d ON d.payment_pk = those.id"),  # noqa: S608
        _Way(f"SELECT d.id FROM addresses a JOIN deposits d ON d.payment_pk = a.payment_pk WHERE a.{_AT}"),  # noqa: S608
        _Way(
            f"SELECT d.id, d.first_seen_at FROM (SELECT account_pk {_OF_ADDRESS}) AS those"  # noqa: S608
            f" {_NEWEST_OF_ACCOUNT.format(pk='those.account_pk')}",
            _SEEN,
        ),
        _Way(
            f"SELECT d.id, d.first_seen_at FROM {_THOSE_ACCOUNTS} {_NEWEST_OF_ACCOUNT.format(pk='those.id')}",  # noqa: S608
            _SEEN,
        ),
    ),
    Name.PAYOUTS: _SENT,
    Name.REFUNDS: _SENT,
    Name.WITHDRAWALS: _SENT,
    Name.EXCHANGES: (
        *_named("exchanges", "txn_id"),
        _Way(f"SELECT e.id {_OF_TX} JOIN exchanges e ON e.intent_pk = s.intent_pk WHERE t.tx_id = one.text"),
        _Way(
            "SELECT p.exchange_pk AS id FROM deposits d JOIN exchange_parts p ON p.deposit_pk = d.id"
            " WHERE d.tx_id = one.text"
        ),
    ),
    Name.ACCOUNTS: (
        *_named("accounts", "account_id", "public_id"),
        _Way(f"SELECT id, created_at {_BY_EXTERNAL_ID}", _MADE),
        _Way(f"SELECT account_pk AS id {_OF_ADDRESS}"),
        _Way("SELECT account_pk AS id FROM deposits WHERE deposit_id = one.text"),
    ),
    Name.TRACKERS: (
        *_named("trackers", "webhook_id"),
        _Way(
            "SELECT each.id FROM unnest($5::text[]) AS c (chain) CROSS JOIN LATERAL ("  # noqa: S608
            "SELECT tracker_pk AS id FROM tracker_addresses WHERE chain = c.chain AND address = one.text AND {listed}"
            f" ORDER BY tracker_pk DESC LIMIT {FOUND_MAX + 1}) AS each"
        ),
    ),
}
"""$3 to $5 are modes, families and chains."""
_LEFT_OUT: Mapping[Name, Sequence[str]] = {
    Name.DEPOSITS: (_MORE_PAYMENTS, _MORE_ACCOUNTS),
    **dict.fromkeys((Name.PAYOUTS, Name.REFUNDS, Name.WITHDRAWALS), (_MORE_PAYMENTS,)),
}
"""What has a row where the ways of a kind go by the newest of some payments or accounts, and not by all of them."""
_CUSTOMERS = _Way(
    "SELECT id FROM payments WHERE customer_email IS NOT NULL AND lower(customer_email) = $2 AND one.number = 1{own}"
)


class Owners(Struct, frozen=True, kw_only=True):
    """Which merchant and which project a text names."""

    merchant_pk: int | None = None
    project_pk: int | None = None


def spellings(registry: Registry, text: str) -> Sequence[str]:
    """Return a text as it may be stored: as it is, in small letters, and as each family spells an address."""
    found = [text, text.lower()]
    if text.lower().startswith("0x"):
        found.append(text.lower().removeprefix("0x"))
    found += [address for family in registry.families.values() if (address := spelt(family, text)) is not None]
    return list(dict.fromkeys(found))


class Named(Struct, frozen=True):
    """The primary keys of what a text names. Without ``is_all`` it names more: these are the newest of them."""

    pks: Sequence[int]
    is_all: bool


async def find(  # noqa: PLR0913  what, of which kind, for whom
    conn: AsyncConnection,
    registry: Registry,
    name: Name,
    text: str,
    *,
    with_people: bool,
    owners: Owners = Owners(),  # noqa: B008  frozen
) -> Named:
    """Return what a text names, of one kind: in each way the newest ``FOUND_MAX``.

    Payouts, refunds and withdrawals are one kind here. Customers are found by whoever may see them. Of what many
    projects may have alike, such as an order's number, only that of the project or the merchant where one is given.
    The rest is of whose it is: an id, an address and a transaction of another project are among what is returned.
    """
    ways = list(_WAYS[name])
    if name is Name.PAYMENTS and with_people and "@" in text:
        ways.append(_CUSTOMERS)
    narrowed = _narrowed(owners)
    # Whatever a way does not use is named, so that all take the same.
    types = ("text[]", "text", "text[]", "text[]", "text[]", "bigint", "bigint")
    uses = " AND ".join(f"${place}::{kind} IS NOT NULL" for place, kind in enumerate(types, 1))
    left_out = [_mark(more.format(own=narrowed.own)) for more in _LEFT_OUT.get(name, ())]
    each = " UNION ALL ".join([*(_statement(way, narrowed) for way in ways), *left_out])
    statement = f"SELECT id, min(place) AS place FROM ({each}) AS found WHERE {uses} GROUP BY id"  # noqa: S608
    families, chains = list(registry.families), list(registry.chains)
    pks_of_owners = owners.project_pk or 0, owners.merchant_pk or 0
    values = (list(spellings(registry, text)), text.lower(), ["live", "sandbox"], families, chains, *pks_of_owners)
    found = (await conn.exec_driver_sql(statement, values)).all()
    pks = [row.id for row in found if row.place <= FOUND_MAX]
    return Named(pks, is_all=len(pks) == len(found))


class _Narrowed(NamedTuple):
    """What narrows what many projects may have alike, the addresses of trackers, and what was sent to an address."""

    own: str
    listed: str
    to_address: str


def _narrowed(owners: Owners) -> _Narrowed:
    # A sandbox project has a scope of its own. Of one project there are few trackers, of all of them too many.
    if owners.project_pk is not None:
        mine = "SELECT id FROM trackers WHERE project_pk = $6"
        listed = f"scope IN (0, $6) AND tracker_pk IN ({mine})"
        return _Narrowed(" AND project_pk = $6", listed, f"{_TO_ADDRESS} AND project_pk = $6")
    if owners.merchant_pk is not None:
        mine = "SELECT t.id FROM trackers t JOIN projects p ON p.id = t.project_pk WHERE p.merchant_pk = $7"
        # Project by project, by an index that begins with it: others may have sent there a million times.
        newest = f"{_TO_ADDRESS} AND project_pk = p.id ORDER BY {_MADE} LIMIT {FOUND_MAX + 1}"
        sent = f"SELECT m.* FROM projects p CROSS JOIN LATERAL ({newest}) AS m WHERE p.merchant_pk = $7"  # noqa: S608
        return _Narrowed(" AND merchant_pk = $7", f"scope = 0 AND tracker_pk IN ({mine})", sent)
    return _Narrowed("", "scope = 0", _TO_ADDRESS)


def _mark(more: str) -> str:
    """Return what finds one row, of nothing and beyond the last place, where this finds any of one spelling."""
    return (
        f"SELECT 0::bigint AS id, {FOUND_MAX + 1} AS place FROM unnest($1::text[]) AS one (text)"  # noqa: S608
        f" CROSS JOIN LATERAL ({more}) AS more"
    )


def _statement(way: _Way, narrowed: _Narrowed) -> str:
    """Return what finds the newest of each spelling, looked for by itself, so that an index gives the order."""
    selected = way.select.format(**narrowed._asdict())
    first = f"SELECT * FROM ({selected}) AS way WHERE id IS NOT NULL ORDER BY {way.newest} LIMIT {FOUND_MAX + 1}"  # noqa: S608
    return (
        "SELECT each.id, each.place FROM unnest($1::text[]) WITH ORDINALITY AS one (text, number) CROSS JOIN LATERAL"  # noqa: S608
        f" (SELECT id, row_number() OVER (ORDER BY {way.newest}) AS place FROM ({first}) AS first) AS each"
    )


_OWNERS = """
SELECT id AS merchant_pk, NULL::bigint AS project_pk FROM merchants WHERE merchant_id = $1
UNION ALL SELECT id, NULL FROM merchants WHERE email = lower($1)
UNION ALL SELECT merchant_pk, NULL FROM members WHERE email = lower($1)
UNION ALL SELECT merchant_pk, id FROM projects WHERE project_id = $1
LIMIT 1
"""
_MERCHANT_ID = "SELECT merchant_id FROM merchants WHERE id = $1"


async def owner_of(conn: AsyncConnection, text: str) -> Owners | None:
    """Return the merchant that a text names, by id or e-mail address, a member's too; or a project. None for none."""
    row = (await conn.exec_driver_sql(_OWNERS, (text,))).one_or_none()
    return None if row is None else Owners(merchant_pk=row.merchant_pk, project_pk=row.project_pk)


async def merchant_named(conn: AsyncConnection, text: str) -> str:
    """Return the id of the merchant that a filter names, as ``owner_of`` finds it. Raises InvalidError for none."""
    owner = await owner_of(conn, text)
    if owner is None or owner.project_pk is not None:
        raise no_such_merchant()
    merchant_id: str = (await conn.exec_driver_sql(_MERCHANT_ID, (owner.merchant_pk,))).scalar_one()
    return merchant_id


def no_such_merchant() -> InvalidError:
    """Return the refusal of a filter that names no merchant."""
    return InvalidError.field("merchant", "there is no such merchant")
