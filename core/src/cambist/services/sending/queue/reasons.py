"""Why an intent has not happened yet, in plain words: the engine's reasons, and what is seen of the chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from cambist.domain.intents import WAITS_FOR_TURN
from cambist.plugin import ChainInfo
from cambist.services.sending.batches import (
    WAITS_FOR_CALL,
    WAITS_FOR_FEES,
    WAITS_FOR_OPERATOR,
    WAITS_FOR_REINSTATEMENT,
)
from cambist.services.sending.cancelling import WAITS_FOR_PROOF
from cambist.services.sending.counts import WAITS_FOR_COUNT
from cambist.services.sending.intents import WAITS_FOR_CANCELLATION
from cambist.services.sending.shortages import (
    WAITS_FOR_FUNDS,
    WAITS_FOR_GAS,
    WAITS_FOR_SIGNERS_FILE,
    WAITS_FOR_STATION,
)

from .listing import QueuedIntent, QueuedTx
from .waits import EXCHANGE_REASONS, UNSEEN

OF_SIGNER = "signer: "


class Why(Struct, frozen=True):
    """What something waits for: one word for programs, a sentence for people."""

    code: str
    text: str


_WAITING: Mapping[str, str] = {
    WAITS_FOR_FUNDS: "Its address does not hold enough yet: deposits are being collected, or have to arrive first.",
    WAITS_FOR_GAS: "Its address needs native coin for the fee, or a loan of it, which is on its way.",
    WAITS_FOR_STATION: "The gas station cannot pay for it: fund its address.",
    WAITS_FOR_FEES: "Sending costs more now than the chain's ceiling allows: wait, or raise the ceiling.",
    WAITS_FOR_TURN: "The balance does not show a transfer before it yet.",
    WAITS_FOR_CALL: "Its call is built right before it is signed.",
    WAITS_FOR_OPERATOR: "An operator has paused sending on this chain.",
    WAITS_FOR_REINSTATEMENT: "An operator has suspended its merchant: it waits until the merchant is reinstated.",
    WAITS_FOR_SIGNERS_FILE: "Its token was added and does not stand in the signer's file yet, so that nothing of it can"
    " be sent.",
    WAITS_FOR_COUNT: "One endpoint alone counts far more transactions of its address than this gateway knows of:"
    " nothing is signed until a second one tells the same.",
    WAITS_FOR_CANCELLATION: "It is to be cancelled: the signer is asked to void it, and then its money goes back.",
    WAITS_FOR_PROOF: "It is to be cancelled, and the signer has signed it before: its money stays until what was signed"
    " is proven dead. Look on the chain for what used its nonce, and name it.",
}
_GIVES_WAY = (
    "It, or something else of its address, could not be planned when that was tried last: it is tried again later, and"
    " the others come first."
)
"""Of what is due later without a reason: the engine postpones so, and the reasons that others give stay as they are."""
_CALL: Mapping[str, str] = {
    "allowance": "An allowance for it is being given.",
    "provider": "Its provider has to build the call, and does not at the moment.",
    WAITS_FOR_TURN: "Another exchange of the same wallet, token and contract is before it.",
}
_SIGNER: Mapping[str, str] = {
    "HOURLY_CAP": "The signer's hourly cap of this asset is used up until then.",
    "HOURLY_FEES": "The signer's hourly cap of fees on this chain is used up until then.",
    "TARGET_TOO_FRESH": "Its recipient is a fresh address, and the signer's delay runs until then.",
    "APPROVAL_NEEDED": "The operator of this gateway has to agree to it.",
    "ALREADY_SIGNED": "The signer has signed it before, and the database does not know of that: look for it on the"
    " chain.",
    "TARGET_NOT_ALLOWED": "Its recipient is not on the signer's allow-list.",
    "FEE_ABOVE_CAP": "It would cost more than the signer's cap for one transaction.",
    "PRICE_UNKNOWN": "The signer knows no floor for what the exchange brings, and no cap lets it through.",
}


def why(one: QueuedIntent, txs: Sequence[QueuedTx], info: ChainInfo | None, *, paused: bool, now: datetime) -> Why:
    """Say why an open intent has not happened yet. ``info`` is None for a chain that is not configured any more.

    ``waits.waits_for`` says the same to the database: what is changed here is changed there.
    """
    if info is None or (one.mode == "live" and info.availability != "live"):
        return Why("chain_unavailable", "Its chain is not configured, so no worker sends on it.")
    return _why_waiting(one, paused=paused, now=now) if one.state == "waiting" else _why_sending(one, txs, info)


def sentence_of(reason: str, *, of_exchange: bool = False) -> str:
    """Say in a sentence what something waits for. ``of_exchange``: the reason is that of a swap or a bridge."""
    if reason.startswith(OF_SIGNER):
        code = reason.removeprefix(OF_SIGNER)
        return _SIGNER.get(code, f"The signer refuses it: {code}. Its log says why.")
    found = _CALL.get(reason) if of_exchange else None
    return found or _WAITING.get(reason) or _CALL.get(reason) or reason


def _why_waiting(one: QueuedIntent, *, paused: bool, now: datetime) -> Why:
    reason = one.reason
    if paused and one.cancel_asked_at is None:
        return Why(WAITS_FOR_OPERATOR, _WAITING[WAITS_FOR_OPERATOR])
    if reason is None:
        if now - one.created_at < UNSEEN:
            return Why("new", "It was asked for a moment ago.")
        if one.due_at > now:
            return Why("gives_way", _GIVES_WAY)
        return Why("not_looked_at", "No worker has looked at it: none sends on this chain, or its node is away.")
    if reason == WAITS_FOR_CALL and one.exchange_reason is not None and one.exchange_reason in EXCHANGE_REASONS:
        return Why(one.exchange_reason, _CALL[one.exchange_reason])
    return Why(reason, sentence_of(reason))


def _why_sending(one: QueuedIntent, txs: Sequence[QueuedTx], info: ChainInfo) -> Why:
    open_txs = [tx for tx in txs if tx.slot_state == "open"]
    if not open_txs:
        return Why("swept", "It is part of a transaction for many.")
    mined = [tx for tx in open_txs if tx.height is not None]
    if mined:
        depth = max(0, (one.height or 0) - (mined[-1].height or 0))
        return Why("confirming", f"It is in a block, and has {depth} of {max(1, info.confirmations)} confirmations.")
    if one.missing_since is not None:
        sentence = "Its nonce counts as used, and no node finds the transaction; that is being looked into."
        return Why("sequence_taken", sentence)
    if one.is_gap:
        return Why("gap", "A nonce before its own was never used; a transfer of nothing fills it.")
    if one.behind is not None and one.sequence is not None:
        return Why("behind", "Its address has a transaction with a lower nonce under way, which comes first.")
    if all(tx.sent_at is None for tx in open_txs):
        return Why("not_taken", "No node has taken it yet; it is broadcast again and again.")
    return Why("pending", "It is sent, and no block has it yet.")
