"""From a block and what came of its transactions to the watched transfers: the checks, and the hot loop.

Pure. A block is used only when there is one answer for each of its transactions; anything else is an outage and never
an empty block.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from cambist.plugin import Block, InconsistentChainError, Transfer, Units, Watch
from cambist_chainkit.contracts import first_word

from .addresses import ADDRESS_BYTES, PREFIX, spell_hex
from .headers import NOTHING
from .protobuf import NUMBER_MAX
from .signed import CALL, NATIVE, Payment, check_signed, payment_told
from .wire import InternalTx, TronBlock, TronLog, TronTx, TxInfo

TRANSFER_TOPIC: Final = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

TRANSFER_TOPICS: Final = 3
"""The event, sender, recipient. TRC-721 has a fourth for its number, and somebody's own event may have one."""

SUCCESS: Final = "SUCCESS"

MOVING_NOTES: Final = frozenset(note.encode("ascii").hex() for note in ("call", "create", "suicide"))
"""The internal transactions that move coin."""

_STAKING: Final = "freezeFor", "unfreezeFor", "freezeBalanceV2For", "unfreezeBalanceV2For"
_LENDING: Final = "delegateResourceOf", "unDelegateResourceOf"
_RESOURCES: Final = "Bandwidth", "Energy", "TronPower", "UnknownType"
STILL_NOTES: Final = frozenset(
    note.encode("ascii").hex()
    for note in (
        *map("".join, product((*_STAKING, *_LENDING), _RESOURCES)),
        *("cancelAllUnfreezeV2", "voteWitness", "withdrawReward", "withdrawExpireUnfreeze"),
        *("withdrawExpireUnfreezeWhileUnfreezing", "withdrawExpireUnfreezeWhileCanceling"),
        "withdrawExpireUnfreezeWhileSuiciding",  # the heir's, which stands in the amount of ``suicide``, too
    )
)
"""Those that move none, although they name an amount and a recipient like the others: all that java-tron 4.8 writes."""

_LOG_ADDRESS: Final = re.compile(r"(?:41)?[0-9a-f]{40}", re.ASCII)
WORD: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_PADDING: Final = "0" * 24
_NOTE_SHOWN: Final = 64
FAILED: Final = "FAILED"
_RESULTS: Final = frozenset({"", "SUCESS", SUCCESS, FAILED})  # the misspelt one is protobuf's name for no failure


def check_transactions(block: TronBlock, height: int) -> None:
    """Raise InconsistentChainError where a block came without its transactions, or they are not what was signed."""
    root = block.raw.tx_trie_root
    if not block.transactions and root not in {"", NOTHING}:
        raise InconsistentChainError(f"block {height} came without its transactions")
    if len({tx.id for tx in block.transactions}) != len(block.transactions):
        raise InconsistentChainError(f"block {height} has a transaction twice")
    # Nobody signed what stands in the first block.
    for tx in block.transactions if height else ():
        check_signed(tx)


def check_infos(block: TronBlock, infos: Sequence[TxInfo], height: int) -> list[TxInfo]:
    """Return what came of each transaction, in their order. Raises InconsistentChainError unless all is there.

    Results tell their block's height and time. By these, those of another fork are found out, where the same
    transactions may have moved something else.
    """
    if len(infos) != len(block.transactions):
        message = f"block {height} has {len(block.transactions)} transactions, and results of {len(infos)}"
        raise InconsistentChainError(message)
    position = height, block.raw.timestamp
    by_id = {info.id: info for info in infos if (info.block_number, info.block_time_ms) == position}
    try:
        return [by_id[tx.id] for tx in block.transactions]
    except KeyError:
        raise InconsistentChainError(f"the results that came for block {height} are of other transactions") from None


def native_hits(transactions: Sequence[TronTx], watch: Watch) -> list[tuple[int, TronTx]]:
    """Return (index, transaction) for each that sends native coin to or from a watched address, whatever came of it.

    By a transfer, or along with a call. Raises ValueError.
    """
    hits = []
    for index, tx in enumerate(transactions):
        for contract in tx.raw_data.contract:  # nodes take exactly one
            value = contract.parameter.value
            if contract.type == NATIVE:
                recipient = value.to_address
            elif contract.type == CALL and value.call_value:
                recipient = value.contract_address
            else:
                continue
            if _is_watched(value.owner_address, recipient, watch):
                hits.append((index, tx))
    return hits


