"""From a block and its receipts to the watched transfers: the checks that make it one block, and the hot loop.

Pure. A block is used only when its receipts are all there, in the order of its transactions, and its own;
anything else is an outage and never an empty block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cambist.plugin import Block, InconsistentChainError, Transfer, Units, Watch

from .addresses import spell
from .wire import RpcBlock, RpcHeader, RpcLog, RpcReceipt, RpcTransaction

TRANSFER_TOPIC: Final = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

TRANSFER_TOPICS: Final = 3
"""The event, sender, recipient. ERC-721 has a fourth for its number, and somebody's own event may have one."""

ZERO_ADDRESS: Final = "0x" + "0" * 40

_WORD_CHARS: Final = 2 + 64
_PADDING: Final = "0x" + "0" * 24
_NO_BLOOM: Final = frozenset({"", "0x", "0x" + "0" * 512})


def number_of(header: RpcHeader) -> int:
    """Return the block's height. Raises InconsistentChainError where it is no number."""
    try:
        return int(header.number, 16)
    except ValueError as error:
        raise InconsistentChainError(f"a block came with the number {header.number[:80]!r}") from error


def is_synthetic(tx: RpcTransaction) -> bool:
    """Return whether nobody sent this: the transaction in which Polygon applies what was bridged in."""
    return tx.sender == tx.to == ZERO_ADDRESS and tx.value == "0x0"


def check_header(header: RpcHeader, height: int) -> Block:
    """Return the block's position in the chain. Raises InconsistentChainError when it stands at another height."""
    try:
        number, time = int(header.number, 16), int(header.timestamp, 16)
    except ValueError as error:
        raise InconsistentChainError(f"block {height} came with a number or a time that is none") from error
    if number != height:
        raise InconsistentChainError(f"block {height} was asked for and block {number} came")
    if len(header.hash) != _WORD_CHARS or len(header.parent_hash) != _WORD_CHARS:
        raise InconsistentChainError(f"block {height} came without a hash")
    return Block(height=height, hash=header.hash.lower(), parent_hash=header.parent_hash.lower(), time=time)


def check_receipts(block: RpcBlock, receipts: Sequence[RpcReceipt]) -> None:
    """Raise InconsistentChainError unless these are all receipts of this block, in order and whole."""
    height = int(block.number, 16)
    if [receipt.transaction_hash for receipt in receipts] != [tx.hash for tx in block.transactions]:
        message = f"block {height} has {len(block.transactions)} transactions, and {len(receipts)} receipts that differ"
        raise InconsistentChainError(message)
    if not {receipt.block_hash for receipt in receipts} <= {block.hash}:
        raise InconsistentChainError(f"receipts of another block came with block {height}")
    _check_log_indexes(height, receipts)


def _check_log_indexes(height: int, receipts: Sequence[RpcReceipt]) -> None:
    """Raise InconsistentChainError where a log was left out or put in.

    Log indexes count through the block, with some nodes through the receipt. Either way a gap or a repetition
    shows that the logs are not those of the block.
    """
    following = 0
    try:
        for receipt in receipts:
            logs = receipt.logs
            if not logs:
                if receipt.logs_bloom not in _NO_BLOOM:
                    break
                continue
            first = int(logs[0].log_index, 16)
            if first not in (following, 0) or int(logs[-1].log_index, 16) != first + len(logs) - 1:
                break
            following = first + len(logs)
        else:
            return
    except ValueError:
        pass
    raise InconsistentChainError(f"logs of block {height} are missing, doubled or not numbered")


def token_hits(
    receipts: Sequence[RpcReceipt], contracts: Mapping[str, str], watch: Watch
) -> list[tuple[int, int, RpcLog]]:
    """Return (transaction's index, log's ordinal in its receipt, log) for each watched Transfer, unchecked.

    This runs for every log of every block, so it builds nothing for what nobody watches.
    """
    hits = []
    topic = TRANSFER_TOPIC
    from_hex = bytes.fromhex
    for index, receipt in enumerate(receipts):
        for ordinal, log in enumerate(receipt.logs):
            if log.address in contracts:
                topics = log.topics
                if len(topics) == TRANSFER_TOPICS and topics[0] == topic and from_hex(topics[2][26:]) in watch:
                    hits.append((index, ordinal, log))
    return hits


