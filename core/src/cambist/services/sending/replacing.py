"""Replaces a transaction that waits by another one of its nonce: one that pays more, or one that does nothing."""

from __future__ import annotations

from msgspec import structs

from cambist.domain.intents import FOR_ITS_MOMENT, IntentKind
from cambist.domain.money import format_units
from cambist.domain.refusals import SENTENCES, WishRefusal
from cambist.plugin import Broadcast, Fee, FeeAboveCeilingError, SignedTx, Step, Units, Unprepared

from . import fee_wishes, store
from .context import EngineContext
from .fee_wishes import FeeWish
from .gas.funding import ask_for_gas
from .handler import updated
from .rows import TxRow

REPLACEMENTS_MAX = 20
"""Transactions of one slot. At an eighth more each time, the last costs ten times what the first did."""

LATER = "later"
ALREADY_MINED = SENTENCES[WishRefusal.ALREADY_MINED]
NEVER_REPLACED = SENTENCES[WishRefusal.NEVER_REPLACED]


async def replace(
    context: EngineContext, tx: TxRow, tries: int, refusal: Broadcast | None, wish: FeeWish | None = None
) -> str | None:
    """Replace a transaction by one that pays more; by one that does nothing where no node will ever take it.

    A sweep is given up as well: what it would have brought goes one by one, at what that costs by then. So is a
    call: what it was built for is over by the time that it is stuck; and a collection whose coin is gone. With a
    ``wish``, an operator wants it to pay more.

    Return None where it was replaced, ``LATER`` where that is to be tried again, or a sentence why it was not.
    """
    if tries >= REPLACEMENTS_MAX:
        _alert_stuck(context, tx, wish, replacements=tries)
        return SENTENCES[WishRefusal.REPLACED_TOO_OFTEN].format(times=tries - 1)
    refused = refusal is not None and refusal.state == "rejected"
    cancelled = tx.role == "cancel" or refused or is_given_up(tx) or _is_for_its_moment(tx)
    cancelled = cancelled or await _has_lost_its_coin(context, tx)
    if wish is not None and cancelled and tx.role == "main":
        return SENTENCES[WishRefusal.BEING_GIVEN_UP]
    step = tx.step
    if cancelled:
        native = context.chain_scope.info.native
        step = structs.replace(
            step, to_address=step.sender, token=native, amount=Units(0), action="nothing", call=None, tag=None
        )
    try:
        fee = await _higher_fee(context, step, wish)
    except FeeAboveCeilingError as error:
        _alert_stuck(context, tx, wish, error=str(error))
        return str(error)
    if fee == tx.fee:
        # What waits is mined some day.
        return NEVER_REPLACED
    step = structs.replace(step, fee=fee)
    if await _lacks_gas(context, tx, step, is_cancel=cancelled):
        return LATER
    signed = await _store(context, tx, step, "cancel" if cancelled else "main", wish)
    if isinstance(signed, str):
        return signed
    await context.broadcast([signed])
    return None


async def _store(context: EngineContext, tx: TxRow, step: Step, role: str, wish: FeeWish | None) -> SignedTx | str:
    """Sign the step for the slot of the transaction, and store it; else return ``LATER`` or a sentence."""
    reference = tx.intent.update.reference
    (unsigned,) = await context.prepare(tx.intent.source, [(step, tx.sequence)])
    if isinstance(unsigned, Unprepared):
        _alert_stuck(context, tx, wish, error=unsigned.reason)
        return unsigned.reason
    now = context.clock.now()
    async with context.db.transaction() as conn:
        locked = await store.lock_slot(conn, tx.slot_pk)
        if not locked or locked[0].id != tx.id or any(one.state == "mined" for one in locked):
            return LATER
        (reply,) = await context.sign([(tx.intent, unsigned)], {})
        if reply.signature is None:
            context.alert("signer_refused", reference=reference, code=reply.refusal, reason=reply.reason)
            return SENTENCES[WishRefusal.SIGNER_REFUSED].format(reason=reply.reason)
        signed = context.family.seal(unsigned, reply.signature)
        await store.add_replacement(conn, context.chain_scope, tx, signed, role=role, fee=step.fee, now=now)
        if role == "main":
            await context.handlers.on_broadcast(conn, [updated(tx.intent.update, tx_id=signed.tx_id)], now)
        if wish is not None:
            await fee_wishes.answer_wish(conn, wish, None)
    context.alert("replaced", reference=reference, tx_id=tx.tx_id, by=signed.tx_id, role=role)
    return signed