def _is_watched(sender: str, recipient: str, watch: Watch) -> bool:
    """Return whether one of the ends is watched. Raises ValueError where one is no address."""
    giver, taker = _key(sender), _key(recipient)
    return taker in watch or giver in watch


def _key(digits: str) -> bytes:
    """Return what of an address is watched for: the 20 bytes behind the first. Raises ValueError."""
    address = bytes.fromhex(digits)
    if len(address) != len(PREFIX) + ADDRESS_BYTES:
        raise ValueError("no address")
    return address[1:]


def token_hits(infos: Sequence[TxInfo], contracts: Mapping[str, str], watch: Watch) -> list[tuple[int, int, TronLog]]:
    """Return (transaction's index, log's ordinal in it, log) for each watched Transfer, unchecked.

    This runs for every log of every block, so it builds nothing for what nobody watches. Raises ValueError, also for
    a log that would only be overlooked.
    """
    hits = []
    if any([_LOG_ADDRESS.fullmatch(one) is None for one in {log.address for info in infos for log in info.logs}]):  # noqa: C419
        raise ValueError("no address")
    topic = TRANSFER_TOPIC
    from_hex = bytes.fromhex
    for index, info in enumerate(infos):
        for ordinal, log in enumerate(info.logs):
            if log.address in contracts:
                topics = log.topics
                if len(topics) == TRANSFER_TOPICS and topics[0] == topic:
                    sender, recipient = from_hex(topics[1][24:]), from_hex(topics[2][24:])
                    if len(recipient) != ADDRESS_BYTES or len(sender) != ADDRESS_BYTES:
                        raise ValueError("no address")
                    if recipient in watch or sender in watch:
                        hits.append((index, ordinal, log))
                elif any(WORD.fullmatch(one) is None for one in topics):
                    raise ValueError("no topic")
    return hits


def internal_hits(infos: Sequence[TxInfo], watch: Watch) -> list[tuple[int, int, InternalTx]]:
    """Return (transaction's index, ordinal in it, internal transaction) for each that may concern a watched address.

    Those that move none are not counted: only some nodes keep them, and the ordinal is the same on all.
    Raises ValueError.
    """
    hits = []
    for index, info in enumerate(infos):
        moving = [internal for internal in info.internal if internal.note not in STILL_NOTES]
        for ordinal, internal in enumerate(moving):
            if (
                any(one.value for one in internal.values)
                and not internal.rejected
                and _is_watched(internal.sender, internal.recipient, watch)
            ):
                hits.append((index, ordinal, internal))
    return hits


def transfers_of(
    block: TronBlock,
    infos: Sequence[TxInfo],
    contracts: Mapping[str, str],
    watch: Watch,
    *,
    internal: bool = True,
) -> list[Transfer]:
    """Return the watched transfers of a checked block in the order of the chain: by transaction, native before logs."""
    found: list[tuple[int, Transfer]] = []
    inside = Block(height=block.raw.number, hash=block.id, parent_hash="", time=0)
    try:
        for index, tx in native_hits(block.transactions, watch):
            (contract,) = tx.raw_data.contract
            happened = _took_effect if contract.type == NATIVE else _ran
            if happened(tx, infos[index]) and (native := _native(inside, tx.id, payment_told(contract))) is not None:
                found.append((index, native))
        for index, ordinal, inner in internal_hits(infos, watch) if internal else ():
            if _ran(block.transactions[index], infos[index]):
                moved = _internal(inside, infos[index], ordinal, inner)
                found += [] if moved is None else [(index, moved)]
        for index, ordinal, log in token_hits(infos, contracts, watch):
            if _ran(block.transactions[index], infos[index]):
                paid = _token(inside, infos[index].id, ordinal, log, contracts)
                found += [] if paid is None else [(index, paid)]
    except ValueError as error:
        raise InconsistentChainError(f"block {inside.height} holds an address or an amount that is none") from error
    found.sort(key=lambda hit: hit[0])
    return [transfer for _, transfer in found]


