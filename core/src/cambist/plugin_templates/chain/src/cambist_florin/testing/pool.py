"""What the example node says to a transaction that it is handed: it reads, checks and judges it before it waits."""

from __future__ import annotations

from coincurve import PublicKey

from cambist_chainkit.signatures import SIGNATURE_BYTES

from ..addresses import address_of, parse_address
from ..config import NETWORK
from ..payload import digest_of, read, tx_id_of
from ..wire import NodeVerdict
from .ledger import WAITING_MAX, Ledger, LedgerTransfer


def submit(ledger: Ledger, raw: bytes) -> NodeVerdict:
    """Judge a signed transaction, and let it wait where nothing is wrong with it."""
    if tx_id_of(raw) in ledger.waiting or ledger.find(tx_id_of(raw)) is not None:
        return NodeVerdict("known")
    transfer = _opened(raw)
    if transfer is None:
        return NodeVerdict("bad", "this is no signed transaction of this network")
    assert transfer.sequence is not None
    if transfer.sequence < ledger.sequence(transfer.sender):
        return NodeVerdict("late", f"the next sequence is {ledger.sequence(transfer.sender)}")
    own = [one for one in ledger.waiting.values() if one.sender == transfer.sender]
    rivals = [one for one in own if one.sequence == transfer.sequence]
    if transfer.price < max([ledger.price, *(-(-one.price * 9 // 8) for one in rivals)]):
        return NodeVerdict("cheap", "it offers too little, for a block or for what waits under its sequence")
    needed = sum(one.native_needed() for one in (*own, transfer) if one not in rivals)
    if needed > ledger.balance(transfer.sender, None):
        return NodeVerdict("poor", f"all that waits needs {needed}")
    if len(ledger.waiting) >= WAITING_MAX:
        return NodeVerdict("busy", "too many wait already")
    for rival in rivals:
        del ledger.waiting[rival.id]
    ledger.waiting[transfer.id] = transfer
    return NodeVerdict("taken")


def _opened(raw: bytes) -> LedgerTransfer | None:
    """Return what signed bytes want; None where they are not what they should be."""
    payload, signature = raw[:-SIGNATURE_BYTES], raw[-SIGNATURE_BYTES:]
    try:
        said = read(payload)
        point = PublicKey.from_signature_and_message(signature, digest_of(payload), hasher=None)
    except Exception:  # noqa: BLE001 - coincurve raises bare Exception and ValueError
        return None
    if said.network != NETWORK or parse_address(said.recipient) is None:
        return None
    return LedgerTransfer(
        id=tx_id_of(raw),
        sender=address_of(point.format(compressed=False)[1:]),
        contract=said.contract,
        recipient=said.recipient,
        amount=said.amount,
        sequence=said.sequence,
        limit=said.limit,
        price=said.price,
    )
