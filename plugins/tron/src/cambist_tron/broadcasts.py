"""Hands an endpoint transactions, and tells what its answers mean."""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

from cambist.plugin import Broadcast, ChainError, RateLimitedError, SignedTx, UnreadablePayloadError

from .addresses import PREFIX, spell
from .endpoint import Endpoint
from .payload import read_signed
from .refusals import RefusedError
from .replies import Submitted, text_of

DUPLICATE: Final = "DUP_TRANSACTION_ERROR"

NO_BANDWIDTH: Final = "BANDWITH_ERROR"
"""Neither bandwidth nor coin to burn for it; the spelling is the network's."""

TOLD_KEPT: Final = 10_000

State: TypeAlias = Literal["accepted", "rejected", "unfunded", "expired", "unknown"]

_STATES: Final[Mapping[str, State]] = {
    "SUCCESS": "accepted",
    DUPLICATE: "accepted",  # it has been heard of, which is what sending it is for
    "SIGERROR": "rejected",
    "CONTRACT_VALIDATE_ERROR": "rejected",
    "CONTRACT_EXE_ERROR": "rejected",
    "TAPOS_ERROR": "expired",  # the node stands on another fork, or is far behind
    "TOO_BIG_TRANSACTION_ERROR": "rejected",
    "TRANSACTION_EXPIRATION_ERROR": "expired",  # by this node's head, which proves nothing
    NO_BANDWIDTH: "unfunded",
}
"""What is not here passes with time (SERVER_BUSY, NO_CONNECTION, BLOCK_UNSOLIDIFIED...), or nobody knows what it is."""

_SHORT_OF_COIN: Final = re.compile(
    r"balance is not sufficient|no ?owner ?account|insufficient balance|must be less than or equal to accountbalance",
    re.IGNORECASE,
)
_SEEN_BEFORE: Final = re.compile(r"already exists", re.IGNORECASE)
_REFUSALS: Final = frozenset({*_STATES, "OTHER_ERROR"})
_NO_ACCOUNT: Final = re.compile(r"account.{0,80}(?:does not|not) exist", re.IGNORECASE)


async def send(endpoint: Endpoint, txs: Sequence[SignedTx]) -> list[Broadcast]:
    """Hand over some transactions at once. Raises ChainError where the endpoint took no question at all."""
    answers = await asyncio.gather(*(_submit(endpoint, tx) for tx in txs), return_exceptions=True)
    verdicts: list[Broadcast] = []
    errors: list[ChainError] = []
    for answer in answers:
        if isinstance(answer, ChainError):
            errors.append(answer)
            verdicts.append(Broadcast(state="unknown", reason=str(answer)))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            verdicts.append(answer)
    limited = [error for error in errors if isinstance(error, RateLimitedError)]
    if limited or (errors and len(errors) == len(txs)):
        raise (limited or errors)[0]
    return verdicts


async def _submit(endpoint: Endpoint, tx: SignedTx) -> Broadcast:
    """Hand one over. A node that keeps the ids of all it was handed says of what it refused that it exists already."""
    try:
        said = await endpoint.post("wallet/broadcasthex", {"transaction": tx.raw.hex()}, Submitted)
    except RefusedError as error:
        # The node lives, and stumbled over these bytes: nothing is wrong with it, and nobody knows about them.
        return Broadcast(state="unknown", reason=error.told)
    verdict = verdict_on(said, tx)
    if said.code == DUPLICATE and _SEEN_BEFORE.search(text_of(said.message)):
        return endpoint.told.get(tx.tx_id, verdict)
    if verdict.state == "accepted" or said.code in _REFUSALS:
        _note(endpoint.told, tx.tx_id, verdict)
    return verdict


def _note(told: OrderedDict[str, Broadcast], tx_id: str, verdict: Broadcast) -> None:
    """Keep in mind what a node said of a transaction; once it took it, that is it."""
    known = told.pop(tx_id, verdict)
    told[tx_id] = known if known.state == "accepted" else verdict
    if len(told) > TOLD_KEPT:
        told.popitem(last=False)


def verdict_on(said: Submitted, tx: SignedTx) -> Broadcast:
    """Return what a node's answer to a transaction means."""
    code = said.code or ("SUCCESS" if said.result else "")
    told = text_of(said.message)
    reason = " ".join(part for part in (code, told) if part and part != "SUCCESS")
    state = _STATES.get(code, "unknown")
    if state == "accepted":
        if said.txid.lower() not in {"", tx.tx_id}:
            return Broadcast(state="unknown", reason=f"the node calls it {said.txid[:80]}")
        return Broadcast(state="accepted")
    if state == "rejected" and (_SHORT_OF_COIN.search(told) or (_NO_ACCOUNT.search(told) and _is_owner(told, tx))):
        state = "unfunded"
    return Broadcast(state=state, reason=reason or "the node gives no reason")


def _is_owner(told: str, tx: SignedTx) -> bool:
    """Return whether the account that a message misses is the sender's: the message names it, in one form or other."""
    owner = _owner(tx)
    return owner is not None and (spell(owner) in told or (PREFIX + owner).hex() in told.lower())


def without_bandwidth(txs: Sequence[SignedTx], verdicts: Sequence[Broadcast]) -> set[str]:
    """Return the senders for whose bytes nobody finds bandwidth, nor coin to burn."""
    owners = [
        _owner(tx)
        for tx, said in zip(txs, verdicts, strict=True)
        if said.state == "unfunded" and said.reason.startswith(NO_BANDWIDTH)
    ]
    return {spell(owner) for owner in owners if owner is not None}


def _owner(tx: SignedTx) -> bytes | None:
    try:
        return read_signed(tx.raw).owner
    except UnreadablePayloadError:
        return None
