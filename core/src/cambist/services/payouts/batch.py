"""Pays up to a hundred at once: every row that can be meant, or, where the money is not enough, none of them.

A row ends in one of three ways: *accepted*, a new payout; *replayed*, the payout that its key made before; *rejected*
for a reason of its own. Whatever the number of rows, the statements are the same few.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct, structs
from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import PayoutBatch
from cambist.plugin import Units
from cambist.services.accounting.ledger import SPENDING, lock_balances
from cambist.services.actor import Actor
from cambist.services.addresses.wallets import main_wallet
from cambist.services.idempotency import choose_key, claim_of, hash_request, lead_to, take_key

from . import limits
from .batch_rows import (
    BatchRejectedError,
    Judge,
    Rejected,
    Replayed,
    Valid,
    asked_of,
    check_rows,
    drop_keys,
    in_order,
    judge_rows,
    paid_before,
    reject,
)
from .create import named_asset, require_open, require_payouts
from .queue import PayoutContext, debit_and_queue
from .read import PayoutRow, find_payouts, payout_ids_of_batch
from .requests import BatchRequest

OPERATION = "payout_batch"


class Batch(Struct, frozen=True, kw_only=True):
    """What became of a batch. ``payouts`` are in the order of their rows, those of replayed rows among them.

    ``total`` is what was set aside for it, in the token's units. ``replayed`` tells of the batch as a whole.
    """

    batch_id: str
    chain: str
    token: str
    decimals: int
    total: Units
    accepted: int
    payouts: Sequence[PayoutRow]
    rejected: Sequence[Rejected]
    replayed_rows: int
    created_at: datetime
    replayed: bool = False


class _NewBatch(Struct, frozen=True, kw_only=True):
    """What is stored of a batch besides its rows. ``chain`` and ``token`` are named as in the request."""

    batch_id: str
    request_hash: bytes
    project_pk: int
    chain: str
    token: str
    created_at: datetime


class _Entry(Struct, frozen=True, kw_only=True, rename="camel"):
    """A row that made no payout, as it was kept for a replay: rejected, or one that was paid before."""

    row: int
    to_address: str = ""
    amount: str = ""
    code: str = ""
    error: str = ""
    field: str | None = None
    payout_id: str | None = None


async def create_batch(
    conn: AsyncConnection, context: PayoutContext, actor: Actor, request: BatchRequest, header_key: str | None
) -> Batch:
    """Make the batch's payouts, or return what the same idempotency key, or the same rows' keys, made before.

    Raises ForbiddenError INSUFFICIENT_BALANCE for the whole, and nothing moves; BatchRejectedError where every row was
    refused. After the commit, publish the hint ``outbound``.
    """
    key = choose_key(header_key, request.idempotency_key)
    batch_id = context.ids.new("bat")
    asked = asked_of(request)
    claim = claim_of(actor, OPERATION, key, asked)
    before = await take_key(conn, claim, batch_id, context.clock.now())
    if before is not None:
        return structs.replace(await _batch(conn, actor.project_pk, before), replayed=True)
    new = _NewBatch(
        batch_id=batch_id,
        request_hash=hash_request(asked),
        project_pk=actor.project_pk,
        chain=request.chain,
        token=request.token,
        created_at=context.clock.now(),
    )
    if any(one.idempotency_key is not None for one in request.destinations):
        # The same words with a row's key are a repetition, whatever became of that row, and whatever can be paid now:
        # nothing of it happens again.
        await _lock_repetitions(conn, new.request_hash)
        if (before := await _same_batch(conn, actor.project_pk, new.request_hash)) is not None:
            await lead_to(conn, claim, before)
            return structs.replace(await _batch(conn, actor.project_pk, before), replayed=True)
    if (others := await paid_before(conn, actor, request)) is not None:
        # In other words the same: nothing is to be paid, so that nothing is judged either.
        await _store(conn, new, (), others)
        return await _batch(conn, actor.project_pk, batch_id)
    judge = await _judge(conn, context, actor, request)
    valid, rejected, replayed = await judge_rows(conn, judge, request)
    valid, beyond = await _within_day(conn, judge, valid)
    if not valid and not replayed:
        raise BatchRejectedError(sorted([*rejected, *beyond], key=lambda one: one.row))
    stored = await _store(conn, new, valid, [*rejected, *beyond, *replayed])
    payouts = [structs.replace(one.payout, batch_pk=stored) for one in valid]
    await debit_and_queue(conn, context, judge.settings, payouts, judge.limits)
    return await _batch(conn, actor.project_pk, batch_id)


async def check_batch(
    conn: AsyncConnection, context: PayoutContext, actor: Actor, request: BatchRequest
) -> Sequence[Rejected]:
    """Return the rows that would be refused alone if the batch were asked for now, in their order; nothing is stored.

    Neither what the balance covers is looked at, nor whether a row's key was used before. Raises ServiceError for what
    would refuse the whole.
    """
    judge = await _judge(conn, context, actor, request)
    valid, rejected = check_rows(judge, request)
    if judge.limits.per_day is not None:
        _, beyond = _by_day(judge, valid, await _sent_today(conn, judge))
        rejected += beyond
    return sorted(rejected, key=lambda one: one.row)


async def _judge(conn: AsyncConnection, context: PayoutContext, actor: Actor, request: BatchRequest) -> Judge:
    """Return what the rows are judged by. Raises ServiceError where none of them could be paid."""
    asset = named_asset(context.registry, request.chain, request.token)
    await require_open(conn, actor, [asset])
    settings = await require_payouts(conn, actor, asset)
    family = context.registry.families[asset.chain.family]
    source = await main_wallet(conn, context.keys, family, actor.merchant_pk, actor.mode)
    allowed = await limits.limits_of(conn, settings, actor.merchant_pk, actor.mode, asset, context.clock.now())
    return Judge(context=context, settings=settings, limits=allowed, actor=actor, asset=asset, source=source.address)


async def _within_day(
    conn: AsyncConnection, judge: Judge, valid: Sequence[Valid]
) -> tuple[Sequence[Valid], Sequence[Rejected]]:
    """Refuse the rows with which the day's sum would be too large, in their order."""
    if judge.limits.per_day is None or not valid:
        return valid, []
    # From here on, nobody else adds to the sum.
    await lock_balances(conn, judge.actor.mode, map(valid[0].payout.account, SPENDING))
    within, beyond = _by_day(judge, valid, await _sent_today(conn, judge))
    refused = {one.row for one in beyond}
    await drop_keys(conn, [one for one in valid if one.row in refused])
    return within, beyond


