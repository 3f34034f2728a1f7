"""New intents, and wishes to cancel them: a use case writes one in its own transaction, and the engine finds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.failures import SENTENCES, Failure
from cambist.domain.intents import FACTS, AskedBy, IntentKind
from cambist.plugin import Token, Units
from cambist.services.addresses.wallets import OwnAddress
from cambist.services.chain_scope import ChainScope


class NewIntent(Struct, frozen=True, kw_only=True):
    """A transaction from an address of ours. ``reference`` names it for ever: the same one is never sent twice.

    ``recipient_pk`` is the primary key of ``to_address`` where that is an address of ours, too.
    """

    reference: str
    kind: IntentKind
    chain_scope: ChainScope
    merchant_pk: int | None
    source_pk: int
    to_address: str
    token: Token
    units: Units
    recipient_pk: int | None = None
    asked_by: AskedBy = AskedBy.PLATFORM
    work_max: int | None = None
    tag: str | None = None


def internal_intent(  # noqa: PLR0913  each by name
    kind: IntentKind,
    intent_id: str,
    chain_scope: ChainScope,
    *,
    merchant_pk: int | None,
    source_pk: int,
    recipient: OwnAddress,
    units: int,
    asked_by: AskedBy = AskedBy.PLATFORM,
) -> NewIntent:
    """Return an intent between two addresses of ours, in native coin."""
    return NewIntent(
        reference=f"{kind}:{intent_id}",
        kind=kind,
        chain_scope=chain_scope,
        merchant_pk=merchant_pk,
        source_pk=source_pk,
        recipient_pk=recipient.pk,
        to_address=recipient.address,
        token=chain_scope.info.native,
        units=Units(units),
        asked_by=asked_by,
    )


_SUBMIT = """
INSERT INTO outbound_intents (
    due_at, created_at, updated_at, reference, kind, mode, chain, scope, merchant_pk, source_address_pk,
    recipient_address_pk, to_address, token, contract, decimals, units, priority, action, asked_by,
    work_max, tag
)
SELECT $1, $1, $1, * FROM unnest(
    $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
    $10::text[], $11::text[], $12::text[], $13::bigint[], $14::numeric[], $15::bigint[], $16::text[], $17::text[],
    $18::bigint[], $19::text[]
)
ON CONFLICT (reference) DO NOTHING
RETURNING reference, id
"""


async def submit(conn: AsyncConnection, intents: Sequence[NewIntent], now: datetime) -> dict[str, int]:
    """Store what was not stored before; return the rows of what is new by reference.

    The engine finds it once the caller's transaction is committed; a hint on the topic ``outbound`` makes it sooner.
    """
    if not intents:
        return {}
    rows = await conn.exec_driver_sql(
        _SUBMIT,
        (
            now,
            [one.reference for one in intents],
            [one.kind for one in intents],
            [one.chain_scope.mode for one in intents],
            [one.chain_scope.info.id for one in intents],
            [one.chain_scope.scope for one in intents],
            [one.merchant_pk for one in intents],
            [one.source_pk for one in intents],
            [one.recipient_pk for one in intents],
            [one.to_address for one in intents],
            [one.token.symbol for one in intents],
            [one.token.contract for one in intents],
            [one.token.decimals for one in intents],
            [one.units for one in intents],
            [FACTS[one.kind].priority for one in intents],
            [FACTS[one.kind].action for one in intents],
            [one.asked_by for one in intents],
            [one.work_max for one in intents],
            [one.tag for one in intents],
        ),
    )
    return {row.reference: row.id for row in rows}


WAITS_FOR_CANCELLATION = "cancellation"


async def mark_cancelled(conn: AsyncConnection, intent_pk: int, asked_by: AskedBy, now: datetime) -> None:
    """Have an intent be cancelled that waits, which the caller has locked: nobody signs it from the commit on."""
    await conn.exec_driver_sql(
        "UPDATE outbound_intents SET cancel_asked_at = $2, cancel_asked_by = $3, reason = $4, due_at = $2,"
        " updated_at = $2 WHERE id = $1",
        (intent_pk, now, asked_by, WAITS_FOR_CANCELLATION),
    )


async def mark_denied(conn: AsyncConnection, intent_pk: int, now: datetime) -> None:
    """Have an intent be cancelled whose signing a person has denied, and which the caller has locked."""
    await mark_cancelled(conn, intent_pk, AskedBy.OPERATOR, now)
    why = SENTENCES[Failure.DENIED_BY_OPERATOR]
    await conn.exec_driver_sql("UPDATE outbound_intents SET given_up_reason = $2 WHERE id = $1", (intent_pk, why))


async def mark_given_up(conn: AsyncConnection, reasons: Mapping[int, str], now: datetime) -> None:
    """Have intents fail for these reasons, by primary key, which wait and which the caller has locked.

    As with those that somebody cancels, nobody signs them from the commit on, and the money of each goes back once its
    signer has voided it.
    """
    await conn.exec_driver_sql(
        "UPDATE outbound_intents i SET cancel_asked_at = $3, cancel_asked_by = $4, given_up_reason = n.why,"
        " reason = $5, due_at = $3, updated_at = $3 FROM unnest($1::bigint[], $2::text[]) AS n (id, why)"
        " WHERE i.id = n.id",
        (list(reasons), list(reasons.values()), now, AskedBy.PLATFORM, WAITS_FOR_CANCELLATION),
    )


_COMING = """
SELECT EXISTS (SELECT FROM outbound_intents WHERE recipient_address_pk = $1 AND chain = $2 AND scope = $3
    AND kind = $4 AND state IN ('waiting', 'sending'))
"""


async def is_coming(conn: AsyncConnection, chain_scope: ChainScope, recipient_pk: int, kind: IntentKind) -> bool:
    """Whether an intent of this kind to an address of ours is open. Engines to which none is take turns."""
    wanted = (recipient_pk, *chain_scope.key, kind)
    if (await conn.exec_driver_sql(_COMING, wanted)).scalar_one():
        return True
    # Another may be asking for one: behind it, its own is seen.
    await lock_recipient(conn, recipient_pk)
    return bool((await conn.exec_driver_sql(_COMING, wanted)).scalar_one())


async def lock_recipient(conn: AsyncConnection, recipient_pk: int) -> None:
    """Have engines take turns that ask for something to an address of ours, until the transaction ends."""
    await conn.exec_driver_sql("SELECT FROM addresses WHERE id = $1 FOR NO KEY UPDATE", (recipient_pk,))
