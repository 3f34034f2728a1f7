"""The rows of a batch, each judged by itself: what can be paid, what its key paid before, what is refused alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, structs
from sqlalchemy import ColumnElement, and_, delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import IdempotencyKey
from cambist.db.structs import AnyRow, one_of
from cambist.domain import destinations
from cambist.domain.intents import IntentKind
from cambist.domain.money import same_value
from cambist.domain.payouts import Limits
from cambist.services.actor import Actor
from cambist.services.addresses.checks import check_tag, check_to_address, refuse_source
from cambist.services.errors import FieldProblem, InvalidError, ServiceError
from cambist.services.idempotency import Claim, by_value, choose_key, refuse_other_use
from cambist.services.platform import PlatformSettings
from cambist.services.pricing.quotes import Asset, read_units

from .create import OPERATION, request_claim
from .limits import check_one
from .queue import NewPayout, PayoutContext
from .requests import BatchRequest, Destination, PayoutRequest

KEY = "idempotencyKey"
"""The field of a row that names it for ever."""


class Rejected(Struct, frozen=True, kw_only=True, rename="camel"):
    """A row that was refused alone. ``row`` counts from 0, ``field`` is what of it is wrong where that is one alone."""

    row: int
    to_address: str
    amount: str
    code: str
    error: str
    field: str | None


class BatchRejectedError(InvalidError):
    """Every row of a batch was refused; ``rejected`` says why, row by row."""

    def __init__(self, rejected: Sequence[Rejected]) -> None:
        problems = [FieldProblem(f"destinations[{one.row}]", one.error) for one in rejected]
        super().__init__("BATCH_REJECTED", "Every row of the batch was refused; nothing moved.", problems)
        self.rejected = tuple(rejected)


class Replayed(Struct, frozen=True, kw_only=True, rename="camel"):
    """A row whose key made this payout before."""

    row: int
    payout_id: str


class Valid(Struct, frozen=True, kw_only=True):
    """A row that can be paid, as the payout that it may become."""

    row: int
    destination: Destination
    claim: Claim | None
    payout: NewPayout


class Judge(Struct, frozen=True, kw_only=True):
    """What rows are judged by."""

    context: PayoutContext
    settings: PlatformSettings
    limits: Limits
    actor: Actor
    asset: Asset
    source: str

    def valid(self, row: int, destination: Destination, claim: Claim | None) -> Valid:
        """Return the row as it will be paid. Raises ServiceError."""
        chain, token = self.asset
        to_address = check_to_address(self.context.registry, chain, destination.to_address)
        refuse_source(to_address, self.source)
        to_tag = check_tag(self.context.registry, chain, destination.to_tag)
        units = read_units(destination.amount, token)
        paid = destinations.destination(to_address, to_tag)
        check_one(self.settings, self.limits, IntentKind.PAYOUT, self.asset, paid, units)
        payout_id = self.context.ids.new("po")
        payout = NewPayout.of(self.actor, IntentKind.PAYOUT, payout_id, self.asset, to_address, units, to_tag)
        return Valid(row=row, destination=destination, claim=claim, payout=payout)


def reject(row: int, destination: Destination, error: ServiceError) -> Rejected:
    """Refuse a row for the reason that would refuse it alone."""
    return Rejected(
        row=row,
        to_address=destination.to_address,
        amount=destination.amount,
        code=error.code,
        error=error.message,
        field=error.details[0].field if len(error.details) == 1 else None,
    )


def asked_of(request: BatchRequest) -> BatchRequest:
    """Return all that a batch asks for, rows' keys included, however its amounts are spelled."""
    rows = [structs.replace(one, amount=same_value(one.amount)) for one in request.destinations]
    return by_value(request, destinations=rows)


def _row_claim(actor: Actor, request: BatchRequest, destination: Destination, taken: set[str]) -> Claim | None:
    """Return the key of a row, as the same payout alone would use it. Raises InvalidError."""
    key = choose_key(None, destination.idempotency_key)
    if key is None:
        return None
    if key in taken:
        raise InvalidError(
            "DUPLICATE_IDEMPOTENCY_KEY",
            "An earlier row of the batch has the same idempotencyKey.",
            [FieldProblem(KEY, "is that of an earlier row")],
        )
    taken.add(key)
    alone = PayoutRequest(
        chain=request.chain,
        token=request.token,
        to_address=destination.to_address,
        to_tag=destination.to_tag,
        amount=destination.amount,
    )
    return request_claim(actor, alone, key)


async def judge_rows(
    conn: AsyncConnection, judge: Judge, request: BatchRequest
) -> tuple[Sequence[Valid], Sequence[Rejected], Sequence[Replayed]]:
    """Judge every row, and take the keys of those that are valid. A row with a used key is not judged again."""
    claims, rejected = _claimed(judge.actor, request)
    used = await _used(conn, [claim for claim in claims.values() if claim is not None])
    new = {row: claim for row, claim in claims.items() if claim is None or claim.key not in used}
    valid, refused = _judged(judge, request, new)
    rejected += refused
    late = await _take_keys(conn, judge, valid)
    used |= await _used(conn, late)
    replayed, refused = _replayed(request, claims, used)
    valid = [one for one in valid if one.claim is None or one.claim.key not in used]
    return valid, rejected + refused, replayed