def succeeded(info: TxInfo) -> bool:
    """Return whether the transaction did what it says, by its result. Raises InconsistentChainError."""
    if info.result not in _RESULTS:
        raise InconsistentChainError(f"nobody knows the outcome {info.result[:64]!r} of transaction {info.id[:64]}")
    return info.result != FAILED and info.receipt.result in {"", SUCCESS}


def _took_effect(tx: TronTx, info: TxInfo) -> bool:
    """Return whether the transaction did what it says, by the block and by its result alike.

    Raises InconsistentChainError where they contradict each other, or the block says nothing.
    """
    said = [result.contract_ret for result in tx.ret]
    if len(said) != 1 or not said[0]:
        raise InconsistentChainError(f"the block does not say what came of transaction {tx.id[:64]}")
    by_block = said == [SUCCESS]
    if by_block != succeeded(info):
        raise InconsistentChainError(f"block and result contradict each other about transaction {tx.id[:64]}")
    return by_block


def _ran(tx: TronTx, info: TxInfo) -> bool:
    """Return whether a contract ran to its end: a failed one may show logs and payments that never were.

    Raises InconsistentChainError where it left something behind, or took coin along, and has no result.
    """
    took_effect = _took_effect(tx, info)
    if took_effect and info.receipt.result != SUCCESS:
        raise InconsistentChainError(f"transaction {tx.id[:64]} has logs or payments, and no result")
    return took_effect


def _address(digits: str) -> str:
    address = spell_hex(digits)
    if address is None:
        raise ValueError("no address")
    return address


def _coin(amount: int) -> int:
    if not 0 <= amount <= NUMBER_MAX:
        raise ValueError("more than there can be")
    return amount


def _native(inside: Block, tx_id: str, paid: Payment | None) -> Transfer | None:
    # What an address sends to itself changes nothing it holds.
    if paid is None or _coin(paid.amount) <= 0 or paid.to_address == paid.owner_address:
        return None
    return _transfer(inside, tx_id, "native", paid.owner_address, paid.to_address, paid.amount)


def _internal(inside: Block, info: TxInfo, ordinal: int, inner: InternalTx) -> Transfer | None:
    """Return what an internal transaction paid. Raises InconsistentChainError where one is of no known kind.

    Itself or one beside it: whether that moves coin, and is to be counted, nobody knows.
    """
    amount = _coin(sum(one.value for one in inner.values if not one.token_id))
    if amount <= 0 or inner.recipient == inner.sender:
        return None
    for note in {one.note for one in info.internal} - MOVING_NOTES - STILL_NOTES:
        shown = note[:_NOTE_SHOWN]
        message = f"an internal transaction is of no known kind, which a newer cambist-tron may know: {shown!r}"
        raise InconsistentChainError(message)
    return _transfer(inside, info.id, f"trace:{ordinal}", inner.sender, inner.recipient, amount)


def _token(inside: Block, tx_id: str, ordinal: int, log: TronLog, contracts: Mapping[str, str]) -> Transfer | None:
    _, sender, recipient = log.topics
    padded = sender.startswith(_PADDING) and recipient.startswith(_PADDING)
    amount = first_word(log.data)
    if any(WORD.fullmatch(one) is None for one in (sender, recipient)):
        raise ValueError("no word")
    if not amount or not padded or sender == recipient:
        return None
    contract = contracts[log.address]
    return _transfer(inside, tx_id, f"log:{ordinal}", "41" + sender[24:], "41" + recipient[24:], amount, contract)


def _transfer(  # noqa: PLR0913, PLR0917 - the fields of a transfer
    inside: Block, tx_id: str, position: str, sender: str, recipient: str, amount: int, contract: str | None = None
) -> Transfer:
    return Transfer(
        tx_id=tx_id,
        position=position,
        height=inside.height,
        block_hash=inside.hash,
        sender=_address(sender),
        recipient=_address(recipient),
        contract=contract,
        amount=Units(amount),
    )