async def _higher_fee(context: EngineContext, step: Step, wish: FeeWish | None) -> Fee:
    """Return a fee that replaces the step's, within the chain's ceiling, or within what an operator allows.

    Raises FeeAboveCeilingError.
    """
    if wish is None or wish.fee_max is None:
        return await context.chain.outbid(step)
    work = max(1, step.fee.limit - step.fee.covered)
    fee = await context.chain.outbid_within(step, max(0, wish.fee_max - step.fee.extra) // work)
    if fee.cost_max > wish.fee_max:
        native = context.chain_scope.info.native
        cost = f"{format_units(fee.cost_max, native.decimals)} {native.symbol}"
        allowed = format_units(wish.fee_max, native.decimals)
        raise FeeAboveCeilingError(SENTENCES[WishRefusal.ABOVE_ALLOWED].format(cost=cost, allowed=allowed))
    return fee


def _alert_stuck(context: EngineContext, tx: TxRow, wish: FeeWish | None, **facts: object) -> None:
    """Tell that it cannot pay more; not where an operator asked for that, who reads why."""
    if wish is None:
        context.alert("stuck", reference=tx.intent.update.reference, tx_id=tx.tx_id, **facts)


async def _lacks_gas(context: EngineContext, tx: TxRow, step: Step, *, is_cancel: bool) -> bool:
    """Whether the sender cannot pay for a new transaction beside all else of it that waits: nodes count that together.

    Balances that count what waits are without it already. Gas is asked for fees alone: where the coin that is sent is
    not there, as a reorg has taken it or a node tells an old balance, the gas station does not pay it. What sends
    nothing any more waits for no such coin either: what else wants it can never be mined behind it.
    """
    source, needed = tx.intent.source, int(step.native_needed)
    coin = needed - step.fee.cost_max - step.fee.reserve
    if not context.chain.balances_count_waiting:
        async with context.db.autocommit() as conn:
            outflow = await store.pending_outflow(conn, context.chain_scope, source.pk, beside=tx.slot_pk)
        needed, coin = needed + outflow.units.get(None, 0), coin + outflow.coin
    balance = await context.chain.balance(source.address, context.chain_scope.info.native)
    lacking = needed - balance
    if lacking <= 0:
        return False
    if source.purpose == "gas":
        context.alert("gas_station_empty", address=source.address, lacking=str(lacking))
        return True
    lacks_coin = balance < coin and not context.chain.balances_count_waiting
    if lacks_coin and is_cancel:
        lacking = int(step.native_needed) - balance
        if lacking <= 0:
            return False
    elif lacks_coin:
        _alert_stuck(context, tx, None, lacking=str(coin - balance))
        return True
    async with context.db.transaction() as conn:
        await ask_for_gas(conn, context, source, Units(lacking), context.clock.now())
    return True


async def _has_lost_its_coin(context: EngineContext, tx: TxRow) -> bool:
    """Whether this collects native coin that is not there, as a reorg has taken the deposit: it holds others up."""
    intent = tx.intent
    if intent.update.kind is not IntentKind.COLLECTION or intent.contract is not None:
        return False
    if context.chain.balances_count_waiting:
        return False
    return await context.chain.balance(intent.source.address, intent.token) < intent.update.units


def is_given_up(tx: TxRow) -> bool:
    """Whether it had failed, in a block that is gone, and its money was given back: it should not happen any more."""
    return tx.role == "main" and tx.intent.reason is not None


def _is_for_its_moment(tx: TxRow) -> bool:
    return tx.intent.update.kind in FOR_ITS_MOMENT