async def _sent_today(conn: AsyncConnection, judge: Judge) -> int:
    chain, token = judge.asset
    actor, now = judge.actor, judge.context.clock.now()
    sent: int = await limits.sent_today(conn, actor.merchant_pk, actor.mode, chain, token, now)
    return sent


def _by_day(judge: Judge, valid: Sequence[Valid], sent: int) -> tuple[Sequence[Valid], Sequence[Rejected]]:
    """Return the rows that the day's limit lets through after what was sent, in their order, and the others."""
    within, beyond = [], []
    for one in valid:
        if judge.limits.day_refuses(one.payout.units, sent):
            error = limits.day_limit_error(judge.limits, judge.asset.token)
            beyond.append(reject(one.row, one.destination, error))
        else:
            within.append(one)
            sent += one.payout.units
    return within, beyond


async def _lock_repetitions(conn: AsyncConnection, request_hash: bytes) -> None:
    """Let batches that were asked for in the same words come one after the other, so that the second finds the first.

    Their rows' keys alone do not see to it: where those were used before, or given back, nobody waits for anybody.
    """
    number = int.from_bytes(request_hash[:8], "big", signed=True)
    await conn.exec_driver_sql("SELECT pg_advisory_xact_lock($1::bigint)", (number,))


async def _same_batch(conn: AsyncConnection, project_pk: int, request_hash: bytes) -> str | None:
    """Return the id of the latest batch that was asked for in the same words, rows' keys included."""
    same = PayoutBatch.project_pk == project_pk, PayoutBatch.request_hash == request_hash
    found: str | None = await conn.scalar(
        select(PayoutBatch.batch_id).where(*same).order_by(PayoutBatch.id.desc()).limit(1)
    )
    return found


async def _store(
    conn: AsyncConnection, batch: _NewBatch, valid: Sequence[Valid], others: Sequence[Rejected | Replayed]
) -> int:
    new = insert(PayoutBatch).values(
        **structs.asdict(batch),
        total_units=sum(one.payout.units for one in valid),
        accepted=len(valid),
        rejected=msgspec.to_builtins(sorted(others, key=lambda one: one.row)),
    )
    return (await conn.execute(new.returning(PayoutBatch.id))).scalar_one()


async def _batch(conn: AsyncConnection, project_pk: int, batch_id: str) -> Batch:
    """Return what became of a stored batch, in the same words now and ever after."""
    wanted = PayoutBatch.batch_id == batch_id, PayoutBatch.project_pk == project_pk
    row = (await conn.execute(select(PayoutBatch).where(*wanted))).one()
    others = msgspec.convert(row.rejected, list[_Entry])
    accepted = await payout_ids_of_batch(conn, row.id)
    ids = in_order(len(accepted) + len(others), accepted, {one.row: one.payout_id for one in others})
    payouts = await find_payouts(conn, project_pk, ids)
    rejected = [one for one in others if one.payout_id is None]
    return Batch(
        batch_id=batch_id,
        chain=row.chain,
        token=row.token,
        # A batch without payouts has the total zero, in any number of decimals.
        decimals=next((payout.decimals for payout in payouts.values()), 0),
        total=Units(row.total_units),
        accepted=row.accepted,
        payouts=[payouts[payout_id] for payout_id in ids],
        rejected=[msgspec.convert(one, Rejected, from_attributes=True) for one in rejected],
        replayed_rows=len(others) - len(rejected),
        created_at=row.created_at,
    )
