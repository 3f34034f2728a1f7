"""What operators are shown of one thing that is to be sent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from cambist.domain.intents import CARRIERS, IntentKind
from cambist.domain.money import format_units
from cambist.domain.refusals import WishRefusal, refusal_of
from cambist.plugin import ChainInfo, Units
from cambist.services.chain_pauses import Pausable, Pauses
from cambist.services.sending.queue.listing import QueuedIntent, QueuedTx
from cambist.services.sending.queue.reasons import why

from .context import Web


class WaitsForView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Why it has not happened yet. `until` is when it is looked at again, where it waits."""

    code: str
    text: str
    until: datetime | None


class OutboundTxView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A transaction of it. `role` is `cancel` for one that only uses the nonce up. Fees are in the chain's own coin.

    `maxFee` is what it may cost, `fee` what it has cost; `tries` how often it was broadcast, last at `triedAt`, and
    `sentAt` when a node first took it. `state` is `stored`, `sent`, `mined`, `final`, or `gone`.
    """

    tx_hash: str
    role: str
    state: str
    nonce: int | None
    max_fee: str | None
    fee: str | None
    height: int | None
    tries: int
    created_at: datetime
    sent_at: datetime | None
    tried_at: datetime | None


class FeeRaiseView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A wish for a higher fee: since when, `maxFee` at most, and why the last one was not met."""

    asked_at: datetime | None
    max_fee: str | None
    refusal: str | None
    refusal_code: WishRefusal | None


class SettlementView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known of a transfer that is to be cancelled and may have been sent, as the signer says.

    It was signed for `nonce`, or where there are none as `signedTxHash`. `txHash` is the transaction that an operator
    has named: since when it is looked at, and why the last one did not end the transfer.
    """

    nonce: int | None
    signed_tx_hash: str | None
    tx_hash: str | None
    asked_at: datetime | None
    refusal: str | None
    refusal_code: WishRefusal | None


class OutboundView(Struct, frozen=True, kw_only=True, rename="camel"):
    """Something that is to be sent. `amount` is null for a sweep, which is one transaction for many collections.

    `payoutId` is of the payout, refund or withdrawal that it is for, `txnId` of the swap or bridge. `behind` is the
    `intentId` of what comes before it. `waitsFor` is null where it has ended.
    """

    intent_id: str
    kind: IntentKind
    state: str
    mode: str
    chain: str
    merchant_id: str | None
    merchant_name: str | None
    payout_id: str | None
    txn_id: str | None
    token: str
    contract_address: str | None
    amount: str | None
    from_address: str
    to_address: str
    to_tag: str | None
    asked_by: str
    age_seconds: int
    waits_for: WaitsForView | None
    behind: str | None
    nonce: int | None
    transactions: Sequence[OutboundTxView]
    fee_raise: FeeRaiseView | None
    settlement: SettlementView | None
    cancel_asked_at: datetime | None
    created_at: datetime
    updated_at: datetime


def outbound_view(web: Web, one: QueuedIntent, txs: Sequence[QueuedTx], pauses: Pauses, now: datetime) -> OutboundView:
    """Show something that is to be sent, or was."""
    info = web.gateway.registry.chains.get(one.chain)
    waits_for = None
    if one.state in {"waiting", "sending"}:
        paused = one.mode == "live" and (one.chain, Pausable.SENDING) in pauses
        found = why(one, txs, info, paused=paused, now=now)
        until = one.due_at if one.state == "waiting" and one.due_at > now else None
        waits_for = WaitsForView(code=found.code, text=found.text, until=until)
    return OutboundView(
        intent_id=one.intent_id,
        kind=one.kind,
        state=one.shown_state if waits_for is not None else one.state,
        mode=one.mode,
        chain=one.chain,
        merchant_id=one.merchant_id,
        merchant_name=one.merchant_name,
        payout_id=one.payout_id,
        txn_id=one.txn_id,
        token=one.token,
        contract_address=one.contract,
        amount=None if one.kind in CARRIERS else format_units(one.units, one.decimals),
        from_address=one.source,
        to_address=one.to_address,
        to_tag=one.tag,
        asked_by=one.asked_by,
        age_seconds=int((now - one.created_at).total_seconds()),
        waits_for=waits_for,
        behind=one.behind,
        nonce=one.sequence,
        transactions=[_tx_view(tx, info) for tx in txs],
        fee_raise=_raise_view(one, info),
        settlement=_settlement_view(one),
        cancel_asked_at=one.cancel_asked_at,
        created_at=one.created_at,
        updated_at=one.updated_at,
    )


def _tx_view(tx: QueuedTx, info: ChainInfo | None) -> OutboundTxView:
    return OutboundTxView(
        tx_hash=tx.tx_id,
        role=tx.role,
        state=tx.state,
        nonce=tx.sequence,
        max_fee=_in_coin(tx.fee.cost_max, info),
        fee=_in_coin(tx.fee_paid, info),
        height=tx.height,
        tries=tx.tries,
        created_at=tx.created_at,
        sent_at=tx.sent_at,
        tried_at=tx.tried_at,
    )


def _raise_view(one: QueuedIntent, info: ChainInfo | None) -> FeeRaiseView | None:
    if one.raise_asked_at is None and one.raise_refusal is None:
        return None
    return FeeRaiseView(
        asked_at=one.raise_asked_at,
        max_fee=_in_coin(one.raise_fee_max, info),
        refusal=one.raise_refusal,
        refusal_code=refusal_of(one.raise_refusal),
    )


def _settlement_view(one: QueuedIntent) -> SettlementView | None:
    known = one.signed_sequence, one.signed_tx_id, one.settle_tx_id, one.settle_asked_at, one.settle_refusal
    if not any(value is not None for value in known):
        return None
    nonce, signed, named, asked_at, refusal = known
    return SettlementView(
        nonce=nonce,
        signed_tx_hash=signed,
        tx_hash=named,
        asked_at=asked_at,
        refusal=refusal,
        refusal_code=refusal_of(refusal),
    )


def _in_coin(units: Units | None, info: ChainInfo | None) -> str | None:
    return None if units is None or info is None else format_units(units, info.native.decimals)