async def paid_before(
    conn: AsyncConnection, actor: Actor, request: BatchRequest
) -> Sequence[Rejected | Replayed] | None:
    """Return what becomes of the rows where their keys leave none to be paid; None where one is, or none ever was."""
    claims, rejected = _claimed(actor, request)
    if any(claim is None for claim in claims.values()):
        return None
    used = await _used(conn, [claim for claim in claims.values() if claim is not None])
    if len(used) < len(claims):
        return None
    replayed, refused = _replayed(request, claims, used)
    return [*rejected, *refused, *replayed] if replayed else None


def _replayed(
    request: BatchRequest, claims: Mapping[int, Claim | None], used: Mapping[str, AnyRow]
) -> tuple[list[Replayed], list[Rejected]]:
    """Return the rows whose keys were used before: those that are paid, and those whose key stands for another."""
    replayed, rejected = list[Replayed](), list[Rejected]()
    for row, claim in claims.items():
        if claim is None or claim.key not in used:
            continue
        try:
            replayed.append(Replayed(row=row, payout_id=refuse_other_use(claim, used[claim.key])))
        except ServiceError as error:
            # Alone, a payout may have its key in the header; a row has it in this field.
            rejected.append(structs.replace(reject(row, request.destinations[row], error), field=KEY))
    return replayed, rejected


def check_rows(judge: Judge, request: BatchRequest) -> tuple[list[Valid], list[Rejected]]:
    """Judge every row as if no key had been used, and take none."""
    claims, rejected = _claimed(judge.actor, request)
    valid, refused = _judged(judge, request, claims)
    return valid, rejected + refused


def _claimed(actor: Actor, request: BatchRequest) -> tuple[dict[int, Claim | None], list[Rejected]]:
    claims: dict[int, Claim | None] = {}
    rejected, taken = list[Rejected](), set[str]()
    for row, destination in enumerate(request.destinations):
        try:
            claims[row] = _row_claim(actor, request, destination, taken)
        except ServiceError as error:
            rejected.append(reject(row, destination, error))
    return claims, rejected


def _judged(
    judge: Judge, request: BatchRequest, claims: Mapping[int, Claim | None]
) -> tuple[list[Valid], list[Rejected]]:
    valid, rejected = list[Valid](), list[Rejected]()
    for row, claim in claims.items():
        try:
            valid.append(judge.valid(row, request.destinations[row], claim))
        except ServiceError as error:
            rejected.append(reject(row, request.destinations[row], error))
    return valid, rejected


async def _used(conn: AsyncConnection, claims: Sequence[Claim]) -> dict[str, AnyRow]:
    """Return the rows of those keys that were used before."""
    if not claims:
        return {}
    rows = await conn.execute(select(IdempotencyKey).where(_are(claims)))
    return {row.key: row for row in rows}


def _are(claims: Sequence[Claim]) -> ColumnElement[bool]:
    """Return the condition for the rows of keys, which are of one merchant and mode."""
    return and_(
        IdempotencyKey.merchant_pk == claims[0].merchant_pk,
        IdempotencyKey.mode == claims[0].mode,
        IdempotencyKey.operation == OPERATION,
        one_of(IdempotencyKey.key, [claim.key for claim in claims]),
    )


async def _take_keys(conn: AsyncConnection, judge: Judge, valid: Iterable[Valid]) -> Sequence[Claim]:
    """Take the keys of the rows; return those that a twin has taken in the meantime."""
    keyed = [(one.claim, one.payout.payout_id) for one in valid if one.claim is not None]
    if not keyed:
        return []
    # In the order of the keys: two batches with the same keys wait for each other once, never in a circle.
    keyed.sort(key=lambda one: one[0].key)
    made = {"created_at": judge.context.clock.now()}
    taken = await conn.execute(
        insert(IdempotencyKey).on_conflict_do_nothing().returning(IdempotencyKey.key),
        [structs.asdict(claim) | made | {"resource_id": payout_id} for claim, payout_id in keyed],
    )
    fresh = set(taken.scalars())
    return [claim for claim, _ in keyed if claim.key not in fresh]


async def drop_keys(conn: AsyncConnection, rows: Iterable[Valid]) -> None:
    """Give back the keys of rows that are refused after all: what is refused stores nothing."""
    claims = [one.claim for one in rows if one.claim is not None]
    if claims:
        await conn.execute(delete(IdempotencyKey).where(_are(claims)))


def in_order(total: int, accepted: Sequence[str], known: Mapping[int, str | None]) -> list[str]:
    """Return payout ids in the order of their rows; ``known`` are the rows that are not among the accepted."""
    left = iter(accepted)
    found = [known[row] if row in known else next(left) for row in range(total)]
    return [payout_id for payout_id in found if payout_id is not None]