def native_hits(transactions: Sequence[RpcTransaction], watch: Watch) -> list[tuple[int, RpcTransaction]]:
    """Return (index, transaction) for each that sends value to a watched address, whatever came of it."""
    from_hex = bytes.fromhex
    return [
        (index, tx)
        for index, tx in enumerate(transactions)
        if tx.to is not None and tx.value != "0x0" and from_hex(tx.to[2:]) in watch
    ]


def transfers_of(
    block: RpcBlock,
    receipts: Sequence[RpcReceipt],
    contracts: Mapping[str, str],
    watch: Watch,
    internal: Sequence[tuple[int, Transfer]] = (),
) -> list[Transfer]:
    """Return the watched transfers of a checked block in the order of the chain: by transaction, native before logs.

    ``internal`` holds the native transfers that traces showed, with the index of their transaction.
    """
    try:
        found = [
            (index, transfer)
            for index, tx in native_hits(block.transactions, watch)
            if (transfer := _native_transfer(block, receipts[index], tx)) is not None
        ]
        found += internal
        found += [
            (index, transfer)
            for index, ordinal, log in token_hits(receipts, contracts, watch)
            if (transfer := _token_transfer(block, receipts[index], ordinal, log, contracts)) is not None
        ]
    except ValueError as error:
        message = f"block {int(block.number, 16)} holds an address or an amount that is none"
        raise InconsistentChainError(message) from error
    found.sort(key=lambda hit: hit[0])
    return [transfer for _, transfer in found]


def succeeded(receipt: RpcReceipt) -> bool:
    """Return whether the transaction took effect. Raises InconsistentChainError where the receipt does not tell."""
    if receipt.status is None:
        raise InconsistentChainError(f"the receipt of {receipt.transaction_hash} has no status")
    return int(receipt.status, 16) == 1


def _native_transfer(block: RpcBlock, receipt: RpcReceipt, tx: RpcTransaction) -> Transfer | None:
    amount = int(tx.value, 16)
    # What an address sends to itself changes nothing it holds.
    if amount == 0 or tx.to is None or tx.to.lower() == tx.sender.lower() or not succeeded(receipt):
        return None
    return transfer_in(block, tx.hash, "native", tx.sender[2:], tx.to[2:], amount)


def _token_transfer(
    block: RpcBlock, receipt: RpcReceipt, ordinal: int, log: RpcLog, contracts: Mapping[str, str]
) -> Transfer | None:
    if log.removed:
        raise InconsistentChainError(f"a log of block {int(block.number, 16)} is marked as removed by a reorg")
    _, sender, recipient = log.topics
    padded = sender.startswith(_PADDING) and recipient.startswith(_PADDING)
    if len(log.data) < _WORD_CHARS or not padded or sender == recipient or not succeeded(receipt):
        return None
    amount = int(log.data[2:_WORD_CHARS], 16)
    if amount == 0:
        return None
    return transfer_in(
        block, receipt.transaction_hash, f"log:{ordinal}", sender[26:], recipient[26:], amount, contracts[log.address]
    )


def transfer_in(  # noqa: PLR0913, PLR0917 - the fields of a transfer
    block: RpcBlock, tx_id: str, position: str, sender: str, recipient: str, amount: int, contract: str | None = None
) -> Transfer:
    """Return what the block holds; addresses are given as 40 hex digits."""
    return Transfer(
        tx_id=tx_id.lower(),
        position=position,
        height=int(block.number, 16),
        block_hash=block.hash.lower(),
        sender=spell(sender.lower()),
        recipient=spell(recipient.lower()),
        contract=contract,
        amount=Units(amount),
    )
