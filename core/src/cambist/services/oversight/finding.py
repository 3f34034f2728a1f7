"""What a text that somebody was sent names: an id, an address, a transaction, an order, an e-mail address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.plugin import InvalidAddressError
from cambist.registry import Registry
from cambist.services.errors import InvalidError

from .kinds import Name

FOUND_MAX = 1_000
"""Of each kind, in each way, so many are found at most."""

TEXT_CHARS_MAX = 320

_OF_PAYMENT = "payment_id = ANY($1) UNION ALL SELECT id FROM payments WHERE order_id = ANY($1){own}"
_OF_ACCOUNT = "account_id = ANY($1) UNION ALL SELECT id FROM accounts WHERE external_id = ANY($1){own}"
_OF_DEPOSIT = "SELECT id FROM deposits WHERE tx_id = ANY($1)"
_OF_ADDRESS = "FROM addresses WHERE mode = ANY($3) AND family = ANY($4) AND address = ANY($1)"
_OF_TX = "FROM outbound_txs t JOIN outbound_slots s ON s.id = t.slot_pk"
_SENT = (
    "SELECT id FROM payouts WHERE payout_id = ANY($1)",
    "SELECT id FROM payouts WHERE to_address = ANY($1){own}",
    f"SELECT p.id {_OF_TX} JOIN payouts p ON p.intent_pk = s.intent_pk WHERE t.tx_id = ANY($1)",
    f"SELECT id FROM payouts WHERE payment_pk IN (SELECT id FROM payments WHERE {_OF_PAYMENT})",  # noqa: S608
)
# Each way is an index that begins with what is looked for. $1 are the spellings of the text, $2 is it in small letters,
# $3 to $5 are modes, families and chains. Where ``own`` stands, what many projects may have alike is narrowed to $6.
_WAYS: Mapping[Name, Sequence[str]] = {
    Name.PAYMENTS: (
        "SELECT id FROM payments WHERE payment_id = ANY($1)",
        "SELECT id FROM payments WHERE public_id = ANY($1)",
        "SELECT id FROM payments WHERE order_id = ANY($1){own}",
        f"SELECT payment_pk AS id {_OF_ADDRESS}",
        "SELECT payment_pk AS id FROM deposits WHERE tx_id = ANY($1)",
        "SELECT payment_pk AS id FROM deposits WHERE deposit_id = ANY($1)",
        "SELECT payment_pk AS id FROM payouts WHERE payout_id = ANY($1)",
    ),
    Name.DEPOSITS: (
        "SELECT id FROM deposits WHERE deposit_id = ANY($1)",
        "SELECT id FROM deposits WHERE tx_id = ANY($1)",
        f"SELECT id FROM deposits WHERE payment_pk IN (SELECT id FROM payments WHERE {_OF_PAYMENT})",  # noqa: S608
        f"SELECT id FROM deposits WHERE payment_pk IN (SELECT payment_pk {_OF_ADDRESS})",  # noqa: S608
        f"SELECT id FROM deposits WHERE account_pk IN (SELECT account_pk {_OF_ADDRESS})",  # noqa: S608
        f"SELECT id FROM deposits WHERE account_pk IN (SELECT id FROM accounts WHERE {_OF_ACCOUNT})",  # noqa: S608
    ),
    Name.PAYOUTS: _SENT,
    Name.REFUNDS: _SENT,
    Name.WITHDRAWALS: _SENT,
    Name.EXCHANGES: (
        "SELECT id FROM exchanges WHERE txn_id = ANY($1)",
        f"SELECT e.id {_OF_TX} JOIN exchanges e ON e.intent_pk = s.intent_pk WHERE t.tx_id = ANY($1)",
        f"SELECT exchange_pk AS id FROM exchange_parts WHERE deposit_pk IN ({_OF_DEPOSIT})",  # noqa: S608
    ),
    Name.ACCOUNTS: (
        "SELECT id FROM accounts WHERE account_id = ANY($1)",
        "SELECT id FROM accounts WHERE public_id = ANY($1)",
        "SELECT id FROM accounts WHERE external_id = ANY($1){own}",
        f"SELECT account_pk AS id {_OF_ADDRESS}",
        "SELECT account_pk AS id FROM deposits WHERE deposit_id = ANY($1)",
    ),
    Name.TRACKERS: (
        "SELECT id FROM trackers WHERE webhook_id = ANY($1)",
        "SELECT tracker_pk AS id FROM tracker_addresses WHERE chain = ANY($5) AND address = ANY($1) AND {listed}",
    ),
}
_CUSTOMERS = "SELECT id FROM payments WHERE customer_email IS NOT NULL AND lower(customer_email) = $2{own}"


class Owners(Struct, frozen=True, kw_only=True):
    """Which merchant and which project a text names."""

    merchant_pk: int | None = None
    project_pk: int | None = None


def spellings(registry: Registry, text: str) -> Sequence[str]:
    """Return a text as it may be stored: as it is, in small letters, and as each family spells an address."""
    found = [text, text.lower()]
    if text.lower().startswith("0x"):
        found.append(text.lower().removeprefix("0x"))
    for family in registry.families.values():
        try:
            found.append(family.normalize_address(text))
        except InvalidAddressError:
            continue
    return list(dict.fromkeys(found))


async def find(  # noqa: PLR0913  what, of which kind, for whom
    conn: AsyncConnection,
    registry: Registry,
    name: Name,
    text: str,
    *,
    with_people: bool,
    most: int = FOUND_MAX,
    project_pk: int | None = None,
) -> Sequence[int]:
    """Return the primary keys of what a text names, of one kind. Customers are found by whoever may see them.

    Of what many projects may have alike, such as an order's number, only that of the project where one is given. The
    rest is of whose it is: an id, an address and a transaction of another project are among what is returned.
    """
    ways = list(_WAYS[name])
    if name is Name.PAYMENTS and with_people and "@" in text:
        ways.append(_CUSTOMERS)
    own = "" if project_pk is None else " AND project_pk = $6"
    # Whatever a way does not use is named, so that all take the same.
    types = ("text[]", "text", "text[]", "text[]", "text[]", "bigint")
    uses = " AND ".join(f"${place}::{kind} IS NOT NULL" for place, kind in enumerate(types, 1))
    # A sandbox project has a scope of its own. Of one project there are few trackers, of all of them too many.
    trackers = "scope IN (0, $6) AND tracker_pk IN (SELECT id FROM trackers WHERE project_pk = $6)"
    listed = "scope = 0" if project_pk is None else trackers
    narrowed = [way.format(own=own, listed=listed) for way in ways]
    ways = [f"(SELECT id FROM ({way}) AS way WHERE id IS NOT NULL LIMIT {int(most)})" for way in narrowed]  # noqa: S608
    each = " UNION ALL ".join(ways)
    statement = f"SELECT DISTINCT id FROM ({each}) AS found WHERE {uses}"  # noqa: S608
    families, chains = list(registry.families), list(registry.chains)
    values = (list(spellings(registry, text)), text.lower(), ["live", "sandbox"], families, chains, project_pk or 0)
    return list((await conn.exec_driver_sql(statement, values)).scalars())


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
